"""Scalar memory: loads through the scalar cache. They may return in any order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import Decoded, Operand
from hkc.emulate.observe import announce, followed
from hkc.emulate.operands import scalar_reader
from hkc.emulate.outstanding import Happen, Picked, Rows
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.waves import U64, Waves

_SCRATCH_WORDS = 4
_WIDTHS = {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}


def _offsets(instruction: Decoded) -> tuple[list[Operand], int]:
    """The register offsets and the immediate byte offset of the text's third operand and `offset:`."""
    extra = list(instruction.operands[2:])
    fixed = instruction.number("offset")
    for operand in extra:
        if operand.kind == "int":
            fixed += int(operand.value)
    return [o for o in extra if o.kind == "sgpr"], fixed


def places_of(instruction: Decoded) -> Callable[[Waves], tuple[U64, NDArray[np.int64] | None]]:
    """What finds, for each wave, the address and, in a buffer, how many bytes are left from there on.

    An offset register counts 64 bytes in scratch, whose base the program must know (Vega ISA guide, "Scalar scratch").
    """
    base, buffer = instruction.operands[1].index, "_buffer_" in instruction.base
    unit = np.uint64(64 if "_scratch_" in instruction.base else 1)
    registers, fixed = _offsets(instruction)
    readers = [scalar_reader(o, 32, instruction) for o in registers]

    def find(w: Waves) -> tuple[U64, NDArray[np.int64] | None]:
        offset = np.full(w.count, np.uint64(fixed & (1 << 64) - 1))
        for read in readers:
            offset = offset + read(w).astype(np.uint64) * unit
        start = w.scalar64(base)
        if buffer:
            start = start & np.uint64((1 << 48) - 1)
        return (start + offset) & ~np.uint64(3), _left(w, base, offset) if buffer else None

    return find


def _left(w: Waves, base: int, offset: U64) -> NDArray[np.int64]:
    stride = w.scalar(base + 1) >> np.uint32(16) & np.uint32(0x3FFF)
    records = w.scalar(base + 2).astype(np.int64) * np.maximum(stride, 1)
    result: NDArray[np.int64] = records - offset.astype(np.int64)
    return result


def _load(width: int) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        target, find = instruction.operands[0].index, places_of(instruction)

        def step(w: Waves) -> None:
            _issue(w, instruction, target, width, *find(w))

        return step

    return build


def _issue(
    w: Waves, instruction: Decoded, target: int, width: int, address: U64, limit: NDArray[np.int64] | None
) -> None:
    state = w.state
    if w.scalar_taint is not None:
        w.consume("an address")
    after = 4 * np.arange(width)
    places = address[:, None] + after.astype(np.uint64)
    inside = np.ones(places.shape, np.bool_) if limit is None else limit[:, None] >= after + 4
    done: tuple[Happen, ...] = ()
    if state.listeners:
        inside, done = announce(w, "global", "load", "scalar", places, inside, 4)
    for i in range(width):
        state.launch_scalar(target + i, w.rows)

    def happen(rows: Rows, picked: Picked) -> None:
        lanes, where = inside[picked], places[picked]
        words, stale = state.memory.load(where, lanes, 4, instruction)
        stale = None if stale is None else stale[..., 0] & lanes
        if stale is not None and stale.any():
            row, word = (int(i[0]) for i in np.nonzero(stale))
            message = (
                f"scalar load of never-written memory at {(at := int(where[row, word])):#x}, {state.memory.near(at)}"
            )
            state.findings.add("uninitialised", instruction, message, state.first_wave + int(rows[row]), 0)
        values = np.where(lanes, words.reshape(lanes.shape), np.uint32(0))
        for i in range(width):
            state.land_scalar(target + i, rows, values[:, i])

    state.outstanding.defer("scalar", w.rows, followed(happen, done))


for _suffix, _width in _WIDTHS.items():
    op(f"s_load_{_suffix}", f"s_buffer_load_{_suffix}")(_load(_width))
    if _width <= _SCRATCH_WORDS:
        op(f"s_scratch_load_{_suffix}")(_load(_width))
