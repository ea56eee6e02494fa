"""Functions that read and write tensors: whole windows, masked, by an index tile, atomically."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hkc.dialects.types import ScalarType, TileType, extents
from hkc.frontend import arithmetic, syntax
from hkc.frontend.functions import Given, function
from hkc.frontend.program import Value
from hkc.frontend.scope import Meaning, Operand, element_dtype, global_type, tile_type
from hkc.support.dtypes import DTYPES
from hkc.support.errors import Span, error

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions


@function(
    "load(tensor, offsets, shape, fill=0, mask=True)",
    "A tile of the tensor from `offsets` on. Elements outside the tensor, and those whose mask is false, are `fill`.",
    "load(tensor, [offset, …], [extent, …], fill=0, mask=tile)",
)
def _load(c: Expressions, given: Given, span: Span) -> Meaning:
    tensor = c.tensor(given["tensor"])
    dtype = _dtype(tensor)
    offsets = c.offsets(given["offsets"])
    shape = c.shape(given["shape"])
    operands = [tensor.value, _fill(c, given, dtype, span)]
    if "mask" in given:
        operands.append(mask(c, given["mask"], shape))
    name = "load_masked" if "mask" in given else "load"
    return c.b.tile_op(name, [*operands, *offsets], span, _places(c, given), TileType(shape, dtype))[0]


@function(
    "store(tensor, offsets, value, mask=True)",
    "Writes a tile; elements that fall outside the tensor, and those whose mask is false, are dropped.",
    "store(tensor, [offset, …], value, mask=tile)",
)
def _store(c: Expressions, given: Given, span: Span) -> None:
    operands, offsets = _written(c, given)
    name = "store_masked" if len(operands) == 3 else "store"
    c.b.tile_op(name, [*operands, *offsets], span, _places(c, given))


def _written(c: Expressions, given: Given) -> tuple[list[Value], list[Value]]:
    """What a function writes (value, tensor, and the mask where there is one), and where."""
    tensor = c.tensor(given["tensor"])
    offsets = c.offsets(given["offsets"])
    value = c.tile(given["value"])
    tile = tile_type(value.meaning)
    assert tile is not None
    masks = [mask(c, given["mask"], tile.shape)] if "mask" in given else []
    return [value.value, tensor.value, *masks], offsets


@function(
    "gather(tensor, index, offsets=[], axis=0, fill=0, mask=True, shape=index)",
    "A tile whose coordinate along `axis` comes from an index tile (i32 or i64), along the other dims from `offsets`. "
    "`index` broadcasts to `shape`. Negative indices, like all places outside, give `fill`.",
    "gather(tensor, index, [offset, …], axis=0, fill=0, mask=tile, shape=[extent, …])",
)
def _gather(c: Expressions, given: Given, span: Span) -> Meaning:
    tensor = c.tensor(given["tensor"])
    shape = c.shape(given["shape"]) if "shape" in given else None
    index = _index(c, given, shape)
    operands = [tensor.value, _fill(c, given, _dtype(tensor), span), index, *_others(c, given)]
    assert isinstance(index.type, TileType)
    result = TileType(index.type.shape, _dtype(tensor))
    return c.b.tile_op("gather", operands, span, _places(c, given), result, axis=_axis(c, given, tensor))[0]


def _scatter(name: str, kind: str, doc: str) -> None:
    spelling = f"{name}(tensor, index, [offset, …], value, axis=0, mask=tile)"

    @function(f"{name}(tensor, index, offsets, value, axis=0, mask=True)", doc, spelling)
    def _(c: Expressions, given: Given, span: Span) -> None:
        tensor, value = c.tensor(given["tensor"]), c.tile(given["value"])
        tile = tile_type(value.meaning)
        assert tile is not None
        operands = [value.value, tensor.value, _index(c, given, tile.shape), *_others(c, given)]
        attributes: dict[str, Any] = {"axis": _axis(c, given, tensor), "unsigned": _is_unsigned(value)}
        if kind != "store":
            attributes["kind"] = kind
        c.b.tile_op("scatter", operands, span, _places(c, given), **attributes)


_scatter(
    "scatter",
    "store",
    "Writes to where `gather` would read from; which of several elements for one place stays is open.",
)
for _kind, _what in (("add", "sum"), ("max", "maximum"), ("min", "minimum")):
    _scatter(
        f"scatter_{_kind}", _kind, f"Like `scatter`, but a place becomes its {_what} with the element, atomically."
    )


def _atomic(kind: str, what: str) -> None:
    @function(
        f"atomic_{kind}(tensor, offsets, value, mask=True)",
        f"Every place becomes its {what} with the element, atomically. The order of updates is open.",
        f"atomic_{kind}(tensor, [offset, …], value, mask=tile)",
    )
    def _(c: Expressions, given: Given, span: Span) -> None:
        operands, offsets = _written(c, given)
        name = "atomic_masked" if len(operands) == 3 else "atomic"
        unsigned = _is_unsigned(Operand(operands[0], given["value"]))
        c.b.tile_op(name, [*operands, *offsets], span, _places(c, given), kind=kind, unsigned=unsigned)

    @function(
        f"fetch_{kind}(tensor, offsets, value)",
        f"Like `atomic_{kind}`, and gives what each place held right before (0 outside the tensor).",
        f"old = fetch_{kind}(tensor, [offset, …], value)",
    )
    def _(c: Expressions, given: Given, span: Span) -> Meaning:
        operands, offsets = _written(c, given)
        unsigned = _is_unsigned(Operand(operands[0], given["value"]))
        places = _places(c, given)
        return c.b.tile_op("atomic_fetch", [*operands, *offsets], span, places, kind=kind, unsigned=unsigned)[0]


for _kind, _what in (("add", "sum"), ("max", "maximum"), ("min", "minimum")):
    _atomic(_kind, _what)


@function(
    "compare_and_swap(tensor, offsets, expected, value)",
    "Where a place holds the element of `expected`, it becomes that of `value`, atomically. Gives what was there.",
    "old = compare_and_swap(tensor, [offset, …], expected, value)",
)
def _compare_and_swap(c: Expressions, given: Given, span: Span) -> Meaning:
    operands, offsets = _written(c, given)
    expected = c.tile(given["expected"])
    places = _places(c, given) | {"expected": expected}
    return c.b.tile_op("compare_and_swap", [expected.value, *operands, *offsets], span, places)[0]


def mask(c: Expressions, expr: syntax.Expr, shape: tuple[int, ...]) -> Value:
    """A tile of bools, broadcast to the shape of what it masks."""
    operand = c.operand(expr)
    tile = tile_type(operand.meaning)
    if isinstance(operand.meaning, bool):
        return c.b.constant(operand.meaning, TileType(shape, "bool"), expr.span)
    if element_dtype(operand.meaning) != DTYPES["bool"]:
        raise error(
            "HK204", "a mask is a tile of bools", expr.span, notes=operand.origin("type"), hint="compare something"
        )
    if tile is not None and arithmetic.broadcast(tile.shape, shape) != shape:
        message = f"a mask of {tile} doesn't broadcast to the tile that it masks"
        raise error("HK202", message, expr.span, hint=f"that has {extents(shape)}; mask[:, None] masks rows")
    return c.b.spread(operand.value, shape, expr.span)


def _index(c: Expressions, given: Given, shape: tuple[int, ...] | None) -> Value:
    """The index tile; where the mask is false it is -1, which is outside of every tensor."""
    index = c.tile(given["index"])
    tile = tile_type(index.meaning)
    assert tile is not None
    shape = tile.shape if shape is None else shape
    if arithmetic.broadcast(tile.shape, shape) != shape:
        hint = f"it needs the extents {', '.join(map(str, shape))}, or 1 in place of any"
        raise error("HK202", f"an index of {tile} doesn't broadcast to the tile that it is for", index.span, hint=hint)
    value = c.b.spread(index.value, shape, index.span)
    if "mask" not in given or tile.dtype not in ("i32", "i64"):
        return value
    outside = c.b.constant(-1, value.type, index.span)
    return c.b.op("arith.select", [mask(c, given["mask"], shape), value, outside], value.type, index.span)


def _others(c: Expressions, given: Given) -> list[Value]:
    return c.offsets(given["offsets"]) if "offsets" in given else []


def _axis(c: Expressions, given: Given, tensor: Operand) -> int:
    kind = global_type(tensor.meaning)
    assert kind is not None
    axis = c.whole_number(given["axis"], "an axis") if "axis" in given else 0
    return axis + len(kind.dims) if -len(kind.dims) <= axis < 0 else axis


def _dtype(tensor: Operand) -> str:
    kind = global_type(tensor.meaning)
    assert kind is not None
    return kind.dtype


def _fill(c: Expressions, given: Given, dtype: str, span: Span) -> Value:
    return c.element(given["fill"], dtype) if "fill" in given else c.b.constant(c.zero(dtype), ScalarType(dtype), span)


def _is_unsigned(operand: Operand) -> bool:
    dtype = element_dtype(operand.meaning)
    return dtype is not None and dtype.kind == "uint"


def _places(c: Expressions, given: Given) -> dict[str, Operand]:
    """The expressions behind the operands of an op, by the op's names; the first two can show where they come from."""
    places = {name: Operand(0, expr) for name, expr in given.items()}
    for name, field in (("tensor", "src"), ("tensor", "dst"), ("value", "value"), ("index", "index")):
        if name in given and isinstance(given[name], syntax.Name):
            places[field] = c.operand(given[name])
        elif name in given:
            places[field] = Operand(0, given[name])
    return places
