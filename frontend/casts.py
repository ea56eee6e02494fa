"""Functions that change the dtype of a value: `cast` and `bitcast`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hkc.dialects.types import IndexType, ScalarType, TileType
from hkc.frontend import arithmetic
from hkc.frontend.functions import Given, function
from hkc.frontend.program import Value
from hkc.frontend.scope import Meaning, Operand, describe, element_dtype, is_index, is_number, scalar_dtype, tile_type
from hkc.support.dtypes import DTYPES, DType
from hkc.support.errors import Span, error

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions


@function(
    "cast(x, dtype, saturate=False, rounding=nearest_even)",
    "The same numbers in another dtype. To floats it rounds to nearest even, to integers towards zero; `rounding` is "
    "`nearest_even` or `toward_zero`. With `saturate` what is out of range becomes the nearest end of the range.",
    "cast(x, dtype, saturate=False, rounding=nearest_even|toward_zero)",
)
def _cast(c: Expressions, given: Given, span: Span) -> Meaning:
    x, dtype = c.operand(given["x"]), c.dtype(given["dtype"])
    options = _options(c, given)
    meaning = x.meaning
    if is_number(meaning):
        return c.b.constant(_adapted(meaning, DTYPES[dtype]), ScalarType(dtype), span)
    tile = tile_type(meaning)
    if tile is None and scalar_dtype(meaning) is None and not is_index(meaning):
        hint = "load a tile of a tensor first"
        raise error("HK201", f"`cast` converts tiles and numbers, not {describe(meaning)}", x.span, hint=hint)
    source = element_dtype(meaning)
    if source == DTYPES[dtype]:
        return meaning
    if tile is not None:
        options["from_unsigned"] = DTYPES[tile.dtype].kind == "uint"
        options["to_unsigned"] = DTYPES[dtype].kind == "uint"
        return c.b.tile_op("cast", [x.value], span, {"x": x}, TileType(tile.shape, dtype), **options)[0]
    if options:
        hint = "make it a tile: full[f32, 1](x)"
        raise error("HK211", "only tiles are cast with `saturate` and `rounding`", x.span, hint=hint)
    return cast_scalar(c, x, DTYPES[dtype], span)


def _options(c: Expressions, given: Given) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if "saturate" in given:
        options["saturate"] = c.truth(given["saturate"])
    if "rounding" in given:
        options["rounding"] = c.word(given["rounding"], ("nearest_even", "toward_zero"))
    return options


def _adapted(number: bool | int | float, dtype: DType) -> bool | int | float:
    """A compile-time bool as a number of another dtype."""
    if isinstance(number, bool) and dtype.kind != "bool":
        return int(number)
    return number


def cast_scalar(c: Expressions, x: Operand, target: DType, span: Span) -> Value:
    """A scalar or index as a scalar of another dtype."""
    value = x.value
    if target.kind == "bool":
        zero = c.b.constant(0, value.type, span)
        made = arithmetic.binary(c.b, "!=", x, Operand(zero, x.expr), span)
        assert isinstance(made, Value)
        return made
    if isinstance(value.type, IndexType):
        value = c.b.op("arith.index_cast", [value], ScalarType("i32" if target.name == "i32" else "i64"), span)
    assert isinstance(value.type, ScalarType)
    source = DTYPES[value.type.dtype]
    if source == target:
        return value
    if source.is_narrow or target.is_narrow:
        # Codes are made and read by the conversions of tiles alone.
        tile = c.b.tile_op("cast", [c.b.spread(value, (1,), span)], span, {"x": x}, TileType((1,), target.name))[0]
        return c.b.tile_op("item", [tile], span, {})[0]
    if source.is_float and target.is_float and source.bits == target.bits:
        value, source = c.b.op("arith.extf", [value], ScalarType("f32"), span), DTYPES["f32"]
    return c.b.op(f"arith.{_conversion(source, target)}", [value], ScalarType(target.name), span)


def _conversion(source: DType, target: DType) -> str:
    """The `arith` op between two dtypes of scalars."""
    if source.is_float and target.is_float:
        return "extf" if target.bits > source.bits else "truncf"
    if source.is_float:
        return "fptoui" if target.kind == "uint" else "fptosi"
    if target.is_float:
        return "sitofp" if source.kind == "int" else "uitofp"
    if target.bits == source.bits:
        return "bitcast"
    return "trunci" if target.bits < source.bits else "extsi" if source.kind == "int" else "extui"


@function("bitcast(x, dtype)", "The same bits read as another dtype of the same width.")
def _bitcast(c: Expressions, given: Given, span: Span) -> Meaning:
    x, name = c.operand(given["x"]), c.dtype(given["dtype"])
    source, target = element_dtype(x.meaning), DTYPES[name]
    tile = tile_type(x.meaning)
    if source is None or not isinstance(x.meaning, Value) or (tile is None and scalar_dtype(x.meaning) is None):
        hint = "give it a dtype first: cast(x, i32)"
        raise error("HK201", f"`bitcast` takes tiles and scalars, not {describe(x.meaning)}", x.span, hint=hint)
    if source.bits != target.bits or source.kind == "bool":
        raise error(
            "HK204",
            f"`bitcast` keeps the width, but {source} has {source.bits} bits and {target} {target.bits}",
            x.span,
            hint=f"cast(…, {target}) converts the numbers",
        )
    kind = TileType(tile.shape, name) if tile else ScalarType(name)
    return c.b.op("arith.bitcast", [x.meaning], kind, span)
