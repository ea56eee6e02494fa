"""LDS accesses of different waves that barriers do not order, found by counting barriers: a second opinion on the race
checker, with which it shares no code, and one that holds for all orders of the waves at once.

A wave's epoch is the number of barriers that it has come to. An access lasts from the epoch in which it is issued to
that in which its wave has waited for it. Since all waves meet at each barrier, the n-th that one comes to is the n-th
of all others, and an access is over before another one is issued if its last epoch is below the other's first one. When
waves run does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.emulate import Access, Observer
from hkc.emulate.decode import Decoded
from hkc.emulate.outstanding import Happen, Picked, Rows
from hkc.emulate.state import State

Ints = NDArray[np.int64]


class Epochs(Observer):
    """Collects LDS accesses; `clashes` are pairs of bytes' accesses that overlap in time, one of them a write."""

    def __init__(self) -> None:
        self.clashes = 0

    def begin(self, state: State) -> None:
        self._epoch: Ints = np.zeros(state.shape.waves, np.int64)
        self._rows: list[Ints] = []
        self._left = state.shape.waves

    def arrive(self, state: State, rows: Rows, by: Decoded) -> None:
        self._epoch[rows] += 1

    def leave(self, state: State, rows: Rows) -> None:
        self._left -= len(rows)
        if not self._left and self._rows:
            self.clashes += clashes(np.concatenate(self._rows, axis=1))

    def access(self, state: State, access: Access) -> Happen | None:
        if access.space != "lds":
            return None
        issued = self._epoch[access.rows]
        group = access.rows // state.shape.waves_per_group

        def over(rows: Rows, picked: Picked) -> None:
            row, lane = np.nonzero(access.mask[picked])
            first = access.addresses[picked][row, lane].astype(np.int64) + group[picked][row] * state.shape.lds
            for byte in range(access.nbytes):
                facts: tuple[Any, ...] = (first + byte, issued[picked][row], self._epoch[rows][row], rows[row])
                self._rows.append(np.stack([*facts, np.full(len(row), access.kind != "load")]))

        return over


def clashes(accesses: Ints) -> int:
    """How many pairs of [byte, first epoch, last epoch, wave, is a write] are of different waves, on the same byte, at
    the same time, and not both reads."""
    byte, first, last, wave, writes = accesses[:, np.lexsort(accesses[::-1])]
    found, apart = 0, 1
    while apart < len(byte) and (near := byte[apart:] == byte[:-apart]).any():
        one, two = slice(None, -apart), slice(apart, None)
        meet = near & (first[two] <= last[one]) & (first[one] <= last[two]) & (wave[one] != wave[two])
        found += int((meet & (writes[one] + writes[two] > 0)).sum())
        apart += 1
    return found
