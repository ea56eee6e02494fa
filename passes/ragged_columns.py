"""Tiles in loops that reach beyond the last column: whole vectors are left out by their address, not by masks.

Rows of a tensor in the aligned entry are multiples of 16 bytes apart. Where they are also a multiple of 16 bytes long,
no vector of 16 bytes lies half inside: a lane reads all of it, or from an offset that is out of range and reads as 0.
Which it is doesn't change from trip to trip, so the loop stays free of masks. Rows of other lengths with gaps between
them are left to a second copy of the loop, for the workgroups at the last column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hkc.dialects import build
from hkc.dialects.forms import clone, walk
from hkc.dialects.tile.access import INSIDE, VECTORS, WIDEST
from hkc.dialects.translate import element_name
from hkc.support.dtypes import DTYPES
from hkc.support.mlir import ir


def in_vectors(loop: Any) -> Any:
    """The loop in which loads along unchanging columns have the attribute `VECTORS`: the loop itself where there are
    none, else a copy under the condition that admits it."""
    columns = list(_columns(loop))
    if not columns:
        return loop
    values: dict[Any, Any] = {}
    with ir.InsertionPoint(loop), loop.location:
        for column in columns:
            clone((op for op in column.slice if op.results[0] not in values), values)
        admitted = build.both(*(column.admitted(values) for column in columns))
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
    for before, after in zip(loop.results, ends, strict=True):
        before.replace_all_uses_with(after)
    loop.erase()
    return copies[0]


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


def _columns(loop: Any) -> Iterator[_Column]:
    for op in walk(loop):
        if op.name == "hkc_tile.load" and INSIDE not in op.attributes and _is_zero(op.operands[1]):
            slice_: list[Any] = []
            if op.results[0].type.rank > 1 and _invariant(op.operands[-1], loop, slice_):
                yield _Column(op, tuple(slice_))


def _is_zero(value: Any) -> bool:
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return False
    return bool(value.owner.attributes["value"].value == 0)


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
