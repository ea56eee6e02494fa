"""Checks `if`, `while` and the body of `for`: which variables they change, and what those are afterwards."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from hkc.dialects.types import GlobalType, IndexType, ScalarType
from hkc.frontend import syntax
from hkc.frontend.expressions import Expressions
from hkc.frontend.joins import Joint, as_type, assigned, carried_type, fits, joint_type, rebuilt, same
from hkc.frontend.program import Block, Choice, Loop, Repeat, Step, Value, flat, read
from hkc.frontend.scope import VARIABLE, Bound, Meaning, describe
from hkc.support.errors import Diagnostic, HkcError, Note, error

Body = Callable[[Sequence[syntax.Statement]], None]


@dataclass
class _Side:
    """One way through a kernel: the names at its end, its ops, what it yields."""

    names: ChainMap[str, Bound]
    ops: list[Step]
    yields: list[Value]


@dataclass
class _Carried:
    """The variables that a loop changes, their types and their values before it; `changed` are all names that it
    assigns to."""

    names: list[syntax.Name]
    kinds: list[Joint]
    initial: list[tuple[Value, ...]]
    changed: list[syntax.Name]

    def start(self) -> tuple[Value, ...]:
        """All values before the loop."""
        return tuple(v for values in self.initial for v in values)

    def arguments(self) -> tuple[Value, ...]:
        """Fresh values of the variables' types."""
        return tuple(Value(v.type, v.span) for v in self.start())

    def bound(self, values: Sequence[Value]) -> dict[str, Bound]:
        """The variables, given all their values."""
        rest = iter(values)
        pairs = zip(self.names, self.kinds, strict=True)
        return {n.name: Bound(rebuilt(kind, rest), VARIABLE, n.span) for n, kind in pairs}


