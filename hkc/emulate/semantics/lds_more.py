"""Rarer LDS instructions: exchanges of pairs, masked and float compare-and-store atomics, counters, lane addressing.

From AMD's pseudocode (CDNA ISA guides); where the address of append, consume and addtid comes from: LLVM's lowering,
which moves the pointer to m0 as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.emulate import access, atomics, spaces
from hkc.emulate.access import Combine, Format
from hkc.emulate.decode import M0, Decoded
from hkc.emulate.faults import unsupported
from hkc.emulate.memory import Mask, Words
from hkc.emulate.narrow import unpack_bits
from hkc.emulate.observe import announce, followed
from hkc.emulate.outstanding import Happen, Picked, Rows
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.semantics.lds import load_exchanged
from hkc.emulate.waves import U64, Waves


def _places(w: Waves, register: int, offset: int) -> U64:
    return w.read(register).astype(np.uint64) + np.uint64(offset)


# two operands: both data registers go to the combining function, the first one first


def _masked_or(words: int) -> Combine:
    return lambda old, given: old & ~given[:, :words] | given[:, words:]


def _store_if_equal(kind: Any) -> Combine:
    words = np.dtype(kind).itemsize // 4

    def run(old: Words, given: Words) -> Words:
        compare = np.ascontiguousarray(given[:, :words]).view(kind)
        equal = np.ascontiguousarray(old).view(kind) == compare
        return np.where(equal, given[:, words:], old)

    return run


def _wrap(old: Words, given: Words) -> Words:
    limit, addend = given[:, :1], given[:, 1:]
    return np.where(old >= limit, old - limit, old + addend)


def _two_operands(combine: Combine, words: int, returns: bool) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        registers = [context.vector(o) for o in instruction.operands]
        result = registers.pop(0) if returns else None
        address, first, second = registers
        offset, form = instruction.number("offset"), Format(4 * words)

        def step(w: Waves) -> None:
            both = np.concatenate([access.data(w, form, first), access.data(w, form, second)], axis=-1)
            access.atomic(w, spaces.LDS, combine, both, words, result, _places(w, address, offset), w.mask)

        return step

    return build


for _bits, _words in (("b32", 1), ("b64", 2)):
    op(f"ds_mskor_{_bits}")(_two_operands(_masked_or(_words), _words, False))
    op(f"ds_mskor_rtn_{_bits}")(_two_operands(_masked_or(_words), _words, True))
for _bits, _kind in (("f32", np.float32), ("f64", np.float64)):
    op(f"ds_cmpst_{_bits}")(_two_operands(_store_if_equal(_kind), np.dtype(_kind).itemsize // 4, False))
    op(f"ds_cmpst_rtn_{_bits}")(_two_operands(_store_if_equal(_kind), np.dtype(_kind).itemsize // 4, True))
op("ds_wrap_rtn_b32")(_two_operands(_wrap, 1, True))


def _exchange_pair(words: int) -> Callable[[Decoded, Context], Step]:
    """Swap at two addresses; offsets count elements (st64: 64 of them)."""
    swap = atomics.table()["swap" if words == 1 else "swap_x2"][0]

    def build(instruction: Decoded, context: Context) -> Step:
        result, address, *data = (context.vector(o) for o in instruction.operands)
        unit = 4 * words * (64 if "st64" in instruction.base else 1)
        offsets = [instruction.number(f"offset{i}") * unit for i in (0, 1)]
        form = Format(4 * words)

        def step(w: Waves) -> None:
            given = [access.data(w, form, register) for register in data]
            for i, offset in enumerate(offsets):
                if i:
                    w.state.outstanding.same_operation("lds", w.rows)
                at = _places(w, address, offset)
                access.atomic(w, spaces.LDS, swap, given[i], words, result + i * words, at, w.mask)

        return step

    return build


for _bits, _words in (("b32", 1), ("b64", 2)):
    op(f"ds_wrxchg2_rtn_{_bits}", f"ds_wrxchg2st64_rtn_{_bits}")(_exchange_pair(_words))


def _exchange_where_set(old: Words, given: Words) -> Words:
    """Each word whose data has its top bit set takes the data without that bit."""
    result: Words = np.where(given >> np.uint32(31) == 1, given & np.uint32(0x7FFF_FFFF), old)
    return result


@op("ds_condxchg32_rtn_b64")
def _(instruction: Decoded, context: Context) -> Step:
    result, address, data = (context.vector(o) for o in instruction.operands)
    offset = instruction.number("offset")

    def step(w: Waves) -> None:
        at = _places(w, address, offset) & np.uint64(0xFFF8)
        words = access.data(w, Format(8), data)
        access.atomic(w, spaces.LDS, _exchange_where_set, words, 2, result, at, w.mask)

    return step


# addresses from m0


def _base(w: Waves, offset: int) -> U64:
    """[waves, 1]"""
    return (w.scalar(M0) & np.uint32(0xFFFF)).astype(np.uint64)[:, None] + np.uint64(offset)


_LANE_WORDS = 4 * np.arange(64, dtype=np.uint64)


@op("ds_read_addtid_b32")
def _(instruction: Decoded, context: Context) -> Step:
    target, offset = context.vector(instruction.operands[0]), instruction.number("offset")
    return lambda w: access.load(w, spaces.LDS, Format(4), target, _base(w, offset) + _LANE_WORDS, w.mask, w.mask)


@op("ds_write_addtid_b32")
def _(instruction: Decoded, context: Context) -> Step:
    source, offset = context.vector(instruction.operands[0]), instruction.number("offset")
    return lambda w: access.store(w, spaces.LDS, Format(4), source, _base(w, offset) + _LANE_WORDS, w.mask)


@op("ds_append", "ds_consume")
def _(instruction: Decoded, context: Context) -> Step:
    """Count a word of LDS up (or down) by the number of active lanes; every lane gets the value before."""
    if instruction.flag("gds"):
        raise unsupported(instruction, "global data share, which these chips lack,")
    target, offset = context.vector(instruction.operands[0]), instruction.number("offset")
    up = instruction.base == "ds_append"

    def step(w: Waves) -> None:
        state, by, mask = w.state, w.by, w.mask
        at = _base(w, offset)
        lanes: Mask = np.asarray(mask.any(axis=1))[:, None]
        count = mask.sum(axis=1).astype(np.uint32)
        after: tuple[Happen, ...] = ()
        if state.listeners:
            lanes, after = announce(w, "lds", "atomic", "lds", at, lanes, 4)
        state.launch_flight(target, w.rows, mask)

        def happen(rows: Rows, picked: Picked) -> None:
            amount, written = count[picked], mask[picked]
            before = np.zeros(len(rows), np.uint32)
            for i in range(len(rows)):  # one wave after the other: they may share the word
                one = slice(i, i + 1)
                found, _ = spaces.LDS.fetch(state, rows[one], at[picked][one], lanes[picked][one], 4, by)
                before[i] = found.reshape(-1)[0]
                fresh = before[i] + amount[i] if up else before[i] - amount[i]
                word = np.array(fresh, np.uint32).reshape(1, 1, 1)
                spaces.LDS.put(state, rows[one], at[picked][one], lanes[picked][one], word, 4, by)
            state.land(target, rows, written, np.broadcast_to(before[:, None], written.shape))

        state.outstanding.defer("lds", w.rows, followed(happen, after))

    return step


@op("ds_nop")
def _(instruction: Decoded, context: Context) -> Step:
    return lambda w: None


def _transpose6(words: Words) -> Words:
    """Groups of 16 lanes exchange 16 x 16 elements of 6 bits (AMD's hardware test of rocRoller)."""
    rows = unpack_bits(words, 6).reshape(-1, 4, 16, 16)
    columns = np.ascontiguousarray(rows.swapaxes(2, 3)).reshape(-1, 64, 16)
    bits = np.unpackbits(columns[..., None], axis=-1, bitorder="little")[..., :6].reshape(len(columns), 64, -1)
    return np.packbits(bits, axis=-1, bitorder="little").view(np.uint32)


@op("ds_read_b96_tr_b6")
def _(instruction: Decoded, context: Context) -> Step:
    target, address = (context.vector(o) for o in instruction.operands[:2])
    offset = instruction.number("offset")
    return lambda w: load_exchanged(w, target, 12, _places(w, address, offset), _transpose6)
