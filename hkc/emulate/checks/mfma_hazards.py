"""Matrix instructions and what depends on them: too few instructions in between give wrong results on silicon.

What is needed is the chip's table (`isa.toml`, mfma_hazards). Distances are counted along the path that each wave
takes, branches and loops included.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import EXEC, Decoded, Operand
from hkc.emulate.faults import Party
from hkc.emulate.observe import Observer
from hkc.emulate.program import Program
from hkc.emulate.registry import Context, Step
from hkc.emulate.state import LANES, State
from hkc.emulate.waves import Waves
from hkc.targets.chip import load
from hkc.targets.mfma import Mfma

KIND = "mfma hazard"

SAME, ADDEND_XDL, ADDEND, FACTOR, VALU, MEMORY, WRITE, ADDEND_WRITE, AFTER_VALU = range(9)
_DEEDS = (
    "is added to", "is added to", "is added to", "is a factor", "is read", "is read by a memory instruction",
    "is written", "is written", "is read by a matrix instruction",
)  # fmt: skip
_MEMORY = ("global_", "flat_", "buffer_", "scratch_", "ds_")
_READ_RESULT = ("v_fmac", "v_mac", "v_pk_fmac", "v_dot2c", "v_dot4c", "v_dot8c", "v_swap", "v_permlane")
_RETURNING = ("_load", "ds_read", "_rtn", "permute", "swizzle")

Rows = slice | NDArray[np.int64]


@dataclass(frozen=True)
class _Roles:
    """What one instruction does with vector registers (numbers of the state's single file)."""

    uses: tuple[tuple[int, int], ...]
    """(what must be over, register)"""
    written: tuple[int, ...]
    addend: tuple[int, ...] = ()
    form: Mfma | None = None
    range: tuple[str, int, int] = ("", 0, 0)
    """Which registers the addend is, as the text has it."""


class MfmaHazards(Observer):
    """Counts the instructions of each wave since matrix instructions touched its registers."""

    def start(self, program: Program) -> None:
        """See `Observer`."""
        self._program = program
        self._chip = load(program.isa.chip, program.isa.folder)
        self._waits = program.isa.mfma_waits
        self._needed = bool(self._waits) and any(_is_mfma(i) for i in program.instructions)
        self._results = defaultdict(list)
        for position, instruction in enumerate(program.instructions):
            if _is_mfma(instruction):
                self._results[_range(instruction.operands[0])].append(position)

    def begin(self, state: State) -> None:
        """See `Observer`."""
        self._registers, waves = len(state.registers), state.shape.waves
        self._clock, self._exec_ready = np.zeros(waves, np.int32), np.zeros(waves, np.int32)
        self._ready = np.zeros((len(_DEEDS) * self._registers, waves), np.int32)
        self._cause = np.zeros((len(_DEEDS) * self._registers, waves), np.int32)

    def step(self, instruction: Decoded, step: Step, context: Context) -> Step:
        """See `Observer`."""
        if not self._needed:
            return step
        roles = self._roles(instruction, context)
        position = self._program.positions[instruction.address]
        length = instruction.simm16 + 1 if instruction.base == "s_nop" else 1
        look, leave = self._check(instruction, roles), self._enter(instruction, roles, position)
        if look is None and leave is None:

            def idle(w: Waves) -> NDArray[np.int64] | None:
                self._clock[slice(None) if w.whole else w.rows] += length
                jump: NDArray[np.int64] | None = step(w)
                return jump

            return idle

        def run(w: Waves) -> NDArray[np.int64] | None:
            rows = slice(None) if w.whole else w.rows
            if look is not None:
                look(w, rows)
            jump: NDArray[np.int64] | None = step(w)
            self._clock[rows] += length
            if leave is not None:
                leave(rows)
            return jump

        return run

    def _check(self, instruction: Decoded, roles: _Roles) -> Callable[[Waves, Rows], None] | None:
        """Looks whether all registers that the instruction uses may be used."""
        if not roles.uses:
            return None
        places = np.array([kind * self._registers + register for kind, register in roles.uses])
        kinds = np.array([kind for kind, _ in roles.uses])
        same = np.zeros(len(self._program.instructions), np.bool_)
        if roles.form is not None:
            same[self._results[roles.range]] = True
        exact, partly = (kinds == SAME)[:, None], ((kinds == ADDEND) | (kinds == ADDEND_XDL))[:, None]
        addends = bool(exact.any())

        def look(w: Waves, rows: Rows) -> None:
            index = (places[:, None], rows) if isinstance(rows, np.ndarray) else (places,)
            hit = self._ready[index] > self._clock[rows]
            if addends and hit.any():
                whole = same[self._cause[index]]
                hit &= ~(exact & ~whole | partly & whole)
            if hit.any():
                self._report(w, roles, index, hit)
            if roles.form is not None and (late := self._exec_ready[rows] > self._clock[rows]).any():
                wide = np.broadcast_to(late[:, None], (w.count, LANES))
                w.find(KIND, "EXEC was written by a vector instruction too few instructions before", wide)

        return look

    def _enter(self, instruction: Decoded, roles: _Roles, position: int) -> Callable[[Rows], None] | None:
        """Notes what the instruction has done to its registers."""
        if roles.form is not None:
            waits = self._waits.get((_kind(roles.form), roles.form.passes))
            if waits is None:
                return None
            after = [(kind, r) for kind in range(ADDEND_WRITE) for r in roles.written]
            after += [(ADDEND_WRITE, r) for r in roles.addend]
        elif instruction.base.startswith("v_"):
            waits = next(iter(self._waits.values()))
            after = [(AFTER_VALU, r) for r in roles.written]
        else:
            return None
        places = np.array([kind * self._registers + r for kind, r in after], np.int64)
        lengths = np.array([waits[kind] for kind, _ in after], np.int32)[:, None]
        exec_wait = self._program.isa.exec_mfma if _writes_exec(instruction) else 0
        if not after and not exec_wait:
            return None

        def leave(rows: Rows) -> None:
            index = (places[:, None], rows) if isinstance(rows, np.ndarray) else (places,)
            self._ready[index] = self._clock[rows] + lengths
            self._cause[index] = position
            if exec_wait:
                self._exec_ready[rows] = self._clock[rows] + exec_wait

        return leave

    def _report(self, w: Waves, roles: _Roles, index: Any, hit: NDArray[np.bool_]) -> None:
        use, row = (int(i[0]) for i in np.nonzero(hit))
        kind, register = roles.uses[use]
        by = self._program.instructions[int(self._cause[index][use, row])]
        wave = w.state.first_wave + int(w.rows[row])
        short = int(self._ready[index][use, row]) - int(self._clock[w.rows[row]])
        message = f"{w.name(register)} {_DEEDS[kind]} {short} instructions too early after {by.mnemonic}"
        w.state.findings.add(KIND, w.by, message, wave, 0, Party(by.address, by.text, wave))

    def _roles(self, instruction: Decoded, context: Context) -> _Roles:
        def numbers(*operands: Operand) -> tuple[int, ...]:
            vectors = [o for o in operands if o.kind in ("vgpr", "agpr")]
            return tuple(context.vector(o) + i for o in vectors for i in range(o.count))

        base, operands = instruction.base, instruction.operands
        if _is_mfma(instruction):
            return self._matrix_roles(instruction, numbers)
        vector, memory = base.startswith("v_"), base.startswith(_MEMORY)
        if not (vector or memory) or not operands:
            return _Roles((), ())
        returns = vector or any(word in base for word in _RETURNING) or ("atomic" in base and instruction.flag("sc0"))
        returns = returns and not instruction.flag("lds")
        written = numbers(*operands[: 2 if "swap" in base else 1]) if returns else ()
        read = numbers(*operands[1 if returns and not base.startswith(_READ_RESULT) else 0 :])
        uses = [(VALU if vector else MEMORY, r) for r in read]
        uses += [(kind, r) for kind in (WRITE, ADDEND_WRITE) for r in written]
        return _Roles(tuple(uses), written)

    def _matrix_roles(self, instruction: Decoded, numbers: Callable[..., tuple[int, ...]]) -> _Roles:
        d, a, b, c = instruction.operands[:4]
        mixed = "f8f6f4" in instruction.base
        codes = (instruction.number("cbsz"), instruction.number("blgp")) if mixed else (0, 0)
        form = self._chip.mfma(instruction.base, *codes)
        sparse = instruction.base.startswith("v_smfmac")
        factors, addend = (numbers(a, b, c), numbers(d)) if sparse else (numbers(a, b), numbers(c))
        factors += numbers(*instruction.operands[4:])
        partly = ADDEND_XDL if _kind(form) == "xdl" else ADDEND
        uses = [(kind, r) for kind in (FACTOR, AFTER_VALU) for r in factors]
        uses += [(kind, r) for kind in (SAME, partly, AFTER_VALU) for r in addend]
        result = addend if _kind(form) == "xdl" else ()
        return _Roles(tuple(uses), numbers(d), result, form, _range(d if sparse else c))


def _is_mfma(instruction: Decoded) -> bool:
    return instruction.base.startswith(("v_mfma_", "v_smfmac_"))


def _kind(form: Mfma) -> str:
    return form.a if form.a in ("f32", "f64") else "xdl"


def _range(operand: Operand) -> tuple[str, int, int]:
    return operand.kind, operand.index, operand.count


def _writes_exec(instruction: Decoded) -> bool:
    named = instruction.operands[:1]
    return instruction.base.startswith("v_cmpx") or any(o.kind == "sgpr" and o.index == EXEC for o in named)
