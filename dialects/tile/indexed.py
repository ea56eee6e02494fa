"""Access to global memory through an index tile: `gather` and `scatter`."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import (
    BOOL,
    GLOBAL,
    INDEX,
    INT,
    SCALAR,
    TEXT,
    TILE,
    Mismatch,
    attribute,
    operand,
    option,
    result,
    tile_op,
)
from hkc.dialects.tile.atomics import KINDS, combine_at
from hkc.dialects.types import GlobalType, IndexType, ScalarType, TileType, extents
from hkc.support.errors import count

INDICES = ("i32", "i64")
"""Dtypes of an index tile."""


def _check(
    what: str, tile: TileType, tensor: GlobalType, index: TileType, offsets: tuple[IndexType, ...], axis: int
) -> None:
    place = "shape" if what == "gather" else "value"
    if not 0 <= axis < len(tensor.dims):
        hint = f"axes are 0 to {len(tensor.dims) - 1}"
        raise Mismatch(f"axis {axis} does not exist in {tensor}", ("axis",), code="HK206", hint=hint)
    if len(offsets) != len(tensor.dims) - 1:
        raise Mismatch(
            f"`{what}` along axis {axis} of {tensor} needs {count(len(tensor.dims) - 1, 'offset')}, one per other dim, "
            f"not {len(offsets)}",
            ("offsets",),
            code="HK206",
            hint="the index tile stands for the offset along `axis`",
        )
    if len(tile.shape) != len(tensor.dims):
        raise Mismatch(
            f"a tile of rank {len(tile.shape)} can't cover {tensor}, which has rank {len(tensor.dims)}",
            (place,),
            code="HK206",
            hint=f"{len(tensor.dims)} extents, of which some may be 1",
        )
    if tile.dtype != tensor.dtype:
        raise Mismatch(
            f"`{what}` moves {tensor.dtype} elements, but the tile is {tile}",
            (place,),
            hint=f"convert it first: cast(…, {tensor.dtype})",
            code="HK205",
        )
    if index.dtype not in INDICES or index.shape != tile.shape:
        raise Mismatch(
            f"the index tile must be {extents(tile.shape)} of {' or '.join(INDICES)}, not {index}",
            ("index",),
            hint="cast(…, i32) makes whole numbers" if index.dtype not in INDICES else None,
            code="HK204",
        )


def coordinates(sizes: tuple[int, ...], index: Any, offsets: tuple[int, ...], axis: int) -> tuple[Any, tuple[Any, ...]]:
    """Which elements of an index tile point into a tensor, and where all point to (places outside are moved to 0)."""
    index = np.asarray(index).astype(np.int64)
    starts = [*offsets[:axis], 0, *offsets[axis:]]
    places = [g + start for g, start in zip(np.indices(index.shape), starts, strict=True)]
    places[axis] = index
    inside = np.logical_and.reduce([(p >= 0) & (p < n) for p, n in zip(places, sizes, strict=True)])
    return inside, tuple(np.where(inside, p, 0) for p in places)


@tile_op("gather", pure=False, spelling="gather(tensor, index, [offset, …], axis=0, fill=0)")
class Gather:
    """Read elements whose coordinate along `axis` comes from a tile: element i is `src[…]` at `index[i]` along `axis`
    and at `offset + i` along every other dim, in order.

    An index that is negative or beyond the tensor, like any other place outside it, gives `fill`.
    """

    src = operand(GLOBAL)
    fill = operand(SCALAR)
    index = operand(TILE)
    offsets = operand(INDEX, variadic=True)
    axis = attribute(INT)
    d = result(TILE)
    together = True
    whole_blocks = True
    examples = (
        '%t = "hkc_tile.gather"(%A, %f, %n, %k) {axis = 0 : i64} : (memref<?x?xbf16, strided<[?, ?]>>, bf16,'
        " tensor<64x32xi32>, index) -> tensor<64x32xbf16>",
        '%t = "hkc_tile.gather"(%A, %f, %n) {axis = 0 : i64} : (memref<?xf32, strided<[?]>>, f32,'
        " tensor<256xi64>) -> tensor<256xf32>",
    )

    @staticmethod
    def check(
        d: TileType,
        src: GlobalType,
        fill: ScalarType,
        index: TileType,
        offsets: tuple[IndexType, ...],
        *,
        axis: int,
    ) -> None:
        """The rule between the operands and the chosen result type."""
        _check("gather", d, src, index, offsets, axis)
        if fill.dtype != src.dtype:
            hint = f"fill=cast(…, {src.dtype})"
            raise Mismatch(f"the fill is {fill}, but the tensor holds {src.dtype}", ("fill",), code="HK205", hint=hint)

    @staticmethod
    def meaning(src: Any, fill: Any, index: Any, offsets: tuple[int, ...], *, axis: int, shape: tuple[int, ...]) -> Any:
        inside, places = coordinates(src.shape, index, offsets, axis)
        tile = np.broadcast_to(fill, shape).copy()
        tile[inside] = src[tuple(p[inside] for p in places)]
        return tile

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        src, fill, index, *offsets = op.operands
        places = low.places(src, op.results[0], offsets, index=index, axis=op.attributes["axis"].value)
        low.values[op.results[0]] = places.load(low.scalar(fill))


@tile_op("scatter", pure=False, spelling="scatter(tensor, index, [offset, …], tile, axis=0)")
class Scatter:
    """Write elements to the places that `gather` would read them from; places outside the tensor are left out.

    `kind` is "store", or "add", "max", "min" for an atomic update. Which of several elements stored to one place stays
    there is not defined; atomic updates of one place all count, in any order.
    """

    value = operand(TILE)
    dst = operand(GLOBAL)
    index = operand(TILE)
    offsets = operand(INDEX, variadic=True)
    axis = attribute(INT)
    kind = option(TEXT, "store")
    unsigned = option(BOOL, False)
    together = True
    whole_blocks = True
    examples = (
        '"hkc_tile.scatter"(%t, %C, %n, %j) {axis = 0 : i64} : (tensor<64x32xf32>, memref<?x?xf32, strided<[?, ?]>>,'
        " tensor<64x32xi32>, index) -> ()",
        '"hkc_tile.scatter"(%t, %C, %n) {axis = 0 : i64, kind = "add"} : (tensor<256xi32>, memref<?xi32, strided<[?]>>,'
        " tensor<256xi32>) -> ()",
    )

    @staticmethod
    def infer(
        value: TileType,
        dst: GlobalType,
        index: TileType,
        offsets: tuple[IndexType, ...],
        *,
        axis: int,
        kind: str = "store",
        unsigned: bool = False,
    ) -> tuple[()]:
        _check("scatter", value, dst, index, offsets, axis)
        if kind not in ("store", *KINDS):
            raise Mismatch(f"unknown kind of scatter `{kind}`", hint=f"one of store, {', '.join(KINDS)}", code="HK307")
        return ()

    @staticmethod
    def meaning(
        value: Any,
        dst: Any,
        index: Any,
        offsets: tuple[int, ...],
        *,
        axis: int,
        kind: str = "store",
        unsigned: bool = False,
    ) -> None:
        inside, places = coordinates(dst.shape, index, offsets, axis)
        at = tuple(p[inside] for p in places)
        if kind == "store":
            dst[at] = value[inside]
        else:
            combine_at(dst, at, value[inside], kind, unsigned)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        value, dst, index, *offsets = op.operands
        places = low.places(dst, value, offsets, index=index, axis=op.attributes["axis"].value)
        kind, unsigned = low.option(op, "kind", "store"), low.option(op, "unsigned", False)
        if kind == "store":
            places.store(low.fragments(value))
        else:
            places.atomic(low.fragments(value), kind, unsigned)
