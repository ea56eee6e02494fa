"""Tiles from nothing: `zeros[f32, 64, 64]`, `full[f32, 64, 64](value)`, `iota[64, 64](axis=1)`, random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hkc.dialects.types import ScalarType, TileType
from hkc.frontend import syntax
from hkc.frontend.builder import fit
from hkc.frontend.casts import cast_scalar
from hkc.frontend.functions import FUNCTIONS, Function, Given, axes, function
from hkc.frontend.program import Value
from hkc.frontend.scope import Meaning, describe, is_number, is_whole
from hkc.support.dtypes import DTYPES
from hkc.support.errors import Span, error

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions

SHAPED = {
    "zeros": "zeros[dtype, extent, …]",
    "full": "full[dtype, extent, …](value)",
    "iota": "iota[extent, …](axis=0)",
}
"""The names that take a dtype or extents in square brackets, and how they are written."""

SHAPED_DOCS = {
    "zeros": "A tile of zeros.",
    "full": "A tile filled with one value.",
    "iota": "A tile of i32 that counts 0, 1, 2, … along an axis.",
}


def shaped(c: Expressions, made: syntax.Index, arguments: syntax.Call | None) -> Meaning:
    """A tile made by a name of `SHAPED`, with the call's arguments where it is called."""
    name, span = made.word, arguments.span if arguments else made.span
    items = [i for i in made.items if not isinstance(i, syntax.Cut)]
    if len(items) != len(made.items):
        raise error("HK201", "`:` cuts tiles; extents are numbers", made.span, hint=SHAPED[name])
    if name == "iota":
        return _iota(c, made, items, arguments, span)
    if len(items) < 2:
        raise error("HK211", f"`{name}` needs a dtype and extents", made.span, hint=SHAPED[name])
    dtype = c.dtype(items[0])
    shape = c.extents(items[1:], made.span)
    if name == "zeros":
        if arguments:
            raise error("HK211", "`zeros` takes no arguments", arguments.span, hint=SHAPED[name])
        return c.b.constant(c.zero(dtype), TileType(shape, dtype), span)
    if arguments is None:
        raise error("HK211", "`full` needs a value", span, hint=SHAPED[name])
    given = Function("full", SHAPED[name], ("value",), 1, FUNCTIONS["cast"].handler).bind(arguments)
    value = c.operand(given["value"])
    if is_number(value.meaning):
        fit(value.meaning, DTYPES[dtype], value.span)
        return c.b.constant(value.meaning, TileType(shape, dtype), span)
    return c.b.spread(c.element(given["value"], dtype), shape, span)


def _iota(
    c: Expressions, made: syntax.Index, items: list[syntax.Expr], arguments: syntax.Call | None, span: Span
) -> Value:
    shape = c.extents(items, made.span)
    kind = Function("iota", SHAPED["iota"], ("axis",), 0, FUNCTIONS["cast"].handler)
    given = kind.bind(arguments) if arguments else {}
    if len(shape) > 1 and "axis" not in given:
        raise error("HK211", "`iota` of more than one dim needs an axis", span, hint=f"{made.span.text}(axis=0)")
    axis = c.whole_number(given["axis"], "an axis") if "axis" in given else 0
    if not -len(shape) <= axis < len(shape):
        message = f"a tile of rank {len(shape)} has no axis {axis}"
        raise error("HK206", message, given["axis"].span, hint=axes(len(shape)))
    return c.b.tile_op("iota", [], span, {}, TileType(shape, "i32"), axis=axis % len(shape))[0]


def _random(name: str, dtype: str, doc: str) -> None:
    @function(f"{name}(seed, offsets, shape)", doc, f"{name}(seed, [offset, …], [extent, …])")
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        operands = [_seed(c, given["seed"]), *c.offsets(given["offsets"])]
        shape = c.shape(given["shape"])
        places = {"offsets": c.place(given["offsets"]), "shape": c.place(given["shape"])}
        return c.b.tile_op("random", operands, span, places, TileType(shape, dtype))[0]


_PHILOX = "They depend on the seed (64 bits) and an element's place alone (Philox 4x32-10); offsets may have more dims."
_random("random", "f32", f"Uniform numbers from 0 to below 1. {_PHILOX}")
_random("random_bits", "u32", f"Words of 32 random bits. {_PHILOX}")


def _seed(c: Expressions, expr: syntax.Expr) -> Value:
    """A whole number of any kind as a scalar of i64."""
    operand = c.operand(expr)
    meaning = operand.meaning
    if isinstance(meaning, int) and not isinstance(meaning, bool):
        return c.b.constant(meaning, ScalarType("i64"), expr.span)
    if not is_whole(meaning):
        hint = "cast(…, i64) makes a whole number"
        raise error("HK201", f"a seed is a whole number, not {describe(meaning)}", expr.span, hint=hint)
    return cast_scalar(c, operand, DTYPES["i64"], expr.span)
