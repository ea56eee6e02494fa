"""Ops that make indices and tiles from nothing: `tile_id`, `tile_at`, `iota`."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import INDEX, INT, TEXT, TILE, Mismatch, attribute, operand, option, result, tile_op
from hkc.dialects.types import IndexType, TileType
from hkc.layout.workgroups import rows

ORDERS = ("rows", "chiplet")
"""How consecutive tiles walk a grid: the last index runs fastest, or the chiplets of the chip share tiles."""


def check_order(order: str, chunk: int, window: int) -> None:
    """An order is known, and only `chiplet` has a chunk and a window (0: chosen by `map_workgroups`)."""
    if order not in ORDERS:
        raise Mismatch(f"unknown workgroup order `{order}`", hint=f"one of {', '.join(ORDERS)}", code="HK307")
    if min(chunk, window) < 0 or (order != "chiplet" and (chunk or window)):
        raise Mismatch(
            f"a chunk of {chunk} and a window of {window} in the order `{order}`",
            hint="with order=chiplet, both are at least 1",
            code="HK309",
        )


@tile_op("tile_id", spelling="tile_ids(extent, …)")
class TileId:
    """The position of this workgroup in the grid of tiles: one index per extent, `0 <= id < extent`.

    The grid of a kernel is the product of the extents. `order` says how consecutive workgroups walk it: `rows` lets
    the last index run fastest; with `chiplet`, `chunk` neighbouring tiles at a time go to one chiplet, and neighbours
    lie in windows of `window` rows (0: chosen for the chip and the shape). Any order visits each tile once, and which
    workgroup computes it means nothing.
    """

    extents = operand(INDEX, variadic=True)
    order = attribute(TEXT, default="rows")
    chunk = option(INT, default=0)
    window = option(INT, default=0)
    ids = result(INDEX, variadic=True)
    examples = (
        '%m, %n = "hkc_tile.tile_id"(%gm, %gn) {order = "rows"} : (index, index) -> (index, index)',
        '%m, %n = "hkc_tile.tile_id"(%gm, %gn) {order = "chiplet", chunk = 32 : i64, window = 8 : i64}'
        " : (index, index) -> (index, index)",
    )

    @staticmethod
    def infer(
        extents: tuple[IndexType, ...], *, order: str = "rows", chunk: int = 0, window: int = 0
    ) -> tuple[IndexType, ...]:
        check_order(order, chunk, window)
        return tuple(IndexType() for _ in extents)

    @staticmethod
    def meaning(extents: tuple[int, ...], *, workgroup: int) -> tuple[int, ...]:
        return tuple(rows(workgroup, extents))


@tile_op("tile_at")
class TileAt:
    """The position of tile `number` in a grid, walked as `tile_id` says; for workgroups that compute several tiles."""

    number = operand(INDEX)
    extents = operand(INDEX, variadic=True)
    order = attribute(TEXT, default="rows")
    chunk = option(INT, default=0)
    window = option(INT, default=0)
    ids = result(INDEX, variadic=True)
    examples = ('%m, %n = "hkc_tile.tile_at"(%i, %gm, %gn) {order = "rows"} : (index, index, index) -> (index, index)',)

    @staticmethod
    def infer(
        number: IndexType, extents: tuple[IndexType, ...], *, order: str = "rows", chunk: int = 0, window: int = 0
    ) -> tuple[IndexType, ...]:
        check_order(order, chunk, window)
        return tuple(IndexType() for _ in extents)

    @staticmethod
    def meaning(number: int, extents: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(rows(number, extents))


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
