"""What it costs to bring a tile from one layout into another, before any byte map is searched for."""

from __future__ import annotations

import functools

from hkc.layout.accesses import WIDEST, Kind, Timings, Use, run_bits
from hkc.layout.distributed import DistributedLayout
from hkc.layout.exchange import Exchange, exchange
from hkc.layout.lds import Vector

MEETING = 64
"""Clocks for which waves wait for one another around a trip through LDS."""


@functools.lru_cache(maxsize=4096)
def clocks(
    source: DistributedLayout, target: DistributedLayout, shape: Vector, itemsize: int, timings: Timings,
    transposes: bool,
) -> int:  # fmt: skip
    """Clocks of the LDS for one workgroup: 0 where registers are renamed; else the tile is written once and read, with
    the best dim innermost, free of conflicts (which synthesis nearly always reaches). `transposes`: does the chip have
    transposed reads?"""
    if exchange(source, target) <= Exchange.REGISTERS:
        return 0
    kinds: list[Kind] = ["read", "read_transposed"] if transposes else ["read"]
    trips = (
        write + read
        for inner in range(len(shape))
        for kind in kinds
        if (write := _moves(Use("write", source), inner, shape, itemsize, timings)) is not None
        and (read := _moves(Use(kind, target), inner, shape, itemsize, timings)) is not None
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
