"""Memory operations that were issued but have not happened yet.

The adversary's rule: nothing happens before a wait (or the end of the program) forces it, and then in program order
per wave and counter. `vm` counts vector memory, loads and stores alike, in order. `lgkm` counts LDS operations, which
one wave sees in order, and scalar loads, which may return in any order, so only a wait for 0 covers them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.faults import Fault

Rows = NDArray[np.int64]
Counter = Literal["vm", "lds", "scalar"]
Picked = slice | NDArray[np.int64]
Happen = Callable[[Rows, Picked], None]
"""Carries out an operation for the waves `rows`, which stand at `picked` among the waves that issued it."""


@dataclass
class Entry:
    """One issued operation of several waves. `order` is each wave's running number on that counter."""

    rows: Rows
    order: NDArray[np.int64]
    happen: Happen


MOST: dict[Counter, int] = {"vm": 63, "lds": 15}
"""What the counters of operations that happen in order count to: 6 and 4 bits (LLVM's documentation of the operand of
s_waitcnt, AMDGPU/gfx940_waitcnt: VM_CNT 0..63, LGKM_CNT 0..15).

A wave does not issue what a full counter can't count, so whatever is older has happened. No guide says so in as many
words; it follows from waits that work: LLVM's SIInsertWaitcnts caps the count of a wait at one less than these
(getWaitCountMax), whatever was issued since; a counter that wrapped or stuck would let such a wait pass too early.
"""


class Outstanding:
    """The queues of a batch."""

    def __init__(self, waves: int) -> None:
        self._queues: dict[Counter, list[Entry]] = {"vm": [], "lds": [], "scalar": []}
        self._issued = {c: np.zeros(waves, np.int64) for c in self._queues}
        self._waves = waves

    def defer(self, counter: Counter, rows: Rows, happen: Happen) -> None:
        """Issue an operation of the waves `rows`."""
        issued = self._issued[counter]
        issued[rows] += 1
        self._queues[counter].append(Entry(rows, issued[rows], happen))
        most = MOST.get(counter)
        if most is not None and len(self._queues[counter]) > most:
            self._drain(counter, rows, most)

    def same_operation(self, counter: Counter, rows: Rows) -> None:
        """The next operation is a further part of the last one: the counter counts them once."""
        self._issued[counter][rows] -= 1

    def wait(self, rows: Rows, vm: int | None, lgkm: int | None) -> None:
        """Let happen whatever the given counts no longer allow to be outstanding."""
        if vm is not None:
            self._drain("vm", rows, vm)
        if lgkm is not None:
            self._drain("lds", rows, lgkm)
            if lgkm == 0:
                self._drain("scalar", rows, 0)

    def finish(self, rows: Rows) -> None:
        """Everything of these waves happens now."""
        self.wait(rows, 0, 0)

    def pending(self) -> int:
        """How many operations are outstanding, each counted once per wave."""
        return sum(len(entry.rows) for queue in self._queues.values() for entry in queue)

    def _drain(self, counter: Counter, rows: Rows, allowed: int) -> None:
        queue = self._queues[counter]
        if not queue:
            return
        limit = np.full(self._waves, -1, np.int64)
        limit[rows] = self._issued[counter][rows] - allowed
        kept: list[Entry] = []
        for entry in queue:
            due = entry.order <= limit[entry.rows]
            if due.all():
                _happen(entry.happen, entry.rows, slice(None))
            elif due.any():
                kept.append(self._part(entry, due))
            else:
                kept.append(entry)
        self._queues[counter] = kept

    @staticmethod
    def _part(entry: Entry, due: NDArray[np.bool_]) -> Entry:
        """Carry out the part that is due, return the rest."""
        now, later = np.nonzero(due)[0], np.nonzero(~due)[0]
        whole = entry.happen
        _happen(whole, entry.rows[now], now)

        def rest(rows: Rows, picked: Picked) -> None:
            whole(rows, later[picked])

        return Entry(entry.rows[later], entry.order[later], rest)


def _happen(happen: Happen, rows: Rows, picked: Picked) -> None:
    """Carry it out; a fault then knows which of the batch's waves it is."""
    try:
        happen(rows, picked)
    except Fault as fault:
        fault.row = int(rows[fault.row or 0])
        raise
