"""Text to syntax: reads files, runs the LALR parser, and builds the records of `frontend/syntax.py` as it goes."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from lark import Token, Transformer

from hkc.frontend import syntax
from hkc.frontend.characters import explain_character
from hkc.frontend.codes import FILE_BYTES, NESTING, SPLIT_FILE
from hkc.frontend.imports import with_imports
from hkc.frontend.indent import Layout, span_of
from hkc.frontend.lalr import Machine, UnexpectedCharacter, UnexpectedToken
from hkc.frontend.mistakes import INTO_PLACES, explain_token, shorten
from hkc.frontend.operators import tree
from hkc.support import collector
from hkc.support.errors import Source, Span, error


def read(path: str | Path) -> Source:
    """The text of a file, under the name as given. Raises `HkcError` where it can't be read as UTF-8 text."""
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise error(
            "HK121", f"can't read `{path}`: {(problem.strerror or str(problem)).lower()}", hint="check the path"
        ) from None
    except ValueError:
        raise error("HK121", f"can't read `{path!r}`: not a path", hint="a path holds no NUL character") from None
    if len(data) > FILE_BYTES:
        raise error(
            "HK433", f"`{path}` has {len(data):,} bytes; a kernel file may have {FILE_BYTES:,}", hint=SPLIT_FILE
        )
    if data.startswith(b"\x7fELF"):
        hint = f"`hkc emulate {path} --check` is for machine code"
        raise error("HK121", f"`{path}` is a binary file, not a kernel", hint=hint)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise error(
            "HK121", f"`{path}` is not UTF-8 text (byte {problem.start}, line {line})", hint="save it as UTF-8"
        ) from None
    if "\0" in text:
        raise error("HK121", f"`{path}` is a binary file, not a kernel", hint="name a text: a .hk or .py file")
    return Source(str(path), text)


def parse(source: Source) -> syntax.File:
    """The syntax of a whole file. Raises `HkcError` with the first mistake."""
    if len(source.text) > FILE_BYTES:
        raise error(
            "HK433",
            f"`{source.name}` has {len(source.text):,} characters; a file may have {FILE_BYTES:,}",
            hint=SPLIT_FILE,
        )
    file = _syntax(source)
    if not file.kernels:
        place = Span(file.source, 1, 1, 1, 1)
        raise error("HK122", "no kernel in this file", place, hint="a kernel starts with `kernel name(…):`")
    return with_imports(file, lambda path: _syntax(read(path)))


def _syntax(source: Source) -> syntax.File:
    """What the text itself says."""
    source = Source(source.name, source.text.replace("\r\n", "\n").replace("\r", "\n"))
    with collector.held():
        return _parser().parse(source)


@cache
def _parser() -> _Parser:
    return _Parser()


class _Parser:
    """The parser tables, with the state of the one parse that runs at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._layout = Layout()
        self._build = _Build()
        self._machine = Machine(Path(__file__).with_name("hk.lark").read_text("utf-8"), self._build, self._layout)

    def parse(self, source: Source) -> syntax.File:
        with self._lock:
            self._layout.begin(source)
            self._build.source = source
            try:
                items: Any = self._machine.parse(source.text + "\n")
            except UnexpectedToken as problem:
                raise explain_token(self._layout, problem.token, problem.expected) from None
            except UnexpectedCharacter as problem:
                raise explain_character(self._layout, problem.line, problem.column, problem.character) from None
        return _file(source, items)


def _file(source: Source, items: list[Any]) -> syntax.File:
    flat = [part for item in items for part in item]
    kernels = tuple(k for k in flat if isinstance(k, syntax.Kernel))
    imports = tuple(i for i in flat if isinstance(i, syntax.Import))
    groups: dict[str, list[syntax.Binding]] = {"example": [], "reference": []}
    for item in flat:
        if isinstance(item, tuple):
            groups[item[0]].append(item[1])
    constants = tuple(c for c in flat if isinstance(c, syntax.Constant))
    constraints = tuple(c for c in flat if isinstance(c, syntax.Constraint))
    functions = tuple(f for f in flat if isinstance(f, syntax.Function))
    examples, references = tuple(groups["example"]), tuple(groups["reference"])
    limit_depth([*kernels, *functions, *constants, *constraints, *examples, *references])
    return syntax.File(source, constants, constraints, functions, kernels, examples, references, imports)


def limit_depth(nodes: Iterable[syntax.Node]) -> None:
    """Refuses trees that a recursive walk couldn't take. Long chains such as `a + b + …` are deep, too."""
    waiting = [(node, 0) for node in nodes]
    while waiting:
        node, depth = waiting.pop()
        if depth > NESTING:
            hint = "split it into several statements"
            raise error("HK432", f"this expression is nested more than {NESTING} deep", node.span, hint=hint)
        for child in syntax.children(node):
            waiting.append((child, 0 if isinstance(child, syntax.Statement) else depth + 1))


