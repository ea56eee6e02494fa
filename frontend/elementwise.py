"""Functions of numbers, element by element: maths, choices, and activations made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from hkc.dialects.types import TileType
from hkc.frontend import arithmetic, syntax
from hkc.frontend.builder import Builder
from hkc.frontend.casts import cast_scalar
from hkc.frontend.functions import Given, function
from hkc.frontend.program import Value
from hkc.frontend.scope import Meaning, Operand, element_dtype, is_number, tile_type
from hkc.support.dtypes import DTYPES
from hkc.support.errors import Span

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions


@function("where(condition, a, b)", "`a` where the condition holds, else `b`, element by element; all three broadcast.")
def _where(c: Expressions, given: Given, span: Span) -> Meaning:
    return arithmetic.select(c.b, c.operand(given["condition"]), c.operand(given["a"]), c.operand(given["b"]), span)


def _pairwise(name: str, op: str, doc: str) -> None:
    @function(f"{name}(a, b)", doc)
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        return arithmetic.binary(c.b, op, c.operand(given["a"]), c.operand(given["b"]), span)


for _name, _op, _doc in (
    ("cdiv", "cdiv", "`a / b` of whole numbers, rounded up."),
    ("maximum", "max", "The greater of two values; NaN wins."),
    ("minimum", "min", "The lesser of two values; NaN wins."),
    ("fmax", "fmax", "The greater of two values; a number wins over NaN."),
    ("fmin", "fmin", "The lesser of two values; a number wins over NaN."),
):
    _pairwise(_name, _op, _doc)


@function("clamp(x, low, high)", "`x`, but at least `low` and at most `high`; NaN stays.")
def _clamp(c: Expressions, given: Given, span: Span) -> Meaning:
    x, low, high = (c.operand(given[n]) for n in ("x", "low", "high"))
    raised = Operand(arithmetic.binary(c.b, "max", x, low, span), x.expr)
    return arithmetic.binary(c.b, "min", raised, high, span)


def _element_wise(name: str, doc: str) -> None:
    @function(f"{name}(x)", doc)
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        return arithmetic.function(c.b, name, c.operand(given["x"]), span)


for _name, _doc in (
    ("exp", "e to the power of x."),
    ("exp2", "2 to the power of x; faster than `exp`."),
    ("log", "The natural logarithm; NaN below 0."),
    ("log2", "The logarithm to base 2; NaN below 0."),
    ("sqrt", "The square root; NaN below 0."),
    ("rsqrt", "1 over the square root."),
    ("sin", "The sine of x in radians."),
    ("cos", "The cosine of x in radians."),
    ("tanh", "The hyperbolic tangent."),
    ("erf", "The error function."),
    ("floor", "The next whole number below."),
    ("ceil", "The next whole number above."),
    ("abs", "The magnitude."),
):
    _element_wise(_name, _doc)


class _Formula:
    """Arithmetic on operands at one place, for functions that are made of others."""

    def __init__(self, b: Builder, expr: syntax.Expr, span: Span) -> None:
        self.b, self.expr, self.span = b, expr, span

    def apply(self, op: str, a: Meaning, b: Meaning) -> Meaning:
        """`a op b`."""
        return arithmetic.binary(self.b, op, Operand(a, self.expr), Operand(b, self.expr), self.span)

    def call(self, name: str, x: Meaning) -> Meaning:
        """An element-wise function."""
        return arithmetic.function(self.b, name, Operand(x, self.expr), self.span)

    def negative(self, x: Meaning) -> Meaning:
        """`-x`."""
        return arithmetic.negative(self.b, Operand(x, self.expr), self.span)


def _rcp(f: _Formula, x: Meaning) -> Meaning:
    return f.apply("/", 1.0, x)


def _sigmoid(f: _Formula, x: Meaning) -> Meaning:
    return f.apply("/", 1.0, f.apply("+", 1.0, f.call("exp", f.negative(x))))


def _silu(f: _Formula, x: Meaning) -> Meaning:
    return f.apply("/", x, f.apply("+", 1.0, f.call("exp", f.negative(x))))


def _gelu(f: _Formula, x: Meaning) -> Meaning:
    inner = f.call("erf", f.apply("*", x, math.sqrt(0.5)))
    return f.apply("*", f.apply("*", 0.5, x), f.apply("+", 1.0, inner))


def _gelu_tanh(f: _Formula, x: Meaning) -> Meaning:
    cube = f.apply("*", f.apply("*", x, x), x)
    inner = f.apply("*", math.sqrt(2.0 / math.pi), f.apply("+", x, f.apply("*", 0.044715, cube)))
    return f.apply("*", f.apply("*", 0.5, x), f.apply("+", 1.0, f.call("tanh", inner)))


def _composed(name: str, formula: Callable[[_Formula, Meaning], Meaning], doc: str) -> None:
    @function(f"{name}(x)", f"{doc} 16-bit floats are computed in f32.")
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        x = c.operand(given["x"])
        f = _Formula(c.b, x.expr, span)
        if is_number(x.meaning) and not isinstance(x.meaning, bool):
            return formula(f, float(x.meaning))
        dtype = element_dtype(x.meaning)
        if dtype is None or not dtype.is_float or dtype.bits != 16:
            return formula(f, x.meaning)
        wide = _converted(c, x, "f32", span)
        return _converted(c, Operand(formula(f, wide), x.expr), dtype.name, span)


def _converted(c: Expressions, x: Operand, dtype: str, span: Span) -> Value:
    tile = tile_type(x.meaning)
    if tile is None:
        return cast_scalar(c, x, DTYPES[dtype], span)
    return c.b.tile_op("cast", [x.value], span, {"x": x}, TileType(tile.shape, dtype))[0]


for _name, _formula, _doc in (
    ("rcp", _rcp, "1 / x."),
    ("sigmoid", _sigmoid, "1 / (1 + exp(-x))."),
    ("silu", _silu, "x / (1 + exp(-x))."),
    ("gelu", _gelu, "x / 2 · (1 + erf(x / √2))."),
    ("gelu_tanh", _gelu_tanh, "The approximation of `gelu` by tanh."),
):
    _composed(_name, _formula, _doc)
