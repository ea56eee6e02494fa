"""The kernel ABI, as data: parameters, entry points with the predicates that admit them, grid, launch plan.

Every global is passed as base pointer (8 bytes), then its extents and its strides in elements (i64 each, one per
dimension); a scalar is passed in its own type at its natural alignment. The grid is an expression over the symbolic
dims and scalar arguments, one text per axis of `tile_id`; its product is the number of workgroups (a flat 1-d launch).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hkc.support.dtypes import dtype
from hkc.support.extents import evaluate


@dataclass(frozen=True)
class GlobalParam:
    """`name: global[dtype, dims…]`. A dim is an int or an expression text over symbolic dims ("M")."""

    name: str
    dtype: str
    dims: tuple[str | int, ...]


@dataclass(frozen=True)
class ScalarParam:
    """`name: dtype`, passed by value."""

    name: str
    dtype: str


Param = GlobalParam | ScalarParam


@dataclass(frozen=True)
class View:
    """What a launch passes for one global: base address, extents, strides in elements, element size in bytes."""

    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def span(self) -> int:
        """Bytes from the base to the end of the furthest element (0 for an empty view)."""
        if 0 in self.extents:
            return 0
        last = sum((e - 1) * s for e, s in zip(self.extents, self.strides, strict=True) if s > 0)
        return (last + 1) * self.itemsize


@dataclass(frozen=True)
class Aligned:
    """The base address of `param` is a multiple of `bytes`."""

    param: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.param} starts at a multiple of {self.bytes} bytes"

    def holds(self, view: View) -> bool:
        """Whether `view`, that of `param`, is so."""
        return view.address % self.bytes == 0


@dataclass(frozen=True)
class UnitStride:
    """Neighbours along `dim` of `param` are neighbours in memory (always so where the extent is at most 1)."""

    param: str
    dim: int

    def __str__(self) -> str:
        return f"elements of {self.param} along dim {self.dim} are neighbours"

    def holds(self, view: View) -> bool:
        """Whether `view`, that of `param`, is so."""
        return view.extents[self.dim] <= 1 or view.strides[self.dim] == 1


@dataclass(frozen=True)
class StrideMultiple:
    """The stride of `param` along `dim`, in bytes, is a multiple of `bytes` and not negative."""

    param: str
    dim: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.param} steps along dim {self.dim} by a multiple of {self.bytes} bytes"

    def holds(self, view: View) -> bool:
        """Whether `view`, that of `param`, is so."""
        stride = view.strides[self.dim]
        return view.extents[self.dim] <= 1 or (stride >= 0 and stride * view.itemsize % self.bytes == 0)


@dataclass(frozen=True)
class SpanBelow:
    """All bytes of `param` lie less than `limit` bytes after its base, and none before it."""

    param: str
    limit: int

    def holds(self, view: View) -> bool:
        """Whether `view`, that of `param`, is so."""
        return view.span < self.limit and all(s >= 0 or e <= 1 for e, s in zip(view.extents, view.strides, strict=True))


def tallest(rank: int) -> int:
    """Rows of the tallest tile whose missing rows are left to the buffer descriptor: rows of a matrix, or one matrix
    of a batch, which may be large."""
    return 4096 if rank <= 2 else 1


@dataclass(frozen=True)
class RowsApart:
    """Rows of `param` (indices of its first dim) don't interleave, and up to `rows` of them beyond the last, addressed
    with 32 bits, fall behind its end: a buffer descriptor then tells apart which rows exist."""

    param: str
    rows: int

    def holds(self, view: View) -> bool:
        """Whether it holds of a view."""
        inner = View(0, view.extents[1:], view.strides[1:], view.itemsize).span
        step = view.strides[0] * view.itemsize
        return view.span == 0 or (step >= inner and (view.extents[0] + self.rows) * step < 1 << 32)


@dataclass(frozen=True)
class ExtentsBelow:
    """Every extent of `param` is less than `limit`."""

    param: str
    limit: int

    def holds(self, view: View) -> bool:
        """Whether it holds of a view."""
        return all(e < self.limit for e in view.extents)


Condition = ExtentsBelow | Aligned | UnitStride | StrideMultiple | SpanBelow | RowsApart


@dataclass(frozen=True)
class Entry:
    """One entry point of a kernel: the symbol in the code object and the conditions that admit a launch to it."""

    symbol: str
    conditions: tuple[Condition, ...]

    def admits(self, views: Mapping[str, View]) -> bool:
        """Whether every condition holds for the views of a launch, by parameter."""
        return all(c.holds(views[c.param]) for c in self.conditions)


PRINTED_BYTES = 1 << 24
"""Size of the buffer that a kernel with `print` gets as its last argument; what doesn't fit is lost, and said to be."""