class _Build(Transformer[Token, Any]):
    """One method per grammar rule, called with its children when the rule is complete."""

    source = Source("", "")

    def __init__(self) -> None:
        super().__init__(visit_tokens=False)

    def _name(self, token: Token) -> syntax.Name:
        return syntax.Name(span_of(self.source, token), str(token))

    def _between(self, first: Span, last: Span) -> Span:
        return Span(self.source, first.line, first.column, last.end_line, last.end_column)

    def _after(self, span: Span) -> Span:
        """The place just after a node."""
        return Span(self.source, span.end_line, span.end_column, span.end_line, span.end_column + 1)

    # Items. Each gives a list, since one line may say several things.

    def start(self, items: list[Any]) -> list[Any]:
        return items

    def borrow(self, parts: list[Any]) -> list[syntax.Import]:
        file, *names = (self._name(p) for p in parts if p.type == "NAME")
        return [syntax.Import(self._between(file.span, names[-1].span), file, tuple(names))]

    def const(self, bindings: list[syntax.Binding]) -> list[syntax.Constant]:
        return [syntax.Constant(b.span, b, tunable=False) for b in bindings]

    def tune(self, parts: list[Any]) -> list[syntax.Constant | syntax.Constraint]:
        return [*parts[:-1], *parts[-1]]

    def candidate(self, parts: list[Any]) -> syntax.Constant:
        binding = self.binding(parts[:3])
        values = parts[3] if len(parts) > 3 else None
        return syntax.Constant(self._between(binding.span, parts[-1].span), binding, True, values)

    def constraints(self, conditions: list[syntax.Expr]) -> list[syntax.Constraint]:
        return [syntax.Constraint(c.span, c) for c in conditions]

    def function(self, parts: list[Any]) -> list[syntax.Function]:
        name, parameters, body = self._name(parts[1]), parts[2], parts[-1]
        return [syntax.Function(name.span, name, parameters, body)]

    def formals(self, parts: list[syntax.Formal]) -> tuple[syntax.Formal, ...]:
        return tuple(parts)

    def formal(self, parts: list[Any]) -> syntax.Formal:
        name, default = self._name(parts[0]), parts[2] if len(parts) > 1 else None
        return syntax.Formal(self._between(name.span, (default or name).span), name, default)

    def example(self, bindings: list[syntax.Binding]) -> list[tuple[str, syntax.Binding]]:
        return [("example", b) for b in bindings]

    def reference(self, bindings: list[syntax.Binding]) -> list[tuple[str, syntax.Binding]]:
        return [("reference", b) for b in bindings]

    def binding(self, parts: list[Any]) -> syntax.Binding:
        name, value = self._name(parts[0]), parts[2]
        return syntax.Binding(self._between(name.span, value.span), name, value)

    def kernel(self, parts: list[Any]) -> list[syntax.Kernel]:
        name, parameters, hints, body = self._name(parts[0]), parts[1], parts[2], parts[-1]
        return [syntax.Kernel(name.span, name, parameters, hints, body)]

    def parameters(self, parts: list[syntax.Parameter]) -> tuple[syntax.Parameter, ...]:
        return tuple(parts)

    def parameter(self, parts: list[Any]) -> syntax.Parameter:
        name, kind = self._name(parts[0]), parts[-1]
        return syntax.Parameter(self._between(name.span, kind.span), name, kind)

    def hints(self, bindings: list[syntax.Binding]) -> tuple[syntax.Binding, ...]:
        return tuple(bindings)

    def body(self, statements: list[syntax.Statement]) -> tuple[syntax.Statement, ...]:
        return tuple(statements)

    # Statements.

    def assign(self, parts: list[Any]) -> syntax.Assign:
        targets, _, values = parts
        span = self._between(targets[0].span, values[-1].span)
        return syntax.Assign(span, tuple(self._target(t) for t in targets), values)

    def augment(self, parts: list[Any]) -> syntax.Augment:
        target, op, value = parts
        return syntax.Augment(self._between(target.span, value.span), self._target(target), op[:-1], value)

    def _target(self, target: syntax.Expr) -> syntax.Name:
        if not isinstance(target, syntax.Name):
            indexed = isinstance(target, syntax.Index)
            hint = INTO_PLACES if indexed else "x = …"
            raise error("HK113", "only a name can be assigned to", target.span, hint=hint)
        return target

    def evaluate(self, parts: list[Any]) -> syntax.Evaluate:
        return syntax.Evaluate(parts[0].span, parts[0])

    def give(self, parts: list[Any]) -> syntax.Return:
        word, values = parts
        return syntax.Return(self._between(span_of(self.source, word), values[-1].span), values)

    def claim(self, parts: list[Any]) -> syntax.Assert:
        word, condition, *message = parts
        text = unquote(message[0]) if message else ""
        return syntax.Assert(self._between(span_of(self.source, word), condition.span), condition, text)

    def loop(self, parts: list[Any]) -> syntax.For:
        variables = tuple(self._name(p) for p in parts if isinstance(p, Token) and p.type == "NAME")
        iterable, body = parts[len(variables)], parts[-1]
        return syntax.For(self._between(variables[0].span, iterable.span), variables, iterable, body)

    def branch(self, parts: list[Any]) -> syntax.If:
        words = [p for p in parts if isinstance(p, Token) and p.type in ("IF", "ELIF")]
        if len(words) > NESTING:
            raise error(
                "HK432",
                f"an `if` has at most {NESTING} branches",
                span_of(self.source, words[NESTING]),
                hint="start another `if`",
            )
        found = [p for p in parts if not isinstance(p, Token)]
        rest: tuple[syntax.Statement, ...] = found.pop() if len(found) % 2 else ()
        for word in reversed(words):
            body, condition = found.pop(), found.pop()
            made = syntax.If(self._between(span_of(self.source, word), condition.span), condition, body, rest)
            rest = (made,)
        return made

    def repeat(self, parts: list[Any]) -> syntax.While:
        word, condition, body = parts[0], parts[1], parts[-1]
        return syntax.While(self._between(span_of(self.source, word), condition.span), condition, body)

    def expressions(self, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(parts)

    # Expressions.

    def chain(self, parts: list[Any]) -> syntax.Expr:
        return tree(self.source, parts)

    def binary(self, parts: list[Any]) -> syntax.Binary:
        left, op, right = parts
        return syntax.Binary(self._between(left.span, right.span), str(op), left, right)

    def unary(self, parts: list[Any]) -> syntax.Unary:
        op, operand = parts
        return syntax.Unary(self._between(span_of(self.source, op), operand.span), str(op), operand)

    def conditional(self, parts: list[Any]) -> syntax.Conditional:
        yes, _, condition, _, no = parts
        return syntax.Conditional(self._between(yes.span, no.span), yes, condition, no)

    def several(self, parts: list[Any]) -> syntax.Several:
        return syntax.Several(span_of(self.source, parts[0], parts[-1]), tuple(parts[1:-1]))

    def text(self, parts: list[Token]) -> syntax.Text:
        return syntax.Text(span_of(self.source, parts[0]), unquote(parts[0]))

    def attribute(self, parts: list[Any]) -> syntax.Attribute:
        base, name = parts[0], self._name(parts[1])
        return syntax.Attribute(self._between(base.span, name.span), base, name)

    def call(self, parts: list[Any]) -> syntax.Call:
        callee, _, arguments, close = parts
        span = self._between(callee.span, span_of(self.source, close))
        keywords = tuple(a for a in arguments if isinstance(a, syntax.Keyword))
        for before, after in pairwise(arguments):
            if isinstance(before, syntax.Keyword) and not isinstance(after, syntax.Keyword):
                hint = f"`{before.name.name} = …` names an argument; `==` compares"
                raise error("HK107", "an argument without a name after one with a name", after.span, hint=hint)
        return syntax.Call(span, callee, arguments[: len(arguments) - len(keywords)], keywords)

    def arguments(self, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(parts)

    def keyword(self, parts: list[Any]) -> syntax.Keyword:
        name, value = self._name(parts[0]), parts[2]
        return syntax.Keyword(self._between(name.span, value.span), name, value)

    def items(self, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(parts)

    def subscripts(self, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(parts)

    def cut(self, parts: list[Any]) -> syntax.Cut:
        start, colon, stop = parts
        span = span_of(self.source, colon)
        first, last = start.span if start else span, stop.span if stop else span
        return syntax.Cut(self._between(first, last), start, stop)

    def index(self, parts: list[Any]) -> syntax.Index:
        base, _, items, close = parts
        if isinstance(base, (syntax.Sequence, syntax.Number)):
            hint = "arguments and items are separated by `,`"
            raise error("HK104", "a comma is missing before `[`", self._after(base.span), hint=hint)
        return syntax.Index(self._between(base.span, span_of(self.source, close)), base, items)

    def sequence(self, parts: list[Any]) -> syntax.Sequence:
        return syntax.Sequence(span_of(self.source, parts[0], parts[2]), parts[1])

    def name(self, parts: list[Token]) -> syntax.Name:
        return self._name(parts[0])

    def number(self, parts: list[Token]) -> syntax.Number:
        text, span = str(parts[0]), span_of(self.source, parts[0])
        value = read_number(text)
        if value is None:
            raise error("HK114", f"`{shorten(text)}` is not a number", span, hint="write 128, 0x80, 1.5 or 1e-3")
        if (isinstance(value, int) and value >= 2**64) or math.isinf(value):
            hint = "the largest float is about 1.8e308; inf is a number, too"
            raise error("HK114", f"`{shorten(text)}` is too large a number", span, hint=hint)
        return syntax.Number(span, value)


def unquote(token: str) -> str:
    """What stands between quotes; a backslash has no meaning in it."""
    return token.strip(token[0])


def read_number(text: str) -> int | float | None:
    """The number that a text writes, or None."""
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None
