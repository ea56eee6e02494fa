"""What a `.hk` file says, as records with positions; nothing here is checked yet. Equal text gives equal records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from hkc.support.errors import Source, Span


@dataclass(frozen=True, slots=True)
class Node:
    """Anything with a place in the source. Places don't count in comparisons."""

    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Number(Node):
    """`128`, `0x10`, `1.5e-3`."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name, wherever one stands; `True`, `False`, `inf` and `nan` are names too."""

    name: str


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`-x`, `+x`, `~x` or `not x`."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Arithmetic (`+ - * / // % @ **`), bits (`& | ^ << >>`), a comparison (`== != < <= > >=`), `and` or `or`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """`base.name`."""

    base: Expr
    name: Name


@dataclass(frozen=True, slots=True)
class Cut(Node):
    """`start:stop` in square brackets."""

    start: Expr | None
    stop: Expr | None


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`zeros[f32, 64, 64]` or `tile[0:32, :]`: something with a list in square brackets."""

    base: Expr
    items: tuple[Expr | Cut, ...]

    @property
    def word(self) -> str:
        """The name before the brackets; "" where there is none."""
        return self.base.name if isinstance(self.base, Name) else ""


@dataclass(frozen=True, slots=True)
class Keyword(Node):
    """`axis=1` in a call."""

    name: Name
    value: Expr


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`callee(arguments, keywords)`."""

    callee: Expr
    arguments: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    """`[a, b]`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Several(Node):
    """`(a, b)`: several values under one name."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """`yes if condition else no`."""

    yes: Expr
    condition: Expr
    no: Expr


@dataclass(frozen=True, slots=True)
class Text(Node):
    """`"…"` as an argument."""

    text: str


Expr = Number | Name | Unary | Binary | Attribute | Index | Call | Sequence | Several | Conditional | Text


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """`a = x`, or `a, b = x, y`, or `a, b = f()`."""

    targets: tuple[Name, ...]
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Augment(Node):
    """`a += x`; `op` is the operator without its `=`."""

    target: Name
    op: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Evaluate(Node):
    """An expression that stands for itself: `store(…)`."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Return(Node):
    """`return a, b`."""

    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Assert(Node):
    """`assert condition, "message"`."""

    condition: Expr
    message: str


@dataclass(frozen=True, slots=True)
class For(Node):
    """`for variables in iterable:` and its body; the span is that of the first line."""

    variables: tuple[Name, ...]
    iterable: Expr
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If(Node):
    """`if condition:`; an `elif` is an `If` alone in `otherwise`. The span is that of the first line."""

    condition: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class While(Node):
    """`while condition:` and its body; the span is that of the first line."""

    condition: Expr
    body: tuple[Statement, ...]


Statement = Assign | Augment | Evaluate | Return | Assert | For | If | While


@dataclass(frozen=True, slots=True)
class Binding(Node):
    """`NAME = value` of `const`, `tune`, `example`, `reference`, or of a hint."""

    name: Name
    value: Expr


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """`name: type` of a kernel."""

    name: Name
    type: Expr


@dataclass(frozen=True, slots=True)
class Kernel(Node):
    """A kernel; its span is that of its name."""

    name: Name
    parameters: tuple[Parameter, ...]
    hints: tuple[Binding, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Formal(Node):
    """A parameter of a function, and its default."""

    name: Name
    default: Expr | None


@dataclass(frozen=True, slots=True)
class Function(Node):
    """`def name(parameters):`; its span is that of its name."""

    name: Name
    parameters: tuple[Formal, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """One `const` or `tune` binding, in the order of the file, with the values that a search tries (`in [64, 128]`)."""

    binding: Binding
    tunable: bool
    candidates: Expr | None = None


@dataclass(frozen=True, slots=True)
class Constraint(Node):
    """A condition between tune parameters, after `where`."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Import(Node):
    """`from file import function, …`."""

    file: Name
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class File:
    """A whole file: constants, functions, kernels, example extents and the oracle's formulas, each in the order of the
    text, and what it takes from other files."""

    source: Source = field(compare=False, repr=False)
    constants: tuple[Constant, ...]
    constraints: tuple[Constraint, ...]
    functions: tuple[Function, ...]
    kernels: tuple[Kernel, ...]
    examples: tuple[Binding, ...]
    references: tuple[Binding, ...]
    imports: tuple[Import, ...] = ()


def children(node: Node) -> Iterator[Node]:
    """The nodes directly inside a node, in the order of the text."""
    kind: Any = type(node)
    for name in _names(kind):
        part = getattr(node, name)
        if isinstance(part, Node):
            yield part
        elif isinstance(part, tuple):
            yield from part


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """The names of a record's fields but its place."""
    return tuple(each.name for each in fields(kind) if each.name != "span")


def names(node: Node) -> Iterator[str]:
    """The names that a node mentions, in the order of the text."""
    if isinstance(node, Name):
        yield node.name
    for child in children(node):
        yield from names(child)
