"""Functions along an axis of a tile: reductions, scans, and both with a function of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hkc.dialects.types import ScalarType, TileType
from hkc.frontend import arithmetic, carriers, syntax
from hkc.frontend.functions import Given, axes, function
from hkc.frontend.program import Value
from hkc.frontend.scope import Meaning, Operand, tile_type
from hkc.support.dtypes import DTYPES
from hkc.support.errors import Span, error

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions


def _reduction(kind: str, doc: str) -> None:
    @function(f"{kind}(x, axis=all, keepdims=False)", doc)
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        return _reduce(c, kind, given, span)


def _extreme(kind: str, what: str) -> None:
    spelling = f"{kind}(a, b) or {kind}(x, axis=…, keepdims=False)"
    doc = f"The {what} along an axis (all of the tile without one), or the {what} of two values. NaN wins."

    @function(f"{kind}(x, b=x, axis=all, keepdims=False)", doc, spelling)
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        if "b" not in given:
            return _reduce(c, kind, given, span)
        if "axis" in given or "keepdims" in given:
            raise error("HK211", f"`{kind}` of two values has no axis", span, hint=spelling)
        return arithmetic.binary(c.b, kind, c.operand(given["x"]), c.operand(given["b"]), span)


for _kind, _doc in (
    ("sum", "The sum along an axis; without one, of the whole tile, as a scalar."),
    ("prod", "The product along an axis; without one, of the whole tile, as a scalar."),
    ("any", "Whether one of the bools along an axis holds; without an axis, one of the tile."),
    ("all", "Whether all bools along an axis hold; without an axis, all of the tile."),
):
    _reduction(_kind, _doc)
for _kind, _doc in (("max", "maximum"), ("min", "minimum")):
    _extreme(_kind, _doc)


def _reduce(c: Expressions, kind: str, given: Given, span: Span) -> Meaning:
    """A reduction along one axis, or along all of them to a scalar."""
    x = c.tile(given["x"])
    tile = tile_type(x.meaning)
    assert tile is not None
    axes = [axis_of(c, given["axis"], x)] if "axis" in given else list(range(len(tile.shape)))
    value = x.value
    for axis in axes:
        value = c.b.tile_op("reduce", [value], span, {"x": x}, axis=axis, kind=kind, unsigned=_is_unsigned(tile))[0]
    return _kept(c, given, value, axes, span)


def _arg_reduction(kind: str, what: str) -> None:
    doc = f"Where along an axis the {what} is (i32), the first place of equals; NaN counts as the {what}."

    @function(f"arg{kind}(x, axis, keepdims=False)", doc)
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        x = c.tile(given["x"])
        tile, axis = tile_type(x.meaning), axis_of(c, given["axis"], x)
        assert tile is not None
        places = {"x": x}
        found = c.b.tile_op("arg_reduce", [x.value], span, places, axis=axis, kind=kind, unsigned=_is_unsigned(tile))
        return _kept(c, given, found[0], [axis], span)


for _kind, _doc in (("max", "maximum"), ("min", "minimum")):
    _arg_reduction(_kind, _doc)


def _kept(c: Expressions, given: Given, value: Value, axes: list[int], span: Span) -> Value:
    """A folded tile with its unit dims, or without them: a scalar where none is left."""
    if "keepdims" in given and c.truth(given["keepdims"]):
        return value
    assert isinstance(value.type, TileType)
    left = tuple(n for i, n in enumerate(value.type.shape) if i not in axes)
    return c.b.reshape(value, left, span) if left else c.b.tile_op("item", [value], span, {})[0]


def _scan(kind: str, what: str) -> None:
    doc = f"Element i is the {what} of elements 0 to i along an axis; with `reverse`, of elements i to the last."

    @function(f"cum{kind}(x, axis, reverse=False)", doc)
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        x = c.tile(given["x"])
        tile = tile_type(x.meaning)
        assert tile is not None
        attributes: dict[str, Any] = {
            "axis": axis_of(c, given["axis"], x),
            "kind": kind,
            "unsigned": _is_unsigned(tile),
        }
        return c.b.tile_op("scan", [x.value], span, {"x": x}, reverse=_reverse(c, given), **attributes)[0]


for _kind, _doc in (("sum", "sum"), ("prod", "product"), ("max", "maximum"), ("min", "minimum")):
    _scan(_kind, _doc)


@function(
    "scan(combine, *tiles, axis=0, reverse=False)",
    "A scan of one or several tiles with an associative function of the file, `def combine(a, b): return …`; of n "
    "tiles together it takes n values of the left part, then n of the right, and returns n.",
    "scan(combine, tile, …, axis=…, reverse=False)",
)
def _scan_by(c: Expressions, given: Given, span: Span) -> Meaning:
    return _combined(c, "scan_by", given, span, reverse=_reverse(c, given))


@function(
    "reduce(combine, *tiles, axis=0, keepdims=False)",
    "A reduction with an associative function of the file, as in `scan`.",
    "reduce(combine, tile, …, axis=…, keepdims=False)",
)
def _reduce_by(c: Expressions, given: Given, span: Span) -> Meaning:
    return _combined(c, "reduce_by", given, span)


def _combined(c: Expressions, name: str, given: Given, span: Span, **attributes: Any) -> Meaning:
    tiles = given["tiles"]
    assert isinstance(tiles, syntax.Sequence)
    operands = [c.tile(t) for t in tiles.items]
    if not operands or "axis" not in given:
        missing = "tile" if not operands else "axis"
        raise error(
            "HK211", f"`{name.removesuffix('_by')}` needs `{missing}`", span, hint="scan(combine, tile, axis=1)"
        )
    axis = axis_of(c, given["axis"], operands[0])
    dtypes = [_type(o).dtype for o in operands]
    wide = carriers.carrier(dtypes)
    parts = tuple(Value(ScalarType(d), o.span) for d, o in zip(dtypes, operands, strict=True))
    symbol = c.inliner.combine(c, given["combine"], parts, wide) if c.inliner else ""
    values = [carriers.pack(c, o.value, wide) if wide else o.value for o in operands]
    places = {"x": operands[0]}
    made: tuple[Value, ...] = c.b.tile_op(name, values, span, places, axis=axis, combine=symbol, **attributes)
    if wide:
        made = tuple(carriers.unpack(c, v, d) for v, d in zip(made, dtypes, strict=True))
    if name == "reduce_by":
        made = tuple(_kept(c, given, v, [axis], span) for v in made)
    return made[0] if len(made) == 1 else made


def axis_of(c: Expressions, expr: syntax.Expr, x: Operand) -> int:
    """An axis of a tile; a negative one counts from the end."""
    rank = len(_type(x).shape)
    axis = c.whole_number(expr, "an axis")
    if not -rank <= axis < rank:
        raise error("HK206", f"a tile of rank {rank} has no axis {axis}", expr.span, notes=x.origin(), hint=axes(rank))
    return axis % rank


def _reverse(c: Expressions, given: Given) -> bool:
    return c.truth(given["reverse"]) if "reverse" in given else False


def _type(x: Operand) -> TileType:
    tile = tile_type(x.meaning)
    assert tile is not None
    return tile


def _is_unsigned(tile: TileType) -> bool:
    return DTYPES[tile.dtype].kind == "uint"
