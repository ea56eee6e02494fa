"""Conversions between element types, with rounding said out loud."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hkc.dialects.define import BOOL, TEXT, TILE, Mismatch, operand, option, result, tile_op
from hkc.dialects.tile.reduce import integer_range, unsigned_view
from hkc.dialects.types import TileType
from hkc.layout import DistributedLayout
from hkc.support.dtypes import DTYPES, DType, from_numpy

ROUNDINGS = ("", "nearest_even", "toward_zero")
"""How a cast rounds; "" is to nearest even for floats and towards zero for integers."""

_PAIRS = (
    ("f32", "bf16"), ("bf16", "f32"), ("f32", "f16"), ("f16", "f32"), ("f64", "f32"), ("f16", "bf16"), ("bf16", "f16"),
    ("f32", "f64"), ("f64", "bf16"), ("i32", "f32"), ("i1", "f32"), ("i8", "f16"), ("i32", "bf16"), ("i64", "f16"),
    ("f32", "i32"), ("f32", "i1"), ("i32", "i8"), ("i8", "i32"), ("i1", "i32"), ("i32", "i64"), ("i16", "i1"),
    ("f32", "f8E4M3FN"), ("f8E4M3FN", "f32"), ("f16", "f8E5M2FNUZ"), ("f8E5M2FNUZ", "bf16"), ("f8E4M3FNUZ", "f8E5M2"),
    ("f32", "f4E2M1FN"), ("f6E2M3FN", "f32"), ("bf16", "f6E3M2FN"), ("f8E8M0FNU", "f32"),
)  # fmt: skip


@tile_op("cast", spelling="cast(tile, dtype, saturate=…, rounding=…)")
class Cast:
    """Convert the elements of a tile to another dtype.

    `rounding` is "nearest_even" or "toward_zero"; by default a float target rounds to nearest even and an integer
    target towards zero. A float beyond the target's range becomes infinity, or NaN where the target has none (6- and
    4-bit floats have neither and always saturate; of NaN they make nothing defined). With `saturate` it becomes the
    largest number, an integer the nearest end of its range, and NaN as an integer 0. Without it, a float that does not
    fit an integer gives nothing defined, and integer to integer keeps the low bits. Anything but 0 is true as a bool.
    """

    x = operand(TILE)
    saturate = option(BOOL, False)
    rounding = option(TEXT, "")
    from_unsigned = option(BOOL, False)
    to_unsigned = option(BOOL, False)
    d = result(TILE)
    examples = (
        *(f'%t = "hkc_tile.cast"(%x) : (tensor<64x32x{a}>) -> tensor<64x32x{b}>' for a, b in _PAIRS),
        *(
            f'%t = "hkc_tile.cast"(%x) {{{words}}} : (tensor<16x64x{a}>) -> tensor<16x64x{b}>'
            for words, a, b in (
                ("saturate = true", "f32", "i8"),
                ("saturate = true, to_unsigned = true", "i32", "i8"),
                ("from_unsigned = true", "i8", "f32"),
                ('rounding = "nearest_even"', "f32", "i32"),
                ('rounding = "toward_zero"', "f32", "bf16"),
                ("saturate = true", "f32", "f8E4M3FNUZ"),
            )
        ),
    )

    @staticmethod
    def check(d: TileType, x: TileType, *, rounding: str = "", **_: Any) -> None:
        """The shape stays."""
        if d.shape != x.shape:
            raise Mismatch(f"`cast` keeps the shape: {x} can't become {d}", ("x",))
        if rounding not in ROUNDINGS:
            raise Mismatch(f"unknown rounding `{rounding}`", hint=f"one of {', '.join(ROUNDINGS[1:])}", code="HK307")
        if rounding == "toward_zero" and x.dtype == "i64" and DTYPES[d.dtype].is_float:
            hint = "leave the rounding out, or cast a part that fits i32"
            raise Mismatch("i64 becomes a float by rounding to nearest even only", ("x",), hint, "HK204")

    @staticmethod
    def meaning(
        x: Any,
        *,
        dtype: Any,
        saturate: bool = False,
        rounding: str = "",
        from_unsigned: bool = False,
        to_unsigned: bool = False,
    ) -> Any:
        x = unsigned_view(x, from_unsigned)
        target = np.dtype(f"u{np.dtype(dtype).itemsize}") if to_unsigned else np.dtype(dtype)
        source, wanted = _known(x.dtype), _known(target)
        if wanted.kind == "bool":
            return x != np.zeros((), x.dtype)
        if wanted.is_float:
            return _to_float(x, source, wanted, saturate, rounding == "toward_zero")
        if source.is_float:
            wide = x.astype(np.float64)
            made = _to_integer(np.rint(wide) if rounding == "nearest_even" else wide, wanted, saturate)
        else:
            made = _between(x, wanted) if saturate else x.astype(target)
        return made.view(dtype) if to_unsigned else made

    @staticmethod
    def forward(layout: DistributedLayout, x: TileType, d: TileType, **_: Any) -> DistributedLayout:
        """The result is held like the operand."""
        return layout

    @staticmethod
    def backward(layout: DistributedLayout, x: TileType, d: TileType, **_: Any) -> DistributedLayout:
        """The operand is held like the result."""
        return layout

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        from hkc.dialects.tile.conversion import convert

        source = low.dtype_name(op.operands[0], low.option(op, "from_unsigned", False))
        target = low.dtype_name(op.results[0], low.option(op, "to_unsigned", False))
        how = low.option(op, "saturate", False), low.option(op, "rounding", "")
        native = {dtype: name for name, dtype in low.chip.eight_bits.items()}
        low.values[op.results[0]] = [convert(v, source, target, *how, native) for v in low.fragments(op.operands[0])]


def _known(kind: Any) -> DType:
    found = from_numpy(np.dtype(kind))
    assert found is not None
    return found


def largest(kind: DType) -> float:
    """The largest finite number of a float dtype."""
    import ml_dtypes

    return float(ml_dtypes.finfo(kind.numpy).max)


def _to_float(x: Any, source: DType, target: DType, saturate: bool, toward_zero: bool) -> Any:
    if source == target:
        return x
    top = largest(target)
    if saturate:
        wide = x.astype(np.float64)
        x = np.maximum(np.minimum(wide, np.float64(top)), np.float64(-top))
    if not toward_zero:
        return x.astype(target.numpy)
    if hasattr(x, "toward_zero"):
        return x.toward_zero(target.numpy)
    wide = x.astype(np.float64)
    wide = np.where(np.isinf(wide), wide, np.clip(wide, -top, top))
    near = wide.astype(target.numpy)
    words = near.view(np.dtype(f"u{target.bytes}"))
    return (
        np.where(np.abs(near.astype(np.float64)) > np.abs(wide), words - 1, words).astype(words.dtype).view(near.dtype)
    )


def _to_integer(x: Any, target: DType, saturate: bool) -> Any:
    if not saturate:
        return x.astype(target.numpy)
    low, high = integer_range(target)
    above, below = x >= math.ldexp(1.0, (high + 1).bit_length() - 1), x < float(low)
    none = np.zeros((), np.float64)
    inside = np.where(above | below | np.isnan(x), none, x).astype(target.numpy)
    ends = [np.asarray(n, target.numpy) for n in (high, low)]
    return np.where(above, ends[0], np.where(below, ends[1], inside))


def _between(x: Any, target: DType) -> Any:
    low, high = integer_range(target)
    wide = x.astype(np.int64)
    return np.minimum(np.maximum(wide, np.int64(low)), np.int64(high)).astype(target.numpy)
