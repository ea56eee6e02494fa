"""Tiles that several dots use: one buffer in LDS serves them all where one map can, and sums are right either way."""

from __future__ import annotations

import numpy as np
import pytest
from matrix_products import CHIPS

import hkc
from hkc.api import CompiledKernel
from hkc.emulate.bank_conflicts import BankObserver
from hkc.runtime.emulator import Emulator
from hkc.support.dtypes import dtype
from hkc.targets.chip import load

GRAM = """
const T = bf16
const WAVES = 4
tune B = 64

kernel gram(A: global[T, M, K], V: global[T, M, N], S: global[f32, B, B], C: global[f32, K, N]) with waves=WAVES:
    s = zeros[f32, B, B]
    c = zeros[f32, B, B]
    for m in range(0, M, B):
        a = load(A, [m, 0], [B, B])
        s += dot(a, a.T)
        c += dot(a.T, load(V, [m, 0], [B, B]))
    store(S, [0, 0], s)
    store(C, [0, 0], c)
"""
"""A is read by rows, as rows that stand for columns, and by columns."""


def check(kernel: CompiledKernel, extents: dict[str, int], seed: int = 0) -> None:
    """Small whole numbers give what the NumPy meanings give, with nothing for the checkers to find."""
    rng = np.random.default_rng(seed)
    arrays = [
        rng.integers(-3, 4, [extents[d] for d in p.dims]).astype(dtype(p.dtype).numpy)
        for p in kernel.info.params
        if p.name not in kernel.info.outputs
    ]
    observer = BankObserver(load(kernel.arch))
    arguments = kernel.bind(*arrays)
    happened = kernel.launch(arguments, Emulator(seed, [observer]))
    wanted = kernel.bind(*arrays)
    kernel.launch(wanted, "reference")
    for found, exact in zip(arguments.results(kernel.info), wanted.results(kernel.info), strict=True):
        assert np.array_equal(found, exact)
    assert happened.findings == ()
    assert all(set(made.clocks) == {made.minimum} for made in observer.instructions())


def reads(kernel: CompiledKernel) -> list[int]:
    """How often the tiles are read in each buffer; what the copies of a loop have in the same place counts once."""
    found = {b.offset: sum(access.kind != "write" for access in b.accesses) for b in kernel.binary.lds}
    return list(found.values())


def test_rows_and_columns_from_one_buffer() -> None:
    """Lanes of this chip transpose while they read: one map serves both, and the tile comes straight from memory."""
    kernel = hkc.compile(GRAM, "gfx950")
    whole = [b for b in kernel.binary.lds if len(b.accesses) > 2]
    assert whole and {b.bytes for b in whole} == {64 * 64 * 2}
    assert {a.kind for a in whole[0].accesses} == {"read", "read_transposed", "write"}
    assert all(a.cycles == a.minimum for b in kernel.binary.lds for a in b.accesses)
    assert any(c.way == "direct" and not c.transposed for c in kernel.binary.layouts.conversions)
    assert kernel.lds_bytes == 2 * 2 * 64 * 64 * 2  # A and V, each filled for one trip while another reads it


def test_columns_from_a_buffer_of_their_own() -> None:
    """Without transposed reads, a second copy that is turned on its way costs less than reads element by element."""
    kernel = hkc.compile(GRAM, "gfx942")
    assert sorted(reads(kernel)) == [1, 1, 1, 1, 2, 2]  # columns of A, V, rows of A; for this trip and the next one
    (line,) = (c for c in kernel.binary.choices if c.subject == "LDS" and c.line == 11)
    assert line.runner_up == "a buffer of its own for each conversion" and line.clocks < line.runner_up_clocks


@pytest.mark.parametrize(("arch", "element", "waves", "size"), [
    ("gfx942", "f8e4m3fnuz", 4, 64), ("gfx942", "f32", 2, 32), ("gfx950", "f8e4m3fn", 8, 64), ("gfx950", "f16", 4, 48),
])  # fmt: skip
def test_all_uses_are_right(arch: str, element: str, waves: int, size: int) -> None:
    """Both products start from the same zeros, and the waves of each may lie differently."""
    kernel = hkc.compile(GRAM, arch, T=element, WAVES=waves, B=size)
    check(kernel, {"M": 3 * size - 5, "K": size, "N": size})


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("element", ["bf16", "f32", "fp8"])
@pytest.mark.parametrize("size", [8, 16, 48, 64, 96])
def test_all_uses_are_right_everywhere(arch: str, element: str, size: int) -> None:
    element = {"fp8": "f8e4m3fnuz" if arch == "gfx942" else "f8e4m3fn"}.get(element, element)
    for waves in (1, 2, 4, 8, 16):
        kernel = hkc.compile(GRAM, arch, T=element, WAVES=waves, B=size)
        check(kernel, {"M": 2 * size + size // 2, "K": size, "N": size}, waves)


BETWEEN = """
kernel between(X: global[bf16, M, K], Y: global[bf16, K, N], C: global[f32, M, N], S: global[f32, M, M]):
    x = load(X, [0, 0], [64, DEPTH])
    store(C, [0, 0], dot(x, load(Y, [0, 0], [DEPTH, 64])))
    store(S, [0, 0], dot(x, x.T))
"""
"""Another tile goes through LDS between two uses of one."""


@pytest.mark.parametrize(("arch", "depth"), [("gfx942", 320), ("gfx942", 128), ("gfx950", 640)])
def test_a_buffer_that_is_needed_again_is_not_given_away(arch: str, depth: int) -> None:
    """Where both tiles have room their buffers lie apart; where not, the tile is written again."""
    kernel = hkc.compile(f"const DEPTH = {depth}\n{BETWEEN}", arch)
    size = 64 * depth * 2
    apart = 2 * size <= {"gfx942": 65536, "gfx950": 163840}[arch]
    assert (kernel.lds_bytes >= 2 * size) == apart
    check(kernel, {"M": 64, "K": depth, "N": 60})


@pytest.mark.parametrize("arch", CHIPS)
def test_a_tile_that_fills_the_lds_twice_used(arch: str) -> None:
    text = """
kernel k(X: global[f32, M, K], S: global[f32, M, M]):
    x = load(X, [0, 0], [64, 256])
    store(S, [0, 0], dot(x, x.T))
"""
    kernel = hkc.compile(text, arch)
    assert kernel.lds_bytes == 65536
    check(kernel, {"M": 64, "K": 250})
