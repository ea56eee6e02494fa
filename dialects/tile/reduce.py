"""Reductions of a tile along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import INT, TEXT, TILE, Mismatch, attribute, operand, result, tile_op
from hkc.dialects.types import TileType

KINDS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
"""The kinds of reduction and the NumPy ufunc that each folds with (max and min propagate NaN)."""


@tile_op("reduce", spelling="sum|prod|max|min(tile, axis=…)")
class Reduce:
    """Fold a tile along `axis` with `kind` (sum, prod, max, min); the axis stays, with extent 1.

    The order of the fold is fixed by the layout, so the same kernel gives the same bytes on every run.
    """

    x = operand(TILE)
    axis = attribute(INT)
    kind = attribute(TEXT)
    d = result(TILE)
    examples = ('%s = "hkc_tile.reduce"(%x) {axis = 1 : i64, kind = "sum"} : (tensor<64x32xf32>) -> tensor<64x1xf32>',)

    @staticmethod
    def infer(x: TileType, *, axis: int, kind: str) -> TileType:
        if kind not in KINDS:
            raise Mismatch(f"unknown reduction `{kind}`", hint=f"one of {', '.join(KINDS)}", code="HK307")
        if not 0 <= axis < len(x.shape):
            raise Mismatch(f"axis {axis} does not exist in a tile of {x}", ("x",), code="HK206")
        if x.dtype == "bool":
            raise Mismatch(f"`{kind}` folds numbers, not {x}", ("x",), hint="cast it to i32 first", code="HK204")
        return TileType((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)

    @staticmethod
    def meaning(x: Any, *, axis: int, kind: str) -> Any:
        return KINDS[kind].reduce(x, axis=axis, keepdims=True)
