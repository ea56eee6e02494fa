"""What a loop issues per trip, and the rule that picks its schedule from that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hkc.targets.chip import Chip

SCHEDULES = ("pingpong", "plain")

LATENCY = 64
"""Clocks from an LDS read to its data when nothing else waits: what the rule leaves for it."""

SHORTEST = 512
"""Clocks of MFMAs in a cluster beside which its two barriers, and the start of the matrix unit, hardly show."""


@dataclass(frozen=True)
class Mix:
    """What one trip of a loop issues in a wave.

    sharing     waves of the workgroup that share a SIMD
    clocks      of each MFMA on the matrix unit, in order
    reads       bytes that a wave reads from LDS for each MFMA and no earlier one
    obstacle    why the trip can't be cut into clusters; "" where it can
    """

    sharing: int
    clocks: tuple[int, ...]
    reads: tuple[int, ...]
    obstacle: str = ""


Choose = Callable[[Mix, Chip], str]
"""A rule that picks one of `SCHEDULES` for a loop."""


def by_mix(mix: Mix, chip: Chip) -> str:
    """The rule without a model of time.

    Ping-pong where two waves share a SIMD and the MFMAs of one hide the LDS reads of the other; plain where waves have
    SIMDs to themselves, where the loop does more than multiply, or where LDS is slower than the matrix unit.
    """
    return "pingpong" if mix.sharing == 2 and not mix.obstacle and clusters(mix, chip) else "plain"


def clusters(mix: Mix, chip: Chip) -> int:
    """Into how many clusters of MFMAs a trip is cut: two, or more of them while each takes `SHORTEST` clocks; 0 where
    the waves that share no SIMD would need longer to read the operands of a cluster. Few clusters mean few barriers,
    many mean few registers for operands that wait.
    """

    def cut(values: tuple[int, ...], count: int) -> list[int]:
        size = len(values) // count
        return [sum(values[i : i + size]) for i in range(0, len(values), size)]

    def hidden(count: int) -> bool:
        pairs = zip(cut(mix.clocks, count), cut(mix.reads, count), strict=True)
        rate = chip.lds.read_bytes_per_clock
        return all(clocks >= chip.compute.simds * read / rate + LATENCY for clocks, read in pairs)

    counts = [n for n in (2, 4, 8) if mix.clocks and len(mix.clocks) % n == 0]
    fitting = [n for n in counts if hidden(n) and (n == 2 or sum(mix.clocks) >= n * SHORTEST)]
    return max(fitting, default=0)
