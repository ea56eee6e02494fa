"""Checks the statements of a kernel or function: assignments, loops and branches, stores, results."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence

from hkc.frontend import arithmetic, matrix, ranges, syntax, telling
from hkc.frontend.builder import Builder
from hkc.frontend.control import Control
from hkc.frontend.expressions import Expressions
from hkc.frontend.functions import FUNCTIONS
from hkc.frontend.grid import Grid
from hkc.frontend.inline import Inliner
from hkc.frontend.joins import assigned
from hkc.frontend.scope import VARIABLE, Bound, Meaning, Operand, Scope, Silenced
from hkc.support.errors import Diagnostic, HkcError, Note, count, error


class Statements:
    """Checks a body statement by statement; mistakes are collected, and what depends on them stays silent."""

    def __init__(
        self, scope: Scope, builder: Builder, diagnostics: list[Diagnostic], grid: Grid, inliner: Inliner | None = None
    ) -> None:
        self.scope = scope
        self.b = builder
        self.diagnostics = diagnostics
        self.expressions = Expressions(scope, builder, grid, inliner)
        self.control = Control(self.expressions, diagnostics, self.body)
        if inliner is not None and inliner.run is None:
            inliner.run = lambda names: Statements(Scope(ChainMap(names)), self.b, diagnostics, grid, inliner)

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

    def result(self, statement: syntax.Return) -> Meaning:
        """What a function returns: several values as a tuple."""
        found = tuple(self.expressions.value(v) for v in statement.values)
        return found[0] if len(found) == 1 else found

    def _statement(self, statement: syntax.Statement) -> None:
        match statement:
            case syntax.Assign():
                self._assign(statement)
            case syntax.Augment():
                self._augment(statement)
            case syntax.For():
                self._for(statement)
            case syntax.If():
                self.control.choice(statement)
            case syntax.While():
                self.control.repeat(statement)
            case syntax.Assert():
                telling.claim(self.expressions, statement)
            case syntax.Return():
                hint = "use `if` before"
                raise error("HK312", "`return` stands in the last line of a function only", statement.span, hint=hint)
            case syntax.Evaluate(value=value):
                if self.expressions.meaning(value) is not None:
                    raise error(
                        "HK212", "the value of this expression is not used", value.span, hint="give it a name: x = …"
                    )

    def _forget(self, statement: syntax.Statement) -> None:
        """After a mistake: the names that the statement would have defined are known, but stand for nothing."""
        for name in assigned([statement]):
            bound = self.scope.names.get(name.name)
            if bound is None or bound.kind == VARIABLE:
                self.scope.names[name.name] = Bound(None, VARIABLE, name.span)

    # Assignments.

    def _assign(self, statement: syntax.Assign) -> None:
        targets, values = statement.targets, statement.values
        for target in targets:
            self._check_assignable(target)
        if len(values) == 1:
            given = self.expressions.value(values[0])
            meanings: Sequence[Meaning] = given if isinstance(given, tuple) and len(targets) > 1 else [given]
        else:
            meanings = [self.expressions.value(value) for value in values]
        if len(meanings) != len(targets):
            names, found = count(len(targets), "name"), count(len(meanings), "value")
            hint = f"{found} {'takes' if len(meanings) == 1 else 'take'} {count(len(meanings), 'name')}"
            if len(targets) == 1:
                hint += "; in parentheses they are a tuple, which takes one"
            raise error("HK214", f"{names} for {found}", *(t.span for t in targets), values[0].span, hint=hint)
        for target, meaning in zip(targets, meanings, strict=True):
            self._bind(target, meaning)

    def _bind(self, target: syntax.Name, meaning: Meaning | None) -> None:
        self.scope.names[target.name] = Bound(meaning, VARIABLE, target.span)

    def _check_assignable(self, target: syntax.Name) -> None:
        bound = self.scope.names.get(target.name)
        if bound is not None and bound.kind not in (VARIABLE, "unknown name"):
            notes = (Note(f"`{target.name}` is defined here", bound.span),) if bound.span else ()
            raise error(
                "HK303",
                f"`{target.name}` is a {bound.kind} and can't be assigned to",
                target.span,
                notes=notes,
                hint="give the new value a name of its own",
            )
        if target.name in self.expressions.words:
            raise error("HK303", f"`{target.name}` is a function", target.span, hint="choose another name")

    def _augment(self, statement: syntax.Augment) -> None:
        """`a op= x` means `a = a op x`; but `acc += dot(a, b)` is one op, `acc = dot(a, b, acc)`."""
        target, value = statement.target, statement.value
        before = Operand(self.scope.look_up(target), target)
        self._check_assignable(target)
        if statement.op == "+" and isinstance(value, syntax.Call) and value.callee == syntax.Name(value.span, "dot"):
            given = FUNCTIONS["dot"].bind(value)
            if "acc" not in given:
                x = self.expressions
                self._bind(
                    target, matrix.dot(x, x.tile(given["a"]), x.tile(given["b"]), x.tile(target), statement.span)
                )
                return
        operand = self.expressions.operand(value)
        self._bind(target, arithmetic.binary(self.b, statement.op, before, operand, statement.span))

    # Loops.

    def _for(self, loop: syntax.For) -> None:
        for variable in loop.variables:
            self._check_loop_variable(variable)
        walk = ranges.walk(self.expressions, loop)
        self.control.loop(loop, walk.bounds, walk.bind)

    def _check_loop_variable(self, variable: syntax.Name) -> None:
        bound = self.scope.names.get(variable.name)
        if bound is not None and bound.kind in (VARIABLE, "loop variable"):
            notes = (Note(f"`{variable.name}` is defined here", bound.span),) if bound.span else ()
            hint = "choose another name"
            raise error("HK303", f"`{variable.name}` already has a value", variable.span, notes=notes, hint=hint)
        self._check_assignable(variable)
