"""Bank conflicts as a launch makes them: clocks of every LDS instruction, from the addresses that it executes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hkc.emulate.decode import Decoded
from hkc.emulate.observe import Access, Observer
from hkc.layout.banks import conflicts
from hkc.layout.linear import Ints
from hkc.targets.chip import Chip

if TYPE_CHECKING:
    from hkc.emulate.outstanding import Happen
    from hkc.emulate.state import State

MOVES = ("ds_read", "ds_write")
"""What instructions that move data between registers and LDS start with; lane permutations touch no bank."""


@dataclass(frozen=True)
class Observed:
    """One LDS instruction of the code: what it is, how many clocks its executions took (clocks of one wave -> how
    often; an instruction with two parts counts each), and the clocks of a part without conflicts."""

    address: int
    text: str
    mnemonic: str
    minimum: int
    clocks: Mapping[int, int]


def clocks_of(chip: Chip, access: Access) -> Ints | None:
    """Clocks [row, phase] that one part of an instruction takes; None for what touches no banks."""
    if access.space != "lds" or not access.by.base.startswith(MOVES):
        return None
    timing = chip.lds.access(access.by.base)
    active = np.broadcast_to(access.mask, access.addresses.shape)
    return conflicts(access.addresses.astype(np.int64), timing.bytes, timing.phases, timing.banks, active)


@dataclass
class BankObserver(Observer):
    """An observer of launches that counts, per instruction, the clocks that its addresses cost the LDS of a chip."""

    chip: Chip
    _seen: dict[int, tuple[Decoded, Counter[int]]] = field(default_factory=dict)

    def access(self, state: State, access: Access) -> Happen | None:
        """See `Observer`."""
        self.count(access)
        return None

    def count(self, access: Access) -> Ints | None:
        """Count one part of an instruction; its clocks [row, phase], or None for what touches no banks."""
        clocks = clocks_of(self.chip, access)
        if clocks is not None:
            _, counts = self._seen.setdefault(access.by.address, (access.by, Counter()))
            counts.update(clocks.sum(axis=-1)[access.mask.any(axis=-1)].tolist())
        return clocks

    def instructions(self) -> tuple[Observed, ...]:
        """All LDS instructions that were executed, by address."""
        return tuple(
            Observed(at, by.text, by.base, len(self.chip.lds.access(by.base).phases), dict(counts))
            for at, (by, counts) in sorted(self._seen.items())
        )
