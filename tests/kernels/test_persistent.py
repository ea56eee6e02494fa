"""Products whose tiles few workgroups take, one after another: each tile once, and nothing spilled on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matrix_products import CHIPS, FORMS

from hkc.kernels import gemm
from hkc.kernels.choose import FORMS as PLAIN
from hkc.kernels.choose import PERSISTENT
from hkc.kernels.files import built, compiled
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError
from hkc.targets.chip import load

SHAPES = [(70, 50, 40), (130, 200, 72), (64, 64, 0), (1, 1, 1)]


def check(form: str, kind: str, chip: str, size: tuple[int, int, int], workgroups: int) -> None:
    """A product that is added to what is there: a tile that is taken twice shows as well as one that is left out."""
    m, n, k = size
    rng = np.random.default_rng(m + n + k)
    numpy = dtype(kind).numpy
    a, b = rng.integers(-3, 4, (m, k)).astype(numpy), rng.integers(-3, 4, (k, n)).astype(numpy)
    stored = [np.asfortranarray(x) if f == "T" else x for x, f in zip((a, b), form, strict=True)]
    out = rng.integers(-9, 10, (m, n)).astype(np.float32)
    wanted = a.astype(np.float64) @ b.astype(np.float64) + out
    found = gemm(*stored, out=out, beta=1.0, workgroups=workgroups, arch=chip, device="emulator")
    assert np.array_equal(found, wanted), (size, workgroups)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("workgroups", [3, 64])
def test_fewer_and_more_workgroups_than_tiles(workgroups: int, chip: str) -> None:
    check("NT", "bf16", chip, (130, 200, 72), workgroups)


@pytest.mark.long
@pytest.mark.parametrize("chip", CHIPS)
def test_few_and_many_workgroups(chip: str) -> None:
    """As few as one, as many as divide the tiles and as don't, more than tiles."""
    for workgroups in (1, 3, 4, 64):
        for size in SHAPES:
            check("NT", "bf16", chip, size, workgroups)


@pytest.mark.long
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["bf16", "f16", "f32", "i8"])
def test_every_form(kind: str, form: str, chip: str) -> None:
    for workgroups in (3, 64):
        for size in SHAPES:
            check(form, kind, chip, size, workgroups)


def constants(kind: str) -> dict[str, Any]:
    total = "i32" if kind == "i8" else "f32"
    return {"TA": kind, "TB": kind, "SUM": total, "OUT": total}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("NT", "bf16"),
        *(pytest.param(f, k, marks=pytest.mark.long) for f in FORMS for k in ("bf16", "i8") if f + k != "TTi8"),
    ],
)
def test_no_spills_in_tiles_of_128x128(form: str, kind: str, chip: str) -> None:
    """Uniform values that both loops need would take more scalar registers than there are, were they kept. (TT of i8,
    which turns bytes in registers, has room in smaller tiles only.)"""
    depth = 128 // dtype(kind).bytes
    compiled(PERSISTENT[form], chip, BM=128, BN=128, BK=depth, WORKGROUPS=load(chip).compute.units, **constants(kind))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("form", ["NT", *(pytest.param(f, marks=pytest.mark.long) for f in FORMS if f != "NT")])
def test_a_loop_around_takes_no_registers_to_speak_of(form: str, chip: str) -> None:
    """What follows from the ids of lane and wave would wait there for the epilogue: 60 registers."""
    tile = {"BM": 256, "BN": 256, "BK": 64, "WAVES": 8}
    plain, around = built(PLAIN[form], chip, **tile), built(PERSISTENT[form], chip, **tile)
    assert around.vgpr <= plain.vgpr + 16
    if (form, chip) != ("TN", "gfx942"):  # which takes all 256 without it
        assert around.symbol not in around.spills


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"workgroups": 0}, "HK502.*`workgroups` is a whole number from 1, not 0"),
        ({"workgroups": True}, "HK502.*not True"),
        ({"workgroups": 4, "split": 2}, "HK501.*4 workgroups can't take the tiles of 2 shares of K"),
    ],
)
def test_what_workgroups_are_not(asked: dict[str, Any], said: str) -> None:
    a = np.ones((8, 8), np.float32)
    with pytest.raises(HkcError, match=said):
        gemm(a, a, arch=CHIPS[0], device="emulator", **asked)


def test_batches_have_workgroups_of_their_own() -> None:
    a = np.ones((2, 8, 8), np.float32)
    with pytest.raises(HkcError, match=r"HK501.*of a batch of 2 products"):
        gemm(a, a, workgroups=4, arch=CHIPS[0], device="emulator")
