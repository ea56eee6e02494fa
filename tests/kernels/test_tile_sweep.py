"""Products in tiles of every legal size, of all dtypes and forms, shared by any count of waves: right, or refused for a
good reason. Few are drawn on every run, many by the long test."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from matrix_products import CHIPS, FORMS, gemm, operands, run

import hkc
from hkc.support.errors import HkcError
from hkc.targets.chip import load

SMALL = (1, 2, 4, 8)
"""Extents below those of any matrix instruction."""

REFUSALS = ("HK453", "HK459")
"""Too much LDS, too many registers."""

PATIENCE = 120
"""Seconds on the clock that a product may take at most, however busy the machine is."""


def draw(seed: int) -> tuple[str, str, str, int, dict[str, int]]:
    """A chip, a dtype, which operands are transposed, waves, and the extents of a tile."""
    rng = random.Random(seed)
    arch = rng.choice(CHIPS)
    element = rng.choice(("f16", "bf16", "f32", "i8", {"fnuz": "f8e4m3fnuz", "ocp": "f8e4m3fn"}[load(arch).fp8]))
    extents = {
        name: rng.choice(SMALL) if rng.random() < 0.3 else 16 * rng.randint(1, rng.choice((6, 12)))
        for name in ("BM", "BN", "BK")
    }
    return arch, element, rng.choice(FORMS), rng.choice((1, 2, 4, 8, 16)), extents


def check(seed: int) -> None:
    arch, element, form, waves, tile = draw(seed)
    text = gemm(form).replace("N]):", f"N]) with waves={waves}:")
    sums = {"OUT": "i32", "SUM": "i32"} if element == "i8" else {}
    begin = time.perf_counter()
    try:
        kernel = hkc.compile(text, arch, T=element, **sums, **tile)
    except HkcError as refusal:
        (problem,) = refusal.diagnostics
        assert problem.code in REFUSALS and problem.spans and problem.hint, problem
        return
    assert time.perf_counter() - begin < PATIENCE
    assert all(access.cycles == access.minimum for buffer in kernel.binary.lds for access in buffer.accesses)
    m, n, k = tile.values()
    ragged = random.Random(~seed)
    some = [ragged.randint(extent, 2 * extent) for extent in (m, n, k)]
    for extents in ((2 * m, n, 2 * k), tuple(some)):
        a, b, wanted = operands(form, element, *extents)
        found, happened, _ = run(kernel, a, b, seed=seed)
        assert np.array_equal(found, wanted)
        assert happened.findings == ()


@pytest.mark.parametrize("seed", range(8))
def test_some_tiles(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8, 300))
def test_many_tiles(seed: int) -> None:
    check(seed)
