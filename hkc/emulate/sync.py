"""Global wave sync: 64 counters at which waves of a whole launch wait for each other, as barriers or semaphores.

From the pseudocode of AMD's GPU guides (GCN3 to CDNA, `ds_gws_…`). The hardware has these for kernels that were
launched with the resource; here every launch has it.
"""

from __future__ import annotations

_RESOURCES = 64


class WaveSync:
    """The counters of one launch.

    Methods that may have to wait say whether the wave may go on; waves are numbered over the launch. `version` changes
    whenever somebody who waits may go on.
    """

    def __init__(self) -> None:
        self.version = 0
        self._counters = [0] * _RESOURCES
        self._flags = [False] * _RESOURCES
        self._arrived: dict[tuple[int, int], bool] = {}
        self._released: set[tuple[int, int]] = set()
        self._waiting: set[tuple[int, int]] = set()

    def init(self, resource: int, value: int) -> None:
        """Set a counter: waves of a barrier less one, or what a semaphore starts with."""
        self._counters[resource], self._flags[resource] = value, False
        self.version += 1

    def release(self, resource: int, count: int) -> None:
        """Let `count` more waves pass a semaphore."""
        self._counters[resource] += count
        self.version += 1

    def release_all(self, resource: int) -> None:
        """Whoever waits at a semaphore passes, and nothing is left to take."""
        self._counters[resource] = 0
        self._released |= {key for key in self._waiting if key[0] == resource}
        self._waiting -= self._released
        self.version += 1

    def take(self, resource: int, wave: int) -> bool:
        """Pass a semaphore."""
        key = (resource, wave)
        if key in self._released:
            self._released.remove(key)
            return True
        free = self._counters[resource] > 0
        self._counters[resource] -= free
        (self._waiting.discard if free else self._waiting.add)(key)
        return free

    def arrive(self, resource: int, wave: int, value: int) -> bool:
        """Pass a barrier; who comes last sets the counter for the next one to `value`."""
        key = (resource, wave)
        if key in self._arrived:
            if self._arrived[key] == self._flags[resource]:
                return False
            del self._arrived[key]
            return True
        if self._counters[resource] > 0:
            self._counters[resource] -= 1
            self._arrived[key] = self._flags[resource]
            return False
        self._counters[resource], self._flags[resource] = value, not self._flags[resource]
        self.version += 1
        return True
