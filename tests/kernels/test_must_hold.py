"""What the machine code of the bench's loops may cost at most, and that no change lets one of them fall back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import hkc
from hkc.api import CompiledKernel
from hkc.targets.chip import load

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from hot_loops import FP8, KERNEL, executed, row

LIMITS = [
    ("gfx950", "bf16", (256, 256, 64), 255, 10, 208, 99),
    ("gfx942", "bf16", (256, 256, 64), 208, 12, 256, 99),
    ("gfx950", "fp8", (256, 256, 128), 205, 10, 256, 99),
    ("gfx942", "fp8", (256, 256, 128), 208, 12, 256, 99),
    ("gfx950", "bf16", (256, 128, 64), 255, 10, 256, 90),
    ("gfx942", "bf16", (256, 128, 64), 208, 12, 256, 90),
]
"""Chip, elements, tile; most instructions and waits of the loop, most registers, least modelled share of peak."""


OWNED = [("gfx950", 446, 48), ("gfx942", 368, 41)]
"""Chip; most instructions and waits of two trips on gfx950, of one on gfx942."""


def compiled(arch: str, kind: str, tile: tuple[int, int, int]) -> CompiledKernel:
    element = FP8[load(arch).fp8] if kind == "fp8" else kind
    return hkc.compile(KERNEL, arch, T=element, **dict(zip(("BM", "BN", "BK"), tile, strict=True)))


@pytest.mark.long
@pytest.mark.parametrize(("arch", "kind", "tile"), [limit[:3] for limit in LIMITS[:4]])
def test_what_surrounds_the_loop(arch: str, kind: str, tile: tuple[int, int, int]) -> None:
    assert executed(compiled(arch, kind, tile)) <= 1.15


@pytest.mark.parametrize(("arch", "kind", "tile", "most", "waits", "vgprs", "peak"), LIMITS)
def test_hot_loops(
    arch: str, kind: str, tile: tuple[int, int, int], most: int, waits: int, vgprs: int, peak: int
) -> None:
    kernel = compiled(arch, kind, tile)
    assert not any(entry.spills for entry in kernel.resources.values())
    found = row("hkc", "", kernel.hsaco, "gemm")
    assert (found["valu"], found["direct" if arch == "gfx942" else "lds_writes"]) == (0, 0)
    assert int(str(found["instructions"])) <= most
    assert int(str(found["waits"])) <= waits
    assert int(str(found["vgpr"])) <= vgprs
    assert float(str(found["pct_peak"])) >= peak
    assert all(access.cycles == access.minimum for buffer in kernel.binary.lds for access in buffer.accesses)


@pytest.mark.parametrize(("arch", "most", "waits"), OWNED)
def test_waves_that_own_their_simd(arch: str, most: int, waits: int) -> None:
    """256 sums of a lane and what is multiplied: MFMAs take sums from AGPRs and leave them there, without a copy."""
    source = KERNEL.replace("waves=8", "waves=4, schedule=interleave")
    kernel = hkc.compile(source, arch, BM=256, BN=256, BK=64)
    assert [r.spills for r in kernel.resources.values()] == [0, 0]
    found = row("", "", kernel.hsaco, "gemm")
    assert (found["valu"], found["mfma"], kernel.agpr) == (0, 256, 256)
    assert int(str(found["instructions"])) <= most
    assert int(str(found["waits"])) <= waits
    assert all(access.cycles == access.minimum for buffer in kernel.binary.lds for access in buffer.accesses)
