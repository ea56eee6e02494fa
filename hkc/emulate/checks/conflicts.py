"""Bank conflicts as findings: LDS instructions that took more clocks than their kind must."""

from __future__ import annotations

import numpy as np

from hkc.emulate.bank_conflicts import BankObserver, Observed
from hkc.emulate.observe import Access, Observer
from hkc.emulate.outstanding import Happen
from hkc.emulate.program import Program
from hkc.emulate.state import State
from hkc.targets.chip import load


class Conflicts(Observer):
    """Counts all clocks, and reports the first wave of each instruction that pays for conflicts."""

    def start(self, program: Program) -> None:
        """See `Observer`."""
        self._banks = BankObserver(load(program.isa.chip, program.isa.folder))

    def access(self, state: State, access: Access) -> Happen | None:
        """See `Observer`."""
        clocks = self._banks.count(access)
        if clocks is None:
            return None
        slow = clocks.max(axis=-1) > 1
        if slow.any():
            row = int(np.nonzero(slow)[0][0])
            lane = int(access.mask[row].argmax())
            message = f"{int(clocks[row].sum())} clocks where {clocks.shape[-1]} would do"
            wave = state.first_wave + int(access.rows[row])
            state.findings.add("bank conflicts", access.by, message, wave, lane)
        return None

    def instructions(self) -> tuple[Observed, ...]:
        """All LDS instructions of the launch, by address."""
        return self._banks.instructions()
