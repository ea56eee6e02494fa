"""What it costs to bring a tile from one layout into another, before any byte map is searched for."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from hkc.layout.accesses import WIDEST, Kind, Timings, Use, run_bits
from hkc.layout.distributed import DistributedLayout
from hkc.layout.lds import Vector
from hkc.layout.within_wave import LaneCosts, steps

MEETING = 64
"""Clocks for which waves wait for one another around a trip through LDS."""


@dataclass(frozen=True)
class Machine:
    """What conversions cost on a chip: how the LDS serves instructions, and whether lanes transpose while they read it;
    instructions between lanes; SIMDs that work side by side."""

    timings: Timings
    transposes: bool
    lanes: LaneCosts
    simds: int


def extents_in_lds(shape: Vector, layouts: Iterable[DistributedLayout]) -> Vector:
    """The extents with which a tile that these layouts write and read lies in LDS: whole blocks of each."""
    blocks = [layout.block for layout in layouts]
    return tuple(n + -n % max(sides) for n, *sides in zip(shape, *blocks, strict=True))


def clocks(source: DistributedLayout, target: DistributedLayout, shape: Vector, itemsize: int, machine: Machine) -> int:
    """Clocks of the cheapest way for one workgroup: 0 where registers are renamed."""
    inside = within_wave(source, target, shape, itemsize, machine)
    through = through_lds(source, target, shape, itemsize, machine)
    return through if inside is None else min(inside, through)


@functools.lru_cache(maxsize=4096)
def within_wave(
    source: DistributedLayout, target: DistributedLayout, shape: Vector, itemsize: int, machine: Machine
) -> int | None:
    """Clocks of the busiest SIMD by instructions between lanes, 0 where there are none; None where waves hold other
    elements."""
    plan = steps(source, target)
    if plan is None:
        return None
    waves = -(-source.waves // machine.simds)
    return waves * sum(step.clocks(step.before.fragments(shape), itemsize, machine.lanes) for step in plan)


@functools.lru_cache(maxsize=4096)
def through_lds(
    source: DistributedLayout, target: DistributedLayout, shape: Vector, itemsize: int, machine: Machine
) -> int:
    """Clocks of the LDS: the tile is written once and read, with the best dim innermost, free of conflicts (which
    synthesis nearly always reaches)."""
    kinds: list[Kind] = ["read", "read_transposed"] if machine.transposes and itemsize <= 2 else ["read"]
    trips = (
        write + read
        for inner in range(len(shape))
        for kind in kinds
        if (write := _moves(Use("write", source), inner, shape, itemsize, machine.timings)) is not None
        and (read := _moves(Use(kind, target), inner, shape, itemsize, machine.timings)) is not None
    )
    return MEETING + min(trips)


def _moves(use: Use, inner: int, shape: Vector, itemsize: int, timings: Timings) -> int | None:
    """Clocks of one use of rows along `inner`; None where it can't be."""
    layout = use.addressed(inner, itemsize)
    if layout is None:
        return None
    bits = run_bits(layout, inner, max(1, min(use.reach, WIDEST) // itemsize))
    mnemonic = use.mnemonic(itemsize << len(bits), itemsize)
    waves = layout.waves
    if use.kind == "write":
        waves >>= sum(not any(basis) for basis in layout.wave)  # of copies one is written
    return waves * (layout.fragments(shape) * layout.registers >> len(bits)) * len(timings(mnemonic).phases)
