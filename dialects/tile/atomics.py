"""Atomic updates of global memory: a tile of them, each element on its own, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import BOOL, GLOBAL, INDEX, TEXT, TILE, Mismatch, attribute, operand, option, result, tile_op
from hkc.dialects.tile.memory import check_mask, check_window, window
from hkc.dialects.types import GlobalType, IndexType, TileType

KINDS = {"add": np.add, "max": np.fmax, "min": np.fmin}
"""The kinds of atomic update and the NumPy ufunc of each (max and min pass over NaN, as the hardware does)."""

SWAPPED = ("i32", "u32", "i64")
"""Dtypes of `compare_and_swap`."""


def combine_at(dst: Any, at: Any, value: Any, kind: str, unsigned: bool) -> None:
    """Update `dst[at]`, one element after another."""
    if unsigned and kind != "add":
        words = np.dtype(f"u{dst.dtype.itemsize}")
        dst, value = dst.view(words), value.view(words)
    KINDS[kind].at(dst, at, value)


def _check(value: TileType, dst: GlobalType, offsets: tuple[IndexType, ...], kind: str) -> None:
    check_window("atomic", dst, offsets, value)
    if kind not in KINDS:
        raise Mismatch(f"unknown atomic `{kind}`", hint=f"one of {', '.join(KINDS)}", code="HK307")


@tile_op("atomic", pure=False, spelling="atomic_add|atomic_max|atomic_min(tensor, [offset, …], tile)")
class Atomic:
    """`dst[offsets + i]` becomes its sum, maximum or minimum with element i, atomically with respect to all workgroups.

    Elements outside the tensor are dropped. The order of updates is not defined, so sums of floats may differ from run
    to run. max and min of floats pass over NaN. An update of 8 or 16 bits reads and swaps the aligned word of 32 around
    it, which must be memory too.
    """

    value = operand(TILE)
    dst = operand(GLOBAL)
    offsets = operand(INDEX, variadic=True)
    kind = attribute(TEXT)
    unsigned = option(BOOL, False)
    together = True
    examples = tuple(
        f'"hkc_tile.atomic"(%t, %C, %i, %j) {{kind = "{kind}"}} : (tensor<32x16x{t}>, memref<?x?x{t}, strided<[?, ?]>>,'
        " index, index) -> ()"
        for kind, t in (("add", "f32"), ("max", "i32"), ("min", "i64"), ("add", "f64"), ("add", "f16"), ("max", "f32"))
    )

    @staticmethod
    def infer(
        value: TileType, dst: GlobalType, offsets: tuple[IndexType, ...], *, kind: str, unsigned: bool = False
    ) -> tuple[()]:
        _check(value, dst, offsets, kind)
        return ()

    @staticmethod
    def meaning(value: Any, dst: Any, offsets: tuple[int, ...], *, kind: str, unsigned: bool = False) -> None:
        inside, at = window(dst.shape, offsets, value.shape)
        combine_at(dst, inside, value[at], kind, unsigned)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        value, dst, *offsets = op.operands
        kind, unsigned = op.attributes["kind"].value, low.option(op, "unsigned", False)
        low.places(dst, value, offsets).atomic(low.fragments(value), kind, unsigned)


@tile_op("atomic_masked", pure=False, spelling="atomic_add|atomic_max|atomic_min(tensor, [offset, …], tile, mask=tile)")
class AtomicMasked:
    """Like `atomic`, but elements whose `mask` is false do nothing."""

    value = operand(TILE)
    dst = operand(GLOBAL)
    mask = operand(TILE)
    offsets = operand(INDEX, variadic=True)
    kind = attribute(TEXT)
    unsigned = option(BOOL, False)
    together = True
    examples = (
        '"hkc_tile.atomic_masked"(%t, %C, %m, %i, %j) {kind = "add"} : (tensor<32x16xf32>,'
        " memref<?x?xf32, strided<[?, ?]>>, tensor<32x16xi1>, index, index) -> ()",
    )

    @staticmethod
    def infer(
        value: TileType,
        dst: GlobalType,
        mask: TileType,
        offsets: tuple[IndexType, ...],
        *,
        kind: str,
        unsigned: bool = False,
    ) -> tuple[()]:
        _check(value, dst, offsets, kind)
        check_mask("atomic", mask, value, "value")
        return ()

    @staticmethod
    def meaning(
        value: Any, dst: Any, mask: Any, offsets: tuple[int, ...], *, kind: str, unsigned: bool = False
    ) -> None:
        inside, at = window(dst.shape, offsets, value.shape)
        held = np.nonzero(np.asarray(mask)[at])
        combine_at(dst, tuple(p + s.start for p, s in zip(held, inside, strict=True)), value[at][held], kind, unsigned)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        value, dst, mask, *offsets = op.operands
        kind, unsigned = op.attributes["kind"].value, low.option(op, "unsigned", False)
        low.places(dst, value, offsets, mask).atomic(low.fragments(value), kind, unsigned)


@tile_op("atomic_fetch", pure=False, spelling="old = atomic_add|atomic_max|atomic_min(tensor, [offset, …], tile)")
class AtomicFetch:
    """Like `atomic`, and gives what each place held right before; 0 for elements outside the tensor."""

    value = operand(TILE)
    dst = operand(GLOBAL)
    offsets = operand(INDEX, variadic=True)
    kind = attribute(TEXT)
    unsigned = option(BOOL, False)
    d = result(TILE, same="value")
    together = True
    gives_originals = True
    examples = tuple(
        f'%o = "hkc_tile.atomic_fetch"(%t, %C, %i) {{kind = "add"}} : (tensor<{n}x{t}>, memref<?x{t}, strided<[?]>>,'
        f" index) -> tensor<{n}x{t}>"
        for n, t in ((256, "i32"), (32, "f32"))
    )

    @staticmethod
    def infer(
        value: TileType, dst: GlobalType, offsets: tuple[IndexType, ...], *, kind: str, unsigned: bool = False
    ) -> TileType:
        _check(value, dst, offsets, kind)
        return TileType(value.shape, value.dtype)

    @staticmethod
    def meaning(value: Any, dst: Any, offsets: tuple[int, ...], *, kind: str, unsigned: bool = False) -> Any:
        inside, at = window(dst.shape, offsets, value.shape)
        old = np.zeros_like(value)
        old[at] = dst[inside].copy()
        combine_at(dst, inside, value[at], kind, unsigned)
        return old

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        value, dst, *offsets = op.operands
        kind, unsigned = op.attributes["kind"].value, low.option(op, "unsigned", False)
        low.values[op.results[0]] = low.places(dst, value, offsets).atomic(low.fragments(value), kind, unsigned)


@tile_op("compare_and_swap", pure=False, spelling="compare_and_swap(tensor, [offset, …], expected, value)")
class CompareAndSwap:
    """Where `dst[offsets + i]` equals element i of `expected`, it becomes element i of `value`, atomically. Gives what
    each place held before; 0 for elements outside the tensor."""

    expected = operand(TILE)
    value = operand(TILE, same="expected")
    dst = operand(GLOBAL)
    offsets = operand(INDEX, variadic=True)
    d = result(TILE, same="expected")
    together = True
    gives_originals = True
    examples = tuple(
        f'%o = "hkc_tile.compare_and_swap"(%e, %t, %C, %i) : (tensor<64x{t}>, tensor<64x{t}>,'
        f" memref<?x{t}, strided<[?]>>, index) -> tensor<64x{t}>"
        for t in ("i32", "i64")
    )

    @staticmethod
    def infer(expected: TileType, value: TileType, dst: GlobalType, offsets: tuple[IndexType, ...]) -> TileType:
        check_window("compare_and_swap", dst, offsets, value)
        if value.dtype not in SWAPPED:
            raise Mismatch(
                f"`compare_and_swap` works on {', '.join(SWAPPED)}, not {value.dtype}",
                ("value",),
                hint="keep the bits of floats in a tensor of i32: bitcast(x, i32)" if value.dtype == "f32" else None,
                code="HK204",
            )
        if (expected.shape, expected.dtype) != (value.shape, value.dtype):
            raise Mismatch(
                f"`expected` is {expected}, but the new values are {value}",
                ("expected", "value"),
                code="HK202",
                hint="both have the same extents and dtype",
            )
        return TileType(value.shape, value.dtype)

    @staticmethod
    def meaning(expected: Any, value: Any, dst: Any, offsets: tuple[int, ...]) -> Any:
        inside, at = window(dst.shape, offsets, value.shape)
        old = np.zeros_like(value)
        old[at] = dst[inside].copy()
        dst[inside] = np.where(old[at] == expected[at], value[at], old[at])
        return old

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        expected, value, dst, *offsets = op.operands
        low.values[op.results[0]] = low.places(dst, value, offsets).swap(low.fragments(expected), low.fragments(value))
