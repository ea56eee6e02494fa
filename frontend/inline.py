"""Functions that a file defines: checked and inlined at every call, with the values of that call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hkc.dialects.types import ScalarType, Type
from hkc.frontend import syntax
from hkc.frontend.carriers import dtype_of, pack, unpack
from hkc.frontend.codes import CALLS, NESTING
from hkc.frontend.constants import refuse_taken
from hkc.frontend.program import Block, Combine, Value, flat
from hkc.frontend.scope import VARIABLE, Bound, Meaning, Silenced, is_number, listed, suggestion
from hkc.support.errors import Diagnostic, HkcError, Note, Span, count, error

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions
    from hkc.frontend.statements import Statements


@dataclass
class Inliner:
    """The functions of a file; `names` are those that the whole file sees, `run` makes a checker for a body; `kernel`
    is the one that is being checked."""

    functions: Mapping[str, syntax.Function]
    names: Mapping[str, Bound]
    diagnostics: list[Diagnostic]
    kernel: str
    run: Callable[[dict[str, Bound]], Statements] | None = None
    active: list[str] = field(default_factory=list)
    calls: int = 0

    def call(self, x: Expressions, call: syntax.Call, name: str) -> Meaning | None:
        """What a call gives; None where the function returns nothing."""
        function = self.functions[name]
        given = [x.value(a) for a in call.arguments]
        named = {k.name.name: (k, x.value(k.value)) for k in call.keywords}
        arguments = self._bind(function, call, given, named)
        return self._inlined(function, arguments, call.span)

    def combine(self, x: Expressions, place: syntax.Expr, parts: tuple[Value, ...], carrier: str | None) -> str:
        """The symbol of a function of scalars, two sets of `parts` to one: what a scan is made with. They come and go
        as `carrier`, where there is one."""
        name = place.name if isinstance(place, syntax.Name) else ""
        function = self.functions.get(name)
        if function is None:
            hint = suggestion(name, self.functions) or "define it above: def combine(a, b):"
            raise error("HK301", "a function of this file is needed here", place.span, hint=hint)
        if len(function.parameters) != 2 * len(parts):
            message = f"`{name}` takes {count(len(function.parameters), 'value')}, but is given {2 * len(parts)}"
            notes = (Note("defined here", function.span),)
            hint = f"it takes {len(parts)} of the left part, then {len(parts)} of the right"
            raise error("HK211", message, place.span, notes=notes, hint=hint)
        wanted = [v.type for v in parts] * 2
        arguments = tuple(Value(ScalarType(carrier) if carrier else v.type, v.span) for v in parts * 2)
        with x.grid.block(), x.b.block() as ops:
            own = [unpack(x, v, dtype_of(p)) if carrier else v for v, p in zip(arguments, parts * 2, strict=True)]
            bound = {p.name.name: v for p, v in zip(function.parameters, own, strict=True)}
            given = self._results(x, place, self._inlined(function, bound, place.span), wanted[: len(parts)])
            given = tuple(pack(x, v, carrier) for v in given) if carrier else given
        for op in flat(ops):
            if not op.name.startswith(("arith.", "math.")):
                hint = "it may compute with its arguments, element by element"
                raise error("HK201", f"`{name}` combines scalars and can't do this", op.span, place.span, hint=hint)
        symbol = f"{self.kernel}_{name}_{len(x.b.functions)}"
        x.b.functions.append(Combine(symbol, arguments, Block(tuple(ops), given), function.span))
        return symbol

    def _results(
        self, x: Expressions, place: syntax.Expr, result: Meaning | None, wanted: Sequence[Type]
    ) -> tuple[Value, ...]:
        """What a combining function gives, numbers included, as values of the types that it takes."""
        results = result if isinstance(result, tuple) else (result,)
        values = [
            x.b.constant(found, kind, place.span) if is_number(found) else found
            for found, kind in zip(results, wanted, strict=False)
            if found is not None
        ]
        given = tuple(v for v in values if isinstance(v, Value))
        if len(given) != len(results) or [v.type for v in given] != list(wanted):
            expected = listed([Value(kind, place.span) for kind in wanted])
            got = listed([*values, *(r for r in results[len(wanted) :] if r is not None)])
            name = place.name if isinstance(place, syntax.Name) else ""
            hint = "a result for each tile, of its dtype"
            raise error("HK207", f"`{name}` must give {expected}, not {got}", place.span, hint=hint)
        return given

    def _bind(
        self,
        function: syntax.Function,
        call: syntax.Call,
        given: list[Meaning],
        named: Mapping[str, tuple[syntax.Keyword, Meaning]],
    ) -> dict[str, Meaning]:
        """Arguments by parameter. Raises `HkcError` for missing, unknown or repeated ones."""
        name, parameters = function.name.name, [p.name.name for p in function.parameters]
        hint = f"{name}({', '.join(parameters)})"
        notes = (Note(f"`{name}` is defined here", function.span),)
        if len(given) > len(parameters):
            message = f"`{name}` takes {count(len(parameters), 'argument')}, not {len(given)}"
            raise error("HK211", message, call.arguments[len(parameters)].span, notes=notes, hint=hint)
        bound = dict(zip(parameters, given, strict=False))
        for word, (keyword, meaning) in named.items():
            if word not in parameters:
                found = suggestion(word, parameters) or hint
                raise error("HK211", f"`{name}` has no argument `{word}`", keyword.name.span, notes=notes, hint=found)
            if word in bound:
                raise error(
                    "HK211", f"`{name}` gets `{word}` twice", keyword.span, notes=notes, hint="leave one of them out"
                )
            bound[word] = meaning
        missing = [p for p in function.parameters if p.name.name not in bound and p.default is None]
        if missing:
            raise error("HK211", f"`{name}` needs `{missing[0].name.name}`", call.span, notes=notes, hint=hint)
        return bound

    def _inlined(self, function: syntax.Function, arguments: Mapping[str, Meaning], place: Span) -> Meaning | None:
        name = function.name.name
        if name in self.active:
            chain = " -> ".join(f"`{n}`" for n in [*self.active[self.active.index(name) :], name])
            raise error("HK311", f"functions can't call themselves: {chain}", place, hint="use a loop")
        self.calls += 1
        if self.calls > CALLS:
            raise error("HK437", f"a kernel has at most {CALLS:,} calls of functions", place, hint="use a loop")
        if len(self.active) >= NESTING:
            raise error(
                "HK432", f"calls are nested more than {NESTING} deep", place, hint="put some of the functions together"
            )
        known = len(self.diagnostics)
        self.active.append(name)
        try:
            return self._body(function, arguments, known)
        finally:
            self.active.pop()
            note = Note(f"in the call of `{name}` here", place)
            self.diagnostics[known:] = [replace(d, notes=(*d.notes, note)) for d in self.diagnostics[known:]]

    def _body(self, function: syntax.Function, arguments: Mapping[str, Meaning], known: int) -> Meaning | None:
        assert self.run is not None
        statements = self.run(dict(self.names))
        scope = statements.scope.names
        for formal in function.parameters:
            refuse_taken(formal.name, self.names)
            name = formal.name.name
            if name in arguments:
                meaning = arguments[name]
            else:
                assert formal.default is not None
                meaning = statements.expressions.value(formal.default)
            scope[name] = Bound(meaning, VARIABLE, formal.span)
        *body, last = function.body
        gives = isinstance(last, syntax.Return)
        statements.body(body if gives else function.body)
        result: Meaning | None = None
        try:
            result = statements.result(last) if isinstance(last, syntax.Return) else None
        except HkcError as problem:
            self.diagnostics += problem.diagnostics
        if len(self.diagnostics) > known:
            raise Silenced
        return result
