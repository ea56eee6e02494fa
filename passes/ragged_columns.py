"""Tiles in loops that reach beyond the last column: whole vectors are left out by their address, not by masks.

Rows of a tensor in the aligned entry are multiples of 16 bytes apart. Where they are also a multiple of 16 bytes long,
no vector of 16 bytes lies half inside: a lane reads all of it, or from an offset that is out of range and reads as 0.
Which it is doesn't change from trip to trip, so the loop stays free of masks. Rows of other lengths with gaps between
them are left to a second copy of the loop, for the workgroups at the last column.

So are loops over groups of columns (block scales, at `k // 32` for instance) whose tensor might hold fewer groups than
the loop visits: their number is a dim of its own. Where there are enough for all whole trips, none is masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from hkc.dialects import build
from hkc.dialects.forms import clone, walk
from hkc.dialects.tile.access import INSIDE, VECTORS, WIDEST
from hkc.dialects.tile.divisibility import constant, has_zero_bits
from hkc.dialects.translate import element_name
from hkc.support.dtypes import DTYPES
from hkc.support.mlir import ir

Inside: TypeAlias = dict[Any, list[int]]
"""Loads, and the dims along which whole trips of their loop stay inside the tensor."""


def in_vectors(loop: Any, whole: bool) -> tuple[Any, Inside]:
    """The loop in which loads along unchanging columns have the attribute `VECTORS`, and what is inside in its `whole`
    trips (if it gets any): the loop itself where there are neither, else a copy under the condition that admits it."""
    columns, groups = list(_columns(loop)), list(_groups(loop)) if whole else []
    if not columns and not groups:
        return loop, {}
    values: dict[Any, Any] = {}
    with ir.InsertionPoint(loop), loop.location:
        for column in columns:
            clone((op for op in column.slice if op.results[0] not in values), values)
        admitted = build.both(*(column.admitted(values) for column in columns), *(g.admitted(loop) for g in groups))
        for column in columns:
            column.load.attributes[VECTORS] = ir.UnitAttr.get()
        copies: list[Any] = []

        def copy() -> list[Any]:
            made: dict[Any, Any] = {}
            clone([loop], made)
            copies.append(ir.InsertionPoint.current.block.operations[-1].operation)
            for column in columns:
                del column.load.attributes[VECTORS]
            columns.clear()
            return [made[r] for r in loop.results]

        ends = build.if_else(admitted, [r.type for r in loop.results], copy, copy)
    same, inside = dict(zip(walk(loop), walk(copies[0]), strict=True)), Inside()
    for group in groups:
        inside.setdefault(same[group.load], []).append(group.dim)
    for before, after in zip(loop.results, ends, strict=True):
        before.replace_all_uses_with(after)
    loop.erase()
    return copies[0], inside


@dataclass(frozen=True)
class _Column:
    """A load whose last offset no trip changes, and the ops in the loop that compute that offset."""

    load: Any
    slice: tuple[Any, ...]

    def admitted(self, values: dict[Any, Any]) -> Any:
        """Rows hold whole vectors, or the tile does not reach beyond them."""
        source, size = self.load.operands[0], self.load.results[0].type.shape[-1]
        offset = values.get(self.load.operands[-1], self.load.operands[-1])
        extent = build.op("memref.dim", [source, build.index(source.type.rank - 1)], [ir.IndexType.get()])
        vector = WIDEST // DTYPES[element_name(source.type.element_type)].bytes
        even = build.cmp("eq", build.binary("remui", extent, vector), 0)
        inside = build.both(build.cmp("sge", offset, 0), build.cmp("sle", build.add(offset, size), extent))
        return build.binary("ori", even, inside)


@dataclass(frozen=True)
class _Group:
    """A load that steps through a dim by the loop's variable divided by a constant, rounded down."""

    load: Any
    dim: int
    size: int

    def admitted(self, loop: Any) -> Any:
        """The last whole trip does not reach beyond the dim; all before it start further down."""
        _, upper, step = list(loop.operands)[:3]
        source, extent = self.load.operands[0], self.load.results[0].type.shape[self.dim]
        groups = build.op("memref.dim", [source, build.index(self.dim)], [ir.IndexType.get()])
        last = build.binary("floordivsi", build.sub(upper, step), self.size)
        return build.cmp("sle", build.add(last, extent), groups)


def _groups(loop: Any) -> Iterator[_Group]:
    variable = loop.regions[0].blocks[0].arguments[0]
    for op in walk(loop):
        for dim, offset in enumerate(list(op.operands)[2:] if op.name == "hkc_tile.load" else ()):
            if not isinstance(offset, ir.BlockArgument) and offset.owner.name == "arith.floordivsi":
                start, size = offset.owner.operands
                if start == variable and (number := constant(size)) is not None and number > 0:
                    yield _Group(op, dim, number)


def _columns(loop: Any) -> Iterator[_Column]:
    for op in walk(loop):
        if op.name == "hkc_tile.load" and INSIDE not in op.attributes and has_zero_bits(op.operands[1]):
            slice_: list[Any] = []
            if op.results[0].type.rank > 1 and _invariant(op.operands[-1], loop, slice_):
                yield _Column(op, tuple(slice_))


def _invariant(value: Any, loop: Any, slice_: list[Any]) -> bool:
    """Is a value the same in every trip? Gathers the ops in the loop that compute it, in order."""
    if isinstance(value, ir.BlockArgument):
        return not _within(value.owner.owner, loop)
    op = value.owner
    if not _within(op.parent, loop):
        return True
    if not op.name.startswith(("arith.", "memref.dim")) or not all(_invariant(o, loop, slice_) for o in op.operands):
        return False
    if op.operation not in slice_:
        slice_.append(op.operation)
    return True


def _within(op: Any, loop: Any) -> bool:
    """Is an op the loop, or inside it?"""
    while op is not None and op.name != "func.func":
        if op.operation == loop.operation:
            return True
        op = op.parent
    return False
