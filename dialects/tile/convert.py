"""Conversions between element types, with rounding said out loud."""

from __future__ import annotations

from typing import Any

from hkc.dialects.define import TILE, Mismatch, operand, result, tile_op
from hkc.dialects.types import TileType
from hkc.layout import DistributedLayout
from hkc.support.errors import HkcBug


@tile_op("cast", spelling="cast(tile, dtype)")
class Cast:
    """Convert the elements of a tile to another dtype.

    Float to float rounds to nearest even and overflows to infinity; integer to float rounds to nearest even; float to
    integer truncates towards zero and is only defined for values that fit; integer to integer keeps the low bits.
    """

    x = operand(TILE)
    d = result(TILE)
    examples = tuple(
        f'%t = "hkc_tile.cast"(%x) : (tensor<64x32x{a}>) -> tensor<64x32x{b}>'
        for a, b in (
            ("f32", "bf16"), ("bf16", "f32"), ("f32", "f16"), ("f16", "f32"), ("f64", "f32"), ("i32", "f32"),
            ("i1", "f32"), ("i8", "f16"), ("f32", "i32"), ("i32", "i8"), ("i8", "i32"), ("i1", "i32"), ("i32", "i64"),
        )
    )  # fmt: skip

    @staticmethod
    def check(d: TileType, x: TileType) -> None:
        """The shape stays."""
        if d.shape != x.shape:
            raise Mismatch(f"`cast` keeps the shape: {x} can't become {d}", ("x",))

    @staticmethod
    def meaning(x: Any, *, dtype: Any) -> Any:
        return x.astype(dtype)

    @staticmethod
    def forward(layout: DistributedLayout, x: TileType, d: TileType) -> DistributedLayout:
        """The result is held like the operand."""
        return layout

    @staticmethod
    def backward(layout: DistributedLayout, x: TileType, d: TileType) -> DistributedLayout:
        """The operand is held like the result."""
        return layout

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        source, target = op.operands[0].type.element_type, op.results[0].type.element_type
        kind = low.fragment_type(op.results[0])
        convert = _conversion(source, target)
        vectors = low.fragments(op.operands[0])
        low.values[op.results[0]] = [v if convert is None else low.build.op(convert, [v], [kind]) for v in vectors]


def _conversion(source: Any, target: Any) -> str | None:
    """The `arith` op that converts elements; None where the types are one."""
    if str(source) == str(target):
        return None
    floats = tuple(str(t) in ("f64", "f32", "f16", "bf16") for t in (source, target))
    from_bool = str(source) == "i1"
    if floats == (True, True):
        if source.width == target.width:
            raise HkcBug(f"a cast from {source} to {target} must go through f32")
        return "arith.extf" if source.width < target.width else "arith.truncf"
    if floats == (False, True):
        return "arith.uitofp" if from_bool else "arith.sitofp"
    if floats == (True, False):
        return "arith.fptosi"
    if source.width > target.width:
        return "arith.trunci"
    return "arith.extui" if from_bool else "arith.extsi"
