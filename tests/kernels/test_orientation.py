"""One row of B picked by every row of A: a misplaced fragment shows at once, since nothing is symmetric."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from matrix_products import CHIPS, FORMS, compiled, run

from hkc.support.dtypes import dtype

EXACT = {"bf16": 256, "f16": 2048, "f32": 1 << 20}
"""Whole numbers below these are exact."""


def check(form: str, element: str, arch: str, size: int) -> None:
    depth = 64
    kernel = compiled(form, arch, T=element, BM=size, BN=size, BK=depth)
    rows = (5 * np.arange(size) + 3) % depth
    a = np.zeros((size, depth))
    a[np.arange(size), rows] = 1
    b = np.arange(depth * size).reshape(depth, size) % EXACT[element]
    stored = (x.T if letter == "T" else x for x, letter in zip((a, b), form, strict=True))
    found, happened, _ = run(kernel, *(np.ascontiguousarray(x).astype(dtype(element).numpy) for x in stored))
    assert np.array_equal(found, b[rows])
    assert happened.findings == ()


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("form", "size"), [("NN", 48), ("NT", 16), ("TN", 96), ("TT", 32)])
def test_rows_arrive_where_they_belong(form: str, size: int, arch: str) -> None:
    check(form, "bf16", arch, size)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("form", "element", "size"), [*product(FORMS, EXACT, (16, 48, 80, 112, 160))])
def test_rows_of_every_kind_and_size(form: str, element: str, size: int, arch: str) -> None:
    check(form, element, arch, size)
