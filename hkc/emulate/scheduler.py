"""Who runs next: waves at the same instruction run together, the hindmost first, so that paths meet again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import Decoded
from hkc.emulate.faults import Fault, deadlock, endless, nowhere
from hkc.emulate.modes import bind_in, modes_of
from hkc.emulate.observe import Observer
from hkc.emulate.program import Program
from hkc.emulate.registry import Context, Step
from hkc.emulate.semantics.control import BARRIER, END, QUEUE
from hkc.emulate.state import State
from hkc.emulate.waves import Waves

_TURN = 4096
"""Instructions after which a group lets others run, so that waves that wait for each other in a loop get on."""

_NEVER = 1 << 60

Rows = NDArray[np.int64]


class Code:
    """The program bound to a kernel: steps are built when first reached."""

    def __init__(self, program: Program, context: Context, observers: Sequence[Observer] = ()) -> None:
        self.program = program
        self.context = context
        self.observers = observers
        self.modes = modes_of(program.instructions)
        self.steps: list[Step | None] = [None] * (len(program.instructions) + 1)  # the last is beyond the code
        self.executed: list[int] = [0] * len(program.instructions)

    def step(self, position: int) -> Step:
        """The step at a position, built on demand. Raises HK701..HK703, HK708 beyond the last instruction."""
        found = self.steps[position]
        if found is None:
            if position == len(self.program.instructions):
                last = self.program.instructions[-1]
                raise nowhere(last.address + len(last.encoding), last)
            instruction = self.program.instructions[position]
            found = bind_in(instruction, self.context, self.modes)
            for observer in self.observers:
                found = observer.step(instruction, found, self.context)
            self.steps[position] = found
        return found

    def position(self, address: int, by: Decoded | None = None) -> int:
        """The position of an address to which `by` jumps. Raises HK708 where no instruction starts there."""
        found = self.program.positions.get(address)
        if found is None:
            raise nowhere(address, by)
        return found

    def busiest(self) -> tuple[Decoded, Decoded]:
        """The first and the last of the instructions that were executed most often, or nearly so."""
        often = [n for n, count in enumerate(self.executed) if 2 * count >= max(self.executed)]
        return self.program.instructions[often[0]], self.program.instructions[often[-1]]

    def counts(self) -> dict[str, int]:
        """Executed wave-instructions per mnemonic."""
        total: Counter[str] = Counter()
        for instruction, n in zip(self.program.instructions, self.executed, strict=True):
            if n:
                total[instruction.mnemonic] += n
        return dict(total)


class Scheduler:
    """Runs the waves of one batch from `entry` to their end."""

    def __init__(self, code: Code, state: State, entry: int, limit: int, chance: random.Random | None) -> None:
        self.code = code
        self.state = state
        self.limit = limit
        self.chance = chance
        waves = state.shape.waves
        self.at = np.full(waves, code.position(entry), np.int64)
        self.waiting = np.zeros(waves, np.bool_)
        self.running = np.ones(waves, np.bool_)
        self.queued = np.full(waves, -1, np.int64)
        self.arrived = np.zeros((waves // state.shape.waves_per_group,), np.int64)
        self._group_of = np.arange(waves) // state.shape.waves_per_group
        self._behind = -1

    def run(self, tick: Callable[[float], None]) -> None:
        """Until every wave has ended. `tick` gets the fraction of waves that have."""
        while self.running.any():
            ready = self.running & ~self.waiting & (self.queued != self.state.sync.version)
            if not ready.any():
                raise deadlock(*self._place(), {self._instruction(row).address for row in self._running()})
            if self.limit <= 0:
                raise endless(*self._place(), *self.code.busiest())
            rows, stop = self._choose(ready)
            try:
                self._advance(rows, stop)
            except Fault as fault:
                if fault.wave is None:
                    fault.wave = self.state.first_wave + int(rows[0] if fault.row is None else fault.row)
                raise
            tick(1 - float(self.running.mean()))

    def _running(self) -> list[int]:
        """The waves that have not ended."""
        return [int(row) for row in np.nonzero(self.running)[0]]

    def _instruction(self, row: int) -> Decoded:
        """The instruction to which a wave has got, or the barrier at which it waits."""
        return self.code.program.instructions[int(self.at[row]) - int(self.waiting[row])]

    def _place(self) -> tuple[Decoded, int]:
        """The instruction of the first running wave, and which wave that is."""
        row = self._running()[0]
        return self._instruction(row), self.state.first_wave + row

    def _choose(self, ready: NDArray[np.bool_]) -> tuple[Rows, int]:
        """The group to run, and the position at which it may meet another one."""
        places = np.unique(self.at[ready])
        if self.chance is not None:
            place = int(self.chance.choice(places.tolist()))
        else:
            later = places[places > self._behind]
            place = int(later[0] if len(later) else places[0])
        others = places[places > place]
        rows = np.nonzero(ready & (self.at == place))[0]
        return rows, int(others[0]) if len(others) else _NEVER

    def _advance(self, rows: Rows, stop: int) -> None:
        code, steps, executed = self.code, self.code.steps, self.code.executed
        instructions = code.program.instructions
        group = Waves(self.state, rows)
        position, count = int(self.at[rows[0]]), len(rows)
        turn = _TURN if self.chance is None else self.chance.randrange(1, 64)
        taken = 0
        for taken in range(1, min(turn, self.limit) + 1):
            step = steps[position] or code.step(position)
            group.instruction = instructions[position]
            executed[position] += count
            jump = step(group)
            group.taint = group.scalar_taint = None
            if jump is None:
                position += 1
            elif (jump != jump[0]).any() or jump[0] < 0:
                self._behind = -1
                self.limit -= taken
                self._leave(group, position, jump)
                return
            else:
                position = code.position(int(jump[0]), group.by)
            if position == stop:
                break
        else:
            self._tired(count == int(self.running.sum()))
            self._behind = position
        self.limit -= taken
        self.at[rows] = position

    def _tired(self, alone: bool) -> None:
        """A turn is over without an event: others may wait for what this group has outstanding."""
        if not alone:
            self.state.outstanding.finish(np.nonzero(self.running)[0])

    def _leave(self, group: Waves, position: int, jump: NDArray[np.int64]) -> None:
        """Waves part: at a branch that only some take, at a barrier, at the end."""
        for target in np.unique(jump).tolist():
            rows = group.rows[jump == target]
            if target == END:
                self.running[rows] = False
                for observer in self.state.observers:
                    observer.leave(self.state, rows)
                self._release(np.unique(self._group_of[rows]))
            elif target == BARRIER:
                self.at[rows] = position + 1
                self.waiting[rows] = True
                for observer in self.state.observers:
                    observer.arrive(self.state, rows, group.by)
                self._release(np.unique(self._group_of[rows]))
            elif target == QUEUE:
                self.at[rows] = position
                self.queued[rows] = self.state.sync.version
            else:
                self.at[rows] = self.code.position(target, group.by)

    def _release(self, groups: Rows) -> None:
        """Open the barriers at which every live wave of a workgroup waits."""
        held = (self.waiting | ~self.running).reshape(-1, self.state.shape.waves_per_group)
        for group in groups[held[groups].all(axis=1)].tolist():
            self.waiting[self._group_of == group] = False
            for observer in self.state.observers:
                observer.release(self.state, group)
