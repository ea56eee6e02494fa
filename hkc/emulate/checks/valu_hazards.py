"""Vector instructions whose results others use too soon: wait states that the hardware leaves to the program.

A look at the program as a whole decides whether any of its instructions may come too early; only then are distances
counted, along the path that each wave takes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.checks.distances import Key, Need, made, needed
from hkc.emulate.decode import Decoded
from hkc.emulate.faults import Party
from hkc.emulate.observe import Observer
from hkc.emulate.program import Program
from hkc.emulate.registry import Context, Step
from hkc.emulate.semantics.control import branch_target
from hkc.emulate.state import LANES, State
from hkc.emulate.waves import SPECIAL, Waves

KIND = "valu hazard"
_LONG_AGO = -1000
_COMPUTED = ("s_setpc_b64", "s_swappc_b64", "s_cbranch_g_fork", "s_cbranch_join", "s_call_b64")
_NO_WAY_ON = ("s_branch", "s_endpgm", "s_setpc_b64", "s_swappc_b64", "s_call_b64")


class ValuHazards(Observer):
    """Counts wait states since facts that later instructions depend on."""

    def start(self, program: Program) -> None:
        """See `Observer`."""
        self._program = program
        states = program.isa.valu_waits
        self._made = [made(i) for i in program.instructions] if states else []
        self._needs = [needed(i, states) for i in program.instructions] if states else []
        self._active = bool(states) and self._suspicious()

    def begin(self, state: State) -> None:
        """See `Observer`."""
        self._waves = state.shape.waves
        self._clock = np.zeros(self._waves, np.int64)
        self._since: dict[Key, NDArray[np.int64]] = {}
        self._by: dict[Key, NDArray[np.int64]] = {}

    def step(self, instruction: Decoded, step: Step, context: Context) -> Step:
        """See `Observer`."""
        if not self._active:
            return step
        position = self._program.positions[instruction.address]
        needs, leaves, length = self._needs[position], self._made[position], _states(instruction)

        def run(w: Waves) -> NDArray[np.int64] | None:
            for need in needs:
                if need.key in self._since:
                    self._look(w, need)
            jump: NDArray[np.int64] | None = step(w)
            self._clock[w.rows] += length
            for key in leaves:
                self._note(key, w.rows, position)
            return jump

        return run

    def _look(self, w: Waves, need: Need) -> None:
        left = need.states - (self._clock[w.rows] - self._since[need.key][w.rows])
        by = self._by[need.key][w.rows]
        for row in np.nonzero(left > 0)[0].tolist():
            other = self._program.instructions[int(by[row])]
            if other.base != need.unless:
                self._report(w, need, row, int(left[row]), other)
                return

    def _report(self, w: Waves, need: Need, row: int, left: int, other: Decoded) -> None:
        wave = w.state.first_wave + int(w.rows[row])
        message = f"{_name(need.key)} {need.what} {left} wait states too early after {other.mnemonic}"
        lane = int(w.mask[row].argmax()) % LANES
        w.state.findings.add(KIND, w.by, message, wave, lane, Party(other.address, other.text, wave))

    def _note(self, key: Key, rows: NDArray[np.int64], position: int) -> None:
        if key not in self._since:
            self._since[key] = np.full(self._waves, _LONG_AGO, np.int64)
            self._by[key] = np.zeros(self._waves, np.int64)
        self._since[key][rows] = self._clock[rows]
        self._by[key][rows] = position

    def _suspicious(self) -> bool:
        """Whether some path may hold too few wait states; jumps to computed places may lead anywhere."""
        program = self._program.instructions
        if any(i.base in _COMPUTED for i in program):
            return True
        before = self._predecessors()
        return any(self._early(n, needs, before) for n, needs in enumerate(self._needs) if needs)

    def _early(self, position: int, needs: tuple[Need, ...], before: list[list[int]]) -> bool:
        longest = {need.key: need.states for need in sorted(needs, key=lambda n: n.states)}
        most = max(longest.values())
        paths, seen = [(p, 0) for p in before[position]], set[tuple[int, int]]()
        while paths:
            place, passed = paths.pop()
            if passed >= most or (place, passed) in seen:
                continue
            seen.add((place, passed))
            if any(longest.get(key, 0) > passed for key in self._made[place]):
                return True
            passed += _states(self._program.instructions[place])
            paths += [(p, passed) for p in before[place]]
        return False

    def _predecessors(self) -> list[list[int]]:
        program, positions = self._program.instructions, self._program.positions
        before: list[list[int]] = [[] for _ in program]
        for position, instruction in enumerate(program):
            if instruction.base not in _NO_WAY_ON and position + 1 < len(program):
                before[position + 1].append(position)
            if instruction.base.startswith(("s_branch", "s_cbranch")):
                target = positions.get(branch_target(instruction))
                if target is not None:
                    before[target].append(position)
        return before


def _states(instruction: Decoded) -> int:
    return instruction.simm16 + 1 if instruction.base == "s_nop" else 1


def _name(key: Key) -> str:
    way, kind, number = key
    if kind == "sgpr":
        names = {**SPECIAL, 126: "exec", 127: "exec"}
        return names.get(number, f"s{number}")
    if kind in ("vgpr", "agpr"):
        return f"{kind[0]}{number}"
    return "EXEC" if kind == "exec" else "a matrix instruction of f64" if way == "matrix" else kind
