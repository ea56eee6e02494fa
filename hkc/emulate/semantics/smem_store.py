"""Scalar stores and atomics, through the same cache as scalar loads and in any order with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hkc.emulate import access, atomics
from hkc.emulate.access import Combine
from hkc.emulate.decode import Decoded, Operand
from hkc.emulate.memory import Mask, Words
from hkc.emulate.observe import Kind, announce, followed
from hkc.emulate.outstanding import Happen, Picked, Rows
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.semantics.smem import places_of
from hkc.emulate.waves import U64, Waves


@dataclass(frozen=True)
class _Places:
    """Addresses [waves, words] of 4 bytes each, and which of them are inside their buffer."""

    addresses: U64
    inside: Mask


def _places(instruction: Decoded, width: int) -> Callable[[Waves], _Places]:
    find, words = places_of(instruction), 4 * np.arange(width)

    def run(w: Waves) -> _Places:
        start, left = find(w)
        addresses = start[:, None] + words.astype(np.uint64)
        return _Places(addresses, np.ones(addresses.shape, np.bool_) if left is None else left[:, None] >= words + 4)

    return run


def _data(w: Waves, register: int, words: int) -> NDArray[np.uint32]:
    """[waves, words]"""
    found = np.stack([np.broadcast_to(w.scalar(register + i), (w.count,)) for i in range(words)], axis=-1)
    if w.scalar_taint is not None:
        w.consume("a stored value or an address")
    return found


def _announced(w: Waves, kind: Kind, places: _Places, words: Words | None = None) -> tuple[Mask, tuple[Happen, ...]]:
    if not w.state.listeners:
        return places.inside, ()
    return announce(w, "global", kind, "scalar", places.addresses, places.inside, 4, words)


def _store(width: int) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        source, find = instruction.operands[0].index, _places(instruction, width)

        def step(w: Waves) -> None:
            places, words = find(w), _data(w, source, width)
            state, by = w.state, w.by
            lanes, after = _announced(w, "store", places, words[..., None])

            def happen(rows: Rows, picked: Picked) -> None:
                state.memory.store(places.addresses[picked], lanes[picked], words[picked][..., None], 4, by)

            state.outstanding.defer("scalar", w.rows, followed(happen, after))

        return step

    return build


def _atomic(combine: Combine, keep: int, given: int) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        register, find = instruction.operands[0].index, _places(instruction, keep)
        returns = instruction.flag("glc") or instruction.flag("sc0")

        def step(w: Waves) -> None:
            places, words = find(w), _data(w, register, given)
            state, by = w.state, w.by
            inside, after = _announced(w, "atomic", places)
            lanes: Mask = np.asarray(inside.all(axis=1))[:, None]
            starts = places.addresses[:, :1]
            if returns:
                for i in range(keep):
                    state.launch_scalar(register + i, w.rows)

            def happen(rows: Rows, picked: Picked) -> None:
                old = np.zeros((len(rows), keep), np.uint32)
                stale = np.zeros(old.shape, np.bool_)
                for space, here, offsets in state.memory.spaces(starts[picked], lanes[picked], 4 * keep, by):
                    where = here[:, 0]
                    data = words[picked][where]
                    old[where], stale[where] = access.modify(space, offsets[where, 0], data, combine, returns, keep)
                access.report_stale(state, "global", by, rows, starts[picked], stale[:, None], "atomic on")
                for i in range(keep if returns else 0):
                    state.land_scalar(register + i, rows, old[:, i])

            state.outstanding.defer("scalar", w.rows, followed(happen, after))

        return step

    return build


for _suffix, _width in (("dword", 1), ("dwordx2", 2), ("dwordx4", 4)):
    op(f"s_store_{_suffix}", f"s_buffer_store_{_suffix}", f"s_scratch_store_{_suffix}")(_store(_width))
for _name in ("swap", "cmpswap", "add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc", "dec"):
    for _wide in ("", "_x2"):
        op(f"s_atomic_{_name}{_wide}", f"s_buffer_atomic_{_name}{_wide}")(_atomic(*atomics.table()[_name + _wide]))


@op("s_dcache_discard", "s_dcache_discard_x2")
def _(instruction: Decoded, context: Context) -> Step:
    """A cache line (64 bytes), or two, that scalar stores wrote need not reach memory: it holds nothing from now on."""
    at = dataclasses.replace(instruction, operands=(Operand("off"), *instruction.operands))
    find, size = _places(at, 1), 64 << instruction.base.endswith("x2")

    def step(w: Waves) -> None:
        places = find(w)
        state = w.state

        def happen(rows: Rows, picked: Picked) -> None:
            for address in np.unique(places.addresses[picked] & ~np.uint64(63)).tolist():
                state.memory.forget(address, size)

        state.outstanding.defer("scalar", w.rows, happen)

    return step
