"""LDS addresses as code: from (layout, map) to a per-lane base expression plus constants, proved on every lane.

The bytes that a lane touches follow from the layout and the byte map. As a function of the bits of the lane and wave
ids they are nearly always a sum, or an XOR, of one contribution per bit, or an XOR inside a block and a sum of blocks;
all forms are tried against the full table.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hkc.layout import LdsMap
from hkc.layout.accesses import Use, moves, runs
from hkc.support.errors import HkcBug


@dataclass(frozen=True)
class Term:
    """`((id >> low_bit) & (2**width - 1)) * scale` of the lane or wave id, and what joins it to the ones before: `addi`
    or `xori`."""

    source: str
    low_bit: int
    width: int
    scale: int
    join: str


@dataclass(frozen=True)
class LaneBase:
    """A per-lane byte offset: `start`, joined by the terms in order, and all of that XOR `flip`."""

    terms: tuple[Term, ...]
    start: int
    flip: int = 0


@dataclass(frozen=True)
class Access:
    """One instruction's worth of a fragment: these registers, in this order, at `base + constant` bytes."""

    registers: tuple[int, ...]
    base: LaneBase
    constant: int


@functools.lru_cache(maxsize=1024)
def accesses(use: Use, lds: LdsMap) -> tuple[tuple[Access, ...], ...]:
    """How each fragment of a use is moved: the fewest instructions that the map's granule allows."""
    layout = use.addressed(lds.order[0], lds.itemsize) or use.layout
    table = moves(use, lds).addresses  # [fragment x instruction, wave, lane]
    groups = runs(layout, lds, use.reach)
    found = []
    for i, at in enumerate(table):
        base, constant = _relative(at, table[0], lds.block_bytes)
        found.append(Access(groups[i % len(groups)], base, constant))
    return tuple(tuple(found[i : i + len(groups)]) for i in range(0, len(found), len(groups)))


def _relative(table: Any, reference: Any, block: int) -> tuple[LaneBase, int]:
    """The expression of a table [wave, lane]: that of the first instruction, XORed with a constant inside a block and
    moved by whole blocks where that is all the difference."""
    base, start = _expression(_key(reference))
    first = int(reference[0, 0])
    for flip in (0, (int(table[0, 0]) ^ first) & (block - 1)):
        constant = int(table[0, 0]) - (first ^ flip)
        if flip and start:
            continue
        if constant + start >= 0 and np.array_equal((reference ^ flip) + constant, table):
            return replace(base, flip=flip), constant + start
    return _expression(_key(table))


def _key(table: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, table.tolist()))


@functools.lru_cache(maxsize=1024)
def _expression(rows: tuple[tuple[int, ...], ...]) -> tuple[LaneBase, int]:
    table = np.array(rows)
    start = int(table[0, 0])
    waves, lanes = (n.bit_length() - 1 for n in table.shape)
    bits = [("lane", i) for i in range(lanes)] + [("wave", i) for i in range(waves)]
    at = [int(table[0, 1 << i] if s == "lane" else table[1 << i, 0]) for s, i in bits]
    for lane, wave in (("addi", "addi"), ("xori", "xori"), ("xori", "addi")):
        # A sum leaves its start to the instruction's constant offset; an XOR has to keep it inside.
        inside, outside = (0, start) if lane == "addi" else (start, 0)
        joins = [lane if source == "lane" else wave for source, _ in bits]
        parts = [v - start if join == "addi" else v ^ start for v, join in zip(at, joins, strict=True)]
        base = LaneBase(_merge(bits, parts, joins), inside)
        if np.array_equal(_evaluate(base, table.shape) + outside, table):
            return base, outside
    raise HkcBug("no address expression for an LDS access", details=str(rows))


def _merge(bits: list[tuple[str, int]], parts: list[int], joins: list[str]) -> tuple[Term, ...]:
    """Terms of neighbouring bits as one: a product is their sum, and their XOR only where they share no bit."""
    merged: list[Term] = []
    for (source, bit), scale, join in zip(bits, parts, joins, strict=True):
        if scale == 0:
            continue
        last = merged[-1] if merged else Term("", 0, 0, 0, "")
        follows = (source, bit, scale) == (last.source, last.low_bit + last.width, last.scale << last.width)
        if follows and (join == "addi" or not scale & last.scale * ((1 << last.width) - 1)):
            merged[-1] = replace(last, width=last.width + 1)
        else:
            merged.append(Term(source, bit, 1, scale, join))
    return tuple(merged)


def _evaluate(base: LaneBase, shape: tuple[int, ...]) -> Any:
    ids = {"wave": np.arange(shape[0])[:, None], "lane": np.arange(shape[1])[None, :]}
    total = np.full(shape, base.start)
    for t in base.terms:
        part = (ids[t.source] >> t.low_bit & ((1 << t.width) - 1)) * t.scale
        total = total + part if t.join == "addi" else total ^ part
    return total
