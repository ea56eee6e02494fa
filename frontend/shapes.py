"""Functions that rearrange tiles: reshape, broadcast, transpose, concatenate, cut out, take the one element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hkc.dialects.types import IndexType, TileType, extents
from hkc.frontend import arithmetic, syntax
from hkc.frontend.folds import axis_of
from hkc.frontend.functions import Given, function
from hkc.frontend.program import Value
from hkc.frontend.scope import Meaning, Operand, element_dtype, global_type, tile_type
from hkc.support.errors import Span, error

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions


@function("reshape(x, shape)", "The same elements in row-major order under other extents.", "reshape(x, [extent, …])")
def _reshape(c: Expressions, given: Given, span: Span) -> Meaning:
    x = c.tile(given["x"])
    return c.b.tile_op("reshape", [x.value], span, {"x": x}, _like(x, c.shape(given["shape"])))[0]


@function("broadcast(x, shape)", "A tile or scalar repeated to this shape, as NumPy does.", "broadcast(x, [extent, …])")
def _broadcast(c: Expressions, given: Given, span: Span) -> Meaning:
    x, shape = c.operand(given["x"]), c.shape(given["shape"])
    tile = tile_type(x.meaning)
    if tile is not None and arithmetic.broadcast(tile.shape, shape) != shape:
        raise error(
            "HK202",
            f"{extents(tile.shape)} doesn't broadcast to {extents(shape)}",
            x.span,
            notes=x.origin(),
            hint="from the right, extents are equal or 1",
        )
    if element_dtype(x.meaning) is None or global_type(x.meaning):
        x = c.tile(given["x"])
    return c.b.spread(x.value, shape, span)


@function(
    "transpose(x, axes=reversed)",
    "The dims in another order: dim i of the result is dim `axes[i]` of `x`. `x.T` swaps the two dims of rank 2.",
    "transpose(x, [axis, …])",
)
def _transpose(c: Expressions, given: Given, span: Span) -> Meaning:
    x = c.tile(given["x"])
    tile = tile_type(x.meaning)
    assert tile is not None
    axes = tuple(reversed(range(len(tile.shape))))
    if "axes" in given:
        axes = tuple(axis_of(c, a, x) for a in c.items(given["axes"], "axes"))
    return c.b.tile_op("transpose", [x.value], span, {"x": Operand(0, given.get("axes", x.expr))}, permutation=axes)[0]


@function("concat(a, b, axis)", "Two tiles one after the other along an axis.")
def _concat(c: Expressions, given: Given, span: Span) -> Meaning:
    a, b = c.tile(given["a"]), c.tile(given["b"])
    axis = axis_of(c, given["axis"], a)
    return c.b.tile_op("concat", [a.value, b.value], span, {"x": a, "y": b}, axis=axis)[0]


@function("item(x)", "The one element of a tile, as a scalar that conditions and bounds of loops may depend on.")
def _item(c: Expressions, given: Given, span: Span) -> Meaning:
    x = c.tile(given["x"])
    return c.b.tile_op("item", [x.value], span, {"x": x})[0]


def cut(c: Expressions, x: Operand, expr: syntax.Index) -> Value:
    """`tile[0:32, :, 3, None]`: parts, whole dims, single places (which drop the dim), new dims of extent 1."""
    tile = tile_type(x.meaning)
    assert tile is not None
    wanted = [i for i in expr.items if not _is_new(i)]
    if len(wanted) > len(tile.shape):
        hint = f"at most {len(tile.shape)}, one per dim"
        raise error("HK206", f"{len(wanted)} subscripts for {tile}", expr.span, notes=x.origin(), hint=hint)
    offsets, shape = [], []
    for axis, extent in enumerate(tile.shape):
        start, stop = _ends(c, wanted[axis], extent) if axis < len(wanted) else (0, extent)
        offsets.append(start)
        shape.append(c.extent_of(stop - start, wanted[axis].span) if axis < len(wanted) else extent)
    value = x.value
    if tuple(shape) != tile.shape:
        kind = TileType(tuple(shape), tile.dtype)
        value = c.b.tile_op("slice", [value], expr.span, {"x": x}, kind, offsets=tuple(offsets))[0]
    final, rest = [], list(shape)
    for item in expr.items:
        if _is_new(item):
            final.append(1)
        elif isinstance(item, syntax.Cut):
            final.append(rest.pop(0))
        else:
            rest.pop(0)
    final += rest
    if not final:
        return c.b.tile_op("item", [value], expr.span, {"x": x})[0]
    return value if tuple(final) == tuple(shape) else c.b.reshape(value, tuple(final), expr.span)


def _is_new(item: syntax.Expr | syntax.Cut) -> bool:
    return isinstance(item, syntax.Name) and item.name == "None"


def _ends(c: Expressions, item: syntax.Expr | syntax.Cut, extent: int) -> tuple[int, int]:
    """Start and stop along one dim; negative ones count from the end."""
    parts = (item.start, item.stop) if isinstance(item, syntax.Cut) else (item, None)
    given = [c.whole_number(p, "a subscript of a tile") if p is not None else None for p in parts]
    start, stop = (n + extent if n is not None and n < 0 else n for n in given)
    start = 0 if start is None else start
    if not isinstance(item, syntax.Cut):
        stop = start + 1
    stop = extent if stop is None else stop
    if not 0 <= start < stop <= extent:
        hint = f"a slice lies within 0:{extent} and holds an element"
        raise error("HK206", f"{start} to {stop} is no part of the {extent} elements of this dim", item.span, hint=hint)
    return start, stop


def shape_of(c: Expressions, x: Operand, span: Span) -> Meaning | None:
    """`x.shape` of a tensor or tile; None for anything else."""
    tile, tensor = tile_type(x.meaning), global_type(x.meaning)
    if tile is not None:
        return tile.shape
    if tensor is None:
        return None
    return tuple(_dim(c, x.value, axis, dim, span) for axis, dim in enumerate(tensor.dims))


def _dim(c: Expressions, tensor: Value, axis: int, dim: str | int | None, span: Span) -> Meaning:
    if isinstance(dim, int):
        return dim
    position = c.b.constant(axis, IndexType(), span)
    extent = c.b.op("memref.dim", [tensor, position], IndexType(), span)
    extent.extent = dim
    return extent


def _like(x: Operand, shape: tuple[int, ...]) -> TileType:
    tile = tile_type(x.meaning)
    assert tile is not None
    return TileType(shape, tile.dtype)
