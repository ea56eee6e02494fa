"""LDS instructions: loads, stores, pairs, atomics, transposed loads, and lane permutations."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.emulate import access, atomics, spaces
from hkc.emulate.access import Format
from hkc.emulate.decode import Decoded
from hkc.emulate.faults import unsupported
from hkc.emulate.memory import Words
from hkc.emulate.observe import announce, followed
from hkc.emulate.outstanding import Happen, Picked, Rows
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.waves import U64, Waves

_LOADS = {
    "u8": Format(1), "i8": Format(1, True), "u16": Format(2), "i16": Format(2, True),
    "u8_d16": Format(1, half="low"), "u8_d16_hi": Format(1, half="high"),
    "i8_d16": Format(1, True, "low"), "i8_d16_hi": Format(1, True, "high"),
    "u16_d16": Format(2, half="low"), "u16_d16_hi": Format(2, half="high"),
    "b32": Format(4), "b64": Format(8), "b96": Format(12), "b128": Format(16),
}  # fmt: skip
_STORES = {
    "b8": Format(1), "b8_d16_hi": Format(1, half="high"), "b16": Format(2), "b16_d16_hi": Format(2, half="high"),
    "b32": Format(4), "b64": Format(8), "b96": Format(12), "b128": Format(16),
}  # fmt: skip


def _at(w: Waves, register: int, offset: int) -> U64:
    """The addresses of one part of an instruction."""
    return w.read(register).astype(np.uint64) + np.uint64(offset)


def _load(form: Format) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        target, address = (context.vector(o) for o in instruction.operands[:2])
        offset = instruction.number("offset")
        return lambda w: access.load(w, spaces.LDS, form, target, _at(w, address, offset), w.mask, w.mask)

    return build


def _store(form: Format) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        address, source = (context.vector(o) for o in instruction.operands[:2])
        offset = instruction.number("offset")
        return lambda w: access.store(w, spaces.LDS, form, source, _at(w, address, offset), w.mask)

    return build


def _pair_offsets(instruction: Decoded, nbytes: int) -> tuple[int, int]:
    unit = nbytes * (64 if "st64" in instruction.base else 1)
    return instruction.number("offset0") * unit, instruction.number("offset1") * unit


def _load_pair(form: Format) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        target, address = (context.vector(o) for o in instruction.operands[:2])
        first, second = _pair_offsets(instruction, form.nbytes)

        def step(w: Waves) -> None:
            one, two = _at(w, address, first), _at(w, address, second)
            access.load(w, spaces.LDS, form, target, one, w.mask, w.mask)
            w.state.outstanding.same_operation("lds", w.rows)
            access.load(w, spaces.LDS, form, target + form.words, two, w.mask, w.mask)

        return step

    return build


def _store_pair(form: Format) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        address, one, two = (context.vector(o) for o in instruction.operands[:3])
        first, second = _pair_offsets(instruction, form.nbytes)

        def step(w: Waves) -> None:
            access.store(w, spaces.LDS, form, one, _at(w, address, first), w.mask)
            w.state.outstanding.same_operation("lds", w.rows)
            access.store(w, spaces.LDS, form, two, _at(w, address, second), w.mask)

        return step

    return build


for _suffix, _form in _LOADS.items():
    op(f"ds_read_{_suffix}")(_load(_form))
for _suffix, _form in _STORES.items():
    op(f"ds_write_{_suffix}")(_store(_form))
for _suffix in ("b32", "b64"):
    op(f"ds_read2_{_suffix}", f"ds_read2st64_{_suffix}")(_load_pair(_LOADS[_suffix]))
    op(f"ds_write2_{_suffix}", f"ds_write2st64_{_suffix}")(_store_pair(_STORES[_suffix]))

# atomics: the LDS names differ from those of global memory

_ATOMICS = {
    "add_u32": "add", "sub_u32": "sub", "rsub_u32": "rsub", "rsub_u64": "rsub_x2", "inc_u32": "inc", "dec_u32": "dec",
    "min_i32": "smin", "max_i32": "smax", "min_u32": "umin", "max_u32": "umax", "and_b32": "and", "or_b32": "or",
    "xor_b32": "xor", "add_f32": "add_f32", "add_u64": "add_x2", "sub_u64": "sub_x2", "inc_u64": "inc_x2",
    "dec_u64": "dec_x2", "min_i64": "smin_x2", "max_i64": "smax_x2", "min_u64": "umin_x2", "max_u64": "umax_x2",
    "and_b64": "and_x2", "or_b64": "or_x2", "xor_b64": "xor_x2", "add_f64": "add_f64", "min_f64": "min_f64",
    "max_f64": "max_f64", "pk_add_f16": "pk_add_f16", "pk_add_bf16": "pk_add_bf16", "min_f32": "min_f32",
    "max_f32": "max_f32",
}  # fmt: skip


def _float(function: Callable[..., Any]) -> access.Combine:
    def run(old: Words, given: Words) -> Words:
        result: Words = function(old.view(np.float32), given.view(np.float32)).view(np.uint32)
        return result

    return run


_EXTRA: dict[str, tuple[access.Combine, int, int]] = {
    "min_f32": (_float(np.fmin), 1, 1), "max_f32": (_float(np.fmax), 1, 1),
}  # fmt: skip


def _atomic(name: str, returns: bool) -> Callable[[Decoded, Context], Step]:
    combine, keep, given = _EXTRA[name] if name in _EXTRA else atomics.table()[name]

    def build(instruction: Decoded, context: Context) -> Step:
        registers = [context.vector(o) for o in instruction.operands]
        result = registers.pop(0) if returns else None
        address, source = registers[:2]
        offset = instruction.number("offset")

        def step(w: Waves) -> None:
            words = access.data(w, Format(4 * given), source)
            access.atomic(w, spaces.LDS, combine, words, keep, result, _at(w, address, offset), w.mask)

        return step

    return build


for _local, _name in _ATOMICS.items():
    op(f"ds_{_local}")(_atomic(_name, False))
    _kind = _local.replace("_", "_rtn_", 1) if not _local.startswith("pk") else _local.replace("_add", "_add_rtn")
    op(f"ds_{_kind}")(_atomic(_name, True))
for _bits, _name in (("b32", "swap"), ("b64", "swap_x2")):
    op(f"ds_wrxchg_rtn_{_bits}")(_atomic(_name, True))


def _compare_and_swap(words: int, returns: bool) -> Callable[[Decoded, Context], Step]:
    """The compare value comes first, unlike in global memory."""
    combine, keep, _ = atomics.table()["cmpswap" if words == 1 else "cmpswap_x2"]

    def build(instruction: Decoded, context: Context) -> Step:
        registers = [context.vector(o) for o in instruction.operands]
        result = registers.pop(0) if returns else None
        address, compare, fresh = registers
        offset = instruction.number("offset")

        def step(w: Waves) -> None:
            form = Format(4 * words)
            both = np.concatenate([access.data(w, form, fresh), access.data(w, form, compare)], axis=-1)
            access.atomic(w, spaces.LDS, combine, both, keep, result, _at(w, address, offset), w.mask)

        return step

    return build


for _bits, _words in (("b32", 1), ("b64", 2)):
    op(f"ds_cmpst_{_bits}")(_compare_and_swap(_words, False))
    op(f"ds_cmpst_rtn_{_bits}")(_compare_and_swap(_words, True))

# lane permutations


def _deliver(w: Waves, target: int, values: NDArray[np.uint32], written: NDArray[np.bool_]) -> None:
    """The result of a permutation: taken now, visible after the wait."""
    state = w.state
    if w.taint is not None:
        w.consume("a permuted value")
    state.launch_flight(target, w.rows, written)

    def happen(rows: Rows, picked: Picked) -> None:
        state.land(target, rows, written[picked], values[picked])

    state.outstanding.defer("lds", w.rows, happen)


@op("ds_bpermute_b32")
def _(instruction: Decoded, context: Context) -> Step:
    """Each lane fetches from the lane that its address names; inactive sources give 0."""
    target, address, source = (context.vector(o) for o in instruction.operands)
    offset = np.uint32(instruction.number("offset"))

    def step(w: Waves) -> None:
        lane = ((w.read(address) + offset) >> np.uint32(2) & np.uint32(63)).astype(np.int64)
        values = np.where(w.mask, w.read(source), np.uint32(0))
        _deliver(w, target, np.take_along_axis(values, lane, axis=1), w.mask)

    return step


@op("ds_permute_b32")
def _(instruction: Decoded, context: Context) -> Step:
    """Each lane sends to the lane that its address names; of several the highest wins, nobody's target gets 0."""
    target, address, source = (context.vector(o) for o in instruction.operands)
    offset = np.uint32(instruction.number("offset"))

    def step(w: Waves) -> None:
        lane = ((w.read(address) + offset) >> np.uint32(2) & np.uint32(63)).astype(np.int64)
        sent = w.read(source)
        values = np.zeros(w.mask.shape, np.uint32)
        for i in range(64):
            rows = np.nonzero(w.mask[:, i])[0]
            values[rows, lane[rows, i]] = sent[rows, i]
        _deliver(w, target, values, w.mask)

    return step


