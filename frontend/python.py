"""Kernels as Python functions: Python's own syntax tree becomes ours, with places in the Python file.

What a kernel mentions is looked up where Python would: numbers, bools and dtypes of its module are constants, those
made by `hkc.language.tune` tune parameters, other functions are inlined, and names of `hkc.language` are the language's
own whatever they are called there. Nothing of the function is executed.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

from hkc.frontend import syntax
from hkc.frontend.codes import FILE_BYTES, SPLIT_FILE
from hkc.frontend.library import WORDS
from hkc.frontend.parse import limit_depth
from hkc.frontend.python_syntax import Converter, refuse
from hkc.support.dtypes import DTYPES
from hkc.support.errors import Source, Span, error

LANGUAGE = "hkc.language"
"""The module whose names are those of the language."""

PREDEFINED = ("inf", "nan")
"""Its numbers, which the language knows by name."""


def read_function(function: Callable[..., Any]) -> syntax.File:
    """The syntax of a file that holds this function as its only kernel. Raises `HkcError` at the Python file's line."""
    if not isinstance(function, FunctionType):
        hint = "@hkc.kernel stands before a def"
        raise error("HK121", f"a kernel is a plain Python function, not {type(function).__name__}", hint=hint)
    reader = Reader()
    kernel = reader.kernel(_code(function))
    functions = tuple(reader.functions.values())
    constants = tuple(reader.constants.values())
    limit_depth([kernel, *functions])
    return syntax.File(kernel.span.source, constants, (), functions, (kernel,), (), ())


@dataclass(frozen=True)
class Code:
    """A function of a module: its file and node, what the names outside it stand for, and its own names."""

    source: Source
    node: ast.FunctionDef
    scope: Mapping[str, Any]
    own: frozenset[str]


@dataclass(frozen=True)
class Word:
    """An object of `hkc.language`, where that module is not loaded."""

    word: str


@dataclass(frozen=True)
class Unknown:
    """What only running a module would tell."""


MODULE = object()
"""Stands for any module: names of it are the language's."""


@dataclass
class Reader:
    """Collects what a kernel needs: constants and functions, by name."""

    constants: dict[str, syntax.Constant] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, syntax.Function] = field(default_factory=dict)

    def kernel(self, code: Code) -> syntax.Kernel:
        """The kernel that a function is."""
        node, convert = code.node, Converter(code.source, self._resolver(code))
        parameters = tuple(convert.parameter(a) for a in _arguments(convert, node))
        name = syntax.Name(convert.name_span(node), node.name)
        return syntax.Kernel(name.span, name, parameters, _hints(convert, node), convert.body(node.body))

    def _function(self, name: str, code: Code) -> None:
        """Adds a function that a kernel calls, once."""
        if name in self.functions:
            return
        node, convert = code.node, Converter(code.source, self._resolver(code))
        word = syntax.Name(convert.name_span(node), name)
        arguments = _arguments(convert, node)
        defaults = [None] * (len(arguments) - len(node.args.defaults)) + [convert.expr(d) for d in node.args.defaults]
        formals = tuple(
            syntax.Formal(convert.span(a), syntax.Name(convert.span(a), a.arg), d)
            for a, d in zip(arguments, defaults, strict=True)
        )
        self.functions[name] = syntax.Function(word.span, word, formals, ())
        self.functions[name] = syntax.Function(word.span, word, formals, convert.body(node.body))

    def _resolver(self, code: Code) -> Callable[[str, Span], str]:
        """What a free name of a function is called in the language; notes the constants and functions among them."""

        def resolve(name: str, span: Span) -> str:
            if name in code.own or name not in code.scope:
                return name
            return self._named(name, code.scope[name], span)

        return resolve

    def _named(self, name: str, value: Any, span: Span) -> str:
        if isinstance(value, ModuleType) or value is MODULE:
            return ""
        if isinstance(value, Unknown):
            hint = "a number, or a name of hkc.language"
            raise error("HK208", f"only running this file would tell what `{name}` is", span, hint=hint)
        if name in PREDEFINED and isinstance(value, float):
            return name
        if isinstance(value, (FunctionType, Code)):
            self._once(name, value, span)
            self._function(name, _code(value) if isinstance(value, FunctionType) else value)
            return name
        word = language_word(value)
        if word is not None and (word not in DTYPES or word == name):
            return word
        if word is not None or isinstance(value, (bool, int, float)):
            self._constant(name, word or value, span)
        return name

    def _constant(self, name: str, value: Any, span: Span) -> None:
        self._once(name, value, span)
        binding = syntax.Binding(span, syntax.Name(span, name), _literal(value, span))
        candidates = getattr(value, "candidates", None)
        listed = syntax.Sequence(span, tuple(_literal(c, span) for c in candidates)) if candidates else None
        self.constants[name] = syntax.Constant(span, binding, hasattr(value, "candidates"), listed)

    def _once(self, name: str, value: Any, span: Span) -> None:
        """One name stands for one thing in a kernel and all functions that it calls."""
        if self.values.setdefault(name, value) != value:
            hint = "rename one of them"
            raise error("HK304", f"`{name}` stands for different things in the modules of a kernel", span, hint=hint)


