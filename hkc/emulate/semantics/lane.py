"""Instructions that move data between lanes, or between lanes and scalar registers."""

from __future__ import annotations

import numpy as np

from hkc.emulate.decode import Decoded
from hkc.emulate.operands import scalar_reader, word_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.state import UNWRITTEN
from hkc.emulate.waves import Waves


@op("v_readfirstlane_b32")
def _(instruction: Decoded, context: Context) -> Step:
    target = instruction.operands[0].index
    read = word_reader(instruction.operands[1], instruction, context)

    def step(w: Waves) -> None:
        values = np.broadcast_to(read(w), w.mask.shape)
        # with EXEC = 0 the hardware takes lane 0, and so does argmax
        chosen = np.arange(w.count), w.mask.argmax(axis=-1)
        if w.taint is not None:
            stale = w.taint & (np.arange(64) == chosen[1][:, None])
            w.taint = stale if stale.any() else None
            w.consume("v_readfirstlane")
        w.set_scalar(target, values[chosen])

    return step


@op("v_readlane_b32")
def _(instruction: Decoded, context: Context) -> Step:
    target = instruction.operands[0].index
    source = context.vector(instruction.operands[1])
    lane = scalar_reader(instruction.operands[2], 32, instruction)

    def step(w: Waves) -> None:
        chosen = np.arange(w.count), np.broadcast_to(lane(w) & np.uint32(63), (w.count,))
        values = w.read(source)
        # EXEC plays no part here; spilled scalar registers come back this way, whether they were ever written or not
        w.taint = w.scalar_taint = None
        if w.state.flags[source] & UNWRITTEN:
            stale = w.state.whole(source)[w.rows][chosen]
            w.scalar_taint = stale if stale.any() else None
        w.set_scalar(target, values[chosen])

    return step


@op("v_writelane_b32")
def _(instruction: Decoded, context: Context) -> Step:
    target = context.vector(instruction.operands[0])
    value = scalar_reader(instruction.operands[1], 32, instruction)
    lane = scalar_reader(instruction.operands[2], 32, instruction)

    def step(w: Waves) -> None:
        only = np.arange(64) == np.broadcast_to(lane(w) & np.uint32(63), (w.count,))[:, None]
        word = np.broadcast_to(value(w), (w.count,))[:, None]
        w.taint = None if w.scalar_taint is None else np.broadcast_to(w.scalar_taint[:, None], only.shape)
        w.write(target, word, only)

    return step


@op("v_permlane32_swap_b32", "v_permlane16_swap_b32")
def _(instruction: Decoded, context: Context) -> Step:
    """Exchange the odd halves (or rows of 16 lanes) of the first register with the even ones of the second."""
    size = 32 if "32_swap" in instruction.base else 16
    first, second = (context.vector(o) for o in instruction.operands)
    odd = (np.arange(64) // size & 1).astype(np.bool_)
    partner = np.arange(64) ^ size

    def step(w: Waves) -> None:
        a, b = w.read(first).copy(), w.read(second).copy()
        w.write(first, np.where(odd, b[:, partner], a))
        w.write(second, np.where(odd, b, a[:, partner]))

    return step
