"""Ops that change the shape of a tile and move no element between lanes by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import INTS, TILE, Mismatch, attribute, operand, result, tile_op
from hkc.dialects.types import TileType, extents


@tile_op("transpose", spelling="tile.T")
class Transpose:
    """Reorder the dims of a tile: dim i of the result is dim `permutation[i]` of the operand."""

    x = operand(TILE)
    permutation = attribute(INTS)
    d = result(TILE)
    examples = (
        '%t = "hkc_tile.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<64x32xf16>) -> tensor<32x64xf16>',
    )

    @staticmethod
    def infer(x: TileType, *, permutation: tuple[int, ...]) -> TileType:
        if sorted(permutation) != list(range(len(x.shape))):
            raise Mismatch(f"{list(permutation)} is not a permutation of the {len(x.shape)} dims", ("x",), code="HK206")
        return TileType(tuple(x.shape[i] for i in permutation), x.dtype)

    @staticmethod
    def meaning(x: Any, *, permutation: tuple[int, ...]) -> Any:
        return np.transpose(x, permutation)


@tile_op("reshape")
class Reshape:
    """Add or remove dims of extent 1; the other extents keep their order."""

    x = operand(TILE)
    d = result(TILE)
    examples = ('%t = "hkc_tile.reshape"(%x) : (tensor<64x1xf32>) -> tensor<64xf32>',)

    @staticmethod
    def check(d: TileType, x: TileType) -> None:
        """The result has the operand's extents other than 1, in the same order."""
        if [n for n in d.shape if n != 1] != [n for n in x.shape if n != 1] or d.dtype != x.dtype:
            raise Mismatch(f"`reshape` only adds or removes dims of extent 1: {x} can't become {d}", ("x",))

    @staticmethod
    def meaning(x: Any, *, shape: tuple[int, ...]) -> Any:
        return np.reshape(x, shape)


@tile_op("broadcast")
class Broadcast:
    """Repeat a tile along its dims of extent 1."""

    x = operand(TILE)
    d = result(TILE)
    examples = ('%t = "hkc_tile.broadcast"(%x) : (tensor<64x1xf32>) -> tensor<64x32xf32>',)

    @staticmethod
    def check(d: TileType, x: TileType) -> None:
        """Same rank, same dtype; every extent equal, or 1 in the operand."""
        fits = len(d.shape) == len(x.shape) and all(a in (1, b) for a, b in zip(x.shape, d.shape, strict=True))
        if not fits or d.dtype != x.dtype:
            raise Mismatch(f"{extents(x.shape)} doesn't broadcast to {extents(d.shape)}", ("x",), code="HK202")

    @staticmethod
    def meaning(x: Any, *, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(x, shape)


@tile_op("convert_layout")
class ConvertLayout:
    """The same tile held in another layout. `buffer` and `map` say through which LDS buffer, once that is decided."""

    x = operand(TILE)
    d = result(TILE)
    examples = ('%t = "hkc_tile.convert_layout"(%x) : (tensor<64x32xf16>) -> tensor<64x32xf16>',)

    @staticmethod
    def check(d: TileType, x: TileType) -> None:
        """Shape and dtype stay."""
        if (d.shape, d.dtype) != (x.shape, x.dtype):
            raise Mismatch(f"`convert_layout` keeps shape and dtype: {x} can't become {d}", ("x",))

    @staticmethod
    def meaning(x: Any) -> Any:
        return x
