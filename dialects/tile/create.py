"""Ops that make indices and tiles from nothing: `tile_id`, `iota`."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import INDEX, INT, TEXT, TILE, Mismatch, attribute, operand, result, tile_op
from hkc.dialects.types import IndexType, TileType


@tile_op("tile_id", spelling="tile_ids(extent, …)")
class TileId:
    """The position of this workgroup in the grid of tiles: one index per extent, `0 <= id < extent`.

    The grid of a kernel is the product of the extents. `order` says how consecutive workgroups walk it: `rows` lets
    the last index run fastest.
    """

    extents = operand(INDEX, variadic=True)
    order = attribute(TEXT, default="rows")
    ids = result(INDEX, variadic=True)
    examples = ('%m, %n = "hkc_tile.tile_id"(%gm, %gn) {order = "rows"} : (index, index) -> (index, index)',)

    @staticmethod
    def infer(extents: tuple[IndexType, ...], *, order: str = "rows") -> tuple[IndexType, ...]:
        if order != "rows":
            raise Mismatch(f"unknown workgroup order `{order}`", hint="only `rows` exists so far", code="HK307")
        return tuple(IndexType() for _ in extents)

    @staticmethod
    def meaning(extents: tuple[int, ...], *, workgroup: int, order: str = "rows") -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(workgroup, extents))


@tile_op("iota", spelling="iota(n)")
class Iota:
    """A tile of i32 whose elements count 0, 1, 2, … along `axis`."""

    axis = attribute(INT, default=0)
    d = result(TILE)
    examples = ('%t = "hkc_tile.iota"() {axis = 0 : i64} : () -> tensor<64xi32>',)

    @staticmethod
    def check(d: TileType, *, axis: int) -> None:
        """What the verifier asks of the result type, which the builder chooses."""
        if d.dtype != "i32" or not 0 <= axis < len(d.shape):
            raise Mismatch(f"`iota` gives i32 along one of its {len(d.shape)} axes, not {d} along axis {axis}")

    @staticmethod
    def meaning(*, shape: tuple[int, ...], axis: int) -> Any:
        steps = np.arange(shape[axis], dtype=np.int32)
        return np.broadcast_to(np.expand_dims(steps, [i for i in range(len(shape)) if i != axis]), shape)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        tile, axis = op.results[0], op.attributes["axis"].value
        layout = low.layout(tile)
        low.values[tile] = [
            low.build.pack([low.coordinate_value(layout, axis, r, origin[axis]) for r in range(layout.registers)])
            for origin in layout.fragment_offsets(low.shape(tile))
        ]
