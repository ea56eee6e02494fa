"""Vector memory operations: addresses and data are taken when issued, memory is touched when they happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hkc.emulate.decode import Decoded
from hkc.emulate.memory import Mask, Offsets, Space, Words
from hkc.emulate.observe import SpaceName, announce, followed
from hkc.emulate.operands import PRIVATE_BASE, SHARED_BASE
from hkc.emulate.outstanding import Counter, Happen, Picked, Rows
from hkc.emulate.state import State
from hkc.emulate.waves import U32, U64, Waves

Combine = Callable[[Words, Words], Words]
"""An atomic operation: (old, data) → new, all [lanes, words]."""

Place = Callable[[State, U64, Mask, int, Decoded], "list[tuple[Space, Mask, Offsets]]"]
"""Turns addresses [waves, lanes] into (space, lanes, offsets)."""


@dataclass(frozen=True)
class Format:
    """How memory maps to registers: bytes per lane, and for sub-dword loads signedness and which half is kept."""

    nbytes: int
    signed: bool = False
    half: str = ""
    """`low`/`high`: a 16-bit result (`d16`) that keeps the other half of the register."""

    @property
    def words(self) -> int:
        """Registers that one lane fills."""
        return max(1, self.nbytes // 4)

    def kept(self, i: int) -> str:
        """Which half of the `i`th register a load fills; empty for all of it."""
        return self.half

    def widen(self, words: Words) -> Words:
        """What memory holds → what registers get: sign-extend where the load is signed."""
        if not self.signed:
            return words
        kind: Any = {1: np.int8, 2: np.int16}[self.nbytes]
        return words.astype(kind).astype(np.int32).view(np.uint32)


def _merge(half: str, word: U32, old: U32) -> U32:
    """A `d16` result beside the half that stays."""
    low = np.uint32(0xFFFF)
    if half == "low":
        return (old & ~low) | (word & low)
    return (old & low) | word << np.uint32(16)


FORMATS = {
    "ubyte": Format(1), "sbyte": Format(1, True), "ushort": Format(2), "sshort": Format(2, True),
    "ubyte_d16": Format(1, half="low"), "ubyte_d16_hi": Format(1, half="high"),
    "sbyte_d16": Format(1, True, "low"), "sbyte_d16_hi": Format(1, True, "high"),
    "short_d16": Format(2, half="low"), "short_d16_hi": Format(2, half="high"),
    "dword": Format(4), "dwordx2": Format(8), "dwordx3": Format(12), "dwordx4": Format(16),
}  # fmt: skip
"""Load suffixes of buffer, global, flat and scratch instructions."""

STORES = {
    "byte": Format(1), "byte_d16_hi": Format(1, half="high"),
    "short": Format(2), "short_d16_hi": Format(2, half="high"),
    "dword": Format(4), "dwordx2": Format(8), "dwordx3": Format(12), "dwordx4": Format(16),
}  # fmt: skip
"""Store suffixes."""


@dataclass(frozen=True)
class Target:
    """Where addresses of one instruction lead: a counter to wait on, and a rule that finds the bytes."""

    name: SpaceName | Literal["flat"]
    counter: Counter
    fetch: Callable[[State, Rows, U64, Mask, int, Decoded], tuple[Words, Mask | None]]
    put: Callable[[State, Rows, U64, Mask, Words, int, Decoded], None]
    spaces: Callable[[State, Rows, U64, Mask, int, Decoded], list[tuple[Space, Mask, Offsets]]]


def load(w: Waves, target: Target, form: Format, register: int, addresses: U64, mask: Mask, written: Mask) -> None:
    """Issue a load of `form` into `register` and the following ones.

    Lanes in `mask` read memory; lanes in `written` receive a result, 0 where they don't read (clamped buffer loads).
    """
    if w.taint is not None:
        w.consume("an address")
    state, by = w.state, w.by
    after: tuple[Happen, ...] = ()
    if state.listeners:
        mask, after = announce(w, target.name, "load", target.counter, addresses, mask, form.nbytes)
    old = {i: w.read(register + i).copy() for i in range(form.words) if form.kept(i)}
    if old:
        w.taint = None
    for i in range(form.words):
        state.launch_flight(register + i, w.rows, written)

    def happen(rows: Rows, picked: Picked) -> None:
        at, lanes = addresses[picked], mask[picked]
        words, stale = target.fetch(state, rows, at, lanes, form.nbytes, by)
        if stale is not None:
            stale &= lanes[..., None]
            copied = _copied(target, at) if not old else np.zeros_like(lanes)
            report_stale(state, target.name, by, rows, at, stale & ~copied[..., None])
            stale &= copied[..., None]
        words = form.widen(words)
        if not lanes.all():
            words = np.where(lanes[..., None], words, np.uint32(0))
        for i in range(form.words):
            word = _merge(form.kept(i), words[..., i], old[i][picked]) if i in old else words[..., i]
            state.land(register + i, rows, written[picked], word, None if stale is None else stale[..., i])

    state.outstanding.defer(target.counter, w.rows, followed(happen, after))


def _copied(target: Target, addresses: U64) -> Mask:
    """The lanes whose access is to scratch: it takes along what was never written, as a move of registers does.

    Compilers spill whole groups of registers, whatever they hold by then.
    """
    if target.name == "flat":
        private: Mask = addresses >> np.uint64(32) == PRIVATE_BASE >> 32
        return private
    return np.full(addresses.shape, target.name == "scratch")


def report_stale(
    state: State,
    space: SpaceName | Literal["flat"],
    by: Decoded,
    rows: Rows,
    addresses: U64,
    stale: Mask,
    what: str = "load of",
) -> None:
    """Record a use of never-written words [waves, lanes, words]."""
    if stale.any():
        wave, lane, word = (int(i[0]) for i in np.nonzero(stale))
        message = f"{what} never-written {_named(state, space, int(addresses[wave, lane]) + 4 * word)}"
        state.findings.add("uninitialised", by, message, state.first_wave + int(rows[wave]), lane)


def _named(state: State, space: SpaceName | Literal["flat"], address: int) -> str:
    """Which byte that is, of which kind of memory."""
    if space == "flat":
        windows: dict[int, SpaceName] = {SHARED_BASE >> 32: "lds", PRIVATE_BASE >> 32: "scratch"}
        space = windows.get(address >> 32, "global")
        address = address if space == "global" else address & 0xFFFFFFFF
    if space == "lds":
        return f"LDS byte {address:#x}"
    if space == "scratch":
        return f"scratch byte {address:#x}"
    return f"memory at {address:#x}, {state.memory.near(address)}"


def data(w: Waves, form: Format, register: int) -> Words:
    """The words [waves, lanes, words] that a store takes from `register` on."""
    if form.half == "high":
        return (w.read(register) >> np.uint32(16))[..., None]
    return np.stack([w.read(register + i) for i in range(form.words)], axis=-1)


def store(w: Waves, target: Target, form: Format, register: int, addresses: U64, mask: Mask) -> None:
    """Issue a store of `form` from `register` and the following ones."""
    if w.taint is not None:
        w.consume("an address")
    words, blank = data(w, form, register), None
    if w.taint is not None and (copied := _copied(target, addresses)).any():
        blank = np.stack([w.unwritten(register + i) for i in range(form.words)], axis=-1) & copied[..., None]
        elsewhere = w.taint & ~copied
        w.taint = elsewhere if elsewhere.any() else None
    store_words(w, target, words, form.nbytes, addresses, mask, blank)


def store_words(
    w: Waves, target: Target, words: Words, nbytes: int, addresses: U64, mask: Mask, blank: Mask | None = None
) -> None:
    """Issue a store of `words` [waves, lanes, words], of which `nbytes` count; `blank` ones stay never-written."""
    if w.taint is not None:
        w.consume("a stored value")
    state, by = w.state, w.by
    after: tuple[Happen, ...] = ()
    if state.listeners:
        mask, after = announce(w, target.name, "store", target.counter, addresses, mask, nbytes, words)

    def happen(rows: Rows, picked: Picked) -> None:
        target.put(state, rows, addresses[picked], mask[picked], words[picked], nbytes, by)
        if blank is not None:
            for space, lanes, offsets in target.spaces(state, rows, addresses[picked], mask[picked], nbytes, by):
                space.spoil(offsets[lanes], blank[picked][lanes], nbytes)

    state.outstanding.defer(target.counter, w.rows, followed(happen, after))


def atomic(
    w: Waves,
    target: Target,
    combine: Combine,
    words: Words,
    keep: int,
    register: int | None,
    addresses: U64,
    mask: Mask,
) -> None:
    """Issue an atomic over `keep` words of memory with `words` as data; the old value goes to `register`, if any."""
    if w.taint is not None:
        w.consume("an operand of an atomic")
    state, by = w.state, w.by
    after: tuple[Happen, ...] = ()
    if state.listeners:
        mask, after = announce(w, target.name, "atomic", target.counter, addresses, mask, 4 * keep)
    if register is not None:
        for i in range(keep):
            state.launch_flight(register + i, w.rows, mask)

    returns = register is not None

    def happen(rows: Rows, picked: Picked) -> None:
        old = np.zeros((*mask[picked].shape, keep), np.uint32)
        stale = np.zeros(old.shape, np.bool_)
        for space, lanes, offsets in target.spaces(state, rows, addresses[picked], mask[picked], 4 * keep, by):
            old[lanes], stale[lanes] = modify(space, offsets[lanes], words[picked][lanes], combine, returns, keep)
        report_stale(state, target.name, by, rows, addresses[picked], stale, "atomic on")
        if register is not None:
            for i in range(keep):
                state.land(register + i, rows, mask[picked], old[..., i])

    state.outstanding.defer(target.counter, w.rows, followed(happen, after))


def modify(
    space: Space, offsets: Offsets, words: Words, combine: Combine, returns: bool, keep: int
) -> tuple[Words, Mask]:
    """Read, combine and write back `keep` words [lanes]; lanes with the same address go one after the other, lowest
    first. Gives the old words, and which of them were never written and yet decide what is written or returned."""
    old, stale = np.empty((len(offsets), keep), np.uint32), np.zeros((len(offsets), keep), np.bool_)
    left = np.arange(len(offsets))
    while len(left):
        _, first = np.unique(offsets[left], return_index=True)
        now = left[first]
        old[now], blank = space.gather(offsets[now], 4 * keep)
        fresh = combine(old[now], words[now])
        if blank is not None:
            stale[now] = blank & (returns | (fresh != combine(~old[now], words[now])))
        space.scatter(offsets[now], fresh, 4 * keep)
        left = np.delete(left, first)
    return old, stale
