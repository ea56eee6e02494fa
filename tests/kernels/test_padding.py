"""Tiles that no grid of matrix instructions or waves divides: what layouts hold beyond them reaches nobody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matrix_products import CHIPS, compiled, operands, run

import hkc
from hkc.support.dtypes import dtype

ATTENTION = (Path(__file__).parents[2] / "examples" / "attention.hk").read_text()

AFTER = """
tune BM = 16, BN = 16, BK = 16
const WAVES = 4

kernel after(A: global[f16, M, K], B: global[f16, K, N], C: global[f32, M, N], R: global[f32, M, 1],
             S: global[f32, 1, N], T: global[f32, N, M], P: global[i32, M, 1], L: global[f32, M, N],
             H: global[f32, M, N], D: global[f32, M, M]) with waves=WAVES:
    m, n = tile_ids(cdiv(M, BM), cdiv(N, BN))
    acc = zeros[f32, BM, BN]
    for k in range(0, K, BK):
        acc += dot(load(A, [m*BM, k], [BM, BK], fill=0.5), load(B, [k, n*BN], [BK, BN], fill=-2.0))
    store(C, [m*BM, n*BN], acc)
    store(R, [m*BM, 0], sum(acc, axis=1, keepdims=True))
    store(S, [0, n*BN], max(acc, axis=0, keepdims=True))
    store(T, [n*BN, m*BM], acc.T)
    store(P, [m*BM, 0], argmax(acc, axis=1, keepdims=True))
    store(L, [m*BM, n*BN], cumsum(acc, axis=1))
    low = min(acc, axis=1, keepdims=True)
    store(H, [m*BM, n*BN], where(acc > low, acc, prod(cast(acc == low, f32), axis=1, keepdims=True)))
    store(D, [m*BM, m*BM], dot(cast(acc, f16), cast(acc.T, f16)))
"""
"""Every way to use the result of a dot: stored, folded along both axes, transposed, scanned, compared, multiplied."""

SHAPES = ((1, 16, 16), (8, 8, 8), (48, 80, 16), (16, 4, 2), (112, 48, 48))
"""Rows, columns and inner extent of a tile."""


def after(arch: str, shape: tuple[int, int, int], waves: int) -> None:
    m, n, k = shape
    kernel = hkc.compile(AFTER, arch, BM=m, BN=n, BK=k, WAVES=waves)
    rng = np.random.default_rng(m)
    a, b = rng.integers(-3, 4, (m, 2 * k)).astype(np.float16), rng.integers(-3, 4, (2 * k, n)).astype(np.float16)
    for found, wanted in zip(kernel(a, b), kernel(a, b, device="reference"), strict=True):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize(("arch", "shape", "waves"), [
    ("gfx942", SHAPES[1], 1), ("gfx950", SHAPES[2], 4), ("gfx942", SHAPES[0], 2), ("gfx950", SHAPES[3], 1),
])  # fmt: skip
def test_all_that_follows_a_dot(arch: str, shape: tuple[int, int, int], waves: int) -> None:
    after(arch, shape, waves)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("waves", [1, 2, 4, 8])
def test_all_that_follows_a_dot_of_any_shape(arch: str, shape: tuple[int, int, int], waves: int) -> None:
    after(arch, shape, waves)


@pytest.mark.parametrize(("arch", "form", "shape", "waves"), [
    ("gfx942", "NN", (80, 80, 16), 4), ("gfx950", "TN", (112, 48, 48), 4), ("gfx942", "NT", (48, 112, 32), 4),
    ("gfx950", "TT", (8, 2, 4), 1),
])  # fmt: skip
def test_odd_counts_of_blocks_are_shared_by_waves(
    arch: str, form: str, shape: tuple[int, int, int], waves: int
) -> None:
    """Whole tiles, and ones at edges, are right, without a spill and with nothing touched outside."""
    kernel = compiled(form, arch, **dict(zip(("BM", "BN", "BK"), shape, strict=True)))
    assert kernel.waves == waves
    assert all(taken.vgpr_spills == taken.scratch == 0 for taken in kernel.resources.values())
    m, n, k = shape
    for extents in ((2 * m, n, 2 * k), (m + 5, 2 * n - 1, k + 1)):
        a, b, wanted = operands(form, "bf16", *extents)
        found, happened, _ = run(kernel, a, b)
        assert np.array_equal(found, wanted)
        assert happened.findings == ()


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("form", ["NN", "NT", "TN", "TT"])
def test_lanes_beyond_an_edge_stay_there_in_all_trips(arch: str, form: str) -> None:
    """By either reading of the buffers' range rule: the scalar offset of a later trip does not bring them back."""
    a, b, wanted = operands(form, "bf16", 72, 88, 272)
    found, happened, _ = run(compiled(form, arch, BM=64, BN=64, BK=32), a, b)
    assert np.array_equal(found, wanted)
    assert happened.findings == ()


def attend(arch: str, element: str, depth: int, keys: int, queries: int = 17, waves: int = 4) -> None:
    """Equal weights: output d is (keys - 1) / 2 + d, in 1/16; sums are exact, the division and the cast round once.
    Depths that are no legal extent have the next one as their tile."""
    tile = depth if depth in (8, 16, 32, 64, 128, 256) else depth + -depth % 16
    text = ATTENTION.replace("BM, D]", "BM, DT]").replace("BN, D]", "BN, DT]").replace("tune ", "tune DT = 64, ")
    text = text.replace("M, D]):", f"M, D]) with waves={waves}:")
    kernel = hkc.compile(text, arch, T=element, D=depth, DT=tile, BM=16, BN=16)
    assert kernel.waves == waves
    values = np.arange(keys)[:, None] + np.arange(depth)
    arrays = (np.zeros((queries, depth)), np.ones((keys, depth)), values / 16)
    found, happened, _ = run(kernel, *(x.astype(dtype(element).numpy) for x in arrays))
    total = arrays[2].astype(dtype(element).numpy).astype(np.float32).sum(axis=0)
    assert np.array_equal(found, np.broadcast_to((total / np.float32(keys)).astype(found.dtype), found.shape))
    assert happened.findings == ()


@pytest.mark.parametrize(("arch", "depth", "keys", "waves"), [
    ("gfx942", 8, 17, 1), ("gfx950", 20, 64, 2), ("gfx942", 80, 3, 4),
])  # fmt: skip
def test_head_dims(arch: str, depth: int, keys: int, waves: int) -> None:
    attend(arch, "f16", depth, keys, waves=waves)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("depth", [8, 16, 20, 32, 36, 40, 64, 72, 80, 96, 112, 128, 160, 192, 256])
@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_head_dims_of_every_size(arch: str, element: str, depth: int) -> None:
    for keys, queries, waves in ((1, 3, 4), (17, 1, 2), (64, 17, 1)):
        attend(arch, element, depth, keys, queries, waves)
