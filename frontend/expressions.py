"""What an expression stands for: walks the syntax, appends ops for what is computed at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hkc.dialects.types import ScalarType
from hkc.frontend import arithmetic, shapes, syntax
from hkc.frontend.builder import Builder
from hkc.frontend.codes import RANK
from hkc.frontend.functions import FUNCTIONS
from hkc.frontend.grid import Grid
from hkc.frontend.library import SPECIAL, WORDS
from hkc.frontend.making import SHAPED, shaped
from hkc.frontend.program import Value
from hkc.frontend.scope import (
    Meaning,
    Number,
    Operand,
    Scope,
    describe,
    element_dtype,
    global_type,
    is_index,
    is_number,
    one_of,
    scalar_dtype,
    suggestion,
    tile_type,
)
from hkc.support.dtypes import DTYPES, DType
from hkc.support.errors import Span, error

if TYPE_CHECKING:
    from hkc.frontend.inline import Inliner


class Expressions:
    """Checks expressions in a scope. Every method raises `HkcError` at the place of a mistake."""

    def __init__(
        self, scope: Scope, builder: Builder, grid: Grid | None = None, inliner: Inliner | None = None
    ) -> None:
        self.scope = scope
        self.grid = grid or Grid()
        self.b = builder
        self.inliner = inliner
        self.words = WORDS | frozenset(inliner.functions) if inliner else WORDS

    def operand(self, expr: syntax.Expr) -> Operand:
        """An expression that has a single value."""
        meaning = self.value(expr)
        if isinstance(meaning, tuple):
            raise error(
                "HK214", f"{len(meaning)} values where one is needed", expr.span, hint="give each a name: a, b = …"
            )
        return Operand(meaning, expr)

    def value(self, expr: syntax.Expr) -> Meaning:
        """An expression that has a value, or several as a tuple."""
        meaning = self.meaning(expr)
        if meaning is None:
            hint = "call it on a line of its own, or let the function end with `return`"
            raise error("HK212", f"`{_called(expr)}` has no value", expr.span, hint=hint)
        return meaning

    def condition(self, expr: syntax.Expr) -> bool | Value:
        """A condition that is the same for the whole workgroup: known at compile time, or a scalar of bool."""
        operand = self.operand(expr)
        if tile_type(operand.meaning) is not None:
            raise error(
                "HK215",
                f"a condition is one value for the whole workgroup, but this is {describe(operand.meaning)}",
                operand.span,
                notes=operand.origin("type"),
                hint="choose element by element with where(condition, a, b), or ask any(…) or all(…)",
            )
        if isinstance(operand.meaning, bool):
            return operand.meaning
        if scalar_dtype(operand.meaning) != "bool":
            hint = "compare it with 0"
            raise error("HK204", f"a condition is a bool, not {describe(operand.meaning)}", operand.span, hint=hint)
        return operand.value

    def meaning(self, expr: syntax.Expr) -> Meaning | None:
        """What any expression stands for; None for a call without a value."""
        match expr:
            case syntax.Number(value=value):
                return value
            case syntax.Name():
                return self._name(expr)
            case syntax.Unary(op=op, operand=operand):
                return self._unary(op, operand, expr.span)
            case syntax.Binary():
                return self._binary(expr)
            case syntax.Attribute():
                return self._attribute(expr)
            case syntax.Index():
                return self._index(expr, None)
            case syntax.Call():
                return self._call(expr)
            case syntax.Several(items=items):
                return tuple(self.value(item) for item in items)
        return self._rare(expr)

    def _rare(self, expr: syntax.Expr) -> Meaning:
        if isinstance(expr, syntax.Conditional):
            from hkc.frontend.control import conditional

            return conditional(self, expr)
        if isinstance(expr, syntax.Text):
            raise error("HK105", "a text can't stand here", expr.span, hint="only `print` and `assert` take one")
        hint = "lists give offsets and shapes: load(A, [row, column], [64, 64])"
        raise error("HK201", "a list can't stand here", expr.span, hint=hint)

    def _name(self, name: syntax.Name) -> Meaning:
        return self.scope.look_up(name, self.words)

    def _unary(self, op: str, expr: syntax.Expr, span: Span) -> Meaning:
        if op == "not":
            condition = Operand(self.condition(expr), expr)
            return arithmetic.inverse(self.b, op, condition, span)
        operand = self.operand(expr)
        if op == "-":
            return arithmetic.negative(self.b, operand, span)
        return arithmetic.inverse(self.b, op, operand, span) if op == "~" else operand.meaning

    def _binary(self, expr: syntax.Binary) -> Meaning:
        if expr.op == "@":
            raise error("HK201", "`@` is for references", expr.span, hint="in a kernel write dot(a, b)")
        if expr.op == "**":
            raise error("HK201", "`**` is for references", expr.span, hint="in a kernel multiply, or use exp2")
        if expr.op in ("and", "or"):
            return self._logical(expr)
        return arithmetic.binary(self.b, expr.op, self.operand(expr.left), self.operand(expr.right), expr.span)

    def _logical(self, expr: syntax.Binary) -> Meaning:
        """`and` and `or`: what is known at compile time decides there; otherwise both sides are computed."""
        decides = expr.op == "or"
        left = self.condition(expr.left)
        if isinstance(left, bool):
            return left if left is decides else self.condition(expr.right)
        right = self.condition(expr.right)
        if isinstance(right, bool):
            return right if right is decides else left
        return self.b.op("arith.ori" if decides else "arith.andi", [left, right], ScalarType("bool"), expr.span)

    def _attribute(self, expr: syntax.Attribute) -> Meaning:
        base, word = self.operand(expr.base), expr.name.name
        if word == "shape" and (shape := shapes.shape_of(self, base, expr.span)) is not None:
            return shape
        tile = tile_type(base.meaning)
        if word == "T":
            if tile is None or len(tile.shape) != 2:
                raise error(
                    "HK206",
                    f"`.T` transposes tiles of rank 2, not {describe(base.meaning)}",
                    base.span,
                    notes=base.origin(),
                    hint="transpose(x, [axis, …]) reorders any dims; x[:, None] makes a column of a vector",
                )
            return self.b.tile_op("transpose", [base.value], expr.span, {"x": base}, permutation=(1, 0))[0]
        dtype = element_dtype(base.meaning)
        if word == "dtype" and dtype is not None:
            return dtype
        known = ("T", "dtype", "shape")
        hint = None if word in known else suggestion(word, known)
        hint = hint or "tiles and tensors have .dtype and .shape, tiles also .T"
        raise error("HK307", f"{describe(base.meaning)} has no `.{word}`", expr.name.span, hint=hint)

    def _index(self, expr: syntax.Index, call: syntax.Call | None) -> Meaning:
        if expr.word in SHAPED:
            return shaped(self, expr, call)
        if expr.word in FUNCTIONS:
            hint = FUNCTIONS[expr.word].spelling
            raise error("HK201", f"`{expr.word}` is called with round brackets", expr.span, hint=hint)
        known = {**self.scope.names, **self.scope.gone}
        if expr.word not in known and (near := suggestion(expr.word, SHAPED)):
            raise error("HK301", f"unknown name `{expr.word}`", expr.base.span, hint=near)
        meaning = self.value(expr.base)
        if call is not None:
            raise error("HK201", "only functions can be called", expr.span, hint="a name comes before ( )")
        if isinstance(meaning, tuple):
            return self._element(meaning, expr)
        base = Operand(meaning, expr.base)
        if tile_type(meaning) is not None:
            return shapes.cut(self, base, expr)
        hint = "read a tile of it: load(tensor, [offsets], [shape]); or is a comma missing before `[`?"
        tensor = global_type(meaning)
        hint = hint if tensor else "tiles are: x[0:16, :]"
        raise error("HK201", f"{describe(meaning)} can't be indexed", expr.span, hint=hint)

    def _element(self, values: tuple[Meaning, ...], expr: syntax.Index) -> Meaning:
        if len(expr.items) != 1 or isinstance(expr.items[0], syntax.Cut):
            raise error("HK206", "several values are indexed by one number", expr.span, hint="pair[0]")
        at = self.whole_number(expr.items[0], "the index of a value")
        if not -len(values) <= at < len(values):
            raise error(
                "HK206",
                f"there are {len(values)} values, and none has the index {at}",
                expr.items[0].span,
                hint=f"indices are 0 to {len(values) - 1}",
            )
        return values[at]

    def _call(self, call: syntax.Call) -> Meaning | None:
        if isinstance(call.callee, syntax.Index):
            return self._index(call.callee, call)
        if not isinstance(call.callee, syntax.Name):
            hint = "functions have no prefix, and tiles no methods: write load(…), sum(x, axis=0)"
            raise error("HK201", "only functions can be called", call.callee.span, hint=hint)
        name = call.callee.name
        if name in FUNCTIONS:
            known = FUNCTIONS[name]
            return known.handler(self, known.bind(call), call.span)
        if self.inliner is not None and name in self.inliner.functions:
            return self.inliner.call(self, call, name)
        if name in SHAPED:
            raise error("HK211", f"`{name}` takes its extents in square brackets", call.span, hint=SHAPED[name])
        if name in ("range", "tiles"):
            raise error("HK201", f"`{name}` belongs into a for line", call.span, hint=SPECIAL[name])
        if name == "tile_ids":
            return self.grid.tile_ids(self, call)
        if name in self.scope.names:
            meaning = self.scope.look_up(call.callee)
            hint = f"cast(x, {name}) converts" if isinstance(meaning, DType) else CALLED
            raise error("HK201", f"{describe(meaning)} can't be called", call.callee.span, hint=hint)
        hint = suggestion(name, self.words) or "functions are those of docs/language.md and of this file"
        raise error("HK301", f"unknown function `{name}`", call.callee.span, hint=hint)

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
                hint="x[0:16, :] is a part of a tile"
                if tile_type(operand.meaning)
                else "name a parameter of the kernel",
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
                hint=_made_a_tile(operand.meaning),
            )
        return operand

    def dtype(self, expr: syntax.Expr) -> str:
        """A dtype that tiles can have."""
        operand = self.operand(expr)
        if not isinstance(operand.meaning, DType):
            hint = f"one of {', '.join(DTYPES)}"
            raise error("HK201", f"a dtype is needed here, not {describe(operand.meaning)}", operand.span, hint=hint)
        return operand.meaning.name

    def offsets(self, expr: syntax.Expr) -> list[Value]:
        """A list of indices."""
        return [arithmetic.index(self.b, self.operand(item)) for item in self.items(expr, "offsets")]

    def shape(self, expr: syntax.Expr) -> tuple[int, ...]:
        """A list of tile extents."""
        return self.extents(self.items(expr, "extents"), expr.span)

    def extents(self, items: Sequence[syntax.Expr], span: Span) -> tuple[int, ...]:
        """Tile extents: compile-time whole numbers, each a power of two or a multiple of 16."""
        if not 1 <= len(items) <= RANK:
            hint = "put dims together: 8 * 8 in place of 8, 8"
            raise error("HK206", f"a tile has 1 to {RANK} dims, not {len(items)}", span, hint=hint)
        return tuple(self._extent(item) for item in items)

    def _extent(self, expr: syntax.Expr) -> int:
        return self.extent_of(self.whole_number(expr, "the extent of a tile"), expr.span)

    def extent_of(self, n: int, span: Span) -> int:
        """A number that can be the extent of a tile."""
        if n > 0 and (n & (n - 1) == 0 or n % 16 == 0):
            return n
        below = max(1 << (n.bit_length() - 1), n // 16 * 16) if n > 0 else None
        above = min(1 << n.bit_length(), -(-n // 16) * 16) if n > 0 else 1
        near = f"{below} or {above}" if below else f"{above}"
        raise error(
            "HK431",
            f"a tile can't have the extent {n}: extents are powers of two or multiples of 16",
            span,
            hint=f"the nearest legal extent is {near}",
        )

    def items(self, expr: syntax.Expr, what: str) -> tuple[syntax.Expr, ...]:
        """The items of a list."""
        if not isinstance(expr, syntax.Sequence):
            inner = expr.span.text[1:-1] if isinstance(expr, syntax.Several) else expr.span.text
            raise error("HK201", f"{what} are a list", expr.span, hint=f"write [{inner}]")
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
            raise error(
                "HK201",
                f"{what} must be a whole number, not {describe(operand.meaning)}",
                operand.span,
                hint="64, say, or a name made by const or tune",
            )
        return operand.meaning

    def truth(self, expr: syntax.Expr) -> bool:
        """A compile-time `True` or `False`."""
        operand = self.operand(expr)
        if not isinstance(operand.meaning, bool):
            raise error(
                "HK208",
                f"True or False is needed here, not {describe(operand.meaning)}",
                operand.span,
                hint="write one of them, or a constant",
            )
        return operand.meaning

    def word(self, expr: syntax.Expr, words: Sequence[str]) -> str:
        """One of a few words."""
        if not isinstance(expr, syntax.Name):
            quoted = ", without quotes" if isinstance(expr, syntax.Text) else ""
            raise error("HK307", "a word is needed here", expr.span, hint=one_of(words) + quoted)
        if expr.name not in words:
            raise error("HK307", f"`{expr.name}` is none of the words here", expr.span, hint=one_of(words, expr.name))
        return expr.name

    def place(self, expr: syntax.Expr) -> Operand:
        """An expression as the place that a message speaks of."""
        return Operand(0, expr)

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


def _made_a_tile(meaning: Meaning) -> str | None:
    """How to get a tile from what is none, as a hint."""
    if global_type(meaning):
        return "load one: load(tensor, [offsets], [shape])"
    dtype = element_dtype(meaning)
    if dtype is not None:
        return f"full[{dtype}, extent, …](value) makes one"
    if is_number(meaning):
        return "full[dtype, extent, …](value) makes one"
    return "full[i32, extent, …](cast(value, i32)) makes one" if is_index(meaning) else None


CALLED = "functions are called, values combined: x * y"
"""What to do with a value that is called."""


def _called(expr: syntax.Expr) -> str:
    """The name of the function that an expression calls."""
    return expr.callee.name if isinstance(expr, syntax.Call) and isinstance(expr.callee, syntax.Name) else "this"
