"""Global wave sync: 64 counters at which waves of a whole launch wait for each other, as barriers or semaphores.

From the pseudocode of AMD's GPU guides (GCN3 to CDNA, `ds_gws_…`). The hardware has these for kernels that were
launched with the resource; here every launch has it.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from typing import Literal

_RESOURCES = 64


@dataclass(frozen=True)
class Place:
    """Where waves meet: one opening of a barrier, or what one instruction gave to a semaphore, counted by `number`."""

    kind: Literal["barrier", "semaphore"]
    number: int


@dataclass(frozen=True)
class Meeting:
    """A wave comes to a place and lets others go on there (`passes` is false), or goes on because others did."""

    wave: int
    place: Place
    passes: bool


@dataclass
class _Given:
    """What one instruction gave to a semaphore, and how much of it nobody has taken."""

    place: Place
    left: int


class WaveSync:
    """The counters of one launch.

    Methods that may have to wait say whether the wave may go on; waves are numbered over the launch. `version` changes
    whenever somebody who waits may go on. `meetings` says what happened, until whoever reads it clears it: a wave that
    passes a semaphore takes what was given first.
    """

    def __init__(self) -> None:
        self.version = 0
        self.meetings: list[Meeting] = []
        self._places = itertools.count()
        self._counters = [0] * _RESOURCES
        self._flags = [False] * _RESOURCES
        self._opening = [self._place("barrier") for _ in range(_RESOURCES)]
        self._given: list[deque[_Given]] = [deque() for _ in range(_RESOURCES)]
        self._arrived: dict[tuple[int, int], tuple[bool, Place]] = {}
        self._released: dict[tuple[int, int], Place] = {}
        self._waiting: set[tuple[int, int]] = set()

    def _place(self, kind: Literal["barrier", "semaphore"]) -> Place:
        return Place(kind, next(self._places))

    def _give(self, wave: int) -> Place:
        place = self._place("semaphore")
        self.meetings.append(Meeting(wave, place, passes=False))
        self.version += 1
        return place

    def init(self, resource: int, wave: int, value: int) -> None:
        """Set a counter: waves of a barrier less one, or what a semaphore starts with."""
        self._counters[resource], self._flags[resource] = value, False
        self._given[resource] = deque([_Given(self._give(wave), value)])

    def release(self, resource: int, wave: int, count: int) -> None:
        """Let `count` more waves pass a semaphore."""
        self._counters[resource] += count
        self._given[resource].append(_Given(self._give(wave), count))

    def release_all(self, resource: int, wave: int) -> None:
        """Whoever waits at a semaphore passes, and nothing is left to take."""
        self._counters[resource] = 0
        self._given[resource].clear()
        freed = {key for key in self._waiting if key[0] == resource}
        self._released |= dict.fromkeys(freed, self._give(wave))
        self._waiting -= freed

    def take(self, resource: int, wave: int) -> bool:
        """Pass a semaphore."""
        key = (resource, wave)
        place = self._released.pop(key, None) or self._take(resource)
        if place is None:
            self._waiting.add(key)
            return False
        self._waiting.discard(key)
        self.meetings.append(Meeting(wave, place, passes=True))
        return True

    def _take(self, resource: int) -> Place | None:
        """The place where what is taken was given; None where nothing is left."""
        if self._counters[resource] <= 0:
            return None
        self._counters[resource] -= 1
        given = self._given[resource]
        while given and given[0].left == 0:
            given.popleft()
        if not given:
            return self._place("semaphore")  # a barrier has set the counter: nobody gave it
        given[0].left -= 1
        return given[0].place

    def arrive(self, resource: int, wave: int, value: int) -> bool:
        """Pass a barrier; who comes last sets the counter for the next one to `value`."""
        key = (resource, wave)
        if key in self._arrived:
            flag, place = self._arrived[key]
            if flag == self._flags[resource]:
                return False
            del self._arrived[key]
            self.meetings.append(Meeting(wave, place, passes=True))
            return True
        place = self._opening[resource]
        self.meetings.append(Meeting(wave, place, passes=False))
        if self._counters[resource] > 0:
            self._counters[resource] -= 1
            self._arrived[key] = self._flags[resource], place
            return False
        self._counters[resource], self._flags[resource] = value, not self._flags[resource]
        self._opening[resource] = self._place("barrier")
        self.meetings.append(Meeting(wave, place, passes=True))
        self.version += 1
        return True
