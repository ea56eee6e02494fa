"""What a loop issues per trip, and the rule that picks its schedule from that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

from hkc.targets.chip import Chip

LATENCY = 64
"""Clocks from an LDS read to its data when nothing else waits: what the rule leaves for it."""

LONG = 1000
"""Clocks of the MFMAs of a trip in which a wave alone can hide what it waits for."""

BOUNDARY = 16
"""Clocks that the matrix unit loses where one group of waves takes it over from the other: one slot on each side."""


@dataclass(frozen=True)
class Mix:
    """What one trip of a loop issues in a wave.

    sharing     waves of the workgroup that share a SIMD
    clocks      of each MFMA on the matrix unit, in order
    reads       LDS reads that each MFMA needs and no earlier one did
    bytes       that one of them gives a lane
    written     bytes that a lane writes to LDS
    reused      whether all reads come before the writes, since there is one buffer
    free        registers of a lane that operands may take
    obstacle    why the trip can't be cut into clusters; "" where it can
    """

    sharing: int
    clocks: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    bytes: int = 0
    written: int = 0
    reused: bool = False
    free: int = 0
    obstacle: str = ""

    def phases(self, count: int) -> list[int]:
        """How many LDS reads come before each of `count` clusters: at least those it needs, else as even as can be."""
        size, total = len(self.clocks) // count, sum(self.reads)
        reading = count - 1 if self.reused else count
        done, found = 0, []
        for number in range(count):
            needed = total if number + 1 >= reading else sum(self.reads[: (number + 1) * size])
            until = max(needed, done, ceil(total * (number + 1) / reading)) if number < reading else total
            found.append(min(until, total) - done)
            done += found[-1]
        return found


Choose = Callable[[Mix, Chip], str]
"""A rule that picks the schedule of a loop: "pingpong", "interleave" or "plain"."""


def by_mix(mix: Mix, chip: Chip) -> str:
    """The rule without a model of time.

    Ping-pong where two waves share a SIMD and the MFMAs of one hide the LDS accesses of the other. Interleaving where a
    wave has its SIMD to itself and long trips; in short ones other workgroups, which then have room, hide more. Plain
    where the loop does more than multiply, or where LDS is slower than the matrix unit.
    """
    if not mix.obstacle and mix.sharing == 2 and clusters(mix, chip):
        return "pingpong"
    return "interleave" if not mix.obstacle and mix.sharing == 1 and sum(mix.clocks) >= LONG else "plain"


def clusters(mix: Mix, chip: Chip) -> int:
    """Into how many clusters of MFMAs a trip is cut: those with which it is shortest, the fewest of equals; 0 where LDS
    takes longer than the matrix unit, or operands have no room.

    A phase lasts as long as the cluster of one group of waves or the LDS accesses of the other, whichever takes longer.
    """
    counts = [n for n in (2, 4, 8) if mix.clocks and len(mix.clocks) % n == 0 and _fits(mix, n)]
    busy = sum(mix.clocks) * mix.sharing
    lengths = {n: _length(mix, n, chip) for n in counts}
    return min((n for n in counts if lengths[n] < busy * 5 / 4), key=lambda n: lengths[n], default=0)


def _fits(mix: Mix, count: int) -> bool:
    """Operands wait in registers from the phase that reads them to the cluster that needs them."""
    size, done, used, most = len(mix.clocks) // count, 0, 0, 0
    for number, reads in enumerate(mix.phases(count)):
        done += reads
        most = max(most, done - used)
        used = sum(mix.reads[: (number + 1) * size])
    return most * mix.bytes <= 4 * mix.free


def _length(mix: Mix, count: int, chip: Chip) -> float:
    """Clocks of a trip."""
    size, lanes = len(mix.clocks) // count, chip.compute.simds * chip.compute.wave
    total = 0.0
    for number, reads in enumerate(mix.phases(count)):
        lds = lanes * reads * mix.bytes / chip.lds.read_bytes_per_clock
        if number == count - 1:
            lds += lanes * mix.written / chip.lds.write_bytes_per_clock
        for cluster in (number, number - 1):
            clocks = sum(mix.clocks[cluster % count * size :][:size])
            total += max(clocks, lds + LATENCY) + BOUNDARY
    return total


def mfma_clocks(op: Any, chip: Chip) -> int:
    """Clocks of the matrix unit for an MFMA op of the wave dialect."""
    named = [row for row in chip.mfmas if row.mnemonic == op.attributes["instruction"].value]
    formats = [op.attributes[n].value if n in op.attributes else "" for n in ("a_dtype", "b_dtype")]
    return next((row for row in named if [row.a, row.b] == formats), named[0]).cycles
