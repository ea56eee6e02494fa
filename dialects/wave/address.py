"""LDS addresses as code: from (layout, map) to a per-lane base expression plus constants, proved on every lane.

The bytes that a lane touches follow from the layout and the byte map. As a function of the bits of the lane and wave
ids they are nearly always a sum, or an XOR, of one contribution per bit; both forms are tried against the full table.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from hkc.layout import DistributedLayout, LdsMap
from hkc.support.errors import HkcBug


@dataclass(frozen=True)
class Term:
    """`((id >> low_bit) & (2**width - 1)) * scale` of the lane or wave id."""

    source: str
    low_bit: int
    width: int
    scale: int


@dataclass(frozen=True)
class LaneBase:
    """A per-lane byte offset: `start` and the terms joined by `addi` or `xori`."""

    join: str
    terms: tuple[Term, ...]
    start: int


@dataclass(frozen=True)
class Access:
    """One instruction's worth of a fragment: elements [first, first + count) at `base + constant` bytes."""

    first: int
    count: int
    base: LaneBase
    constant: int


@functools.lru_cache(maxsize=4096)
def accesses(layout: DistributedLayout, lds: LdsMap, fragment: int, widest: int) -> tuple[Access, ...]:
    """How one fragment is moved: the fewest accesses of at most `widest` bytes that stay contiguous on every lane."""
    table = np.moveaxis(lds.offset(layout.coordinates(lds.shape)[fragment]), (0, 1, 2), (2, 1, 0))
    found, first = [], 0
    while first < layout.registers:
        count = _run(table[..., first:], lds.itemsize, widest)
        base, constant = _base(layout, lds, table[..., first])
        found.append(Access(first, count, base, constant))
        first += count
    return tuple(found)


def _run(table: Any, itemsize: int, widest: int) -> int:
    """The largest power-of-two count of leading elements that are neighbours, aligned to their size, on every lane."""
    count = 1
    while 2 * count <= table.shape[-1] and 2 * count * itemsize <= widest:
        steps = table[..., : 2 * count] - table[..., :1]
        aligned = not np.any(table[..., 0] % (2 * count * itemsize))
        if not aligned or np.any(steps != np.arange(2 * count) * itemsize):
            break
        count *= 2
    return count


def _base(layout: DistributedLayout, lds: LdsMap, table: Any) -> tuple[LaneBase, int]:
    """The per-lane expression of a table [wave, lane], shared between fragments that differ by a constant."""
    reference = lds.offset(layout.coordinates(lds.shape)[0, 0]).T
    difference = table - reference
    constant = int(difference.flat[0])
    if np.all(difference == constant) and constant + int(reference.flat[0]) >= 0:
        base, start = _expression(layout, _key(reference))
        return base, constant + start
    return _expression(layout, _key(table))


def _key(table: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(v) for v in row) for row in table)


@functools.lru_cache(maxsize=4096)
def _expression(layout: DistributedLayout, rows: tuple[tuple[int, ...], ...]) -> tuple[LaneBase, int]:
    table = np.array(rows)
    start = int(table[0, 0])
    bits = [("lane", i) for i in range(len(layout.lane))] + [("wave", i) for i in range(len(layout.wave))]
    at = [table[0, 1 << i] if s == "lane" else table[1 << i, 0] for s, i in bits]
    for join, parts in (("addi", [int(v) - start for v in at]), ("xori", [int(v) ^ start for v in at])):
        # A sum leaves its start to the instruction's constant offset; an XOR has to keep it inside.
        inside, outside = (0, start) if join == "addi" else (start, 0)
        base = LaneBase(join, _merge(bits, parts), inside)
        if np.array_equal(_evaluate(base, table.shape) + outside, table):
            return base, outside
    raise HkcBug(f"no address expression for layout {layout}")


def _merge(bits: list[tuple[str, int]], parts: list[int]) -> tuple[Term, ...]:
    merged: list[Term] = []
    for (source, bit), scale in zip(bits, parts, strict=True):
        if scale == 0:
            continue
        last = merged[-1] if merged else Term("", 0, 0, 0)
        if (source, bit, scale) == (last.source, last.low_bit + last.width, last.scale << last.width):
            merged[-1] = Term(source, last.low_bit, last.width + 1, last.scale)
        else:
            merged.append(Term(source, bit, 1, scale))
    return tuple(merged)


def _evaluate(base: LaneBase, shape: tuple[int, ...]) -> Any:
    ids = {"wave": np.arange(shape[0])[:, None], "lane": np.arange(shape[1])[None, :]}
    total = np.full(shape, base.start)
    for t in base.terms:
        part = (ids[t.source] >> t.low_bit & ((1 << t.width) - 1)) * t.scale
        total = total + part if base.join == "addi" else total ^ part
    return total
