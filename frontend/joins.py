"""Values that come from several ways through a kernel: what a variable is after a branch, and around a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hkc.dialects.types import IndexType, ScalarType, TileType, Type
from hkc.frontend import arithmetic, syntax
from hkc.frontend.builder import Builder
from hkc.frontend.program import Step, Value
from hkc.frontend.scope import Meaning, Operand, is_index


def joint_type(a: Meaning, b: Meaning) -> Type | None:
    """The type of a variable that is `a` one way and `b` the other: numbers adopt; None where they don't fit."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Value) and isinstance(one.type, (TileType, ScalarType)) and not is_index(one):
            adopts = isinstance(other, (bool, int, float)) or (isinstance(other, Value) and other.type == one.type)
            return one.type if adopts else None
    if is_index(a) and is_index(b):
        return IndexType()
    return ScalarType("bool") if isinstance(a, bool) and isinstance(b, bool) else None


def carried_type(meaning: Meaning | None) -> Type | None:
    """The type with which a variable can change in a loop; None where it has none."""
    return None if meaning is None or isinstance(meaning, float) else joint_type(meaning, meaning)


def same(a: Meaning | None, b: Meaning | None) -> bool:
    """Whether both are the very same value, so that nothing needs to be joined."""
    if isinstance(a, Value) or isinstance(b, Value):
        return a is b
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and (a == b or (a != a and b != b))


def as_type(b: Builder, meaning: Meaning, kind: Type, place: syntax.Expr, ops: list[Step] | None = None) -> Value:
    """A meaning as a value of its joint type; what that takes goes at the end of `ops`. Raises `HkcError`."""
    with b.block(b.ops if ops is None else ops):
        if isinstance(kind, IndexType):
            return arithmetic.index(b, Operand(meaning, place))
        if isinstance(meaning, (bool, int, float)):
            return b.constant(meaning, kind, place.span)
    assert isinstance(meaning, Value)
    return meaning


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
