"""Exponentials and the like come between the MFMAs that need others of them: the matrix unit works meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hkc.dialects.load import create
from hkc.dialects.wave.sync import ScheduleFence, ScheduleGroup
from hkc.passes.place_waits import READS
from hkc.passes.trip_order import MFMA, PURE, Order, inside, slices
from hkc.support.mlir import ir

SLOW = ("math.exp", "math.log", "math.sin", "math.cos", "math.tan", "math.rsqrt", "math.sqrt", "math.erf")
MOVED = MFMA | READS | {"hkc_wave.shuffle_xor", "hkc_wave.exchange_lanes"}


def mix(block: Any) -> bool:
    """Where MFMAs take what becomes of transcendentals, slice by slice of K: while one slice is multiplied, the next
    one's operands are computed. Returns whether there are such MFMAs."""
    found = False
    for segment, end in list(_segments(block)):
        behind: set[Any] = set()
        for op in segment:
            if op.name.startswith(SLOW) or not behind.isdisjoint(inside(op)):
                behind.add(op)
        parts = slices([op for op in segment if op.name in MFMA and op in behind])
        if len(parts) > 1:
            _mix(segment, parts, end)
            found = True
    return found


def _segments(block: Any) -> Iterator[tuple[list[Any], Any]]:
    """Runs of ops that may come in another order, and what follows each."""
    segment: list[Any] = []
    for op in (op.operation for op in block.operations):
        if op.name in MOVED or op.name.startswith(PURE):
            segment.append(op)
        else:
            yield segment, op
            segment = []


def _mix(segment: list[Any], parts: list[list[Any]], end: Any) -> None:
    block = [op.operation for op in end.block.operations]
    order = Order(end, set(block) - set(segment))
    with ir.InsertionPoint(end), segment[0].location:
        order.place(_needed(parts[0], order, set()))
        create(ScheduleFence)
        for number, mfmas in enumerate(parts):
            following = _needed(parts[number + 1], order, set(mfmas)) if number + 1 < len(parts) else []
            order.place([*following, *mfmas])
            slow = sum(op.results[0].type.shape[0] for op in following if op.name.startswith(SLOW))
            for i in range(len(mfmas)):
                create(ScheduleGroup, kind="mfma_wmma", size=1)
                if share := (i + 1) * slow // len(mfmas) - i * slow // len(mfmas):
                    create(ScheduleGroup, kind="transcendental", size=share)
            create(ScheduleFence)
        order.place(segment)


def _needed(mfmas: list[Any], order: Order, coming: set[Any]) -> list[Any]:
    """What MFMAs need and is not placed yet, nor `coming` anyway; each behind what it needs."""
    found: dict[Any, None] = {}

    def visit(op: Any) -> None:
        for needed in inside(op):
            if needed not in found and needed not in order.placed and needed not in coming:
                visit(needed)
                found[needed] = None

    for mfma in mfmas:
        visit(mfma)
    return list(found)