PRINTED_START = 64
"""Where its records begin: first comes an i64, the bytes that have been asked for."""

RECORD_HEAD = 16
"""Bytes at the start of a record, i32 each: the number of the `print`, the wave, the workgroup, and 1, since a wave
that was stopped may have reserved a record and not written it. Values follow, each from a multiple of so many bytes."""


@dataclass(frozen=True)
class PrintedValue:
    """What one `print` shows of a value: dtype, shape and layout of a tile (or () and "" for a number), of which each
    lane writes so many fragments of so many elements; a fragment's elements of one lane are neighbours."""

    dtype: str
    shape: tuple[int, ...]
    layout: str
    fragments: int
    registers: int

    def bytes(self, lanes: int) -> int:
        """Bytes in the record of a wave, up to where the next value starts."""
        used = self.fragments * self.registers * lanes * dtype(self.dtype).bytes
        return used + -used % RECORD_HEAD


@dataclass(frozen=True)
class Print:
    """One `print` op of a kernel: a text, what follows it, and whether (1 or 0) the line goes on. Each wave writes a
    record whenever it comes by."""

    prefix: str
    values: tuple[PrintedValue, ...]
    more: int = 0

    def bytes(self, lanes: int) -> int:
        """Bytes of a wave's record."""
        return RECORD_HEAD + sum(value.bytes(lanes) for value in self.values)


@dataclass(frozen=True)
class KernelInfo:
    """Everything a launch needs to know of a kernel besides its code.

    `waves` is the number of waves of a workgroup; `entries` are tried in order and the last one has no conditions.
    `outputs` names the globals that the kernel stores to, `inputs` those that it loads from; `constants` are the
    compile-time values it was specialised on, as text; `requires` is what the parameters' declarations demand of the
    tensors of every launch. `prints` are its `print` statements by number; where there are any, the address of a buffer
    follows the arguments.
    """

    name: str
    arch: str
    params: tuple[Param, ...]
    grid: tuple[str, ...]
    waves: int
    entries: tuple[Entry, ...]
    outputs: tuple[str, ...] = ()
    constants: tuple[tuple[str, str], ...] = ()
    inputs: tuple[str, ...] = ()
    requires: tuple[Condition, ...] = ()
    prints: tuple[Print, ...] = ()

    def entry(self, views: Mapping[str, View]) -> Entry:
        """The first entry point that admits these views."""
        return next(e for e in self.entries if e.admits(views))

    def workgroups(self, names: Mapping[str, int]) -> int:
        """How many workgroups a launch has, from the values of the symbolic dims and integer scalars."""
        total = 1
        for axis in self.grid:
            total *= max(0, evaluate(axis, names))
        return total


def pack(
    params: Sequence[Param], views: Mapping[str, View], scalars: Mapping[str, int | float], printed: int | None = None
) -> bytes:
    """The kernel-argument segment for these arguments; `printed` is the address of the buffer for what is printed."""
    import numpy as np

    out = bytearray()
    for p in params:
        if isinstance(p, GlobalParam):
            out += bytes(-len(out) % 8)
            v = views[p.name]
            out += np.array([v.address], np.uint64).tobytes() + np.array([*v.extents, *v.strides], np.int64).tobytes()
        else:
            d = dtype(p.dtype)
            out += bytes(-len(out) % d.bytes)
            out += np.array([scalars[p.name]], np.float64 if d.is_float else np.int64).astype(d.numpy).tobytes()
    if printed is not None:
        out += bytes(-len(out) % 8) + np.uint64(printed).tobytes()
    return bytes(out)
