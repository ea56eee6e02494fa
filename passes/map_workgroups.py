"""Which tile a workgroup computes: tile ids from the workgroup's number in a flat launch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects import build
from hkc.dialects.forms import ENTRY, kernels, walk
from hkc.dialects.load import create
from hkc.dialects.translate import plain, record_type
from hkc.dialects.types import TileType
from hkc.dialects.wave.ids import WorkgroupId
from hkc.layout.workgroups import Chiplets, chiplet, rows
from hkc.passes.define import Pass
from hkc.support.dtypes import dtype
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

LOADS = ("hkc_tile.load", "hkc_tile.load_masked")


@dataclass(frozen=True)
class MapWorkgroups(Pass):
    """`tile_id` becomes division and remainder of the workgroup's number, as `layout/workgroups.py` says.

    In the order `chiplet`, `chunk` is by default the number of workgroups that a chiplet runs at once, one per compute
    unit. The default `window` is the number of rows for which these read the least while they run in step, and more
    where half of the chiplet's L2 keeps the whole row panels of more (which then come from memory once per window):
    at most a chunk's. What a row and a column read is taken from the kernel's loads.

    Before::

        %m, %n = "hkc_tile.tile_id"(%i, %j) {order = "rows"} : (index, index) -> (index, index)

    After::

        %w = "hkc_wave.workgroup_id"()
        %h = arith.index_cast %w
        %r = arith.remui %h
        arith.divui %h
        %n = arith.index_cast %r
    """

    name: ClassVar[str] = "map_workgroups"
    needs: ClassVar[frozenset[str]] = frozenset({"entries"})
    gives: ClassVar[frozenset[str]] = frozenset({"numbered"})

    def run(self, module: Any, chip: Chip) -> None:
        compute = chip.compute
        chiplets = Chiplets(compute.chiplets, compute.units // compute.chiplets, chip.memory.l2_bytes)
        for function in kernels(module):
            for op in walk(function):
                if op.name in ("hkc_tile.tile_id", "hkc_tile.tile_at"):
                    with ir.InsertionPoint(op), op.location:
                        for result, place in zip(op.results, _places(function, op, chiplets), strict=True):
                            result.replace_all_uses_with(place)
                    op.erase()


@dataclass(frozen=True)
class _Number:
    """An unsigned number that the program computes, with the operators that the maps of workgroups use."""

    value: Any

    def _with(self, name: str, other: _Number | int) -> _Number:
        return _Number(build.binary(name, self.value, other.value if isinstance(other, _Number) else other))

    def __add__(self, other: _Number | int) -> _Number:
        return self._with("addi", other)

    def __sub__(self, other: _Number | int) -> _Number:
        return self._with("subi", other)

    def __mul__(self, other: _Number | int) -> _Number:
        return self._with("muli", other)

    def __floordiv__(self, other: _Number | int) -> _Number:
        return self._with("divui", other)

    def __mod__(self, other: _Number | int) -> _Number:
        return self._with("remui", other)


def _least(a: _Number, b: _Number) -> _Number:
    return a._with("minui", b)


def _greatest(a: _Number, b: int) -> _Number:
    return a._with("maxui", b)


def _places(function: Any, op: Any, chiplets: Chiplets) -> list[Any]:
    """The tile ids that a `tile_id` or `tile_at` gives. Workgroups are few enough for 32 bits, whose division is short;
    tiles may not be."""
    of_launch, by_rows = op.name == "hkc_tile.tile_id", plain(op.attributes["order"]) == "rows"
    number, *extents = [create(WorkgroupId).result, *op.operands] if of_launch else op.operands
    # Offsets of 64 bits take more registers if they begin with ids of 32.
    wide = not of_launch or (by_rows and ir.StringAttr(function.attributes[ENTRY]).value == "general")
    cast, back = (_same, _same) if wide else (build.to_i32, build.to_index)
    dims = [_Number(cast(e)) for e in extents]
    if by_rows:
        return [back(n.value) for n in rows(_Number(cast(number)), dims)]
    chunk = _option(op, "chunk") or chiplets.at_once
    window = _constant(_option(op, "window"), dims[0]) if _option(op, "window") else None
    if window is None and len(dims) > 1:
        window = _window(function, op, chiplets, chunk, dims[0])
    found = chiplet(_Number(cast(number)), dims, chiplets.count, _constant(chunk, dims[0]), window, _least)
    return [back(n.value) for n in found]


def _same(value: Any) -> Any:
    return value


def _option(op: Any, name: str) -> int:
    return int(plain(op.attributes[name])) if name in op.attributes else 0


def _constant(value: int, like: _Number) -> _Number:
    return _Number(build.constant(value, like.value.type))


def _window(function: Any, op: Any, chiplets: Chiplets, chunk: int, like: _Number) -> _Number:
    """The default height of a window."""
    row, column = (_panel(function, op.results[i]) for i in (-2, -1))
    if row is None or column is None:
        return _constant(chiplets.window(1, 1, chunk), like)
    least = chiplets.window(row.bytes, column.bytes, chunk)
    kept = _constant(chiplets.kept(row.bytes), like)
    for tensor, dim in row.along:
        extent = build.op("memref.dim", [tensor, build.index(dim)], [ir.IndexType.get()])
        of_kind = _Number(extent if isinstance(like.value.type, ir.IndexType) else build.to_i32(extent))
        kept = kept // _greatest(of_kind, 1)
    return _least(_greatest(kept, least), _constant(chunk, like))


@dataclass(frozen=True)
class _Panel:
    """What all tiles with one value of a tile id read in common: `bytes` for each place along other dims."""

    bytes: int
    along: tuple[tuple[Any, int], ...]


def _panel(function: Any, tile_id: Any) -> _Panel | None:
    """The largest panel that the loads of a function read for one value of `tile_id` alone."""
    ids = set(tile_id.owner.results)
    found = []
    for op in walk(function):
        if op.name in LOADS:
            shape = record_type(op.results[0].type)
            assert isinstance(shape, TileType)
            used = [_depends(o, ids) for o in list(op.operands)[-len(shape.shape) :]]
            if set().union(*used) == {tile_id}:
                own = [d for d, u in enumerate(used) if u]
                size = math.prod(shape.shape[d] for d in own) * dtype(shape.dtype).bytes
                along = tuple((op.operands[0], d) for d, u in enumerate(used) if not u)
                found.append(_Panel(size, along))
    return max(found, key=lambda panel: panel.bytes, default=None)


def _depends(value: Any, ids: set[Any]) -> set[Any]:
    """Which of these tile ids an index is computed from."""
    if value in ids:
        return {value}
    return {found for operand in _operands(value) for found in _depends(operand, ids)}


def _operands(value: Any) -> Iterator[Any]:
    """What an index is computed from: operands, of a loop's variable its start."""
    if not isinstance(value, ir.BlockArgument):
        yield from _indices(value.owner.operands)
    elif value.owner.owner.name == "scf.for" and value.arg_number == 0:
        yield value.owner.owner.operands[0]


def _indices(values: Sequence[Any]) -> Iterator[Any]:
    return (v for v in values if isinstance(v.type, (ir.IndexType, ir.IntegerType)))
