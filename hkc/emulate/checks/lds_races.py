"""Races between the waves of a workgroup in LDS.

Two accesses of different waves to the same bytes, one of them a write and not both atomic, must be ordered: the earlier
has to be over (waited for, not only issued) before a barrier that the later is issued after. An access therefore counts
from its issue to its wait. All live waves meet at every barrier, so that the time of a workgroup's last barrier is all
the happens-before there is; a barrier of global wave sync counts where all of them have come to it. LDS atomics and
semaphores order nothing.

Two accesses of the same wave race only if they come through different counters: LDS instructions are carried out in
order, but a load from memory straight to LDS is not, until it was waited for.

Writes of the same value do not race with each other: compilers let several waves store what all of them know. A read
that is not ordered after each of them still does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.checks.shadow import Cells, cells, granule
from hkc.emulate.decode import Decoded
from hkc.emulate.faults import Party
from hkc.emulate.memory import anonymous
from hkc.emulate.observe import Access, Observer
from hkc.emulate.outstanding import Happen, Picked, Rows
from hkc.emulate.program import Program
from hkc.emulate.state import State
from hkc.emulate.sync import Meeting, Place

KIND = "lds race"
_UNKNOWN = np.int64(-1)

I32 = NDArray[np.int32]
Bools = NDArray[np.bool_]


def table(*shape: int) -> I32:
    """Zeros that cost memory only where they are touched."""
    size = int(np.prod(shape))
    return anonymous(4 * size).view(np.int32)[:size].reshape(shape)


@dataclass
class _Log:
    """The last access per cell: when it was issued and when it was over (0: none), by which instruction and wave.

    The wave is its number in the workgroup times 4, plus 2 for a load from memory, plus 1 for an atomic.
    """

    issued: I32
    over: I32
    at: I32
    wave: I32

    @classmethod
    def empty(cls, *shape: int) -> _Log:
        return cls(*(table(*shape) for _ in range(4)))

    def enter(self, where: tuple[NDArray[np.int64], ...], issued: int, over: int, at: int, wave: I32) -> None:
        self.issued[where], self.over[where], self.at[where], self.wave[where] = issued, over, at, wave


class LdsRaces(Observer):
    """Finds them, and reports both parties."""

    def start(self, program: Program) -> None:
        """See `Observer`."""
        self._program = program
        self._granule = granule(program, "ds_", "flat_")

    def begin(self, state: State) -> None:
        """See `Observer`."""
        shape = state.shape
        self._room = -(-shape.lds // 4) * 4
        count = shape.waves // shape.waves_per_group * self._room // self._granule
        self._writes = _Log.empty(count)
        self._reads = _Log.empty(shape.waves_per_group, count)
        self._last_read = table(count)
        self._values = np.zeros(count, np.int64)
        self._now = 1
        self._opened = np.zeros(shape.waves // shape.waves_per_group, np.int64)
        self._ended = np.zeros(shape.waves, np.bool_)
        self._come: dict[Place, NDArray[np.bool_]] = {}

    def release(self, state: State, group: int) -> None:
        """See `Observer`."""
        self._now += 1
        self._opened[group] = self._now

    def leave(self, state: State, rows: Rows) -> None:
        """See `Observer`."""
        self._ended[rows] = True

    def meet(self, state: State, meeting: Meeting) -> None:
        """See `Observer`."""
        row = meeting.wave - state.first_wave
        come = self._come.setdefault(meeting.place, np.zeros(state.shape.waves, np.bool_))
        if not meeting.passes:
            come[row] = True
        elif meeting.place.kind == "barrier":
            group = row // state.shape.waves_per_group
            members = slice(group * state.shape.waves_per_group, (group + 1) * state.shape.waves_per_group)
            if (come | self._ended)[members].all():
                self.release(state, group)
                come[members] = False

    def access(self, state: State, access: Access) -> Happen | None:
        """See `Observer`."""
        if access.space != "lds":
            return None
        self._now += 1
        issued, waves = self._now, state.shape.waves_per_group
        since = self._opened[access.rows // waves]
        mask = access.mask & (access.addresses + np.uint64(access.nbytes) <= state.shape.lds)
        tag = 2 * (access.counter == "vm") + (access.kind == "atomic")
        owner = (access.rows % waves * 4 + tag).astype(np.int32)
        places = access.addresses.astype(np.int64) + (access.rows // waves * self._room)[:, None]
        touch = self._load if access.kind == "load" else self._store

        def over(rows: Rows, picked: Picked) -> None:
            self._now += 1
            found = cells(places[picked], mask[picked], access.nbytes, self._granule)
            if found.index.size:
                row = found.row
                values = None if access.words is None else found.values(access.words[picked], access.nbytes)
                touch(_Visit(state, access.by, rows, found, owner[picked][row], since[picked][row], issued, values))

        return over

    def _load(self, v: _Visit) -> None:
        self._compare(v, self._writes, (v.cells.index,), "is read", "was written")
        self._reads.enter((v.who >> 2, v.cells.index), v.issued, self._now, self._position(v.by), v.who)
        self._last_read[v.cells.index] = self._now

    def _store(self, v: _Visit) -> None:
        index = v.cells.index
        values = np.full(index.shape, _UNKNOWN) if v.values is None else v.values
        other = (values != self._values[index]) | (values == _UNKNOWN)
        self._compare(v, self._writes, (index,), "is written", "was written", other)
        recent = self._last_read[index] > v.since
        if recent.any():
            for wave in range(len(self._reads.over)):
                self._compare(v, self._reads, (np.full_like(index, wave), index), "is written", "was read", recent)
        self._writes.enter((index,), v.issued, self._now, self._position(v.by), v.who)
        self._values[index] = values
        clash = (self._writes.wave[index] >> 2 != v.who >> 2) & (v.who & 1 == 0)
        clash &= (values != self._values[index]) | (values == _UNKNOWN)
        if clash.any():
            self._report(v, clash, self._writes, (index,), "is written", "is written at the same time")

    def _compare(
        self,
        v: _Visit,
        log: _Log,
        where: tuple[NDArray[np.int64], ...],
        deed: str,
        others: str,
        among: Bools | None = None,
    ) -> None:
        """Report those earlier accesses in `log` that nothing orders before this one."""
        over = log.over[where]
        hit = over > v.since
        if among is not None:
            hit &= among
        if not hit.any():
            return
        other = log.wave[where]
        same = other >> 2 == v.who >> 2
        own = same & (other & 2 != v.who & 2) & (over > v.issued)
        hit &= own | ~same
        hit &= (other & v.who & 1) == 0
        if hit.any():
            self._report(v, hit, log, where, deed, others)

    def _report(
        self, v: _Visit, hit: Bools, log: _Log, where: tuple[NDArray[np.int64], ...], deed: str, others: str
    ) -> None:
        """One finding per instruction of the other party, about the first cell."""
        positions = log.at[where][hit]
        for position in np.unique(positions).tolist():
            first = int(np.nonzero(hit)[0][np.nonzero(positions == position)[0][0]])
            spot = tuple(part[first] for part in where)
            row, lane = int(v.cells.row[first]), int(v.cells.lane[first])
            wave, state = int(v.rows[row]), v.state
            group = wave // state.shape.waves_per_group
            other = group * state.shape.waves_per_group + int(log.wave[spot] >> 2)
            byte = int(v.cells.index[first]) * self._granule - group * self._room
            by = self._program.instructions[position]
            if wave == other:
                why = "between them a wait for the load from memory, or for the read before it, is missing"
            elif log.issued[spot] < v.since[first]:
                why = "that was not waited for before the barrier between them"
            elif v.issued < self._opened[group] and v.issued < log.issued[spot]:
                why = "this was not waited for before the barrier between them"
            else:
                why = "there is no barrier between them"
            message = f"LDS byte {byte:#x} {deed}, and {others} by wave {state.first_wave + other}: {why}"
            party = Party(by.address, by.text, state.first_wave + other)
            state.findings.add(KIND, v.by, message, state.first_wave + wave, lane, party)

    def _position(self, by: Decoded) -> int:
        return self._program.positions[by.address]


@dataclass(frozen=True)
class _Visit:
    """An access that is over: its cells, and for each who it is and when the last barrier before it opened."""

    state: State
    by: Decoded
    rows: Rows
    cells: Cells
    who: I32
    since: NDArray[np.int64]
    issued: int
    values: NDArray[np.int64] | None
    """What is written, where it is known."""