@op("ds_swizzle_b32")
def _(instruction: Decoded, context: Context) -> Step:
    target, source = (context.vector(o) for o in instruction.operands[:2])
    lane = _swizzle(instruction, instruction.simm16)

    def step(w: Waves) -> None:
        values = np.where(w.mask, w.read(source), np.uint32(0))
        _deliver(w, target, values[:, lane], w.mask)

    return step


def _swizzle(instruction: Decoded, offset: int) -> NDArray[np.int64]:
    """Source lanes: bit 15 set permutes within quads, otherwise and/or/xor masks within 32 lanes."""
    lanes = np.arange(64)
    if offset & 0x8000:
        if offset & 0x7F00:
            raise unsupported(instruction, "this swizzle mode")
        choice = np.array([offset >> 2 * i & 3 for i in range(4)])
        result: NDArray[np.int64] = lanes // 4 * 4 + choice[lanes % 4]
        return result
    keep, force, flip = offset & 31, offset >> 5 & 31, offset >> 10 & 31
    return lanes & 32 | ((lanes & 31 & keep | force) ^ flip)


# transposed loads

_TRANSPOSED = re.compile(r"ds_read_b(64|96)_tr_b(\d+)")


def _transposed(element: int) -> Callable[[Decoded, Context], Step]:
    """16 lanes exchange their 8-byte rows so that each holds a column.

    Element n of lane l is element (l & m) of the row that lane (l & ~15) + (l >> s & h) + … points at: as compiled
    kernels (16 and 8 bits) and AMD's hardware test of rocRoller (all widths) have it.
    """
    per_lane = 64 // element
    span = 16 // per_lane
    lanes = np.arange(64)
    rows = (lanes & ~15)[:, None] + (lanes // per_lane % span)[:, None] + span * np.arange(per_lane)
    column = lanes % per_lane

    def build(instruction: Decoded, context: Context) -> Step:
        target, address = (context.vector(o) for o in instruction.operands[:2])
        offset = instruction.number("offset")

        def exchange(words: Words) -> Words:
            unpacked = unpack(words, element)
            return pack(unpacked[:, rows, column[:, None]], element)

        def step(w: Waves) -> None:
            load_exchanged(w, target, 8, _at(w, address, offset), exchange)

        return step

    return build


def unpack(words: Words, element: int) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """[..., words] → [..., elements] of 4, 8 or 16 bits."""
    raw = np.ascontiguousarray(words)
    if element == 16:
        return raw.view(np.uint16)
    if element == 8:
        return raw.view(np.uint8)
    both = raw.view(np.uint8)
    return np.stack((both & 15, both >> 4), axis=-1).reshape(*both.shape[:-1], -1)


def pack(elements: NDArray[Any], element: int) -> Words:
    """The inverse of `unpack`."""
    if element == 4:
        pairs = elements.reshape(*elements.shape[:-1], -1, 2)
        elements = (pairs[..., 0] | pairs[..., 1] << 4).astype(np.uint8)
    return np.ascontiguousarray(elements).view(np.uint32)


def load_exchanged(w: Waves, target: int, nbytes: int, addresses: U64, exchange: Callable[[Words], Words]) -> None:
    """An LDS load whose data changes lanes on the way."""
    if w.taint is not None:
        w.consume("an address")
    state, by, mask = w.state, w.by, w.mask
    after: tuple[Happen, ...] = ()
    if state.listeners:
        mask, after = announce(w, "lds", "load", "lds", addresses, mask, nbytes)
    for i in range(nbytes // 4):
        state.launch_flight(target + i, w.rows, mask)

    def happen(rows: Rows, picked: Picked) -> None:
        words, stale = spaces.LDS.fetch(state, rows, addresses[picked], mask[picked], nbytes, by)
        if stale is not None:
            access.report_stale(state, "lds", by, rows, addresses[picked], stale & mask[picked][..., None])
        moved = exchange(words)
        for i in range(nbytes // 4):
            state.land(target + i, rows, mask[picked], moved[..., i])

    state.outstanding.defer("lds", w.rows, followed(happen, after))


for _element in (16, 8, 4):
    op(f"ds_read_b64_tr_b{_element}")(_transposed(_element))
