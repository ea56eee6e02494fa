"""The functions of the language: one entry each, with the spelling that messages and docs show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hkc.dialects.types import IndexType, ScalarType, TileType
from hkc.frontend import arithmetic, syntax
from hkc.frontend.builder import fit
from hkc.frontend.program import Value
from hkc.frontend.scope import (
    Meaning,
    Operand,
    describe,
    element_dtype,
    global_type,
    is_index,
    is_number,
    scalar_dtype,
    suggestion,
    tile_type,
)
from hkc.support.dtypes import DTYPES, DType
from hkc.support.errors import Span, error

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions

Given = Mapping[str, syntax.Expr]
Handler = Callable[["Expressions", Given, Span], Meaning | None]


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its spelling, its parameters (those after `required` may be left out), and what a call means."""

    name: str
    spelling: str
    parameters: tuple[str, ...]
    required: int
    handler: Handler

    def bind(self, call: syntax.Call) -> Given:
        """The arguments by parameter. Raises `HkcError` for missing, unknown or repeated ones."""
        name = self.name
        if len(call.arguments) > len(self.parameters):
            raise error(
                "HK211",
                f"`{name}` takes {len(self.parameters)} arguments, not {len(call.arguments)}",
                call.arguments[len(self.parameters)].span,
                hint=self.spelling,
            )
        given = dict(zip(self.parameters, call.arguments, strict=False))
        for keyword in call.keywords:
            word = keyword.name.name
            if word not in self.parameters:
                raise error(
                    "HK211",
                    f"`{name}` has no argument `{word}`",
                    keyword.name.span,
                    hint=suggestion(word, self.parameters) or self.spelling,
                )
            if word in given:
                raise error("HK211", f"`{name}` gets `{word}` twice", given[word].span, keyword.span)
            given[word] = keyword.value
        missing = [p for p in self.parameters[: self.required] if p not in given]
        if missing:
            raise error("HK211", f"`{name}` needs `{missing[0]}`", call.span, hint=self.spelling)
        return given


FUNCTIONS: dict[str, Function] = {}


def function(signature: str, spelling: str | None = None) -> Callable[[Handler], Handler]:
    """Registers a handler by a signature such as `sum(x, axis, keepdims=False)`; messages show `spelling`."""
    name, _, rest = signature.partition("(")
    parts = [p.strip() for p in rest.rstrip(")").split(",") if p.strip()]
    parameters = tuple(p.partition("=")[0] for p in parts)

    def register(handler: Handler) -> Handler:
        FUNCTIONS[name] = Function(name, spelling or signature, parameters, sum("=" not in p for p in parts), handler)
        return handler

    return register


@function("load(tensor, offsets, shape, fill=0)", "load(tensor, [offset, …], [extent, …], fill=0)")
def _load(c: Expressions, given: Given, span: Span) -> Meaning:
    tensor = c.tensor(given["tensor"])
    kind = global_type(tensor.meaning)
    assert kind is not None
    dtype = kind.dtype
    offsets = c.offsets(given["offsets"])
    shape = c.shape(given["shape"])
    fill = c.element(given["fill"], dtype) if "fill" in given else c.b.constant(c.zero(dtype), ScalarType(dtype), span)
    places = {"src": tensor, "offsets": Operand(0, given["offsets"]), "shape": Operand(0, given["shape"])}
    return c.b.tile_op("load", [tensor.value, fill, *offsets], span, places, TileType(shape, dtype))[0]


@function("store(tensor, offsets, value)", "store(tensor, [offset, …], value)")
def _store(c: Expressions, given: Given, span: Span) -> None:
    tensor = c.tensor(given["tensor"])
    offsets = c.offsets(given["offsets"])
    value = c.tile(given["value"])
    places = {"value": value, "dst": tensor, "offsets": Operand(0, given["offsets"])}
    c.b.tile_op("store", [value.value, tensor.value, *offsets], span, places)


