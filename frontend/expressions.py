"""What an expression stands for: walks the syntax, appends ops for what is computed at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from hkc.dialects.types import ScalarType
from hkc.frontend import arithmetic, functions, syntax
from hkc.frontend.builder import Builder
from hkc.frontend.codes import RANK
from hkc.frontend.grid import Grid
from hkc.frontend.program import Value
from hkc.frontend.scope import (
    Meaning,
    Number,
    Operand,
    Scope,
    describe,
    element_dtype,
    global_type,
    is_number,
    scalar_dtype,
    suggestion,
    tile_type,
)
from hkc.support.dtypes import DType
from hkc.support.errors import Span, error


class Expressions:
    """Checks expressions in a scope. Every method raises `HkcError` at the place of a mistake."""

    _known: ClassVar[frozenset[str]] = frozenset({*functions.FUNCTIONS, *functions.SHAPED, "tile_ids", "range"})

    def __init__(self, scope: Scope, builder: Builder, grid: Grid | None = None) -> None:
        self.scope = scope
        self.grid = grid or Grid()
        self.b = builder

    def operand(self, expr: syntax.Expr) -> Operand:
        """An expression that has a single value."""
        meaning = self.meaning(expr)
        if isinstance(meaning, tuple):
            raise error(
                "HK214", f"{len(meaning)} values where one is needed", expr.span, hint="give each a name: a, b = …"
            )
        if meaning is None:
            raise error("HK212", "`store` has no value", expr.span)
        return Operand(meaning, expr)

    def meaning(self, expr: syntax.Expr) -> Meaning | None:
        """What any expression stands for; None for a call without a value."""
        match expr:
            case syntax.Number(value=value):
                return value
            case syntax.Name():
                return self._name(expr)
            case syntax.Unary(op=op, operand=operand):
                return self._unary(op, self.operand(operand), expr.span)
            case syntax.Binary():
                return self._binary(expr)
            case syntax.Attribute():
                return self._attribute(expr)
            case syntax.Index():
                return self._index(expr, None)
            case syntax.Call():
                return self._call(expr)
        raise error(
            "HK201",
            "a list can't stand here",
            expr.span,
            hint="lists give offsets and shapes: load(A, [row, column], [64, 64])",
        )

    def _name(self, name: syntax.Name) -> Meaning:
        return self.scope.look_up(name, self._known)

    def _unary(self, op: str, operand: Operand, span: Span) -> Meaning:
        if op == "-":
            return arithmetic.negative(self.b, operand, span)
        return operand.meaning

    def _binary(self, expr: syntax.Binary) -> Meaning:
        if expr.op == "@":
            raise error("HK201", "`@` is for references; in a kernel write dot(a, b)", expr.span)
        if expr.op == "**":
            raise error("HK201", "`**` is for references; in a kernel multiply, or use exp2", expr.span)
        return arithmetic.binary(self.b, expr.op, self.operand(expr.left), self.operand(expr.right), expr.span)

    def _attribute(self, expr: syntax.Attribute) -> Meaning:
        base, word = self.operand(expr.base), expr.name.name
        tile = tile_type(base.meaning)
        if word == "T":
            if tile is None or len(tile.shape) != 2:
                raise error(
                    "HK206",
                    f"`.T` transposes tiles of rank 2, not {describe(base.meaning)}",
                    base.span,
                    notes=base.origin(),
                )
            return self.b.tile_op("transpose", [base.value], expr.span, {"x": base}, permutation=(1, 0))[0]
        dtype = element_dtype(base.meaning)
        if word == "dtype" and dtype is not None:
            return dtype
        raise error(
            "HK307", f"{describe(base.meaning)} has no `.{word}`", expr.name.span, hint=suggestion(word, ("T", "dtype"))
        )

    def _index(self, expr: syntax.Index, call: syntax.Call | None) -> Meaning:
        if expr.base.name in functions.SHAPED:
            return functions.shaped(self, expr, call)
        if expr.base.name in functions.FUNCTIONS:
            raise error(
                "HK201",
                f"`{expr.base.name}` is called with round brackets",
                expr.span,
                hint=functions.FUNCTIONS[expr.base.name].spelling,
            )
        base = self.operand(expr.base)
        hint = "read a tile of it: load(tensor, [offsets], [shape]); or is a comma missing before `[`?"
        tensor = global_type(base.meaning)
        raise error("HK201", f"{describe(base.meaning)} can't be indexed", expr.span, hint=hint if tensor else None)

    def _call(self, call: syntax.Call) -> Meaning | None:
        if isinstance(call.callee, syntax.Index):
            return self._index(call.callee, call)
        if not isinstance(call.callee, syntax.Name):
            raise error("HK201", "only functions can be called", call.callee.span)
        name = call.callee.name
        if name in functions.FUNCTIONS:
            known = functions.FUNCTIONS[name]
            return known.handler(self, known.bind(call), call.span)
        if name in functions.SHAPED:
            raise error(
                "HK211", f"`{name}` takes its extents in square brackets", call.span, hint=functions.SHAPED[name]
            )
        if name == "range":
            raise error(
                "HK201", "`range` belongs into a for line", call.span, hint="for k in range(start, stop, step):"
            )
        if name == "tile_ids":
            return self.grid.tile_ids(self, call)
        if name in self.scope.names:
            raise error("HK201", f"{describe(self.scope.look_up(call.callee))} can't be called", call.callee.span)
        raise error("HK301", f"unknown function `{name}`", call.callee.span, hint=suggestion(name, self._known))

    # What arguments must be.

    def tensor(self, expr: syntax.Expr) -> Operand:
        """A tensor parameter."""
        operand = self.operand(expr)
        if global_type(operand.meaning) is None:
            raise error(
                "HK201",
                f"a tensor is needed here, not {describe(operand.meaning)}",
                operand.span,
                notes=operand.origin("type"),
            )
        return operand

    def tile(self, expr: syntax.Expr) -> Operand:
        """A tile."""
        operand = self.operand(expr)
        if tile_type(operand.meaning) is None:
            raise error(
                "HK201",
                f"a tile is needed here, not {describe(operand.meaning)}",
                operand.span,
                notes=operand.origin("type"),
                hint="load one: load(tensor, [offsets], [shape])" if global_type(operand.meaning) else None,
            )
        return operand

    def dtype(self, expr: syntax.Expr) -> str:
        """A dtype that tiles can have."""
        operand = self.operand(expr)
        if not isinstance(operand.meaning, DType):
            raise error("HK201", f"a dtype is needed here, not {describe(operand.meaning)}", operand.span)
        if operand.meaning.kind == "uint":
            raise error(
                "HK435",
                f"{operand.meaning} is not in the language yet",
                operand.span,
                hint="the integer dtypes are i8, i16, i32, i64",
            )
        return operand.meaning.name

    def offsets(self, expr: syntax.Expr) -> list[Value]:
        """A list of indices."""
        return [arithmetic.index(self.b, self.operand(item)) for item in self._list(expr, "offsets")]

    def shape(self, expr: syntax.Expr) -> tuple[int, ...]:
        """A list of tile extents."""
        return self.extents(self._list(expr, "extents"), expr.span)

    def extents(self, items: Sequence[syntax.Expr], span: Span) -> tuple[int, ...]:
        """Tile extents: compile-time whole numbers, each a power of two or a multiple of 16."""
        if not 1 <= len(items) <= RANK:
            raise error("HK206", f"a tile has 1 to {RANK} dims, not {len(items)}", span)
        return tuple(self._extent(item) for item in items)

    def _extent(self, expr: syntax.Expr) -> int:
        n = self.whole_number(expr, "the extent of a tile")
        if n > 0 and (n & (n - 1) == 0 or n % 16 == 0):
            return n
        below = max(1 << (n.bit_length() - 1), n // 16 * 16) if n > 0 else None
        above = min(1 << n.bit_length(), -(-n // 16) * 16) if n > 0 else 1
        near = f"{below} or {above}" if below else f"{above}"
        raise error(
            "HK431",
            f"a tile can't have the extent {n}: extents are powers of two or multiples of 16",
            expr.span,
            hint=f"the nearest legal extent is {near}",
        )

    def _list(self, expr: syntax.Expr, what: str) -> tuple[syntax.Expr, ...]:
        if not isinstance(expr, syntax.Sequence):
            raise error("HK201", f"{what} are a list", expr.span, hint=f"write [{self.text(expr)}]")
        return expr.items

    def whole_number(self, expr: syntax.Expr, what: str) -> int:
        """A compile-time whole number."""
        operand = self.operand(expr)
        if isinstance(operand.meaning, Value):
            raise error(
                "HK208",
                f"{what} must be known at compile time, but this is {describe(operand.meaning)}",
                operand.span,
                hint="use a number, or a name made by const or tune",
            )
        if not isinstance(operand.meaning, int) or isinstance(operand.meaning, bool):
            raise error("HK201", f"{what} must be a whole number, not {describe(operand.meaning)}", operand.span)
        return operand.meaning

    def truth(self, expr: syntax.Expr) -> bool:
        """A compile-time `True` or `False`."""
        operand = self.operand(expr)
        if not isinstance(operand.meaning, bool):
            raise error("HK208", f"True or False is needed here, not {describe(operand.meaning)}", operand.span)
        return operand.meaning

    def element(self, expr: syntax.Expr, dtype: str) -> Value:
        """A scalar of `dtype`; a number adopts it."""
        operand = self.operand(expr)
        if is_number(operand.meaning):
            return self.b.constant(operand.meaning, ScalarType(dtype), operand.span)
        if scalar_dtype(operand.meaning) != dtype:
            raise error(
                "HK205",
                f"a scalar of {dtype} is needed here, not {describe(operand.meaning)}",
                operand.span,
                notes=operand.origin("type"),
                hint=f"convert it first: cast(…, {dtype})",
            )
        return operand.value

    def zero(self, dtype: str) -> Number:
        """The zero of a dtype."""
        return False if dtype == "bool" else 0

    def text(self, expr: syntax.Expr) -> str:
        """The source of an expression on one line."""
        span = expr.span
        row = span.source.text.split("\n")[span.line - 1]
        return row[span.column - 1 : span.end_column - 1 if span.end_line == span.line else None]
