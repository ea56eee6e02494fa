"""Who runs next: waves at the same instruction run together, the hindmost first, so that paths meet again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.observe import Observer
from hkc.emulate.program import Program
from hkc.emulate.registry import Context, Step, bind
from hkc.emulate.semantics.control import BARRIER, END
from hkc.emulate.state import State
from hkc.emulate.waves import Waves
from hkc.support.errors import error

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
        self.steps: list[Step | None] = [None] * len(program.instructions)
        self.executed: list[int] = [0] * len(program.instructions)

    def step(self, position: int) -> Step:
        """The step at a position, built on demand. Raises HK701..HK703."""
        found = self.steps[position]
        if found is None:
            instruction = self.program.instructions[position]
            found = bind(instruction, self.context)
            for observer in self.observers:
                found = observer.step(instruction, found, self.context)
            self.steps[position] = found
        return found

    def position(self, address: int) -> int:
        """The position of an address. Raises HK708 where no instruction starts there."""
        found = self.program.positions.get(address)
        if found is None:
            raise error("HK708", f"a jump to {address:#x}, where there is no instruction")
        return found

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
        self.arrived = np.zeros((waves // state.shape.waves_per_group,), np.int64)
        self._group_of = np.arange(waves) // state.shape.waves_per_group
        self._behind = -1

    def run(self, tick: Callable[[float], None]) -> None:
        """Until every wave has ended. `tick` gets the fraction of waves that have."""
        while self.running.any():
            ready = self.running & ~self.waiting
            if not ready.any():
                self._deadlock()
            if self.limit <= 0:
                raise error("HK709", "the program runs for too long: an endless loop?", hint="raise the step limit")
            rows, stop = self._choose(ready)
            self._advance(rows, stop)
            tick(1 - float(self.running.mean()))

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
                position = code.position(int(jump[0]))
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
            else:
                self.at[rows] = self.code.position(target)

    def _release(self, groups: Rows) -> None:
        """Open the barriers at which every live wave of a workgroup waits."""
        held = (self.waiting | ~self.running).reshape(-1, self.state.shape.waves_per_group)
        for group in groups[held[groups].all(axis=1)].tolist():
            self.waiting[self._group_of == group] = False
            for observer in self.state.observers:
                observer.release(self.state, group)

    def _deadlock(self) -> None:
        where = sorted({self.code.program.instructions[int(p) - 1].address for p in self.at[self.running]})
        raise error("HK710", "deadlock: waves wait at barriers " + ", ".join(f"{a:#x}" for a in where))