@function("dot(a, b, acc=0)")
def _dot(c: Expressions, given: Given, span: Span) -> Meaning:
    return dot(c, c.tile(given["a"]), c.tile(given["b"]), c.tile(given["acc"]) if "acc" in given else None, span)


def dot(c: Expressions, a: Operand, b: Operand, acc: Operand | None, span: Span) -> Value:
    """`acc + a @ b`; without `acc` it starts from zeros."""
    places = {"a": a, "b": b}
    left, right = tile_type(a.meaning), tile_type(b.meaning)
    assert left is not None and right is not None
    if acc is not None:
        start = acc.value
        places["acc"] = acc
    else:
        start = c.b.constant(0, TileType((left.shape[0], right.shape[-1]), "f32"), span)
    return c.b.tile_op("dot", [a.value, b.value, start], span, places)[0]


@function("cast(x, dtype)")
def _cast(c: Expressions, given: Given, span: Span) -> Meaning:
    x, dtype = c.operand(given["x"]), c.dtype(given["dtype"])
    meaning = x.meaning
    if is_number(meaning):
        return c.b.constant(meaning, ScalarType(dtype), span)
    tile = tile_type(meaning)
    if tile is None and scalar_dtype(meaning) is None and not is_index(meaning):
        raise error("HK201", f"`cast` converts tiles and numbers, not {describe(meaning)}", x.span)
    source = element_dtype(meaning)
    if source == DTYPES[dtype]:
        return meaning
    if dtype == "bool":
        raise error("HK204", f"`cast` makes no bool of {describe(meaning)}", x.span, hint="compare it with 0")
    if tile is not None:
        return c.b.tile_op("cast", [x.value], span, {"x": x}, TileType(tile.shape, dtype))[0]
    return _cast_scalar(c, x.value, DTYPES[dtype], span)


def _cast_scalar(c: Expressions, value: Value, target: DType, span: Span) -> Value:
    if isinstance(value.type, IndexType):
        value = c.b.op("arith.index_cast", [value], ScalarType("i32" if target.name == "i32" else "i64"), span)
    assert isinstance(value.type, ScalarType)
    source = DTYPES[value.type.dtype]
    if source == target:
        return value
    if source.is_float and target.is_float:
        if source.bits == target.bits:
            value, source = c.b.op("arith.extf", [value], ScalarType("f32"), span), DTYPES["f32"]
        name = "extf" if target.bits > source.bits else "truncf"
    elif source.is_float:
        name = "fptosi"
    elif target.is_float:
        name = "uitofp" if source.kind == "bool" else "sitofp"
    else:
        name = "trunci" if target.bits < source.bits else "extui" if source.kind == "bool" else "extsi"
    return c.b.op(f"arith.{name}", [value], ScalarType(target.name), span)


@function("where(condition, a, b)")
def _where(c: Expressions, given: Given, span: Span) -> Meaning:
    return arithmetic.select(c.b, c.operand(given["condition"]), c.operand(given["a"]), c.operand(given["b"]), span)


def _pairwise(name: str, op: str) -> None:
    @function(f"{name}(a, b)")
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        return arithmetic.binary(c.b, op, c.operand(given["a"]), c.operand(given["b"]), span)


for _name, _op in (("cdiv", "cdiv"), ("maximum", "max"), ("minimum", "min")):
    _pairwise(_name, _op)


def _reduction(kind: str) -> None:
    @function(f"{kind}(x, axis, keepdims=False)")
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        return reduce(c, kind, given, span)


def _extreme(kind: str) -> None:
    """`max(a, b)` is the greater of two; `max(x, axis=…)` reduces a tile."""
    spelling = f"{kind}(a, b) or {kind}(x, axis=…, keepdims=False)"

    @function(f"{kind}(x, b=x, axis=0, keepdims=False)", spelling)
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        if "b" not in given:
            return reduce(c, kind, given, span)
        if "axis" in given or "keepdims" in given:
            raise error("HK211", f"`{kind}` of two values has no axis", span, hint=spelling)
        return arithmetic.binary(c.b, kind, c.operand(given["x"]), c.operand(given["b"]), span)


