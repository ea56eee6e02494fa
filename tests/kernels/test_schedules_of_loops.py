"""Matrix products under every schedule, depth and number of waves: exact, whatever the order in which waves run.

Every tile along K has a weight of its own, so that a tile that is read one step too early or too late shows.
"""

from __future__ import annotations

import functools
from itertools import product

import numpy as np
import pytest
from matrix_products import CHIPS, run

import hkc
from hkc.api import CompiledKernel
from hkc.support.dtypes import dtype

KERNEL = """
const T = bf16
tune BM = 64, BN = 64, BK = 32

kernel gemm(A: global[T, M, K], B: global[T, N, K], C: global[f32, M, N]) with HINTS:
    m, n = tile_ids(cdiv(M, BM), cdiv(N, BN))
    acc = zeros[f32, BM, BN]
    for k in range(0, K, BK):
        acc += dot(load(A, [m*BM, k], [BM, BK]), load(B, [n*BN, k], [BN, BK]).T)
    store(C, [m*BM, n*BN], acc)
"""


@functools.cache
def compiled(arch: str, hints: str, **constants: str | int) -> CompiledKernel:
    return hkc.compile(KERNEL.replace("HINTS", hints), arch, **constants)


def check(kernel: CompiledKernel, size: tuple[int, int, int], step: int, seeds: int, kind: str = "bf16") -> None:
    """Products of small whole numbers whose sums tell the tiles along K apart."""
    m, n, k = size
    rng = np.random.default_rng(m * n + k)
    a = rng.integers(-1, 2, (m, k)) * (1 + np.arange(k) // step % 7)
    b = rng.integers(-2, 3, (n, k))
    stored = [x.astype(dtype(kind).numpy) for x in (a, b)]
    for seed in range(seeds):
        found, happened, _ = run(kernel, *stored, seed=seed)
        assert np.array_equal(found, a @ b.T), seed
        assert happened.findings == ()


HINTS = [
    *(f"waves={waves}, stages={stages}" for waves, stages in product((1, 4, 8), (1, 2, 3, 4))),
    *(f"waves=8, schedule=pingpong, stages={stages}" for stages in (2, 3, 4)),
    *(f"waves={waves}, schedule=interleave, stages={stages}" for waves, stages in product((1, 4), (2, 3))),
]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    "hints",
    [
        "waves=4, schedule=interleave",
        "waves=4, schedule=plain, stages=3",
        "waves=8, schedule=pingpong",
        "waves=8, schedule=pingpong, stages=3",
    ],
)
def test_some_schedules_and_depths(hints: str, arch: str) -> None:
    kernel = compiled(arch, hints, BM=64, BN=64, BK=64)
    for depth in (64, 320, 408):
        check(kernel, (64, 40, depth), 64, 2)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("hints", HINTS)
@pytest.mark.parametrize("trips", range(8))
def test_every_schedule_and_depth(hints: str, trips: int, arch: str) -> None:
    kernel = compiled(arch, hints, BM=64, BN=128, BK=64)
    for rest in (0, 24):
        check(kernel, (70, 130, 64 * trips + rest), 64, 8)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", [(256, 256, 64, "bf16"), (256, 256, 128, "f8"), (256, 128, 64, "bf16")])
def test_the_tiles_of_the_hot_loop_bench(shape: tuple[int, int, int, str], arch: str) -> None:
    bm, bn, bk, kind = shape
    kind = {"gfx942": "f8e4m3fnuz", "gfx950": "f8e4m3fn"}[arch] if kind == "f8" else kind
    kernel = compiled(arch, "waves=8", T=kind, BM=bm, BN=bn, BK=bk)
    for trips, rest in ((1, 0), (2, 16), (3, 0), (4, 16), (5, 0)):
        check(kernel, (bm, bn - 4, bk * trips + rest), bk, 8, kind)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
def test_sums_in_agprs(arch: str) -> None:
    kernel = compiled(arch, "waves=4, schedule=interleave", BM=256, BN=256, BK=64)
    assert kernel.agpr == 256
    for size in ((256, 252, 64), (255, 256, 152), (250, 251, 194)):
        check(kernel, size, 64, 2)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
def test_twenty_runs_are_identical(arch: str) -> None:
    check(compiled(arch, "waves=8", BM=128, BN=128, BK=64), (100, 120, 424), 64, 20)
