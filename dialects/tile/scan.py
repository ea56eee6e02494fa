"""Scans and reductions that keep the order of the elements: a balanced tree over the bits of a coordinate.

Level b of the tree joins neighbouring runs of 2^b elements, the left one first. So the result does not depend on how a
tile is held, and the meanings walk the very tree that the machine code does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hkc.dialects.define import BOOL, INT, SYMBOL, TEXT, TILE, Mismatch, attribute, operand, option, result, tile_op
from hkc.dialects.tile.reduce import KINDS, check_axis, folder, unsigned_view
from hkc.dialects.tile.tree import Parts, fold_tree, scan_tree, within_wave
from hkc.dialects.types import TileType
from hkc.layout import DistributedLayout

SCANS = ("sum", "prod", "max", "min")
"""The kinds of scan that need no function."""


def slices(x: Any, axis: int) -> list[Any]:
    """The elements of an array one coordinate of `axis` after another, each with extent 1 there."""
    before = (slice(None),) * axis
    return [x[(*before, slice(i, i + 1))] for i in range(x.shape[axis])]


def tree_scan(values: list[Parts], combine: Callable[[Parts, Parts], Parts], reverse: bool) -> list[Parts]:
    """All prefixes (suffixes if `reverse`) of a list under an associative function, by the balanced tree."""
    prefix, total, step = list(values), dict(enumerate(values)), 1
    while step < len(values):
        for left in range(0, len(values) - step, 2 * step):
            a, b = total[left], total[left + step]
            inside = range(left, left + step) if reverse else range(left + step, min(left + 2 * step, len(values)))
            for i in inside:
                prefix[i] = combine(prefix[i], b) if reverse else combine(a, prefix[i])
            total[left] = combine(a, b)
        step *= 2
    return prefix


def tree_fold(values: list[Parts], combine: Callable[[Parts, Parts], Parts]) -> Parts:
    """All of a list under an associative function, by the balanced tree."""
    while len(values) > 1:
        pairs = [combine(*values[i : i + 2]) for i in range(0, len(values) - 1, 2)]
        values = pairs + values[2 * len(pairs) :]
    return values[0]


def _held(layout: DistributedLayout, *, axis: int, **attributes: Any) -> DistributedLayout:
    return within_wave(layout, axis)


@tile_op("scan", spelling="cumsum|cumprod|cummax|cummin(tile, axis=…, reverse=False)")
class Scan:
    """Element i is the fold of elements 0 to i along `axis` with `kind` (sum, prod, max, min); with `reverse`, of
    elements i to the last. max and min propagate NaN."""

    x = operand(TILE)
    axis = attribute(INT)
    kind = attribute(TEXT)
    reverse = option(BOOL, False)
    unsigned = option(BOOL, False)
    d = result(TILE, same="x")
    together = True
    held = staticmethod(_held)
    whole_blocks = True
    examples = tuple(
        f'%s = "hkc_tile.scan"(%x) {{axis = {axis} : i64, kind = "{kind}"{rest}}} : (tensor<{x}>) -> tensor<{x}>'
        for axis, kind, rest, x in (
            (1, "sum", "", "16x32xf32"),
            (0, "sum", ", reverse = true", "64x16xi32"),
            (0, "max", "", "512xf32"),
            (0, "prod", "", "48xf32"),
            (1, "min", ", reverse = true", "4x80xi32"),
        )
    )

    @staticmethod
    def infer(x: TileType, *, axis: int, kind: str, reverse: bool = False, unsigned: bool = False) -> TileType:
        if kind not in SCANS:
            raise Mismatch(f"unknown scan `{kind}`", hint=f"one of {', '.join(SCANS)}", code="HK307")
        check_axis(x, axis)
        if x.dtype == "bool":
            raise Mismatch(f"`{kind}` folds numbers, not {x}", ("x",), hint="cast it to i32 first", code="HK204")
        return TileType(x.shape, x.dtype)

    @staticmethod
    def meaning(x: Any, *, axis: int, kind: str, reverse: bool = False, unsigned: bool = False) -> Any:
        words = unsigned_view(x, unsigned)
        parts = [(s,) for s in slices(words, axis)]
        found = tree_scan(parts, lambda a, b: (KINDS[kind](a[0], b[0]),), reverse)
        joined = np.concatenate([p[0] for p in found], axis=axis)
        return joined.view(x.dtype) if unsigned else joined

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        fold = folder(low, op.attributes["kind"].value, op.operands[0], low.option(op, "unsigned", False))
        reverse = low.option(op, "reverse", False)
        scan_tree(low, op, op.attributes["axis"].value, lambda a, b: (fold(a[0], b[0]),), reverse)


def _check_parts(x: tuple[TileType, ...], axis: int) -> None:
    if not x:
        raise Mismatch("a combining function needs at least one tile", hint="scan(combine, tile, axis=0)")
    for tile in x:
        check_axis(tile, axis)
        if tile.shape != x[0].shape:
            raise Mismatch(
                f"the tiles of one scan have one shape, not {x[0]} and {tile}",
                ("x",),
                code="HK202",
                hint="broadcast(x, [extent, …]) gives tiles one shape",
            )


@tile_op("scan_by", spelling="scan(function, tile, …, axis=…, reverse=False)")
class ScanBy:
    """A scan along `axis` with an associative function of the user: `combine` names a `func.func` of 2n scalars (n of
    the left part, n of the right) that gives n; n tiles are scanned together."""

    x = operand(TILE, variadic=True)
    axis = attribute(INT)
    combine = attribute(SYMBOL)
    reverse = option(BOOL, False)
    d = result(TILE, variadic=True)
    together = True
    held = staticmethod(_held)
    whole_blocks = True
    examples = (
        '%p, %q = "hkc_tile.scan_by"(%x, %y) {axis = 1 : i64, combine = @affine} : (tensor<16x32xf32>,'
        " tensor<16x32xf32>) -> (tensor<16x32xf32>, tensor<16x32xf32>)",
    )

    @staticmethod
    def infer(x: tuple[TileType, ...], *, axis: int, combine: str, reverse: bool = False) -> tuple[TileType, ...]:
        _check_parts(x, axis)
        return tuple(TileType(t.shape, t.dtype) for t in x)

    @staticmethod
    def meaning(x: tuple[Any, ...], *, axis: int, combine: Callable[..., Parts], reverse: bool = False) -> Parts:
        parts = list(zip(*(slices(t, axis) for t in x), strict=True))
        found = tree_scan(parts, lambda a, b: combine(*a, *b), reverse)
        return tuple(np.concatenate(column, axis=axis) for column in zip(*found, strict=True))

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        combine = low.function(op)
        reverse = low.option(op, "reverse", False)
        scan_tree(low, op, op.attributes["axis"].value, lambda a, b: combine(*a, *b), reverse)


def _folded(x: Sequence[TileType], axis: int, *dtypes: str) -> tuple[TileType, ...]:
    shape = (*x[0].shape[:axis], 1, *x[0].shape[axis + 1 :])
    return tuple(TileType(shape, dtype) for dtype in dtypes)


@tile_op("reduce_by", spelling="reduce(function, tile, …, axis=…)")
class ReduceBy:
    """A reduction along `axis` with an associative function of the user, as in `scan_by`; the axis stays, with extent
    1."""

    x = operand(TILE, variadic=True)
    axis = attribute(INT)
    combine = attribute(SYMBOL)
    d = result(TILE, variadic=True)
    whole_blocks = True
    examples = (
        '%p, %q = "hkc_tile.reduce_by"(%x, %y) {axis = 0 : i64, combine = @affine} : (tensor<32x16xf32>,'
        " tensor<32x16xf32>) -> (tensor<1x16xf32>, tensor<1x16xf32>)",
    )

    @staticmethod
    def infer(x: tuple[TileType, ...], *, axis: int, combine: str) -> tuple[TileType, ...]:
        _check_parts(x, axis)
        return _folded(x, axis, *(t.dtype for t in x))

    @staticmethod
    def meaning(x: tuple[Any, ...], *, axis: int, combine: Callable[..., Parts]) -> Parts:
        parts = list(zip(*(slices(t, axis) for t in x), strict=True))
        return tree_fold(parts, lambda a, b: combine(*a, *b))

    @staticmethod
    def forward(layout: DistributedLayout, x: TileType, d: TileType, *, axis: int, **_: Any) -> DistributedLayout:
        """The result stays where the elements were folded; lanes along the axis hold copies."""
        return layout.reduce(axis)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        combine = low.function(op)
        columns = [low.elements(x) for x in op.operands]
        fold_tree(low, op, op.attributes["axis"].value, columns, lambda a, b: combine(*a, *b))


@tile_op("arg_reduce", spelling="argmax|argmin(tile, axis=…)")
class ArgReduce:
    """The coordinate (i32) along `axis` of the largest or smallest element (`kind` max or min), the first one of
    equals; a NaN counts as larger, or smaller, than all numbers. The axis stays, with extent 1."""

    x = operand(TILE)
    axis = attribute(INT)
    kind = attribute(TEXT)
    unsigned = option(BOOL, False)
    d = result(TILE)
    whole_blocks = True
    examples = tuple(
        f'%s = "hkc_tile.arg_reduce"(%x) {{axis = {axis} : i64, kind = "{kind}"}} : (tensor<{x}>) -> tensor<{d}>'
        for axis, kind, x, d in (
            (1, "max", "16x32xf32", "16x1xi32"),
            (0, "min", "512xi32", "1xi32"),
            (0, "max", "48x16xbf16", "1x16xi32"),
        )
    )

    @staticmethod
    def infer(x: TileType, *, axis: int, kind: str, unsigned: bool = False) -> TileType:
        if kind not in ("max", "min"):
            raise Mismatch(f"unknown kind `{kind}`", hint="max or min", code="HK307")
        check_axis(x, axis)
        if x.dtype == "bool":
            raise Mismatch(f"`arg{kind}` compares numbers, not {x}", ("x",), hint="cast it to i32 first", code="HK204")
        return _folded([x], axis, "i32")[0]

    @staticmethod
    def meaning(x: Any, *, axis: int, kind: str, unsigned: bool = False) -> Any:
        words = unsigned_view(x, unsigned)
        found = np.argmax(words, axis=axis) if kind == "max" else np.argmin(words, axis=axis)
        return np.expand_dims(found, axis).astype(np.int32)

    @staticmethod
    def forward(layout: DistributedLayout, x: TileType, d: TileType, *, axis: int, **_: Any) -> DistributedLayout:
        """The result stays where the elements were folded; lanes along the axis hold copies."""
        return layout.reduce(axis)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        x, axis = op.operands[0], op.attributes["axis"].value
        layout = low.layout(x)
        places = [
            [low.coordinate_value(layout, axis, r, origin[axis]) for r in range(layout.registers)]
            for origin in layout.fragment_offsets(low.shape(x))
        ]
        wins = _winner(low, op, x.type.element_type)

        def combine(a: Parts, b: Parts) -> Parts:
            later = wins(b[0], a[0])
            return tuple(low.build.select(later, right, left) for left, right in zip(a, b, strict=True))

        fold_tree(low, op, axis, [low.elements(x), places], combine, keep=(1,))


def _winner(low: Any, op: Any, element: Any) -> Callable[[Any, Any], Any]:
    """An i1: a later element takes the place of an earlier one."""
    greater = op.attributes["kind"].value == "max"
    if not low.is_float(element):
        sign = "u" if low.option(op, "unsigned", False) else "s"
        return lambda new, old: low.build.cmp(sign + ("gt" if greater else "lt"), new, old)

    def wins(new: Any, old: Any) -> Any:
        # Unordered comparisons are true for NaN: a NaN wins over what is a number.
        beyond = low.build.cmpf("ugt" if greater else "ult", new, old)
        return low.build.both(beyond, low.build.cmpf("ord", old, old))

    return wins