class Control:
    """Checks statements with blocks; `body` checks the statements in them."""

    def __init__(self, expressions: Expressions, diagnostics: list[Diagnostic], body: Body) -> None:
        self.x = expressions
        self.scope, self.b, self.grid = expressions.scope, expressions.b, expressions.grid
        self.diagnostics = diagnostics
        self.body = body

    def choice(self, statement: syntax.If) -> None:
        """`if`. What is known at compile time is decided there, and the other branch is not looked at."""
        condition = self.x.condition(statement.condition)
        if isinstance(condition, bool):
            self.body(statement.then if condition else statement.otherwise)
            return
        sides = [self._side({}, b) for b in (statement.then, statement.otherwise)]
        results = [r for n in _unique(assigned([statement])) for r in self._joined(n, *sides)]
        then, otherwise = (Block(tuple(s.ops), tuple(s.yields)) for s in sides)
        self.b.ops.append(Choice(condition, then, otherwise, tuple(results), statement.span))

    def _side(self, names: dict[str, Bound], body: Sequence[syntax.Statement]) -> _Side:
        """A body checked in a scope of its own, in which names have other meanings."""
        with self._block(names) as ops:
            self.body(body)
            return _Side(self.scope.names, ops, [])

    @contextmanager
    def _block(self, names: dict[str, Bound]) -> Iterator[list[Step]]:
        """A scope inside the current one, and the ops made in it."""
        outer, self.scope.names = self.scope.names, self.scope.names.new_child(names)
        try:
            with self.grid.block(), self.b.block() as ops:
                yield ops
        finally:
            self.scope.names = outer

    def _joined(self, name: syntax.Name, first: _Side, second: _Side) -> tuple[Value, ...]:
        """Binds a name to what it is after both branches; gives the values that join them, where any are needed."""
        one, other = first.names.get(name.name), second.names.get(name.name)
        if one is None or other is None:
            self.scope.gone[name.name] = name.span
            return ()
        if one.kind != VARIABLE or other.kind != VARIABLE:
            return ()
        a, b = one.meaning, other.meaning
        if a is None or b is None or same(a, b):
            spoilt = a is None or b is None
            self.scope.names[name.name] = Bound(None if spoilt else a, VARIABLE, one.span)
            return ()
        kind = joint_type(a, b)
        self.scope.names[name.name] = Bound(None, VARIABLE, name.span)
        if kind is None:
            self._differs(name, one, other)
            return ()
        known = len(second.yields)
        try:
            for side, bound in ((first, one), (second, other)):
                assert bound.meaning is not None
                side.yields += as_type(self.b, bound.meaning, kind, _at(name, bound), side.ops)
        except HkcError as problem:
            self.diagnostics += problem.diagnostics
            del first.yields[known:], second.yields[known:]
            return ()
        results = tuple(Value(v.type, one.span or name.span) for v in first.yields[known:])
        self.scope.names[name.name] = Bound(rebuilt(kind, iter(results)), VARIABLE, name.span)
        return results

    def _differs(self, name: syntax.Name, one: Bound, other: Bound) -> None:
        assert one.meaning is not None and other.meaning is not None
        note = Note(f"`{name.name}` is {describe(other.meaning)} here", other.span)
        numbers = not isinstance(one.meaning, Value) and not isinstance(other.meaning, Value)
        hint = f"give it a dtype: {name.name} = cast({one.meaning}, f32)" if numbers else None
        message = (
            f"`{name.name}` is {describe(one.meaning)} after one branch but {describe(other.meaning)} after the other"
        )
        self.diagnostics.append(
            Diagnostic("HK207", message, (one.span or name.span,), (note,), hint or "both branches give it one type")
        )

    # Loops.

    def loop(
        self, statement: syntax.For, bounds: tuple[Value, Value, Value], bind: Callable[[Value], Sequence[Meaning]]
    ) -> None:
        """`for` over `bounds`; `bind` makes what the loop's variables stand for from the value that counts."""
        carried = self._carried(statement.body)
        arguments = carried.arguments()
        variable = Value(IndexType(), statement.variables[0].span)
        names = carried.bound(arguments)
        with self.b.block() as first:
            for target, meaning in zip(statement.variables, bind(variable), strict=True):
                names[target.name] = Bound(meaning, "loop variable", target.span)
        side = self._side(names, statement.body)
        block = Block((*first, *side.ops), self._yielded(carried, side))
        results = carried.arguments()
        self.b.ops.append(Loop(variable, bounds, carried.start(), arguments, block, results, statement.span))
        self._after(carried, results, side, statement.variables)

    def repeat(self, statement: syntax.While) -> None:
        """`while`."""
        carried = self._carried(statement.body)
        tested = carried.arguments()
        with self._block(carried.bound(tested)) as before:
            condition = self.x.condition(statement.condition)
        if isinstance(condition, bool):
            if condition:
                message = "this loop never ends: its condition is always true"
                hint = "say in the condition what ends it: there is no `break`"
                raise error("HK217", message, statement.condition.span, hint=hint)
            return
        arguments, results = carried.arguments(), carried.arguments()
        side = self._side(carried.bound(arguments), statement.body)
        block = Block(tuple(side.ops), self._yielded(carried, side))
        test = Block(tuple(before), (condition,))
        moved = zip(tested, arguments, block.yields, strict=True)
        if not _can_change(test, {value for value, old, new in moved if new is not old}):
            raise self._endless(statement.condition)
        self.b.ops.append(Repeat(carried.start(), tested, test, arguments, block, results, statement.span))
        self._after(carried, results, side)

    def _endless(self, condition: syntax.Expr) -> HkcError:
        read = [n for n in syntax.names(condition) if n in self.scope.names and self.scope.names[n].kind == VARIABLE]
        which = " or ".join(f"`{n}`" for n in dict.fromkeys(read)) or "a variable that the condition reads"
        message = "this loop never ends: it changes nothing that its condition reads"
        return error("HK217", message, condition.span, hint=f"let it change {which}")

    def _carried(self, body: Sequence[syntax.Statement]) -> _Carried:
        """The variables that exist before a loop and are assigned in it, in the order of their first assignment."""
        carried = _Carried([], [], [], _unique(assigned(body)))
        for name in carried.changed:
            bound = self.scope.names.get(name.name)
            kind = carried_type(bound.meaning) if bound is not None and bound.kind == VARIABLE else None
            if bound is not None and bound.meaning is not None and kind is not None:
                carried.names.append(name)
                carried.kinds.append(kind)
                carried.initial.append(as_type(self.b, bound.meaning, kind, _at(name, bound)))
        return carried

    def _yielded(self, carried: _Carried, side: _Side) -> tuple[Value, ...]:
        """What the variables are at the end of an iteration; each keeps its type, and others stay what they are."""
        for name in carried.changed:
            bound = self.scope.names.get(name.name)
            if (
                bound is None
                or bound.kind != VARIABLE
                or bound.meaning is None
                or carried_type(bound.meaning) is not None
            ):
                continue
            after = side.names[name.name]
            if after.meaning is not None and not same(bound.meaning, after.meaning):
                self._cant_change(name.name, bound, after)
        variables = zip(carried.names, carried.kinds, carried.initial, strict=True)
        return tuple(v for name, kind, before in variables for v in self._at_end(name, kind, before, side))

    def _at_end(self, name: syntax.Name, kind: Joint, before: tuple[Value, ...], side: _Side) -> tuple[Value, ...]:
        bound = side.names[name.name]
        meaning = bound.meaning
        if meaning is None:
            return before
        if not fits(kind, meaning):
            first = rebuilt(kind, iter(before))
            note = Note(f"`{name.name}` gets its type here", before[0].span if before else name.span)
            message = f"`{name.name}` is {describe(first)} before the loop but {describe(meaning)} after an iteration"
            self.diagnostics.append(
                Diagnostic(
                    "HK207",
                    message,
                    (bound.span or name.span,),
                    (note,),
                    "a variable keeps its shape and dtype through a loop",
                )
            )
            return before
        try:
            return as_type(self.b, meaning, kind, _at(name, bound), side.ops)
        except HkcError as problem:
            self.diagnostics += problem.diagnostics
            return before

    def _cant_change(self, name: str, bound: Bound, after: Bound) -> NoReturn:
        assert bound.meaning is not None
        place = after.span or bound.span
        hint = "use another name inside the loop"
        if isinstance(bound.meaning, float):
            hint = f"give it a dtype before the loop: {name} = cast({bound.meaning}, f32)"
        raise error(
            "HK207",
            f"`{name}` is {describe(bound.meaning)} and can't change in a loop",
            *([place] if place else []),
            notes=(Note(f"`{name}` gets its value here", bound.span),),
            hint=hint,
        )

    def _after(
        self, carried: _Carried, results: Sequence[Value], side: _Side, variables: Sequence[syntax.Name] = ()
    ) -> None:
        """Binds the variables to what they are after the loop; other names of its body, `variables` too, are gone."""
        names = self.scope.names
        self.scope.gone |= {n.name: n.span for n in (*carried.changed, *variables) if n.name not in names}
        for name, bound in carried.bound(results).items():
            spoilt = side.names[name].meaning is None
            names[name] = Bound(None, VARIABLE, bound.span) if spoilt else bound


