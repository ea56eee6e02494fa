"""Every schedule, depth and number of waves, for every dtype and transposition, in a product of one workgroup: exact.

Each step along K has a weight of its own, so that a tile that is read one step too early or too late shows. What a
request can't be honoured for is refused (HK450), never computed in another way.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from matrix_products import CHIPS, FORMS, compiled, run

from hkc.api import CompiledKernel
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError
from hkc.targets.chip import load

KINDS = ("bf16", "f16", "f32", "i8", "fp8")
HINTS = [
    *(f"waves={waves}, schedule=plain, stages={stages}" for waves, stages in product((1, 2, 4, 8), (1, 2, 3))),
    *(f"waves={waves}, schedule=interleave, stages={stages}" for waves, stages in product((1, 2, 4), (2, 3))),
    *(f"waves=8, schedule=pingpong, stages={stages}" for stages in (2, 3)),
]
FP8 = {"ocp": "f8e4m3fn", "fnuz": "f8e4m3fnuz"}
SEEDS = 8


def built(form: str, kind: str, arch: str, hints: str) -> CompiledKernel:
    element = FP8[load(arch).fp8] if kind == "fp8" else kind
    total = "i32" if kind == "i8" else "f32"
    depth = 128 // dtype(element).bytes
    return compiled(form, arch, hints, T=element, SUM=total, OUT=total, BM=64, BN=64, BK=depth)


def check(kernel: CompiledKernel, form: str, size: tuple[int, int, int], seeds: int) -> None:
    """Whole numbers that every dtype holds, with sums that f32 holds."""
    m, n, k = size
    constants = dict(kernel.info.constants)
    step, kind = int(constants["BK"]), constants["T"]
    rng = np.random.default_rng(m * n + k)
    a = rng.integers(-1, 2, (m, k)) * (1 + np.arange(k) // step % 7)
    b = rng.integers(-2, 3, (k, n))
    stored = [x.T if letter == "T" else x for x, letter in zip((a, b), form, strict=True)]
    arrays = [np.ascontiguousarray(x).astype(dtype(kind).numpy) for x in stored]
    first = b""
    for seed in range(seeds):
        found, happened, _ = run(kernel, *arrays, seed=seed)
        assert np.array_equal(found, a @ b), seed
        assert happened.findings == ()
        assert (first := first or found.tobytes()) == found.tobytes()


CASES = list(product(FORMS, KINDS, HINTS, CHIPS))


def one(form: str, kind: str, hints: str, arch: str) -> None:
    try:
        kernel = built(form, kind, arch, hints)
    except HkcError as refusal:
        assert refusal.diagnostics[0].code == "HK450", refusal
        return
    step = int(dict(kernel.info.constants)["BK"])
    for m, n, k in ((64, 64, step), (60, 52, 5 * step + 24)):
        check(kernel, form, (m, n, k), SEEDS)


@pytest.mark.parametrize(("form", "kind", "hints", "arch"), CASES[:: len(CASES) // 6 + 1])
def test_a_few_of_them(form: str, kind: str, hints: str, arch: str) -> None:
    one(form, kind, hints, arch)


@pytest.mark.long
@pytest.mark.parametrize(("form", "kind", "hints", "arch"), CASES)
def test_all_of_them(form: str, kind: str, hints: str, arch: str) -> None:
    one(form, kind, hints, arch)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("hints", ["waves=8, schedule=pingpong", "waves=4, schedule=interleave, stages=3", "waves=4"])
def test_sums_of_bytes_beyond_what_f32_holds(hints: str, arch: str) -> None:
    kernel = built("NT", "i8", arch, hints)
    rng = np.random.default_rng(1)
    a, b = rng.integers(120, 128, (64, 1200)), rng.integers(120, 128, (64, 1200))
    found, happened, _ = run(kernel, a.astype(np.int8), b.astype(np.int8))
    assert found.min() > 1 << 24 and found.dtype == np.int32
    assert np.array_equal(found, a @ b.T)
    assert happened.findings == ()
