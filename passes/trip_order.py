"""The trips of a pipelined loop, found between its barriers, and a new order for what they do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hkc.passes.locate import span
from hkc.passes.place_waits import COPY, READS
from hkc.support.mlir import ir

MFMA = frozenset({"hkc_wave.mfma", "hkc_wave.mfma_scaled"})
FETCHES = frozenset({"hkc_wave.buffer_load", COPY})
WRITE, MARK, ARRIVE = "hkc_wave.lds_write", "hkc_wave.async_mark", "hkc_wave.wait_async"
MEETING = frozenset({ARRIVE, "hkc_wave.wait", "hkc_wave.barrier"})
KNOWN = MFMA | FETCHES | READS | {WRITE, MARK}
PURE = ("arith.", "vector.", "math.")
OTHER = {
    "scf.if": "a branch, such as that of a ragged edge,",
    "scf.for": "a loop",
    "scf.while": "a loop",
    **{
        f"hkc_wave.{name}": "numbers go from lane to lane" for name in ("shuffle_xor", "exchange_lanes", "gather_lanes")
    },
    **{f"hkc_wave.{name}": "a store" for name in ("buffer_store", "global_store")},
    **{f"hkc_wave.{name}": "an atomic update" for name in ("global_atomic", "global_compare_and_swap")},
    "hkc_wave.global_load": "a load that no buffer descriptor serves",
}
"""What messages call other ops; ops without a name of their own there are named as they are."""


@dataclass
class Trip:
    """The ops of one trip, in order. `meetings` are those that let the waves meet at its start and, if its buffers are
    filled again (`reused`), behind its reads."""

    ops: list[Any]
    meetings: list[Any]
    reused: bool = False

    @property
    def meeting(self) -> list[Any]:
        """What lets the waves meet at its start."""
        return self.meetings[: 1 + [op.name for op in self.meetings].index("hkc_wave.barrier")]

    def named(self, names: Iterable[str]) -> list[Any]:
        """Its ops with these names."""
        return [op for op in self.ops if op.name in names]

    def reads(self, mfmas: list[Any] | None = None) -> list[list[Any]]:
        """For each MFMA, in their order or that of `mfmas`, the LDS reads that give it operands and gave none to an
        earlier one."""
        known: set[Any] = set()
        found = []
        for mfma in mfmas or self.named(MFMA):
            new: dict[Any, None] = {}
            work = [mfma]
            while work:
                for owner in inside(work.pop()):
                    if owner.name in READS and owner not in known:
                        new[owner] = None
                    elif owner.name not in MFMA | READS:
                        work.append(owner)
            known.update(new)
            found.append(list(new))
        return found


def inside(op: Any) -> list[Any]:
    """The ops of the same block that an op's operands come from."""
    owners = [o.owner.operation for o in op.operands if isinstance(o, ir.OpResult)]
    return [owner for owner in owners if owner.block == op.block]


def slices(mfmas: list[Any]) -> list[list[Any]]:
    """MFMAs of a block by how many others they add to: those that none of these gives sums, then those that these do,
    and so on."""
    depth: dict[Any, int] = {}
    for op in mfmas:
        depth[op] = 1 + max((depth.get(before, -1) for before in inside(op)), default=-1)
    return [[op for op in mfmas if depth[op] == number] for number in range(max(depth.values(), default=-1) + 1)]


def trips(loop: Any) -> tuple[list[Trip], str]:
    """The trips of a loop body; none, and why, where they can't be put in another order."""
    *body, _ = (op.operation for op in loop.regions[0].blocks[0].operations)
    found: list[Trip] = []
    current = Trip([], [])
    for op in body:
        if op.name in MEETING and current.ops:
            found.append(current)
            current = Trip([], [])
        (current.meetings if op.name in MEETING else current.ops).append(op)
    return _joined([*found, current])


def _joined(segments: list[Trip]) -> tuple[list[Trip], str]:
    """Segments between barriers as trips: one that only writes belongs to the trip before it."""
    found: list[Trip] = []
    for segment in segments:
        strange = [op for op in segment.ops if op.name not in KNOWN and not op.name.startswith(PURE)]
        if strange:
            return [], f"its trips do more than read, copy and multiply: {_told(strange[0])}"
        if segment.named(MFMA) and segment.meetings:
            found.append(segment)
        elif found and segment.named({WRITE}) and not segment.named(KNOWN - {WRITE}):
            last = found[-1]
            found[-1] = Trip(last.ops + segment.ops, last.meetings + segment.meetings, True)
        elif segment.named(KNOWN):
            return [], "its tiles don't come in ahead of its trips"
    return found, "" if found else "its tiles don't come in ahead of its trips"


def _told(op: Any) -> str:
    """What an op does that no trip of a schedule may do, and in which line of the source."""
    at = span(op)
    return OTHER.get(op.name, f"`{op.name}`") + (f" in line {at.line}" if at else "")


@dataclass
class Order:
    """Puts the ops of a block in a new order, each as late as it is asked for, before the block's `end`."""

    end: Any
    placed: set[Any] = field(default_factory=set)

    def place(self, ops: Iterable[Any]) -> None:
        """Ops come next, each behind what it needs."""
        for op in ops:
            if op not in self.placed:
                self.placed.add(op)
                self.place(inside(op))
                op.move_before(self.end)