def _can_change(test: Block, changed: set[Value]) -> bool:
    """Whether a condition reads one of the values that its loop changes, or memory, which others may change."""
    ops = list(flat(test.body))
    if any(isinstance(v.type, GlobalType) for op in ops if op.name != "memref.dim" for v in op.operands):
        return True
    return not changed.isdisjoint(read(test))


def conditional(x: Expressions, expr: syntax.Conditional) -> Meaning:
    """`yes if condition else no`: only the one that is meant is computed."""
    condition = x.condition(expr.condition)
    if isinstance(condition, bool):
        return x.value(expr.yes if condition else expr.no)
    meanings: list[Meaning] = []
    sides: list[list[Step]] = []
    for part in (expr.yes, expr.no):
        with x.grid.block(), x.b.block() as ops:
            meanings.append(x.value(part))
        sides.append(ops)
    kind = joint_type(*meanings)
    if kind is None:
        numbers = all(isinstance(m, (int, float)) for m in meanings)
        hint = f"give one a dtype: cast({meanings[0]}, f32)" if numbers else "both have one type"
        message = f"this is either {describe(meanings[0])} or {describe(meanings[1])}"
        raise error("HK207", message, expr.yes.span, expr.no.span, hint=hint)
    ways = zip(meanings, (expr.yes, expr.no), sides, strict=True)
    values = [as_type(x.b, m, kind, part, ops) for m, part, ops in ways]
    if isinstance(kind, (IndexType, ScalarType)) and not any(
        isinstance(op, (Loop, Choice, Repeat)) or _costs(op) for ops in sides for op in ops
    ):
        x.b.ops += [*sides[0], *sides[1]]
        return x.b.op("arith.select", [condition, *values[0], *values[1]], kind, expr.span)
    results = tuple(Value(v.type, expr.span) for v in values[0])
    then, otherwise = (Block(tuple(ops), given) for ops, given in zip(sides, values, strict=True))
    x.b.ops.append(Choice(condition, then, otherwise, results, expr.span))
    return rebuilt(kind, iter(results))


def _costs(op: Step) -> bool:
    """Whether an op is more than a scalar instruction, or may not be computed where its result isn't wanted."""
    name = getattr(op, "name", "")
    return not name.startswith("arith.") or "div" in name or "rem" in name


def _at(name: syntax.Name, bound: Bound) -> syntax.Name:
    """The name where it was bound."""
    return syntax.Name(bound.span or name.span, name.name)


def _unique(names: Iterable[syntax.Name]) -> list[syntax.Name]:
    found: dict[str, syntax.Name] = {}
    for name in names:
        found.setdefault(name.name, name)
    return list(found.values())
