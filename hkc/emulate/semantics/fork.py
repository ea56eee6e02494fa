"""Fork and join: a branch at which lanes part, with the path not taken kept on a stack of scalar registers.

From the pseudocode of the CDNA ISA guides. The stack's height, in entries of four registers (mask, then address), is
the mode register's CSP field.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import EXEC, Decoded
from hkc.emulate.operands import scalar_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.semantics.control import branch_target, file_address, memory_address
from hkc.emulate.waves import U64, Waves

_CSP, _HEIGHT = 29, 7


def _height(w: Waves) -> NDArray[np.uint32]:
    return w.state.mode[w.rows] >> np.uint32(_CSP)


def _set_height(w: Waves, height: NDArray[np.uint32]) -> None:
    below = w.state.mode[w.rows] & np.uint32((1 << _CSP) - 1)
    w.state.mode[w.rows] = below | (height & np.uint32(_HEIGHT)) << np.uint32(_CSP)


def _fork(w: Waves, mask: U64, target: U64, following: U64) -> NDArray[np.int64]:
    """The lanes of `mask` want to go to `target`; the smaller party goes first, and a single one keeps the stack."""
    alive = w.exec
    passing, failing = mask & alive, ~mask & alive
    to_target, together = passing == alive, (passing == alive) | (failing == alive)
    few_fail = np.bitwise_count(failing) < np.bitwise_count(passing)
    height = _height(w)
    for number in np.unique(height[~together]).tolist():
        chosen = ~together & (height == number)
        part, few = w.some(chosen), few_fail[chosen]
        part.set_scalar64(4 * number, np.where(few, passing[chosen], failing[chosen]))
        part.set_scalar64(4 * number + 2, np.where(few, target[chosen], following[chosen]))
        part.set_scalar64(EXEC, np.where(few, failing[chosen], passing[chosen]))
        _set_height(part, _height(part) + np.uint32(1))
    w.refresh_exec()
    return file_address(w, np.where(to_target | ~together & ~few_fail, target, following))


def _build(target: Callable[[Decoded], Callable[[Waves], U64]]) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        mask, where = scalar_reader(instruction.operands[0], 64, instruction), target(instruction)
        after = instruction.address + instruction.size

        def step(w: Waves) -> NDArray[np.int64]:
            shape = (w.count,)
            both = np.broadcast_to(where(w), shape), np.broadcast_to(memory_address(w, after), shape)
            return _fork(w, np.broadcast_to(mask(w), shape), *both)

        return step

    return build


op("s_cbranch_g_fork")(_build(lambda i: scalar_reader(i.operands[1], 64, i)))
op("s_cbranch_i_fork")(_build(lambda i: lambda w: memory_address(w, branch_target(i))))


@op("s_cbranch_join")
def _(instruction: Decoded, context: Context) -> Step:
    """Go on where the stack is as high as it was at the fork, otherwise take the path that waits on it."""
    saved = scalar_reader(instruction.operands[0], 32, instruction)
    following = instruction.address + instruction.size

    def step(w: Waves) -> NDArray[np.int64]:
        height = _height(w)
        back = height != saved(w)
        jump = np.full(w.count, following, np.int64)
        for number in np.unique(height[back]).tolist():
            chosen = back & (height == number)
            part, top = w.some(chosen), 4 * ((number - 1) & _HEIGHT)
            jump[chosen] = file_address(part, part.scalar64(top + 2))
            part.set_scalar64(EXEC, part.scalar64(top))
            _set_height(part, height[chosen] - np.uint32(1))
        w.refresh_exec()
        return jump

    return step
