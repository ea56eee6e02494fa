"""Values that come from several ways through a kernel: what a variable is after a branch, and around a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Union

from hkc.dialects.types import IndexType, ScalarType, TileType, Type
from hkc.frontend import arithmetic, syntax
from hkc.frontend.builder import Builder
from hkc.frontend.program import Step, Value
from hkc.frontend.scope import Meaning, Operand, is_index

Joint = Union[Type, "tuple[Joint, ...]"]
"""The type of a variable; of one that is several values, a tuple."""


def joint_type(a: Meaning, b: Meaning) -> Joint | None:
    """The type of a variable that is `a` one way and `b` the other: numbers adopt; None where they don't fit."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        parts = [joint_type(x, y) for x, y in zip(a, b, strict=True)]
        found = tuple(p for p in parts if p is not None)
        return found if len(found) == len(parts) else None
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Value) and isinstance(one.type, (TileType, ScalarType)) and not is_index(one):
            adopts = isinstance(other, (bool, int, float)) or (isinstance(other, Value) and other.type == one.type)
            return one.type if adopts else None
    if is_index(a) and is_index(b):
        return IndexType()
    return ScalarType("bool") if isinstance(a, bool) and isinstance(b, bool) else None


def carried_type(meaning: Meaning | None) -> Joint | None:
    """The type with which a variable can change in a loop; None where it has none."""
    if isinstance(meaning, tuple):
        found = tuple(p for p in map(carried_type, meaning) if p is not None)
        return found if len(found) == len(meaning) else None
    return None if meaning is None or isinstance(meaning, float) else joint_type(meaning, meaning)


def fits(kind: Joint, meaning: Meaning) -> bool:
    """Whether a variable of this type may be given this value."""
    if isinstance(kind, tuple):
        parts = meaning if isinstance(meaning, tuple) else ()
        return len(parts) == len(kind) and all(fits(k, m) for k, m in zip(kind, parts, strict=True))
    if isinstance(meaning, Value):
        return meaning.type == kind or (isinstance(kind, IndexType) and carried_type(meaning) == kind)
    return isinstance(meaning, (bool, int, float)) and not (
        isinstance(kind, IndexType) and not isinstance(meaning, int)
    )


def rebuilt(kind: Joint, values: Iterator[Value]) -> Meaning:
    """What a variable of this type is, given the next of its values."""
    return tuple(rebuilt(k, values) for k in kind) if isinstance(kind, tuple) else next(values)


def same(a: Meaning | None, b: Meaning | None) -> bool:
    """Whether both are the very same value, so that nothing needs to be joined."""
    if isinstance(a, Value) or isinstance(b, Value):
        return a is b
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and (a == b or (a != a and b != b))


def as_type(
    b: Builder, meaning: Meaning, kind: Joint, place: syntax.Expr, ops: list[Step] | None = None
) -> tuple[Value, ...]:
    """A meaning as the values of its joint type; what that takes goes at the end of `ops`. Raises `HkcError`."""
    if isinstance(kind, tuple) and isinstance(meaning, tuple):
        return tuple(v for m, k in zip(meaning, kind, strict=True) for v in as_type(b, m, k, place, ops))
    with b.block(b.ops if ops is None else ops):
        if isinstance(kind, IndexType):
            return (arithmetic.index(b, Operand(meaning, place)),)
        if isinstance(meaning, (bool, int, float)) and not isinstance(kind, tuple):
            return (b.constant(meaning, kind, place.span),)
    assert isinstance(meaning, Value)
    return (meaning,)


def assigned(statements: Sequence[syntax.Statement]) -> Iterator[syntax.Name]:
    """The names that statements assign to, those in inner blocks included."""
    for statement in statements:
        match statement:
            case syntax.Assign(targets=targets):
                yield from targets
            case syntax.Augment(target=target):
                yield target
            case syntax.For(body=body) | syntax.While(body=body):
                yield from assigned(body)
            case syntax.If(then=then, otherwise=otherwise):
                yield from assigned((*then, *otherwise))
