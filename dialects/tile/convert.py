"""Conversions between element types, with rounding said out loud."""

from __future__ import annotations

from typing import Any

from hkc.dialects.define import TILE, Mismatch, operand, result, tile_op
from hkc.dialects.types import TileType


@tile_op("cast", spelling="cast(tile, dtype)")
class Cast:
    """Convert the elements of a tile to another dtype.

    Float to float rounds to nearest even and overflows to infinity; integer to float rounds to nearest even; float to
    integer truncates towards zero and is only defined for values that fit; integer to integer keeps the low bits.
    """

    x = operand(TILE)
    d = result(TILE)
    examples = ('%t = "hkc_tile.cast"(%x) : (tensor<64x32xf32>) -> tensor<64x32xbf16>',)

    @staticmethod
    def check(d: TileType, x: TileType) -> None:
        """The shape stays."""
        if d.shape != x.shape:
            raise Mismatch(f"`cast` keeps the shape: {x} can't become {d}", ("x",))

    @staticmethod
    def meaning(x: Any, *, dtype: Any) -> Any:
        return x.astype(dtype)
