"""What a kernel says while it runs: `assert` and `print`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hkc.dialects.types import ScalarType, TileType
from hkc.frontend import syntax
from hkc.frontend.functions import Given, function
from hkc.frontend.program import Value
from hkc.frontend.scope import Operand, describe, element_dtype, global_type, tile_type
from hkc.support.dtypes import DType
from hkc.support.errors import Span, error

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions


@function(
    "print(*values)",
    "Writes values and texts with blanks between; shown by workgroups once all is done.",
)
def _print(c: Expressions, given: Given, span: Span) -> None:
    values = given["values"]
    assert isinstance(values, syntax.Sequence)
    parts: list[tuple[str, list[Value]]] = []
    said: list[str] = []
    for item in values.items:
        if isinstance(item, syntax.Text):
            said.append(item.text)
        else:
            parts.append((" ".join(said), [_printed(c, item)]))
            said = []
    if said or not parts:
        parts.append((" ".join(said), []))
    for number, (prefix, value) in enumerate(parts, 1):
        unsigned = any(d is not None and d.kind == "uint" for d in map(element_dtype, value))
        c.b.tile_op("print", value, span, {}, prefix=prefix, more=number < len(parts), unsigned=unsigned)


def _printed(c: Expressions, item: syntax.Expr) -> Value:
    operand = c.operand(item)
    meaning = operand.meaning
    if isinstance(meaning, (DType, tuple)) or global_type(meaning):
        hint = "load a tile of a tensor; of several values, print each"
        raise error("HK201", f"`print` takes tiles and numbers, not {describe(meaning)}", item.span, hint=hint)
    if isinstance(meaning, Value):
        return meaning
    dtype = "bool" if isinstance(meaning, bool) else "i64" if isinstance(meaning, int) else "f64"
    return c.b.constant(meaning, ScalarType(dtype), item.span)


def claim(c: Expressions, statement: syntax.Assert) -> None:
    """`assert condition, "message"`: of a bool, or of all elements of a tile."""
    operand = c.operand(statement.condition)
    meaning = operand.meaning
    if isinstance(meaning, bool):
        if not meaning:
            hint = "choose constants for which it holds"
            raise error("HK218", f"this assertion is known to fail: {statement.message}", statement.span, hint=hint)
        return
    tile = tile_type(meaning)
    if isinstance(meaning, Value) and meaning.type == ScalarType("bool"):
        meaning = c.b.op("tensor.splat", [meaning], TileType((1,), "bool"), statement.span)
    elif tile is None or tile.dtype != "bool":
        raise error("HK204", f"`assert` takes bools, not {describe(meaning)}", operand.span, hint="compare something")
    assert isinstance(meaning, Value)
    places = {"condition": Operand(0, statement.condition)}
    c.b.tile_op("assert", [meaning], statement.span, places, message=statement.message)
