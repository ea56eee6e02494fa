"""Operands that are parts of larger arrays: an offset, rows further apart than they are long."""

from __future__ import annotations

import numpy as np
import pytest
from matrix_products import CHIPS, compiled

from hkc.support.dtypes import dtype


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("start", "stride"), [(5, 40), (8, 40), (0, 72), (16, 33)])
def test_a_view_of_one_dimension_as_a_matrix(start: int, stride: int, arch: str) -> None:
    """Element (i, j) is element start + i * stride + j of an array: the aligned entry copies straight to LDS where the
    chip can, the general one takes any offset and stride."""
    kernel = compiled("NT", arch)
    kind = dtype("bf16").numpy
    whole = (np.arange(start + 64 * stride + 64) % 13 - 6).astype(kind)
    view = np.lib.stride_tricks.as_strided(whole[start:], (50, 32), (stride * 2, 2))
    found = kernel(view, np.eye(32, dtype=kind)[:24])
    i, j = np.ogrid[:50, :24]
    assert np.array_equal(found, whole[start + i * stride + j].astype(np.float32))
