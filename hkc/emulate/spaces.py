"""The four kinds of addresses: global, LDS, scratch, and flat ones, outside LDS, that may be either of the others."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from hkc.emulate.access import Target
from hkc.emulate.decode import Decoded
from hkc.emulate.faults import memory_fault
from hkc.emulate.memory import Mask, Offsets, Space, Words
from hkc.emulate.observe import SpaceName
from hkc.emulate.operands import PRIVATE_BASE
from hkc.emulate.outstanding import Rows
from hkc.emulate.state import LANES, State
from hkc.emulate.waves import U64

Parts = list[tuple[Space, Mask, Offsets]]


def _global_fetch(s: State, rows: Rows, at: U64, mask: Mask, n: int, by: Decoded) -> tuple[Words, Mask | None]:
    return s.memory.load(at, mask, n, by)


def _global_put(s: State, rows: Rows, at: U64, mask: Mask, words: Words, n: int, by: Decoded) -> None:
    s.memory.store(at, mask, words, n, by)


def _global_spaces(s: State, rows: Rows, at: U64, mask: Mask, n: int, by: Decoded) -> Parts:
    return list(s.memory.spaces(at, mask, n, by))


GLOBAL = Target("global", "vm", _global_fetch, _global_put, _global_spaces)


def _lds(s: State, rows: Rows, at: U64, mask: Mask, n: int, by: Decoded) -> Parts:
    """Out-of-range lanes read 0 and write nothing, as the hardware has it, and are reported."""
    inside = mask & _inside(at, n, s.shape.lds)
    outside = mask & ~inside
    if outside.any():
        wave, lane = (int(i[0]) for i in np.nonzero(outside))
        message = f"LDS address {int(at[wave, lane]):#x} is beyond the workgroup's {s.shape.lds} bytes"
        s.findings.add("out of bounds", by, message, s.first_wave + int(rows[wave]), lane)
    offsets = np.where(inside, at, np.uint64(0)).astype(np.int64) + s.lds_base[rows][:, None]
    return [(s.lds, inside, offsets)]


def _scratch(s: State, rows: Rows, at: U64, mask: Mask, n: int, by: Decoded) -> Parts:
    """Every lane has its own bytes."""
    inside = mask & _inside(at, n, s.shape.scratch)
    outside = mask & ~inside
    if outside.any():
        wave, lane = (int(i[0]) for i in np.nonzero(outside))
        what = f"access to scratch byte {int(at[wave, lane]):#x} (lane {lane})"
        raise memory_fault(by, what, f"the kernel has {s.shape.scratch} bytes per lane", wave, lane)
    owner = (rows[:, None] * LANES + np.arange(LANES)) * s.shape.scratch
    return [(s.scratch, inside, np.where(inside, at, np.uint64(0)).astype(np.int64) + owner)]


def _inside(at: U64, n: int, size: int) -> Mask:
    """Which accesses of `n` bytes end within `size`; addresses before 0 are those near 2^64."""
    found: Mask = (at < np.uint64(size)) & (at + np.uint64(n) <= np.uint64(size))
    return found


def _flat(s: State, rows: Rows, at: U64, mask: Mask, n: int, by: Decoded) -> Parts:
    """Scratch or global memory; what is in LDS is another counter's and never comes here."""
    private = at >> np.uint64(32) == PRIVATE_BASE >> 32
    parts: Parts = []
    if (mask & private).any():
        parts += _scratch(s, rows, at & np.uint64(0xFFFFFFFF), mask & private, n, by)
    if (plain := mask & ~private).any():
        parts += _global_spaces(s, rows, at, plain, n, by)
    return parts


def _target(name: SpaceName | Literal["flat"], counter: Any, find: Any) -> Target:
    """A target whose loads and stores go through its spaces."""

    def fetch(s: State, rows: Rows, at: U64, mask: Mask, n: int, by: Decoded) -> tuple[Words, Mask | None]:
        parts = find(s, rows, at, mask, n, by)
        if len(parts) == 1 and parts[0][1].all():
            space, _, offsets = parts[0]
            found: tuple[Words, Mask | None] = space.gather(offsets, n)
            return found
        words = np.zeros((*at.shape, max(n // 4, 1)), np.uint32)
        stale = np.zeros(words.shape, np.bool_)
        for space, lanes, offsets in parts:
            words[lanes], invalid = space.gather(offsets[lanes], n)
            if invalid is not None:
                stale[lanes] = invalid
        return words, stale if stale.any() else None

    def put(s: State, rows: Rows, at: U64, mask: Mask, words: Words, n: int, by: Decoded) -> None:
        for space, lanes, offsets in find(s, rows, at, mask, n, by):
            space.scatter(offsets[lanes], words[lanes], n)

    return Target(name, counter, fetch, put, find)


LDS = _target("lds", "lds", _lds)
SCRATCH = _target("scratch", "vm", _scratch)
FLAT = _target("flat", "vm", _flat)
