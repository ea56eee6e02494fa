"""What a function of the language is: its parameters, the spelling that messages and docs show, what a call means.

`frontend/library.py` imports the modules that define them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hkc.frontend import syntax
from hkc.frontend.scope import Meaning, suggestion
from hkc.support.errors import Span, count, error

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions

Given = Mapping[str, syntax.Expr]
Handler = Callable[["Expressions", Given, Span], Meaning | None]


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its spelling, its parameters (those after `required` may be left out), and what a call means.

    The parameter `variadic` takes all further arguments without a name, as a sequence; `doc` is for the manual.
    """

    name: str
    spelling: str
    parameters: tuple[str, ...]
    required: int
    handler: Handler
    variadic: str | None = None
    doc: str = ""
    group: str = ""

    def bind(self, call: syntax.Call) -> Given:
        """The arguments by parameter. Raises `HkcError` for missing, unknown or repeated ones."""
        name = self.name
        if self.variadic is not None:
            at = self.parameters.index(self.variadic)
            rest = syntax.Sequence(call.span, call.arguments[at:])
            call = syntax.Call(call.span, call.callee, (*call.arguments[:at], rest), call.keywords)
        if len(call.arguments) > len(self.parameters):
            raise error(
                "HK211",
                f"`{name}` takes {count(len(self.parameters), 'argument')}, not {len(call.arguments)}",
                call.arguments[len(self.parameters)].span,
                hint=self.spelling,
            )
        given = dict(zip(self.parameters, call.arguments, strict=False))
        for keyword in call.keywords:
            word = keyword.name.name
            if word not in self.parameters:
                hint = suggestion(word, self.parameters) or self.spelling
                raise error("HK211", f"`{name}` has no argument `{word}`", keyword.name.span, hint=hint)
            if word in given:
                hint = "leave one of them out"
                raise error("HK211", f"`{name}` gets `{word}` twice", given[word].span, keyword.span, hint=hint)
            given[word] = keyword.value
        missing = [p for p in self.parameters[: self.required] if p not in given]
        if missing:
            first = call.arguments[0] if call.arguments and self.parameters[0] == "tensor" else None
            comma = "is a comma missing before `[`? " if isinstance(first, syntax.Index) else ""
            raise error("HK211", f"`{name}` needs `{missing[0]}`", call.span, hint=f"{comma}{self.spelling}")
        return given


FUNCTIONS: dict[str, Function] = {}


def function(signature: str, doc: str, spelling: str | None = None) -> Callable[[Handler], Handler]:
    """Registers a handler by a signature such as `sum(x, axis, keepdims=False)`; messages show `spelling`."""
    name, _, rest = signature.partition("(")
    parts = [p.strip() for p in rest.rstrip(")").split(",") if p.strip()]
    parameters = tuple(p.partition("=")[0].lstrip("*") for p in parts)
    variadic = next((p.lstrip("*") for p in parts if p.startswith("*")), None)
    required = sum("=" not in p for p in parts)

    def register(handler: Handler) -> Handler:
        group = handler.__module__.rpartition(".")[2]
        shown = spelling or signature
        FUNCTIONS[name] = Function(name, shown, parameters, required, handler, variadic, doc, group)
        return handler

    return register


def axes(rank: int) -> str:
    """What axes a tile of some rank has, as a hint."""
    return f"the first is 0, the last {rank - 1} or -1"