for _kind in ("sum", "prod"):
    _reduction(_kind)
for _kind in ("max", "min"):
    _extreme(_kind)


def reduce(c: Expressions, kind: str, given: Given, span: Span) -> Value:
    """A reduction along one axis; a negative axis counts from the end."""
    x = c.tile(given["x"])
    tile = tile_type(x.meaning)
    assert tile is not None
    if "axis" not in given:
        raise error("HK211", f"`{kind}` of a tile needs an axis", span, hint=f"{kind}(x, axis={len(tile.shape) - 1})")
    axis = c.whole_number(given["axis"], "an axis")
    if not -len(tile.shape) <= axis < len(tile.shape):
        raise error(
            "HK206", f"a tile of rank {len(tile.shape)} has no axis {axis}", given["axis"].span, notes=x.origin()
        )
    axis %= len(tile.shape)
    keep = c.truth(given["keepdims"]) if "keepdims" in given else False
    if not keep and len(tile.shape) == 1:
        raise error(
            "HK206",
            f"`{kind}` would leave a tile without dims",
            span,
            hint="keepdims=True keeps the dim, with extent 1",
        )
    folded = c.b.tile_op("reduce", [x.value], span, {"x": x}, axis=axis, kind=kind)[0]
    return folded if keep else c.b.reshape(folded, tile.shape[:axis] + tile.shape[axis + 1 :], span)


def _element_wise(name: str) -> None:
    @function(f"{name}(x)")
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        return arithmetic.function(c.b, name, c.operand(given["x"]), span)


for _name in (*arithmetic.FLOAT_FUNCTIONS, "abs"):
    _element_wise(_name)


# Tiles from nothing: `zeros[f32, 64, 64]`, `full[f32, 64, 64](value)`, `iota[64]`, `iota[64, 64](axis=1)`.

SHAPED = {
    "zeros": "zeros[dtype, extent, …]",
    "full": "full[dtype, extent, …](value)",
    "iota": "iota[extent, …](axis=0)",
}


def shaped(c: Expressions, made: syntax.Index, arguments: syntax.Call | None) -> Meaning:
    """A tile made by a name of `SHAPED`, with the call's arguments where it is called."""
    name, span = made.base.name, arguments.span if arguments else made.span
    if name == "iota":
        return _iota(c, made, arguments, span)
    if len(made.items) < 2:
        raise error("HK211", f"`{name}` needs a dtype and extents", made.span, hint=SHAPED[name])
    dtype = c.dtype(made.items[0])
    shape = c.extents(made.items[1:], made.span)
    if name == "zeros":
        if arguments:
            raise error("HK211", "`zeros` takes no arguments", arguments.span, hint=SHAPED[name])
        return c.b.constant(c.zero(dtype), TileType(shape, dtype), span)
    if arguments is None:
        raise error("HK211", "`full` needs a value", span, hint=SHAPED[name])
    given = Function("full", SHAPED[name], ("value",), 1, _cast).bind(arguments)
    value = c.operand(given["value"])
    if is_number(value.meaning):
        fit(value.meaning, DTYPES[dtype], value.span)
        return c.b.constant(value.meaning, TileType(shape, dtype), span)
    return c.b.spread(c.element(given["value"], dtype), shape, span)


def _iota(c: Expressions, made: syntax.Index, arguments: syntax.Call | None, span: Span) -> Value:
    shape = c.extents(made.items, made.span)
    given = Function("iota", SHAPED["iota"], ("axis",), 0, _cast).bind(arguments) if arguments else {}
    if len(shape) > 1 and "axis" not in given:
        raise error("HK211", "`iota` of more than one dim needs an axis", span, hint=f"{c.text(made)}(axis=0)")
    axis = c.whole_number(given["axis"], "an axis") if "axis" in given else 0
    if not -len(shape) <= axis < len(shape):
        raise error("HK206", f"a tile of rank {len(shape)} has no axis {axis}", given["axis"].span)
    return c.b.tile_op("iota", [], span, {}, TileType(shape, "i32"), axis=axis % len(shape))[0]
