"""Ops that move tiles between global memory and registers, whole or under a mask. All are bounds-checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import GLOBAL, INDEX, SCALAR, TILE, Mismatch, operand, result, tile_op
from hkc.dialects.types import GlobalType, IndexType, ScalarType, TileType, extents
from hkc.support.errors import count


def window(sizes: tuple[int, ...], offsets: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Which part of a tensor a tile covers: the slices of the tensor and, in step, the slices of the tile."""
    starts = [min(max(0, o), e) for o, e in zip(offsets, sizes, strict=True)]
    stops = [max(s, min(o + n, e)) for s, o, n, e in zip(starts, offsets, shape, sizes, strict=True)]
    tensor = tuple(slice(s, e) for s, e in zip(starts, stops, strict=True))
    tile = tuple(slice(s - o, e - o) if e > s else slice(0, 0) for s, e, o in zip(starts, stops, offsets, strict=True))
    return tensor, tile


def check_window(what: str, tensor: GlobalType, offsets: tuple[IndexType, ...], tile: TileType) -> None:
    """The rule between a tensor, the offsets of a window in it and the tile that covers the window."""
    if len(offsets) != len(tensor.dims):
        raise Mismatch(
            f"`{what}` needs {count(len(tensor.dims), 'offset')} for {tensor}, not {len(offsets)}",
            ("offsets",),
            hint="one for each dim, 0 where the tile begins with the tensor",
            code="HK206",
        )
    if len(tile.shape) != len(tensor.dims):
        raise Mismatch(
            f"a tile of rank {len(tile.shape)} can't cover {tensor}, which has rank {len(tensor.dims)}",
            ("shape",) if what.startswith("load") else ("value",),
            hint="a dim of which one place is meant has extent 1: [1, 64]",
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
    fill = operand(SCALAR)
    offsets = operand(INDEX, variadic=True)
    d = result(TILE)
    examples = (
        '%t = "hkc_tile.load"(%A, %f, %i, %k) : (memref<?x?xbf16, strided<[?, ?]>>, bf16, index, index)'
        " -> tensor<64x32xbf16>",
    )

    @staticmethod
    def check(d: TileType, src: GlobalType, fill: ScalarType, offsets: tuple[IndexType, ...]) -> None:
        """The rule between the operands and the chosen result type."""
        check_window("load", src, offsets, d)
        if fill.dtype != src.dtype:
            hint = f"fill=cast(…, {src.dtype})"
            raise Mismatch(f"the fill is {fill}, but the tensor holds {src.dtype}", ("fill",), code="HK205", hint=hint)

    @staticmethod
    def meaning(src: Any, fill: Any, offsets: tuple[int, ...], *, shape: tuple[int, ...]) -> Any:
        tile = np.broadcast_to(fill, shape).copy()
        inside, at = window(src.shape, offsets, shape)
        tile[at] = src[inside]
        return tile

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        from hkc.dialects.tile.divisibility import has_zero_bits

        src, fill, *offsets = op.operands
        window = low.window(src, op.results[0], offsets, op)
        low.values[op.results[0]] = window.load(low.scalar(fill), has_zero_bits(fill))


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
        check_window("store", dst, offsets, value)
        return ()

    @staticmethod
    def meaning(value: Any, dst: Any, offsets: tuple[int, ...]) -> None:
        inside, at = window(dst.shape, offsets, value.shape)
        dst[inside] = value[at]

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        value, dst, *offsets = op.operands
        low.window(dst, value, offsets, op).store(low.fragments(value))


def check_mask(what: str, mask: TileType, tile: TileType, *places: str) -> None:
    """A mask is a tile of bools of the shape of what it masks."""
    if mask.dtype != "bool" or mask.shape != tile.shape:
        raise Mismatch(
            f"the mask of `{what}` must be {extents(tile.shape)} bool, not {mask}",
            ("mask", *places),
            code="HK204",
            hint="compare, or broadcast: x > 0, broadcast(m, [16, 64])",
        )


@tile_op("load_masked", pure=False, spelling="load(tensor, [offset, …], [extent, …], fill=0, mask=tile)")
class LoadMasked:
    """Read a tile where `mask` holds. Element i is `src[offsets + i]`; elements whose mask is false, and those outside
    the tensor, are `fill`, and their memory is not touched."""

    src = operand(GLOBAL)
    fill = operand(SCALAR)
    mask = operand(TILE)
    offsets = operand(INDEX, variadic=True)
    d = result(TILE)
    together = True
    examples = (
        '%t = "hkc_tile.load_masked"(%A, %f, %m, %i, %k) : (memref<?x?xbf16, strided<[?, ?]>>, bf16,'
        " tensor<64x32xi1>, index, index) -> tensor<64x32xbf16>",
    )

    @staticmethod
    def check(d: TileType, src: GlobalType, fill: ScalarType, mask: TileType, offsets: tuple[IndexType, ...]) -> None:
        """The rule between the operands and the chosen result type."""
        Load.check(d, src, fill, offsets)
        check_mask("load", mask, d, "shape")

    @staticmethod
    def meaning(src: Any, fill: Any, mask: Any, offsets: tuple[int, ...], *, shape: tuple[int, ...]) -> Any:
        tile = Load.meaning(src, fill, offsets, shape=shape)
        return np.where(mask, tile, fill)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        src, fill, mask, *offsets = op.operands
        low.values[op.results[0]] = low.places(src, op.results[0], offsets, mask).load(low.scalar(fill))


@tile_op("store_masked", pure=False, spelling="store(tensor, [offset, …], tile, mask=tile)")
class StoreMasked:
    """Write a tile where `mask` holds; elements that fall outside the tensor are dropped too."""

    value = operand(TILE)
    dst = operand(GLOBAL)
    mask = operand(TILE)
    offsets = operand(INDEX, variadic=True)
    together = True
    examples = (
        '"hkc_tile.store_masked"(%t, %C, %m, %i, %j) : (tensor<64x32xf32>, memref<?x?xf32, strided<[?, ?]>>,'
        " tensor<64x32xi1>, index, index) -> ()",
    )

    @staticmethod
    def infer(value: TileType, dst: GlobalType, mask: TileType, offsets: tuple[IndexType, ...]) -> tuple[()]:
        check_window("store", dst, offsets, value)
        check_mask("store", mask, value, "value")
        return ()

    @staticmethod
    def meaning(value: Any, dst: Any, mask: Any, offsets: tuple[int, ...]) -> None:
        inside, at = window(dst.shape, offsets, value.shape)
        dst[inside] = np.where(mask[at], value[at], dst[inside])

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        value, dst, mask, *offsets = op.operands
        low.places(dst, value, offsets, mask).store(low.fragments(value))
