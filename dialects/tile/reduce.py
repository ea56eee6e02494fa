"""Reductions of a tile along one axis."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.dialects.define import BOOL, INT, TEXT, TILE, Mismatch, attribute, operand, option, result, tile_op
from hkc.dialects.types import TileType
from hkc.layout import DistributedLayout
from hkc.support.dtypes import DTYPES, DType
from hkc.support.errors import HkcBug

KINDS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
"""The kinds of reduction of numbers and the NumPy ufunc that each folds with (max and min propagate NaN)."""

LOGICAL = {"any": np.logical_or, "all": np.logical_and}
"""The kinds of reduction of bools."""

FLOAT_OPS = {"sum": "addf", "prod": "mulf", "max": "maximumf", "min": "minimumf"}
"""The `arith` op that folds floats."""

INTEGER_OPS = {"sum": "addi", "prod": "muli", "max": "maxsi", "min": "minsi", "any": "ori", "all": "andi"}
"""The `arith` op that folds integers and bools."""

UNSIGNED_OPS = {**INTEGER_OPS, "max": "maxui", "min": "minui"}
"""The `arith` op that folds integers without a sign."""


def neutral(kind: str, kept: DType) -> float:
    """The element that changes no fold of this kind."""
    if kind in LOGICAL:
        return int(kind == "all")
    if kind in ("sum", "prod"):
        return 1 if kind == "prod" else -0.0 if kept.is_float else 0
    if kept.is_float:
        return -math.inf if kind == "max" else math.inf
    least, most = integer_range(kept)
    return least if kind == "max" else most


def integer_range(kind: DType) -> tuple[int, int]:
    """The least and the largest number of an integer dtype."""
    return (0, 2**kind.bits - 1) if kind.kind == "uint" else (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1)


def check_axis(x: TileType, axis: int) -> None:
    """The tile has the axis."""
    if not 0 <= axis < len(x.shape):
        hint = f"axes are 0 to {len(x.shape) - 1}"
        raise Mismatch(f"axis {axis} does not exist in a tile of {x}", ("x",), code="HK206", hint=hint)


def unsigned_view(x: Any, unsigned: bool) -> Any:
    """An array of integers as what an `unsigned` op takes it for."""
    return x.view(np.dtype(f"u{x.dtype.itemsize}")) if unsigned and x.dtype.kind == "i" else x


@tile_op("reduce", spelling="sum|prod|max|min(tile, axis=…)")
class Reduce:
    """Fold a tile along `axis` with `kind` (sum, prod, max, min; any, all for bools); the axis stays, with extent 1.

    The order of the fold is fixed by the layout, so the same kernel gives the same bytes on every run.
    """

    x = operand(TILE)
    axis = attribute(INT)
    kind = attribute(TEXT)
    unsigned = option(BOOL, False)
    d = result(TILE)
    examples = tuple(
        f'%s = "hkc_tile.reduce"(%x) {{axis = {axis} : i64, kind = "{kind}"}} : (tensor<{x}>) -> tensor<{d}>'
        for axis, kind, x, d in (
            (1, "sum", "64x32xf32", "64x1xf32"),
            (0, "max", "64x32xf32", "1x32xf32"),
            (1, "min", "16x256xbf16", "16x1xbf16"),
            (1, "prod", "4x8xf32", "4x1xf32"),
            (0, "sum", "1024xi32", "1xi32"),
            (0, "max", "48x80xi32", "1x80xi32"),
            (1, "any", "16x32xi1", "16x1xi1"),
            (0, "all", "128xi1", "1xi1"),
            (0, "max", "64x16xi8", "1x16xi8"),
        )
    )

    @staticmethod
    def infer(x: TileType, *, axis: int, kind: str, unsigned: bool = False) -> TileType:
        if kind not in KINDS and kind not in LOGICAL:
            raise Mismatch(f"unknown reduction `{kind}`", hint=f"one of {', '.join((*KINDS, *LOGICAL))}", code="HK307")
        check_axis(x, axis)
        if (x.dtype == "bool") != (kind in LOGICAL):
            what, hint = ("bools", "compare it first") if kind in LOGICAL else ("numbers", "cast it to i32 first")
            raise Mismatch(f"`{kind}` folds {what}, not {x}", ("x",), hint=hint, code="HK204")
        return TileType((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)

    @staticmethod
    def meaning(x: Any, *, axis: int, kind: str, unsigned: bool = False) -> Any:
        words = unsigned_view(x, unsigned)
        fold = LOGICAL[kind] if kind in LOGICAL else KINDS[kind]
        folded = fold.reduce(words, axis=axis, keepdims=True, dtype=words.dtype)
        return folded.view(x.dtype) if unsigned else folded

    @staticmethod
    def forward(layout: DistributedLayout, x: TileType, d: TileType, *, axis: int, **_: Any) -> DistributedLayout:
        """The result stays where the elements were folded; lanes along the axis hold copies."""
        return layout.reduce(axis)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        source, target = op.operands[0], op.results[0]
        axis, kind = op.attributes["axis"].value, op.attributes["kind"].value
        layout = low.layout(source)
        fold = folder(low, kind, source, low.option(op, "unsigned", False))
        if any(basis[axis] for basis in layout.wave):
            raise HkcBug(f"a reduction across waves reached the lowering: {layout}")
        fill = neutral(kind, DTYPES[low.dtype_name(source, low.option(op, "unsigned", False))])
        vectors = _fold_registers(low, source, low.within(source, axis, fill), target, axis, fold)
        for bit, basis in enumerate(layout.lane):
            if basis[axis]:
                vectors = [fold(v, low.shuffle_xor(v, 1 << bit)) for v in vectors]
        low.values[target] = vectors


def folder(low: Any, kind: str, value: Any, unsigned: bool) -> Callable[[Any, Any], Any]:
    """What folds two elements, or vectors of them, of a tile."""
    ops = FLOAT_OPS if low.is_float(value.type.element_type) else UNSIGNED_OPS if unsigned else INTEGER_OPS
    return lambda a, b: low.build.binary(ops[kind], a, b)


def _fold_registers(low: Any, source: Any, vectors: list[Any], target: Any, axis: int, fold: Any) -> list[Any]:
    """What each lane can fold by itself, in the order of the coordinates along `axis`."""
    held = low.layout(source).coordinates(low.shape(source))[:, :, 0, 0]
    groups: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}
    for f, r in np.ndindex(*held.shape[:2]):
        at = [int(c) for c in held[f, r]]
        groups.setdefault((*at[:axis], 0, *at[axis + 1 :]), []).append((at[axis], f, r))
    result = []
    for fragment in low.layout(target).coordinates(low.shape(target))[:, :, 0, 0]:
        elements = []
        for at in fragment:
            parts = [low.build.extract(vectors[f], r) for _, f, r in sorted(groups[tuple(int(c) for c in at)])]
            elements.append(functools.reduce(fold, parts))
        result.append(low.build.pack(elements))
    return result
