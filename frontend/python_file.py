"""Kernels of a Python file that is not run: what its names stand for is read off its top-level statements.

Imports from `hkc.language`, numbers and arithmetic of them, `tune(…)`, `Dim` and functions are understood; a kernel
that needs anything else of its module is refused, since only running the file would tell.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hkc.frontend import syntax
from hkc.frontend.codes import FILE_BYTES, SPLIT_FILE
from hkc.frontend.library import OPTIONS, STAR, WORDS
from hkc.frontend.parse import limit_depth
from hkc.frontend.python import LANGUAGE, MODULE, PREDEFINED, Code, Reader, Unknown, Word
from hkc.support.dtypes import DTYPES
from hkc.support.errors import Source, Span, error

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


class _Tuned(int):
    """A number that `tune` marks, with the values that a search tries."""

    candidates: tuple[int, ...] = ()


def read_file(source: Source) -> syntax.File:
    """The syntax of all kernels of a Python file. Raises `HkcError` at the file's line."""
    if len(source.text) > FILE_BYTES:
        raise error(
            "HK433",
            f"`{source.name}` has {len(source.text):,} characters; a file may have {FILE_BYTES:,}",
            hint=SPLIT_FILE,
        )
    try:
        module = ast.parse(source.text)
    except SyntaxError as problem:
        line, column = problem.lineno or 1, problem.offset or 1
        raise error(
            "HK101",
            f"not Python: {problem.msg}",
            Span(source, line, column, line, column + 1),
            hint="a kernel in a .py file is Python text",
        ) from None
    except (RecursionError, MemoryError):
        hint = "split long expressions into statements"
        raise error("HK432", f"`{source.name}` is nested too deep for Python's parser", hint=hint) from None
    scope = _Scope(source)
    for statement in module.body:
        scope.statement(statement)
    if not scope.kernels:
        hint = "put @hkc.kernel before a function"
        raise error("HK122", "no kernel in this file", Span(source, 1, 1, 1, 1), hint=hint)
    reader = Reader()
    kernels = tuple(reader.kernel(code) for code in scope.kernels)
    functions, constants = tuple(reader.functions.values()), tuple(reader.constants.values())
    limit_depth([*kernels, *functions])
    return syntax.File(source, constants, (), functions, kernels, (), ())


@dataclass
class _Scope:
    """The names of a module, as far as they are known, and its kernels in order."""

    source: Source

    def __post_init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.kernels: list[Code] = []

    def statement(self, node: ast.stmt) -> None:
        """Note what a top-level statement defines."""
        match node:
            case ast.Import(names=names):
                self.names |= {a.asname or a.name.split(".")[0]: MODULE for a in names}
            case ast.ImportFrom(module="hkc.language", names=[ast.alias(name="*")]):
                self.names |= {name: _word(name) for name in STAR}
            case ast.ImportFrom(module=module, names=names):
                self.names |= {a.asname or a.name: _imported(module, a.name) for a in names}
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self.names[name] = self._value(value)
            case ast.FunctionDef():
                self._function(node)
            case _:
                self.names |= dict.fromkeys(_assigned(node), Unknown())

    def _function(self, node: ast.FunctionDef) -> None:
        code = Code(self.source, node, self.names, frozenset(_locals(node)))
        if any(_is_kernel(d) for d in node.decorator_list):
            self.kernels.append(code)
        else:
            self.names[node.name] = code

    def _value(self, node: ast.expr) -> Any:
        """What an expression of the module is, or `Unknown`."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return value
            case ast.Name(id=name):
                return self.names.get(name, Unknown())
            case ast.Attribute(value=ast.Name(id=base), attr=word) if self.names.get(base) is MODULE:
                return _word(word)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self._value(operand)
                return -number if isinstance(number, (int, float)) else Unknown()
            case ast.BinOp():
                return self._arithmetic(node)
            case ast.Call(func=called, args=[value, *rest], keywords=[]) if _last(called) == "tune":
                return self._tuned(value, rest)
        return Unknown()

    def _arithmetic(self, node: ast.BinOp) -> Any:
        left, right = self._value(node.left), self._value(node.right)
        compute = _ARITHMETIC.get(type(node.op))
        if compute is None or not all(isinstance(side, (int, float)) for side in (left, right)):
            return Unknown()
        try:
            return compute(left, right)
        except (ArithmeticError, ValueError):
            return Unknown()

    def _tuned(self, value: ast.expr, rest: list[ast.expr]) -> Any:
        number = self._value(value)
        listed = rest[0].elts if rest and isinstance(rest[0], (ast.List, ast.Tuple)) else []
        candidates = tuple(self._value(item) for item in listed)
        if not all(isinstance(n, int) for n in (number, *candidates)) or len(rest) > 1:
            return Unknown()
        made = _Tuned(number)
        made.candidates = candidates
        return made


def _imported(module: str | None, name: str) -> Any:
    if module == LANGUAGE:
        return _word(name)
    return MODULE if f"{module}.{name}" == LANGUAGE else Unknown()


def _word(name: str) -> Any:
    """What `hkc.language` calls so."""
    word = name.removesuffix("_")
    if name in PREDEFINED:
        return float(name)
    return Word(word) if word in WORDS or word in DTYPES or word in OPTIONS else None


def _last(node: ast.expr) -> str:
    return ast.unparse(node).split(".")[-1]


def _is_kernel(decorator: ast.expr) -> bool:
    return _last(decorator.func if isinstance(decorator, ast.Call) else decorator) == "kernel"


def _assigned(node: ast.AST) -> Iterator[str]:
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _locals(node: ast.FunctionDef) -> Iterator[str]:
    yield from (a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg))
    yield from _assigned(node)
