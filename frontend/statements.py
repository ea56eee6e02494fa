"""Checks the statements of a kernel: assignments, loops with the variables they carry, stores, the grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from hkc.dialects.types import IndexType, ScalarType, TileType
from hkc.frontend import arithmetic, functions, syntax
from hkc.frontend.builder import Builder
from hkc.frontend.expressions import Expressions
from hkc.frontend.grid import Grid
from hkc.frontend.program import Loop, Value
from hkc.frontend.scope import Bound, Meaning, Operand, Scope, Silenced, count, describe
from hkc.support.errors import Diagnostic, HkcError, Note, error

VARIABLE = "variable"


class Statements:
    """Checks a body statement by statement; mistakes are collected, and what depends on them stays silent."""

    def __init__(self, scope: Scope, builder: Builder, diagnostics: list[Diagnostic]) -> None:
        self.scope = scope
        self.b = builder
        self.diagnostics = diagnostics
        self.grid = Grid()
        self.expressions = Expressions(scope, builder, self.grid)

    def body(self, statements: Sequence[syntax.Statement]) -> None:
        """Checks statements in order."""
        for statement in statements:
            try:
                self._statement(statement)
            except HkcError as problem:
                self.diagnostics += problem.diagnostics
                self._forget(statement)
            except Silenced:
                self._forget(statement)

    def _statement(self, statement: syntax.Statement) -> None:
        match statement:
            case syntax.Assign():
                self._assign(statement)
            case syntax.Augment():
                self._augment(statement)
            case syntax.For():
                self._for(statement)
            case syntax.Evaluate(value=value):
                if self.expressions.meaning(value) is not None:
                    raise error(
                        "HK212", "the value of this expression is not used", value.span, hint="give it a name: x = …"
                    )

    def _forget(self, statement: syntax.Statement) -> None:
        """After a mistake: the names that the statement would have defined are known, but stand for nothing."""
        for name in _assigned([statement]):
            bound = self.scope.names.get(name.name)
            if bound is None or bound.kind == VARIABLE:
                self.scope.names[name.name] = Bound(None, VARIABLE, name.span)

    # Assignments.

    def _assign(self, statement: syntax.Assign) -> None:
        targets, values = statement.targets, statement.values
        for target in targets:
            self._check_assignable(target)
        several = self.expressions.meaning(values[0]) if len(values) == 1 < len(targets) else None
        if isinstance(several, tuple):
            meanings: Sequence[Meaning] = several
        else:
            meanings = [self.expressions.operand(value).meaning for value in values]
        if len(meanings) != len(targets):
            names, given = count(len(targets), "name"), count(len(meanings), "value")
            raise error("HK214", f"{names} for {given}", *(t.span for t in targets), values[0].span)
        for target, meaning in zip(targets, meanings, strict=True):
            self._bind(target, meaning)

    def _bind(self, target: syntax.Name, meaning: Meaning | None) -> None:
        self.scope.names[target.name] = Bound(meaning, VARIABLE, target.span)

    def _check_assignable(self, target: syntax.Name) -> None:
        bound = self.scope.names.get(target.name)
        if bound is not None and bound.kind not in (VARIABLE, "unknown name"):
            notes = (Note(f"`{target.name}` is defined here", bound.span),) if bound.span else ()
            raise error(
                "HK303", f"`{target.name}` is a {bound.kind} and can't be assigned to", target.span, notes=notes
            )
        if (
            target.name in functions.FUNCTIONS
            or target.name in functions.SHAPED
            or target.name in ("range", "tile_ids")
        ):
            raise error(
                "HK303", f"`{target.name}` is a function of the language", target.span, hint="choose another name"
            )

    def _augment(self, statement: syntax.Augment) -> None:
        """`a op= x` means `a = a op x`; but `acc += dot(a, b)` is one op, `acc = dot(a, b, acc)`."""
        target, value = statement.target, statement.value
        before = Operand(self.scope.look_up(target), target)
        self._check_assignable(target)
        if statement.op == "+" and isinstance(value, syntax.Call) and value.callee == syntax.Name(value.span, "dot"):
            given = functions.FUNCTIONS["dot"].bind(value)
            if "acc" not in given:
                x = self.expressions
                self._bind(
                    target, functions.dot(x, x.tile(given["a"]), x.tile(given["b"]), x.tile(target), statement.span)
                )
                return
        operand = self.expressions.operand(value)
        self._bind(target, arithmetic.binary(self.b, statement.op, before, operand, statement.span))

    # Loops.

    def _for(self, loop: syntax.For) -> None:
        self._check_loop_variable(loop.variable)
        bounds = self._range(loop.iterable)
        outer_names, outer_ops = self.scope.names, self.b.ops
        carried = self._carried(loop)
        initial = tuple(self._initial(n, outer_names[n.name]) for n in carried)
        arguments = tuple(Value(v.type, v.span) for v in initial)
        variable = Value(IndexType(), loop.variable.span)
        inner = dict(outer_names)
        for name, value in zip(carried, arguments, strict=True):
            inner[name.name] = Bound(value, VARIABLE, name.span)
        inner[loop.variable.name] = Bound(variable, "loop variable", loop.variable.span)
        self.scope.names, self.b.ops = inner, []
        self.grid.loops += 1
        self.body(loop.body)
        yields = tuple(self._yielded(n, v) for n, v in zip(carried, arguments, strict=True))
        body = tuple(self.b.ops)
        self.scope.names, self.b.ops = outer_names, outer_ops
        self.grid.loops -= 1
        results = tuple(Value(v.type, v.span) for v in initial)
        self.b.ops.append(Loop(variable, bounds, initial, arguments, body, yields, results, loop.span))
        self.scope.gone |= {n: b.span for n, b in inner.items() if n not in outer_names and b.span}
        for name, value in zip(carried, results, strict=True):
            spoilt = inner[name.name].meaning is None
            outer_names[name.name] = Bound(None if spoilt else value, VARIABLE, name.span)

    def _check_loop_variable(self, variable: syntax.Name) -> None:
        bound = self.scope.names.get(variable.name)
        if bound is not None and bound.kind in (VARIABLE, "loop variable"):
            notes = (Note(f"`{variable.name}` is defined here", bound.span),) if bound.span else ()
            raise error(
                "HK303",
                f"`{variable.name}` already has a value",
                variable.span,
                notes=notes,
                hint="choose another name",
            )
        self._check_assignable(variable)

    def _range(self, iterable: syntax.Expr) -> tuple[Value, Value, Value]:
        if not (
            isinstance(iterable, syntax.Call)
            and isinstance(iterable.callee, syntax.Name)
            and iterable.callee.name == "range"
        ):
            raise error("HK201", "a loop runs over a range", iterable.span, hint="for k in range(start, stop, step):")
        if iterable.keywords or not 1 <= len(iterable.arguments) <= 3:
            raise error("HK211", "`range` takes one to three indices", iterable.span, hint="range(start, stop, step)")
        ends = [arithmetic.index(self.b, self.expressions.operand(a)) for a in iterable.arguments[:2]]
        if len(ends) == 1:
            ends.insert(0, self.b.constant(0, IndexType(), iterable.span))
        step = 1
        for argument in iterable.arguments[2:]:
            step = self.expressions.whole_number(argument, "the step of a range")
            if step <= 0:
                raise error("HK436", f"the step of a range must be positive, not {step}", argument.span)
        return ends[0], ends[1], self.b.constant(step, IndexType(), iterable.span)

    def _carried(self, loop: syntax.For) -> list[syntax.Name]:
        """The variables that exist before the loop and are assigned in it, in the order of their first assignment."""
        found: dict[str, syntax.Name] = {}
        for name in _assigned(loop.body):
            bound = self.scope.names.get(name.name)
            if bound is not None and bound.kind == VARIABLE and bound.meaning is not None:
                found.setdefault(name.name, name)
        return list(found.values())

    def _initial(self, name: syntax.Name, bound: Bound) -> Value:
        """What a carried variable is before the first iteration, as a value with a type."""
        meaning, place = bound.meaning, bound.span or name.span
        if isinstance(meaning, bool):
            return self.b.constant(meaning, ScalarType("bool"), place)
        if isinstance(meaning, int):
            return self.b.constant(meaning, IndexType(), place)
        if isinstance(meaning, float):
            self._cant_carry(name, bound, f"give it a dtype before the loop: {name.name} = cast({meaning}, f32)")
        if not isinstance(meaning, Value) or not isinstance(meaning.type, (IndexType, ScalarType, TileType)):
            self._cant_carry(name, bound, "use another name inside the loop")
        return meaning

    def _cant_carry(self, name: syntax.Name, bound: Bound, hint: str) -> NoReturn:
        assert bound.meaning is not None
        note = Note(f"`{name.name}` gets its value here", bound.span)
        raise error(
            "HK207",
            f"`{name.name}` is {describe(bound.meaning)} and can't change in a loop",
            name.span,
            notes=(note,),
            hint=hint,
        )

    def _yielded(self, name: syntax.Name, before: Value) -> Value:
        """What a carried variable is at the end of an iteration; its type must be the one it had before the loop."""
        bound = self.scope.names[name.name]
        meaning, place = bound.meaning, bound.span or name.span
        try:
            if isinstance(meaning, (bool, int, float)):
                return self.b.constant(meaning, before.type, place)
        except HkcError as problem:
            self.diagnostics += problem.diagnostics
            return before
        if meaning is None:
            return before
        if not isinstance(meaning, Value) or meaning.type != before.type:
            note = Note(f"`{name.name}` gets its type here", before.span)
            self.diagnostics.append(
                Diagnostic(
                    "HK207",
                    f"`{name.name}` is {describe(before)} before the loop but {describe(meaning)} after an iteration",
                    (place,),
                    (note,),
                    "a variable keeps its shape and dtype through a loop",
                )
            )
            return before
        return meaning


def _assigned(statements: Sequence[syntax.Statement]) -> Iterator[syntax.Name]:
    """The names that statements assign to, nested loops included."""
    for statement in statements:
        match statement:
            case syntax.Assign(targets=targets):
                yield from targets
            case syntax.Augment(target=target):
                yield target
            case syntax.For(body=body):
                yield from _assigned(body)
