"""What a `.hk` file says, as records with positions; nothing here is checked yet. Equal text gives equal records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

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
    """`-x` or `+x`."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Arithmetic (`+ - * / // % @ **`) or a comparison (`== != < <= > >=`)."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """`base.name`."""

    base: Expr
    name: Name


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`zeros[f32, 64, 64]`: a name with a list in square brackets."""

    base: Name
    items: tuple[Expr, ...]


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


Expr = Number | Name | Unary | Binary | Attribute | Index | Call | Sequence


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
class For(Node):
    """`for variable in iterable:` and its body; the span is that of the first line."""

    variable: Name
    iterable: Expr
    body: tuple[Statement, ...]


Statement = Assign | Augment | Evaluate | For


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
class Constant(Node):
    """One `const` or `tune` binding, in the order of the file."""

    binding: Binding
    tunable: bool


@dataclass(frozen=True, slots=True)
class File:
    """A whole file: constants, kernels, example extents and the oracle's formulas, each in the order of the text."""

    source: Source = field(compare=False, repr=False)
    constants: tuple[Constant, ...]
    kernels: tuple[Kernel, ...]
    examples: tuple[Binding, ...]
    references: tuple[Binding, ...]


def children(node: Node) -> Iterator[Node]:
    """The nodes directly inside a node, in the order of the text."""
    for each in fields(node):
        part = getattr(node, each.name)
        if isinstance(part, Node):
            yield part
        elif isinstance(part, tuple):
            yield from part
