"""Compiled kernels touch nothing but the elements of their tensors, at sizes around the tile's."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from emulated import CHIPS

import hkc
from hkc.api import CompiledKernel
from hkc.emulate.checks import CHECKS, observers
from hkc.runtime.emulator import Emulator
from hkc.support.dtypes import dtype

EXAMPLES = Path(__file__).parents[2] / "examples"
GUARD, FILL = 4096, 0xA5


@functools.cache
def product(arch: str) -> CompiledKernel:
    return hkc.compile(EXAMPLES / "gemm.hk", arch, BM=64, BN=64, BK=32)


def guarded(shape: tuple[int, ...], kind: np.dtype, pad: int) -> tuple[np.ndarray, np.ndarray]:
    """A tensor with `pad` bytes behind each row, in the middle of a buffer of guard bytes; and that buffer."""
    row = shape[-1] * kind.itemsize + pad
    whole = np.full(2 * GUARD + shape[0] * row, FILL, np.uint8)
    return np.ndarray(shape, kind, whole.data, GUARD, (row, kind.itemsize)), whole


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("pad", [0, 6, 16])
@pytest.mark.parametrize("m", [1, 23, 56, 57, 63, 65, 127])
def test_nothing_outside(m: int, pad: int, arch: str) -> None:
    """Tensors end where their memory ends: nothing is mapped behind them, and gaps are nobody's."""
    kernel, n, k = product(arch), 40, 40
    rng, kinds = np.random.default_rng(m), {p.name: dtype(p.dtype).numpy for p in kernel.info.params}
    a, b = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (n, k))
    tensors = {name: guarded(shape, kinds[name], pad) for name, shape in (("A", (m, k)), ("B", (n, k)), ("C", (m, n)))}
    tensors["A"][0][...], tensors["B"][0][...] = a, b
    tensors["C"][0][...] = np.nan
    arguments = kernel.bind(**{name: tensor for name, (tensor, _) in tensors.items()})
    happened = kernel.launch(arguments, Emulator(observers=observers(CHECKS)))
    assert {f.kind for f in happened.findings} <= {"bank conflicts"}
    assert np.array_equal(tensors["C"][0].astype(np.float64), a @ b.T)
    for name, (tensor, whole) in tensors.items():
        outside = np.ones(whole.size, np.bool_)
        np.ndarray((*tensor.shape, tensor.itemsize), np.bool_, outside.data, GUARD, (*tensor.strides, 1))[...] = False
        assert (whole[outside] == FILL).all(), name
