"""Matrix products: `dot` and, with scales per block, `dot_scaled`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hkc.dialects.tile.dot import SUMS
from hkc.dialects.types import TileType
from hkc.frontend.functions import Given, function
from hkc.frontend.program import Value
from hkc.frontend.scope import Meaning, Operand, tile_type
from hkc.support.errors import Span

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions


@function(
    "dot(a, b, acc=0)",
    "`acc + a @ b` of tiles MxK and KxN. f32, f16, bf16 and pairs of 8-bit floats sum in f32, i8 in i32, f64 in f64. "
    "`acc += dot(a, b)` is one operation.",
)
def _dot(c: Expressions, given: Given, span: Span) -> Meaning:
    return dot(c, c.tile(given["a"]), c.tile(given["b"]), c.tile(given["acc"]) if "acc" in given else None, span)


def dot(c: Expressions, a: Operand, b: Operand, acc: Operand | None, span: Span) -> Value:
    """`acc + a @ b`; without `acc` it starts from zeros."""
    places = {"a": a, "b": b}
    if acc is not None:
        places["acc"] = acc
    start = _start(c, a, b, acc, span)
    return c.b.tile_op("dot", [a.value, b.value, start], span, places)[0]


@function(
    "dot_scaled(a, a_scale, b, b_scale, acc=0)",
    "`acc + (a * a_scale) @ (b * b_scale)`: 32 elements along K share a scale of e8m0. a is MxK and b KxN of f8e4m3fn, "
    "f8e5m2, f6e2m3, f6e3m2 or f4e2m1, a_scale is Mx(K/32), b_scale (K/32)xN. Only chips with scaled matrix "
    "instructions have it.",
)
def _dot_scaled(c: Expressions, given: Given, span: Span) -> Meaning:
    places = {name: c.tile(expr) for name, expr in given.items()}
    start = _start(c, places["a"], places["b"], places.get("acc"), span)
    operands = [places[n].value for n in ("a", "a_scale", "b", "b_scale")]
    return c.b.tile_op("dot_scaled", [*operands, start], span, places)[0]


def _start(c: Expressions, a: Operand, b: Operand, acc: Operand | None, span: Span) -> Value:
    """The accumulator: what is given, or zeros of the shape and dtype of the product."""
    if acc is not None:
        return acc.value
    left, right = tile_type(a.meaning), tile_type(b.meaning)
    assert left is not None and right is not None
    return c.b.constant(0, TileType((left.shape[0], right.shape[-1]), SUMS.get(left.dtype, "f32")), span)
