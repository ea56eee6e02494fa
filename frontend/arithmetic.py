"""Arithmetic, comparisons and element-wise functions on numbers, indices, scalars and tiles."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from hkc.dialects.types import IndexType, ScalarType, TileType, extents
from hkc.frontend.builder import Builder
from hkc.frontend.program import Value
from hkc.frontend.scope import (
    Meaning,
    Number,
    Operand,
    describe,
    element_dtype,
    global_type,
    is_index,
    is_number,
    is_whole,
    scalar_dtype,
    tile_type,
)
from hkc.support.dtypes import DTYPES, DType
from hkc.support.errors import HkcError, Span, error

COMPARISONS = {"==": (1, 0, 0), "!=": (13, 1, 1), "<": (4, 2, 6), "<=": (5, 3, 7), ">": (2, 4, 8), ">=": (3, 5, 9)}
"""The predicates of `arith.cmpf` (ordered, but `!=` holds for NaN) and of `arith.cmpi`, signed and unsigned."""
BOOLS = "cast(x, i32) makes 0 and 1 of bools; `&`, `|`, `~` combine them"

BITWISE = {"&": "andi", "|": "ori", "^": "xori", "<<": "shli", ">>": "shrsi"}
"""The `arith` ops of integers; those of `& | ^` take bools too."""

_FLOAT_OPS = {
    "+": "addf", "-": "subf", "*": "mulf", "/": "divf",
    "max": "maximumf", "min": "minimumf", "fmax": "maxnumf", "fmin": "minnumf",
}  # fmt: skip
_OF_FLOATS = {
    "//": "floor(a / b) rounds down",
    "%": "a - floor(a / b) * b is what is left",
    "cdiv": "ceil(a / b) rounds up",
}
"""How floats do what integers have an operator for."""
_INT_OPS = {
    "+": "addi", "-": "subi", "*": "muli", "//": "floordivsi", "max": "maxsi", "min": "minsi", "cdiv": "ceildivsi",
    "fmax": "maxsi", "fmin": "minsi", **BITWISE,
}  # fmt: skip
_UNSIGNED_OPS = _INT_OPS | {
    "//": "divui", "%": "remui", "max": "maxui", "min": "minui", ">>": "shrui",
    "fmax": "maxui", "fmin": "minui",
}  # fmt: skip


def _least_or_greatest(choose: Callable[[Number, Number], Number]) -> Callable[[Number, Number], Number]:
    """`min` or `max` as they are on tiles: NaN wins."""
    return lambda a, b: a if a != a else b if b != b else choose(a, b)


_FOLD: dict[str, Callable[[Any, Any], Number]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": operator.truediv, "//": operator.floordiv, "%": operator.mod, "cdiv": lambda a, b: -(-a // b),
    "max": _least_or_greatest(max), "min": _least_or_greatest(min), "fmax": max, "fmin": min,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": lambda a, b: a << min(b, 64), ">>": lambda a, b: a >> min(b, 64),
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

FLOAT_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp, "exp2": math.exp2, "log": math.log, "log2": math.log2,
    "sqrt": math.sqrt, "rsqrt": lambda x: 1.0 / math.sqrt(x), "sin": math.sin, "cos": math.cos, "tanh": math.tanh,
    "erf": math.erf, "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip
"""Element-wise functions of floats: their names in the language and in the `math` dialect, and how numbers fold."""


def binary(b: Builder, op: str, left: Operand, right: Operand, span: Span) -> Meaning:
    """`left op right`, where `op` is an operator, `max`, `min`, `fmax`, `fmin` or `cdiv`. Raises `HkcError`."""
    for side in (left, right):
        _refuse_non_values(op, side)
    if op in ("//", "%", "cdiv") and is_number(right.meaning) and right.meaning == 0:
        raise error("HK213", "division by zero", right.span, hint="divide by a number other than 0")
    if is_index(left.meaning) and is_index(right.meaning) and op == "/":
        hint = "`//` rounds down, cdiv(a, b) rounds up; write 1.0 for a float"
        raise error("HK209", "`/` does not divide indices or whole numbers", span, hint=hint)
    if op in ("<<", ">>"):
        _refuse_shift(left, right)
    if is_number(left.meaning) and is_number(right.meaning):
        return _fold(op, left, right, span)
    if is_index(left.meaning) and is_index(right.meaning):
        return _of_indices(b, op, left, right, span)
    values = align(b, op, [left, right], span)
    return _of_values(b, op, values, span)


def negative(b: Builder, operand: Operand, span: Span) -> Meaning:
    """`-operand`."""
    _refuse_non_values("-", operand)
    meaning = operand.meaning
    if isinstance(meaning, float):
        return -meaning
    dtype = element_dtype(meaning)
    if dtype is not None and dtype.is_float:
        return b.op("arith.negf", [operand.value], operand.value.type, span)
    return binary(b, "-", Operand(0, operand.expr), operand, span)


def inverse(b: Builder, op: str, operand: Operand, span: Span) -> Meaning:
    """`~operand` of integers and bools, `not operand` of one bool."""
    _refuse_non_values(op, operand)
    meaning = operand.meaning
    if op == "not" or isinstance(meaning, bool):
        if isinstance(meaning, bool):
            return not meaning
        ones: Number = True
    else:
        dtype = element_dtype(meaning)
        if isinstance(meaning, float) or (dtype is not None and dtype.is_float):
            hint = "`-` is minus; the bits are in bitcast(x, i32)"
            raise error("HK204", f"`~` takes integers and bools, not {dtype or 'floats'}", span, hint=hint)
        ones = True if dtype == DTYPES["bool"] else 2**dtype.bits - 1 if dtype and dtype.kind == "uint" else -1
    return binary(b, "^", operand, Operand(ones, operand.expr), span)


def function(b: Builder, name: str, operand: Operand, span: Span) -> Meaning:
    """An element-wise function of `FLOAT_FUNCTIONS`, or `abs`."""
    _refuse_non_values(name, operand)
    meaning = operand.meaning
    if is_number(meaning):
        return _fold_function(name, meaning, span)
    dtype, value = element_dtype(meaning), operand.value
    if name == "abs" and dtype is not None and dtype.kind != "bool":
        return b.op("math.absf" if dtype.is_float else "math.absi", [value], value.type, span)
    if dtype is not None and dtype.is_narrow:
        raise _narrow(name, dtype, operand.span)
    if dtype is None or not dtype.is_float:
        raise error(
            "HK204",
            f"`{name}` takes floats, not {describe(meaning)}",
            operand.span,
            notes=operand.origin("dtype"),
            hint=f"convert it first: {name}(cast(…, f32))",
        )
    return b.op(f"math.{name}", [value], value.type, span)


def select(b: Builder, condition: Operand, yes: Operand, no: Operand, span: Span) -> Meaning:
    """`where(condition, yes, no)`, with all three broadcast together."""
    for side in (condition, yes, no):
        _refuse_non_values("where", side)
    if isinstance(condition.meaning, bool) and is_number(yes.meaning) and is_number(no.meaning):
        return yes.meaning if condition.meaning else no.meaning
    if element_dtype(condition.meaning) != DTYPES["bool"] and not isinstance(condition.meaning, bool):
        raise error(
            "HK204",
            f"the condition of `where` is {describe(condition.meaning)}, not bool",
            condition.span,
            hint="compare it with something",
        )
    if is_index(yes.meaning) and is_index(no.meaning) and tile_type(condition.meaning) is None:
        flag = align(b, "where", [condition], span)[0]
        return b.op("arith.select", [flag, index(b, yes), index(b, no)], IndexType(), span)
    if is_number(yes.meaning) and is_number(no.meaning) and not isinstance(yes.meaning, bool):
        raise error(
            "HK204", "neither value of `where` has a dtype", yes.span, no.span, hint=f"write cast({yes.meaning}, f32)"
        )
    shape = common_shape([condition, yes, no])
    a, c = align(b, "where", [yes, no], span, shape)
    flag = align(b, "where", [condition], span, shape)[0]
    return b.op("arith.select", [flag, a, c], a.type, span)


def index(b: Builder, operand: Operand) -> Value:
    """An operand as an index. Raises `HkcError` where it is none."""
    meaning = operand.meaning
    if not is_whole(meaning):
        raise error(
            "HK201",
            f"an index is needed here, not {describe(meaning)}",
            operand.span,
            notes=operand.origin("type"),
            hint="gather and scatter take a tile of places"
            if tile_type(meaning)
            else "indices are whole numbers, dims, ids of workgroups and scalars of integers",
        )
    if isinstance(meaning, int):
        return b.constant(meaning, IndexType(), operand.span)
    value = operand.value
    if isinstance(value.type, IndexType):
        return value
    unsigned = DTYPES[scalar_dtype(value) or "i64"].kind == "uint"
    converted = b.op("arith.index_castui" if unsigned else "arith.index_cast", [value], IndexType(), operand.span)
    converted.extent = value.extent
    return converted


def align(
    b: Builder, op: str, operands: Sequence[Operand], span: Span, shape: tuple[int, ...] | None = None
) -> list[Value]:
    """Operands as values of one dtype and one shape, () for scalars: numbers adopt the dtype, shapes broadcast.

    The shape is the one they have in common unless given. Raises `HkcError` where dtypes or shapes don't go together.
    """
    dtype = _common_dtype(op, operands)
    shape = common_shape(operands) if shape is None else shape
    return [_aligned(b, o, dtype, shape, span) for o in operands]


def _common_dtype(op: str, operands: Sequence[Operand]) -> str:
    """The dtype of all operands that have one; numbers alone are only ever conditions."""
    typed = [o for o in operands if element_dtype(o.meaning) is not None]
    for o in operands:
        if isinstance(o.meaning, Value) and isinstance(o.meaning.type, IndexType):
            other = describe(typed[0].meaning) if typed else "a float"
            wanted = element_dtype(typed[0].meaning) if typed else "f32"
            hint = f"convert the index first: cast(…, {wanted})"
            message = f"`{op}` mixes an index with {other}"
            raise error("HK204", message, o.span, *(t.span for t in typed), notes=o.origin("type"), hint=hint)
    dtypes = [d for o in operands if (d := element_dtype(o.meaning)) is not None]
    for o, dtype in zip(typed, dtypes, strict=True):
        if dtype != dtypes[0]:
            raise _mixed(op, typed[0], dtypes[0], o, dtype)
    return dtypes[0].name if dtypes else "bool"


def common_shape(operands: Sequence[Operand]) -> tuple[int, ...]:
    """The shape to which all tiles among the operands broadcast; () where there is none. Raises `HkcError`."""
    shape: tuple[int, ...] = ()
    widest = operands[0]
    for o in operands:
        tile = tile_type(o.meaning)
        if tile is None:
            continue
        both = broadcast(shape, tile.shape)
        if both is None:
            raise error(
                "HK202",
                f"shapes {extents(shape)} and {extents(tile.shape)} don't broadcast",
                widest.span,
                o.span,
                notes=(*widest.origin(), *o.origin()),
                hint="from the right, extents must be equal or one of them 1; keepdims=True keeps a reduced dim",
            )
        widest, shape = o if both == tile.shape else widest, both
    return shape


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that NumPy broadcasts two shapes to; None where they don't go together."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    out = [y if x == 1 else x if y in (1, x) else None for x, y in pairs]
    return None if None in out else tuple(n for n in out if n is not None)


def _aligned(b: Builder, operand: Operand, dtype: str, shape: tuple[int, ...], span: Span) -> Value:
    if is_number(operand.meaning):
        return b.constant(operand.meaning, TileType(shape, dtype) if shape else ScalarType(dtype), operand.span)
    return b.spread(operand.value, shape, span)


def _mixed(op: str, a: Operand, one: DType, b: Operand, other: DType) -> HkcError:
    wider = max(one, other, key=lambda d: (d.is_float, d.bits, d.digits))
    return error(
        "HK204",
        f"`{op}` mixes {one} and {other}",
        a.span,
        b.span,
        notes=(*a.origin("dtype"), *b.origin("dtype")),
        hint=f"convert one side: cast(…, {wider})",
    )


def _refuse_non_values(op: str, operand: Operand) -> None:
    meaning = operand.meaning
    if isinstance(meaning, (DType, tuple)):
        raise error(
            "HK201", f"`{op}` takes numbers and tiles, not {describe(meaning)}", operand.span, hint="name one value"
        )
    if global_type(meaning):
        hint = "load a tile of it: load(tensor, [offsets], [shape])"
        raise error("HK201", f"`{op}` takes numbers and tiles, not {describe(meaning)}", operand.span, hint=hint)


def _refuse_shift(left: Operand, right: Operand) -> None:
    """Raises `HkcError` for a shift whose amount is known and leaves nothing defined."""
    meaning = right.meaning
    amount = meaning.number if isinstance(meaning, Value) else meaning
    if not isinstance(amount, int) or isinstance(amount, bool):
        return
    dtype = element_dtype(left.meaning) or element_dtype(meaning)
    if amount < 0:
        hint = "`>>` and `<<` are each other's opposite"
        raise error("HK213", f"a shift by {amount}, a negative number", right.span, hint=hint)
    bits = dtype.bits if dtype else 64
    alone = is_number(left.meaning) and is_number(meaning)
    if amount >= bits and not alone and (dtype is None or dtype.kind in ("int", "uint")):
        message = f"a shift by {amount} of {dtype or 'an index'}, which has {bits} bits"
        raise error("HK213", message, right.span, hint=f"shift by 0 to {bits - 1}")


def _fold(op: str, left: Operand, right: Operand, span: Span) -> Number:
    a, c = left.meaning, right.meaning
    assert is_number(a) and is_number(c)
    bools = isinstance(a, bool), isinstance(c, bool)
    if op not in COMPARISONS and any(bools) and not (all(bools) and op in ("&", "|", "^")):
        raise error("HK204", f"`{op}` takes numbers, not bool", span, hint=BOOLS)
    if op in BITWISE and (isinstance(a, float) or isinstance(c, float)):
        raise error("HK204", f"`{op}` takes integers and bools, not floats", span, hint="write whole numbers")
    if op == "cdiv" and (isinstance(a, float) or isinstance(c, float)):
        raise error("HK201", "cdiv divides whole numbers", span, hint="`/` divides floats")
    try:
        value = _FOLD[op](a, c)
    except ZeroDivisionError:
        raise error("HK213", "division by zero", right.span, hint="divide by a number other than 0") from None
    except (OverflowError, ValueError):
        raise error("HK213", "the result is beyond the range of f64", span, hint="smaller numbers") from None
    if isinstance(value, int) and abs(value) >= 2**64:
        raise error("HK213", "the result has more than 64 bits", span, hint="compute with floats: 2.0, not 2")
    return value


def _fold_function(name: str, value: Number, span: Span) -> Number:
    if isinstance(value, bool):
        raise error("HK204", f"`{name}` takes numbers, not bool", span, hint=BOOLS)
    if name == "abs":
        return abs(value)
    try:
        return FLOAT_FUNCTIONS[name](value)
    except (ValueError, OverflowError, ZeroDivisionError):
        hint = f"a number for which `{name}` is finite; infinity is written inf"
        raise error("HK213", f"`{name}` of {value} is not a finite number", span, hint=hint) from None


def _of_indices(b: Builder, op: str, left: Operand, right: Operand, span: Span) -> Meaning:
    x, y = index(b, left), index(b, right)
    if op in COMPARISONS:
        return b.op("arith.cmpi", [x, y], ScalarType("bool"), span, predicate=COMPARISONS[op][1])
    result = _whole(b, op, x, y, span)
    if op not in BITWISE and x.extent and y.extent and len(x.extent) + len(y.extent) < 200:
        result.extent = f"{op}({x.extent}, {y.extent})" if op.isalpha() else f"({x.extent} {op} {y.extent})"
    return result


def _of_values(b: Builder, op: str, values: list[Value], span: Span) -> Value:
    x, y = values
    assert isinstance(x.type, (TileType, ScalarType))
    dtype = DTYPES[x.type.dtype]
    if dtype.kind == "bool" and op not in ("==", "!=", "&", "|", "^"):
        raise error("HK204", f"`{op}` takes numbers, not bool", span, hint=BOOLS)
    if dtype.is_narrow:
        raise _narrow(op, dtype, span)
    if op in COMPARISONS:
        result = TileType(x.type.shape, "bool") if isinstance(x.type, TileType) else ScalarType("bool")
        name = "arith.cmpf" if dtype.is_float else "arith.cmpi"
        kind = 0 if dtype.is_float else 2 if dtype.kind == "uint" else 1
        return b.op(name, [x, y], result, span, predicate=COMPARISONS[op][kind])
    if dtype.is_float:
        if op not in _FLOAT_OPS:
            what = "integers and bools" if op in BITWISE else "integers"
            words = {16: "i16", 32: "i32", 64: "i64"}[dtype.bits]
            hint = f"bitcast(x, {words}) gives the bits of floats" if op in BITWISE else _OF_FLOATS[op]
            raise error("HK204", f"`{op}` takes {what}, not {dtype}", span, hint=hint)
        return b.op(f"arith.{_FLOAT_OPS[op]}", [x, y], x.type, span)
    if op == "/":
        raise error(
            "HK209", f"`/` does not divide {dtype}", span, hint="`//` rounds down; cast to a float to divide exactly"
        )
    return _whole(b, op, x, y, span)


def _whole(b: Builder, op: str, x: Value, y: Value, span: Span) -> Value:
    """An operation on indices or integers of any shape; `%` has the sign of the divisor, as `//` rounds down."""
    unsigned = isinstance(x.type, (TileType, ScalarType)) and DTYPES[x.type.dtype].kind == "uint"
    if op in ("//", "%") and isinstance(x.type, TileType):
        name = "floordiv" if op == "//" else "floormod"
        return b.tile_op(name, [x, y], span, {}, unsigned=unsigned)[0]
    if op == "cdiv" and not isinstance(x.type, IndexType):
        return _rounded_up(b, x, y, span)
    ops = _UNSIGNED_OPS if unsigned else _INT_OPS
    if op in ops:
        return b.op(f"arith.{ops[op]}", [x, y], x.type, span)
    whole = b.op("arith.floordivsi", [x, y], x.type, span)
    multiple = b.op("arith.muli", [whole, y], x.type, span)
    return b.op("arith.subi", [x, multiple], x.type, span)


def _rounded_up(b: Builder, x: Value, y: Value, span: Span) -> Value:
    down = _whole(b, "//", x, y, span)
    rest = b.op("arith.subi", [x, b.op("arith.muli", [down, y], x.type, span)], x.type, span)
    zero, one = (b.constant(n, x.type, span) for n in (0, 1))
    flags = TileType(x.type.shape, "bool") if isinstance(x.type, TileType) else ScalarType("bool")
    exact = b.op("arith.cmpi", [rest, zero], flags, span, predicate=COMPARISONS["=="][1])
    return b.op("arith.select", [exact, down, b.op("arith.addi", [down, one], x.type, span)], x.type, span)


def _narrow(op: str, dtype: DType, span: Span) -> HkcError:
    return error("HK204", f"`{op}` does not compute in {dtype}", span, hint="convert it first: cast(…, f32)")
