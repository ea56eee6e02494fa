"""Compiled kernels touch nothing but the elements of their tensors, at sizes around the tile's."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from emulated import CHIPS

import hkc
from hkc.api import CompiledKernel
from hkc.emulate import Observer
from hkc.emulate.checks import CHECKS, observers
from hkc.emulate.decode import Decoded
from hkc.emulate.observe import before
from hkc.emulate.registry import Context, Step
from hkc.emulate.waves import Waves
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


class Descriptors(Observer):
    """Collects base and size of every buffer descriptor that an instruction uses."""

    def __init__(self) -> None:
        self.seen: set[tuple[int, int]] = set()

    def step(self, instruction: Decoded, step: Step, context: Context) -> Step:
        if not instruction.base.startswith("buffer_") or " s[" not in instruction.text:
            return step
        first = int(instruction.text.split(" s[")[1].split(":")[0])

        def look(w: Waves) -> None:
            low, high, size, _ = w.state.scalar[first : first + 4, w.rows].astype(np.uint64)
            base = low | (high & np.uint64(0xFFFF)) << np.uint64(32)
            self.seen |= set(zip(base.tolist(), size.tolist(), strict=True))

        return before(step, look)


@functools.cache
def attention(arch: str) -> CompiledKernel:
    return hkc.compile(EXAMPLES / "attention.hk", arch, D=128, BM=32, BN=32)


SIZES = [
    (17, 17),
    (100, 17),
    (17, 100),
    *(pytest.param(*p, marks=pytest.mark.long) for p in ((100, 2000), (2000, 100))),
]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("m", "n"), SIZES)
def test_attention_touches_nothing_outside(m: int, n: int, arch: str) -> None:
    """And every buffer descriptor ends where the tensor ends."""
    kernel, rng = attention(arch), np.random.default_rng(m)
    kinds = {p.name: dtype(p.dtype).numpy for p in kernel.info.params}
    tensors = {name: guarded((m if name in "QO" else n, 128), kinds[name], 0) for name in "QKVO"}
    for name in "QKV":
        tensors[name][0][...] = rng.integers(-2, 3, tensors[name][0].shape)
    tensors["O"][0][...] = np.nan
    arguments = kernel.bind(**{name: tensor for name, (tensor, _) in tensors.items()})
    used = Descriptors()
    device = Emulator(observers=[*observers(CHECKS), used])
    happened = kernel.launch(arguments, device)
    assert {f.kind for f in happened.findings} <= {"bank conflicts"}
    q, k, v, o = (tensors[name][0].astype(np.float64) for name in "QKVO")
    p = np.exp((s := q @ k.T * 0.125) - s.max(axis=1, keepdims=True))
    assert np.abs(o - p @ v / p.sum(axis=1, keepdims=True)).max() < 4 * 2.0**-8  # P and O rounded to bf16, times 2
    for tensor, whole in tensors.values():
        assert (whole[:GUARD] == FILL).all() and (whole[GUARD + tensor.nbytes :] == FILL).all()
    ends = {view.address: view.address + view.span for view in device.views.values()}
    assert used.seen
    for base, size in used.seen:
        start = max(a for a in ends if a <= base)
        assert base + size == ends[start], (hex(base), size, ends)
