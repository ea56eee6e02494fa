"""Parts of tiles and tiles from parts: `slice`, `concat`, `item`. A tile is held so that the cut falls between base
blocks, and no element moves between lanes; where that would leave copies to all lanes, it goes through LDS."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hkc.dialects.define import ANY, INT, INTS, TILE, Mismatch, attribute, operand, result, tile_op
from hkc.dialects.tile.shape import LDS_OFFSET
from hkc.dialects.types import ScalarType, TileType, extents
from hkc.layout import DistributedLayout, blocked


def in_blocks(layout: DistributedLayout, limits: tuple[int, ...]) -> DistributedLayout:
    """A layout whose base block divides `limits`: this one if it does, else one of the same waves and lanes."""
    if layout.fits(limits):
        return layout
    return blocked(limits, layout.waves, 1, len(limits) - 1, layout.lanes)


@tile_op("slice", spelling="tile[start:stop, …]")
class Slice:
    """The part of a tile that starts at `offsets` (known when compiled)."""

    x = operand(TILE)
    offsets = attribute(INTS)
    d = result(TILE)
    together = True
    whole_blocks = True
    examples = tuple(
        f'%t = "hkc_tile.slice"(%x) {{offsets = array<i64: {at}>}} : (tensor<{x}>) -> tensor<{d}>'
        for at, x, d in (
            ("0, 32", "64x64xf32", "64x32xf32"),
            ("16, 0", "48x32xbf16", "32x32xbf16"),
            ("3, 5", "16x16xi8", "8x8xi8"),
            ("512", "1024xf32", "512xf32"),
        )
    )

    @staticmethod
    def check(d: TileType, x: TileType, *, offsets: tuple[int, ...]) -> None:
        """The part lies inside the tile."""
        if not len(d.shape) == len(x.shape) == len(offsets) or d.dtype != x.dtype:
            raise Mismatch(f"`slice` of {x} at {list(offsets)} can't give {d}", ("x",), code="HK206")
        if any(o < 0 or o + n > size for o, n, size in zip(offsets, d.shape, x.shape, strict=True)):
            raise Mismatch(
                f"{extents(d.shape)} from {list(offsets)} on reaches beyond {x}",
                ("x",),
                code="HK202",
                hint="a slice lies within its tile",
            )

    @staticmethod
    def meaning(x: Any, *, offsets: tuple[int, ...], shape: tuple[int, ...]) -> Any:
        return x[tuple(slice(o, o + n) for o, n in zip(offsets, shape, strict=True))]

    @staticmethod
    def held(
        layout: DistributedLayout, *, shapes: tuple[tuple[int, ...], ...], offsets: tuple[int, ...]
    ) -> DistributedLayout:
        """Held so that the cuts fall between base blocks."""
        return in_blocks(layout, tuple(map(math.gcd, offsets, *shapes)))

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        if LDS_OFFSET in op.attributes:
            from hkc.dialects.tile.through_lds import move

            move(low, op, op.attributes[LDS_OFFSET].value)
            return
        offsets = np.array(list(op.attributes["offsets"]))
        low.values[op.results[0]] = low.rearrange(op.operands[0], op.results[0], lambda at: at + offsets)


@tile_op("concat", spelling="concat(a, b, axis=…)")
class Concat:
    """Two tiles one after the other along `axis`; their other extents are equal."""

    x = operand(TILE)
    y = operand(TILE)
    axis = attribute(INT)
    d = result(TILE)
    together = True
    whole_blocks = True
    examples = tuple(
        f'%t = "hkc_tile.concat"(%x, %y) {{axis = {axis} : i64}} : (tensor<{x}>, tensor<{y}>) -> tensor<{d}>'
        for axis, x, y, d in (
            (1, "64x32xf32", "64x32xf32", "64x64xf32"),
            (0, "32x16xbf16", "16x16xbf16", "48x16xbf16"),
            (0, "512xi32", "512xi32", "1024xi32"),
            (1, "16x1xf32", "16x1xf32", "16x2xf32"),
        )
    )

    @staticmethod
    def infer(x: TileType, y: TileType, *, axis: int) -> TileType:
        if not 0 <= axis < len(x.shape):
            hint = f"axes are 0 to {len(x.shape) - 1}"
            raise Mismatch(f"axis {axis} does not exist in a tile of {x}", ("x",), code="HK206", hint=hint)
        if x.dtype != y.dtype:
            hint = "cast one to the other's dtype"
            raise Mismatch(f"`concat` joins tiles of one dtype, not {x} and {y}", ("x", "y"), code="HK205", hint=hint)
        rest = [t.shape[:axis] + t.shape[axis + 1 :] for t in (x, y)]
        if rest[0] != rest[1]:
            hint = "all other extents are equal"
            raise Mismatch(f"{x} and {y} differ in more than axis {axis}", ("x", "y"), code="HK202", hint=hint)
        return TileType((*x.shape[:axis], x.shape[axis] + y.shape[axis], *x.shape[axis + 1 :]), x.dtype)

    @staticmethod
    def meaning(x: Any, y: Any, *, axis: int) -> Any:
        return np.concatenate([x, y], axis=axis)

    @staticmethod
    def held(layout: DistributedLayout, *, shapes: tuple[tuple[int, ...], ...], axis: int) -> DistributedLayout:
        """Held so that the seam falls between base blocks."""
        return in_blocks(layout, tuple(map(math.gcd, *shapes)))

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        if LDS_OFFSET in op.attributes:
            from hkc.dialects.tile.through_lds import move

            move(low, op, op.attributes[LDS_OFFSET].value)
            return
        # Both parts have the result's layout, so the result's fragments are theirs.
        x, y = (low.fragments(v) for v in op.operands)
        axis, layout = op.attributes["axis"].value, low.layout(op.results[0])
        grids = [layout.grid(low.shape(v)) for v in op.operands]
        made = []
        for at in np.ndindex(*layout.grid(low.shape(op.results[0]))):
            second = at[axis] >= grids[0][axis]
            place = (*at[:axis], at[axis] - second * grids[0][axis], *at[axis + 1 :])
            made.append((y if second else x)[int(np.ravel_multi_index(place, grids[second]))])
        low.values[op.results[0]] = made


@tile_op("item", spelling="item(tile)")
class Item:
    """The one element of a tile as a scalar, which all lanes agree on: what a uniform condition may ask."""

    x = operand(TILE)
    d = result(ANY)
    whole_blocks = True
    examples = (
        '%n = "hkc_tile.item"(%x) : (tensor<1xi32>) -> i32',
        '%n = "hkc_tile.item"(%x) : (tensor<1x1xf32>) -> f32',
    )

    @staticmethod
    def infer(x: TileType) -> ScalarType:
        if math.prod(x.shape) != 1:
            hint = "cut one out, or fold them: sum(x), max(x)"
            raise Mismatch(f"`item` takes a tile of one element, not {x}", ("x",), code="HK206", hint=hint)
        return ScalarType(x.dtype)

    @staticmethod
    def meaning(x: Any) -> Any:
        return np.reshape(x, ())

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        low.values[op.results[0]] = low.uniform(low.elements(op.operands[0])[0][0])
