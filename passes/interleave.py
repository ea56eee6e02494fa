"""One wave per SIMD hides its own memory operations: each comes between MFMAs that don't need it yet."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from hkc.dialects.load import create
from hkc.dialects.wave.sync import ScheduleFence, ScheduleGroup
from hkc.passes.place_waits import READS
from hkc.passes.schedule_choice import LATENCY, Mix
from hkc.passes.trip_order import FETCHES, MARK, MFMA, Order, Trip, slices
from hkc.support.mlir import ir

AHEAD = 2 * LATENCY
"""Clocks of MFMAs between an LDS read and its use."""


def interleave(loop: Any, found: list[Trip], mix: Mix) -> None:
    """Put the trips of a loop in this order, and tell the code generator so, class by class of instructions."""
    *body, end = (op.operation for op in loop.regions[0].blocks[0].operations)
    order = Order(end)
    with ir.InsertionPoint(end), loop.location:
        for trip in found:
            sequence = _sequence(trip, mix)
            order.place(trip.meeting)
            create(ScheduleFence)
            order.place(sequence)
            order.place(trip.named({MARK}))
            for kind, run in groupby(map(_kind, sequence)):
                create(ScheduleGroup, kind=kind, size=len(list(run)))
            create(ScheduleFence)
            order.place(op for op in (*trip.meetings, *trip.ops))
    order.place(body)


def _sequence(trip: Trip, mix: Mix) -> list[Any]:
    """MFMAs with each LDS read `AHEAD` of its use, and the fetches spread over the first half.

    MFMAs that add to the same sums come as far apart as can be: none waits for another's result, and where sums fill
    the AGPRs each finds its own free again.
    """
    fetches = trip.named(FETCHES)
    mfmas = [op for some in slices(trip.named(MFMA)) for op in some]
    clocks = sum(mix.clocks) / len(mfmas)
    early = round(AHEAD / clocks)
    at = [(max(0, i - early), 0, read) for i, reads in enumerate(trip.reads(mfmas)) for read in reads]
    at += [(early + i * len(mfmas) // (2 * len(fetches)), 1, fetch) for i, fetch in enumerate(fetches)]
    at += [(i, 2, mfma) for i, mfma in enumerate(mfmas)]
    return [op for _, _, op in sorted(at, key=lambda entry: entry[:2])]


def _kind(op: Any) -> str:
    """The class of the instruction that an op becomes, as `schedule_group` calls it."""
    if op.name in READS:
        return "ds_read"
    return "mfma_wmma" if op.name in MFMA else "vmem_read"
