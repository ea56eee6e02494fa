"""Modes of a wave that change what later vector instructions do: registers counted from m0, and skipping.

Both are bits of the mode register. Only programs with an instruction that sets them are bound this way; others pay
nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import cache

import numpy as np

from hkc.emulate.decode import M0, Decoded, Operand
from hkc.emulate.registry import Context, Step, bind
from hkc.emulate.roles import results
from hkc.emulate.waves import Waves

GPR_INDEX, SKIP = 1 << 27, 1 << 28
"""Bits of the mode register: relative vector registers, and vector instructions that are not executed."""

_TARGET = 1 << 3
_SETTERS = {"s_set_gpr_idx_on": GPR_INDEX, "s_setvskip": SKIP}
_VECTOR = ("v_", "ds_", "buffer_", "tbuffer_", "global_", "flat_", "scratch_")


def modes_of(program: Iterable[Decoded]) -> int:
    """The bits that some instruction of the program may set."""
    found = 0
    for instruction in program:
        found |= _SETTERS.get(instruction.base, 0)
    return found


def bind_in(instruction: Decoded, context: Context, modes: int) -> Step:
    """`bind` for a program that may set `modes`."""
    step = bind(instruction, context)
    if modes & GPR_INDEX and instruction.base.startswith("v_"):
        step = _indexed(instruction, context, step)
    if modes & SKIP and instruction.base.startswith(_VECTOR):
        step = _skipping(step)
    return step


def _skipping(step: Step) -> Step:
    def run(w: Waves) -> None:
        executing = w.state.mode[w.rows] & np.uint32(SKIP) == 0
        if executing.any():
            step(w.some(executing))
            w.refresh_exec()

    return run


def _indexed(instruction: Decoded, context: Context, plain: Step) -> Step:
    """m0[7:0] is added to the numbers of the vector registers that m0[15:12] chooses: three sources, the result."""

    @cache
    def shifted(offset: int, chosen: int) -> Step:
        first = results(instruction)
        bits = [_TARGET if i < first else 1 << i - first for i in range(len(instruction.operands))]
        operands = tuple(
            _moved(operand, offset if bit & chosen else 0)
            for operand, bit in zip(instruction.operands, bits, strict=True)
        )
        return bind(dataclasses.replace(instruction, operands=operands), context)

    def run(w: Waves) -> None:
        relative = w.state.mode[w.rows] & np.uint32(GPR_INDEX) != 0
        if not relative.any():
            plain(w)
            return
        index = np.where(relative, w.scalar(M0) & np.uint32(0xF0FF), np.uint32(0))
        for number in np.unique(index).tolist():
            shifted(number & 0xFF, number >> 12)(w.some(index == number))
        w.refresh_exec()

    return run


def _moved(operand: Operand, offset: int) -> Operand:
    if operand.kind != "vgpr" or not offset:
        return operand
    return dataclasses.replace(operand, index=operand.index + offset)
