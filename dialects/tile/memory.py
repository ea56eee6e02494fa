"""Ops that move tiles between global memory and registers: `load`, `store`. Both are bounds-checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import ANY, GLOBAL, INDEX, TILE, Mismatch, operand, result, tile_op
from hkc.dialects.types import GlobalType, IndexType, ScalarType, TileType


def window(extents: tuple[int, ...], offsets: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Which part of a tensor a tile covers: the slices of the tensor and, in step, the slices of the tile."""
    starts = [min(max(0, o), e) for o, e in zip(offsets, extents, strict=True)]
    stops = [max(s, min(o + n, e)) for s, o, n, e in zip(starts, offsets, shape, extents, strict=True)]
    tensor = tuple(slice(s, e) for s, e in zip(starts, stops, strict=True))
    tile = tuple(slice(s - o, e - o) if e > s else slice(0, 0) for s, e, o in zip(starts, stops, offsets, strict=True))
    return tensor, tile


def _check_rank(what: str, tensor: GlobalType, offsets: tuple[IndexType, ...], tile: TileType) -> None:
    if len(offsets) != len(tensor.dims):
        raise Mismatch(
            f"`{what}` needs {len(tensor.dims)} offsets for {tensor}, but {len(offsets)} are given",
            ("offsets",),
            code="HK206",
        )
    if len(tile.shape) != len(tensor.dims):
        raise Mismatch(
            f"a tile of rank {len(tile.shape)} can't cover {tensor}, which has rank {len(tensor.dims)}",
            ("shape",) if what == "load" else ("value",),
            code="HK206",
        )
    if tile.dtype != tensor.dtype:
        raise Mismatch(
            f"`{what}` moves {tensor.dtype} elements, but the tile is {tile}",
            ("value",),
            hint=f"convert it first: cast(…, {tensor.dtype})",
            code="HK205",
        )


@tile_op("load", pure=False, spelling="load(tensor, [offset, …], [extent, …], fill=0)")
class Load:
    """Read a tile. Element i of the tile is `src[offsets + i]`; elements outside the tensor are `fill`.

    Offsets may be negative or beyond the extents; memory outside the tensor is never used.
    """

    src = operand(GLOBAL)
    fill = operand(ANY)
    offsets = operand(INDEX, variadic=True)
    d = result(TILE)
    examples = (
        '%t = "hkc_tile.load"(%A, %f, %i, %k) : (memref<?x?xbf16, strided<[?, ?]>>, bf16, index, index)'
        " -> tensor<64x32xbf16>",
    )

    @staticmethod
    def check(d: TileType, src: GlobalType, fill: ScalarType, offsets: tuple[IndexType, ...]) -> None:
        """The rule between the operands and the chosen result type."""
        _check_rank("load", src, offsets, d)
        if fill.dtype != src.dtype:
            raise Mismatch(f"the fill is {fill}, but the tensor holds {src.dtype}", ("fill",), code="HK205")

    @staticmethod
    def meaning(src: Any, fill: Any, offsets: tuple[int, ...], *, shape: tuple[int, ...]) -> Any:
        tile = np.broadcast_to(fill, shape).copy()
        inside, at = window(src.shape, offsets, shape)
        tile[at] = src[inside]
        return tile

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        src, fill, *offsets = op.operands
        window = low.window(src, op.results[0], offsets, op)
        low.values[op.results[0]] = window.load(low.scalar(fill), low.is_zero(fill))


@tile_op("store", pure=False, spelling="store(tensor, [offset, …], tile)")
class Store:
    """Write a tile: `dst[offsets + i]` becomes element i; elements that fall outside the tensor are dropped."""

    value = operand(TILE)
    dst = operand(GLOBAL)
    offsets = operand(INDEX, variadic=True)
    examples = (
        '"hkc_tile.store"(%t, %C, %i, %j) : (tensor<64x32xf32>, memref<?x?xf32, strided<[?, ?]>>, index, index) -> ()',
    )

    @staticmethod
    def infer(value: TileType, dst: GlobalType, offsets: tuple[IndexType, ...]) -> tuple[()]:
        _check_rank("store", dst, offsets, value)
        return ()

    @staticmethod
    def meaning(value: Any, dst: Any, offsets: tuple[int, ...]) -> None:
        inside, at = window(dst.shape, offsets, value.shape)
        dst[inside] = value[at]

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        value, dst, *offsets = op.operands
        low.window(dst, value, offsets, op).store(low.fragments(value))
