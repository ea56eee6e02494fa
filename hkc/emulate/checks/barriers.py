"""Barriers that waves use unequally.

A group of waves may run ahead of the others by a barrier that only it passes, as in ping-pong schedules, if the others
make up for it later: what counts is how often each wave has arrived when the workgroup is done.
"""

from __future__ import annotations

import numpy as np

from hkc.emulate.decode import Decoded
from hkc.emulate.faults import Party
from hkc.emulate.observe import Observer, before
from hkc.emulate.outstanding import Rows
from hkc.emulate.registry import Context, Step
from hkc.emulate.state import State
from hkc.emulate.waves import Waves

KIND = "barrier"


class Barriers(Observer):
    """Counts arrivals, and compares EXEC with the lanes that the wave started with."""

    def step(self, instruction: Decoded, step: Step, context: Context) -> Step:
        """See `Observer`."""
        if instruction.base != "s_endpgm":
            return step

        def end(w: Waves) -> None:
            for row in w.rows.tolist():
                self._last[row] = self._last[row] or instruction

        return before(step, end)

    def begin(self, state: State) -> None:
        """See `Observer`."""
        self._alive = state.exec_mask.copy()
        self._arrivals = np.zeros(state.shape.waves, np.int64)
        self._last: list[Decoded | None] = [None] * state.shape.waves
        self._ended = np.zeros(state.shape.waves, np.bool_)

    def arrive(self, state: State, rows: Rows, by: Decoded) -> None:
        """See `Observer`."""
        self._arrivals[rows] += 1
        for row in rows.tolist():
            self._last[row] = by
        missing = self._alive[rows] & ~state.exec_mask[rows]
        if missing.any():
            row, lane = (int(i[0]) for i in np.nonzero(missing))
            wave = state.first_wave + int(rows[row])
            message = f"lane {lane} is switched off at a barrier: not all lanes of the wave come here"
            state.findings.add(KIND, by, message, wave, lane)

    def leave(self, state: State, rows: Rows) -> None:
        """See `Observer`."""
        self._ended[rows] = True
        waves = state.shape.waves_per_group
        for group in np.unique(rows // waves).tolist():
            members = slice(group * waves, (group + 1) * waves)
            if self._ended[members].all():
                self._compare(state, group * waves, self._arrivals[members].tolist())

    def _compare(self, state: State, first: int, arrivals: list[int]) -> None:
        most, least = max(arrivals), min(arrivals)
        if most == least:
            return
        often, seldom = first + arrivals.index(most), first + arrivals.index(least)
        by, other = self._last[often], self._last[seldom]
        assert by is not None
        wave = state.first_wave + seldom
        message = f"this wave arrived at barriers {most} times, wave {wave} of the same workgroup {least} times"
        party = Party(other.address, other.text, wave) if other else None
        state.findings.add(KIND, by, message, state.first_wave + often, 0, party)
