"""Races between workgroups in global memory.

Two accesses of different workgroups to the same bytes, one of them a write and not both atomic, must be ordered: by
atomics (loads and stores of device scope included) on a common address, or by global wave sync, which knows nothing of
caches either; with a write-back before the one and an invalidation after the other, as the memory model of LLVM's
AMDGPU back end spells release and acquire on these chips:

    store; buffer_wbl2; s_waitcnt vmcnt(0); atomic        atomic; s_waitcnt vmcnt(0); buffer_inv; load

A workgroup is one party here: whether its waves are in order among themselves is not looked at. Each has a clock that
counts its write-backs; what it knows of others are the clocks up to which their stores are known to be over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.checks.shadow import Cells, cells, granule
from hkc.emulate.decode import Decoded
from hkc.emulate.faults import Party
from hkc.emulate.memory import Space, anonymous
from hkc.emulate.observe import Access, Observer, before
from hkc.emulate.outstanding import Happen, Picked, Rows
from hkc.emulate.program import Program
from hkc.emulate.registry import Context, Step
from hkc.emulate.state import State
from hkc.emulate.sync import Meeting, Place
from hkc.emulate.waves import Waves

KIND = "global race"
_SEVERAL = 1 << 30

Ints = NDArray[np.int32]
Clocks = dict[int, int]
"""Workgroup → the clock up to which its stores are known to be over."""


class _Shadow:
    """Per cell of an allocation the last writer and reader: wave + 1 (0: nobody), instruction, clock."""

    def __init__(self, size: int) -> None:
        def table() -> Ints:
            return anonymous(4 * size).view(np.int32)[:size]

        self.writer, self.written_at, self.written = table(), table(), table()
        self.reader, self.read_at, self.read = table(), table(), table()
        self.touched = False
        """Somebody of this launch has written here."""


@dataclass(frozen=True)
class _Visit:
    """Cells of one allocation that an access has touched, with wave, workgroup and clock for each."""

    state: State
    access: Access
    cells: Cells
    wave: NDArray[np.int64]
    group: NDArray[np.int64]
    clock: Ints
    known: dict[int, Clocks]
    position: int
    name: str


class GlobalRaces(Observer):
    """Finds them, and reports both parties."""

    def start(self, program: Program) -> None:
        """See `Observer`."""
        self._program = program
        self._granule = granule(program, "global_", "flat_", "buffer_")
        self._shadows: dict[int, tuple[Space, _Shadow]] = {}
        self._known: dict[int, Clocks] = {}
        self._coming: dict[int, Clocks] = {}
        self._published: dict[int | Place, Clocks] = {}

    def begin(self, state: State) -> None:
        """See `Observer`."""
        waves = state.shape.waves_per_group
        self._waves = waves
        self._first = state.first_wave // waves
        groups = state.shape.waves // waves
        self._clock = np.ones(groups, np.int32)
        self._fenced, self._over = np.zeros(groups, np.int32), np.zeros(groups, np.int32)
        self._old, self._new = np.zeros(groups, np.int64), np.zeros(groups, np.int64)

    # fences

    def step(self, instruction: Decoded, step: Step, context: Context) -> Step:
        """See `Observer`."""
        if instruction.base == "buffer_wbl2":
            return before(step, self._write_back)
        if instruction.base == "buffer_inv":
            return before(step, self._invalidate)
        return step

    def _write_back(self, w: Waves) -> None:
        groups = np.unique(w.rows // self._waves)
        self._old[groups] += self._new[groups]
        self._new[groups] = 0
        self._fenced[groups] = self._clock[groups]
        self._clock[groups] += 1

    def _invalidate(self, w: Waves) -> None:
        for group in (np.unique(w.rows // self._waves) + self._first).tolist():
            if group in self._coming:
                self._known = {**self._known, group: _latest(self._known.get(group, {}), self._coming.pop(group))}

    # accesses

    def access(self, state: State, access: Access) -> Happen | None:
        """See `Observer`."""
        if access.space != "global":
            return None
        groups = access.rows // self._waves
        clock, known = self._clock[groups], self._known
        writes = access.kind != "load"
        if writes:
            np.add.at(self._new, groups, 1)
        if access.coherent:
            self._catch_up(groups)
        over = self._over[groups]
        touch = self._store if writes else self._load

        def happened(rows: Rows, picked: Picked) -> None:
            if writes:
                self._settle(groups[picked], clock[picked])
            mask, addresses = access.mask[picked], access.addresses[picked]
            if access.coherent:
                self._synchronise(access, groups[picked], over[picked], addresses, mask)
            position = self._program.positions[access.by.address]
            for part, lanes, offsets in state.memory.parts(addresses, mask, access.nbytes, access.by):
                found = cells(offsets, lanes, access.nbytes, self._granule)
                wave, group = (state.first_wave + rows)[found.row], groups[picked][found.row] + self._first
                times = clock[picked][found.row]
                visit = _Visit(state, access, found, wave, group, times, known, position, part.name)
                touch(self._shadow(part.space), visit)

        return happened

    def meet(self, state: State, meeting: Meeting) -> None:
        """See `Observer`."""
        group = meeting.wave // self._waves
        local = np.array([group - self._first])
        if meeting.passes:
            self._learn(group, meeting.place)
            return
        self._catch_up(local)
        before_me = self._published.get(meeting.place, {})
        self._published[meeting.place] = _latest(before_me, self._own(group, int(self._over[local[0]])))

    def _catch_up(self, groups: Rows) -> None:
        """Where nothing from before the last write-back is outstanding, all of that is over."""
        idle = groups[self._old[groups] == 0]
        self._over[idle] = self._fenced[idle]

    def _learn(self, group: int, key: int | Place) -> None:
        """What was published there is known after the next invalidation."""
        self._coming[group] = _latest(self._coming.get(group, {}), self._published.get(key, {}))

    def _own(self, group: int, over: int) -> Clocks:
        """What a workgroup can publish: all that it knows, and of itself what is over."""
        return _latest(self._known.get(group, {}), {group: over})

    def _shadow(self, space: Space) -> _Shadow:
        found = self._shadows.get(id(space))
        if found is None:
            found = self._shadows[id(space)] = space, _Shadow(space.size // self._granule + 1)
        return found[1]

    def _settle(self, groups: Rows, clock: Ints) -> None:
        """A store is over: of those before the last write-back, or after it."""
        old = clock <= self._fenced[groups]
        np.subtract.at(self._old, groups[old], 1)
        np.subtract.at(self._new, groups[~old], 1)

    def _synchronise(
        self, access: Access, groups: Rows, over: Ints, addresses: NDArray[np.uint64], mask: NDArray[np.bool_]
    ) -> None:
        """Atomics at the same address: each learns what earlier ones published, and publishes what it knows."""
        row, lane = np.nonzero(mask)
        pairs = np.stack([groups[row].astype(np.uint64), addresses[row, lane]], axis=1)
        mine = dict(zip(groups.tolist(), over.tolist(), strict=True))
        for local, address in np.unique(pairs, axis=0).tolist():
            group = int(local) + self._first
            there = self._published.get(address, {})
            if access.kind != "store":
                self._learn(group, address)
            if access.kind != "load":
                own = self._own(group, mine[int(local)])
                self._published[address] = _latest(there if access.kind == "atomic" else {}, own)

    def _load(self, shadow: _Shadow, v: _Visit) -> None:
        index = v.cells.index
        if shadow.touched:
            self._compare(v, shadow.writer[index], shadow.written_at, shadow.written, "was written")
        before_me, me = shadow.reader[index], v.wave.astype(np.int32) + 1
        many = (before_me != 0) & (self._group(before_me) != v.group)
        shadow.reader[index] = np.where(many | (before_me & _SEVERAL != 0), me | _SEVERAL, me)
        here = self._group(shadow.reader[index]) != v.group  # others read the same at the same time
        shadow.reader[index[here]] |= _SEVERAL
        shadow.read_at[index], shadow.read[index] = self._tag(v), v.clock

    def _store(self, shadow: _Shadow, v: _Visit) -> None:
        index = v.cells.index
        if shadow.touched:
            self._compare(v, shadow.writer[index], shadow.written_at, shadow.written, "was written")
        self._compare(v, shadow.reader[index], shadow.read_at, shadow.read, "was read")
        shadow.touched = True
        shadow.writer[index] = v.wave + 1
        shadow.written_at[index], shadow.written[index] = self._tag(v), v.clock
        self._compare(v, shadow.writer[index], shadow.written_at, shadow.written, "is also written")

    def _group(self, who: Ints) -> Ints:
        """The workgroups of those who have touched cells."""
        return ((who & ~_SEVERAL) - 1) // self._waves

    @staticmethod
    def _tag(v: _Visit) -> int:
        return v.position * 2 + v.access.coherent

    def _compare(self, v: _Visit, who: Ints, at: Ints, clock: Ints, deed: str) -> None:
        """Report those whose access nothing orders before this one."""
        other = who & ~_SEVERAL
        hit = (other != 0) & ((self._group(other) != v.group) | (who & _SEVERAL != 0))
        if v.access.coherent:
            hit &= at[v.cells.index] & 1 == 0
        if not hit.any():
            return
        where = np.nonzero(hit)[0]
        groups = self._group(other[where])
        cases = np.stack([v.group[where], groups, clock[v.cells.index[where]]], axis=1)
        for case, first in zip(*np.unique(cases, axis=0, return_index=True), strict=True):
            mine, group, then = case.tolist()
            if group == mine and v.known:
                continue  # who else has read is not known any more
            if v.known.get(mine, {}).get(group, 0) < then:
                self._report(v, int(where[first]), int(other[where[first]]) - 1, at, deed)
                return

    def _report(self, v: _Visit, first: int, wave: int, at: Ints, deed: str) -> None:
        group, by = wave // self._waves, self._program.instructions[int(at[v.cells.index[first]]) >> 1]
        who = "several others" if group == v.group[first] else f"workgroup {group}"
        verb = "read" if v.access.kind == "load" else "written"
        place = f"byte {int(v.cells.index[first]) * self._granule} of `{v.name}`"
        message = f"{place} is {verb}, and {deed} by {who}: no atomics with write-back and invalidation order them"
        party = Party(by.address, by.text, wave)
        v.state.findings.add(KIND, v.access.by, message, int(v.wave[first]), int(v.cells.lane[first]), party)


def _latest(one: Clocks, two: Clocks) -> Clocks:
    return {group: max(one.get(group, 0), two.get(group, 0)) for group in one.keys() | two.keys()}