def language_word(value: Any) -> str | None:
    """The language's word for an object of `hkc.language`, or a builtin of the same meaning; None for others."""
    if isinstance(value, Word):
        return value.word
    if type(value).__module__ == LANGUAGE and isinstance(word := getattr(value, "word", None), str):
        return word
    name = getattr(value, "__name__", "")
    return name if name in WORDS and getattr(builtins, name, None) is value else None


def _literal(value: Any, span: Span) -> syntax.Expr:
    """A compile-time value as it would be written."""
    if isinstance(value, (bool, str)):
        return syntax.Name(span, str(value))
    if isinstance(value, float) and value != value:
        return syntax.Name(span, "nan")
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        inf = syntax.Name(span, "inf")
        return inf if value > 0 else syntax.Unary(span, "-", inf)
    number = syntax.Number(span, abs(int(value)) if isinstance(value, int) else abs(value))
    return number if value >= 0 else syntax.Unary(span, "-", number)


def _code(function: FunctionType) -> Code:
    """A live function."""
    closure = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
    scope = {**function.__globals__, **closure}
    return Code(*_find(function), scope, frozenset(function.__code__.co_varnames))


def _find(function: FunctionType) -> tuple[Source, ast.FunctionDef]:
    """The file of a function and its node in it. Raises `HkcError` where its source is not to be had."""
    try:
        lines, _ = inspect.findsource(function)
        name = inspect.getsourcefile(function) or function.__code__.co_filename
    except (OSError, TypeError):
        raise error("HK121", f"the source of `{function.__name__}` can't be read", hint="define it in a file") from None
    source = Source(name, "".join(lines))
    if len(source.text) > FILE_BYTES:
        raise error(
            "HK433", f"`{name}` has {len(source.text):,} characters; a file may have {FILE_BYTES:,}", hint=SPLIT_FILE
        )
    first = function.__code__.co_firstlineno
    for node in ast.walk(ast.parse(source.text)):
        if not isinstance(node, ast.FunctionDef) or node.name != function.__name__:
            continue
        if min([node.lineno, *(d.lineno for d in node.decorator_list)]) == first:
            return source, node
    raise error("HK121", f"`{function.__name__}` is not in {name} as it is now", hint="restart Python after a change")


def _arguments(convert: Converter, node: ast.FunctionDef) -> list[ast.arg]:
    """The parameters of a function, which are all plain ones."""
    given = node.args
    for extra in (given.vararg, given.kwarg, *given.kwonlyargs):
        if extra is not None:
            raise refuse("this kind of parameter", convert.span(extra), "name every parameter, without * and **")
    return [*given.posonlyargs, *given.args]


def _hints(convert: Converter, node: ast.FunctionDef) -> tuple[syntax.Binding, ...]:
    """The hints that the decorator `@hkc.kernel(waves=4)` gives."""
    found = []
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).split(".")[-1] == "kernel":
            for keyword in decorator.keywords:
                span = convert.span(keyword)
                name = syntax.Name(span, keyword.arg or "")
                found.append(syntax.Binding(span, name, convert.expr(keyword.value)))
    return tuple(found)
