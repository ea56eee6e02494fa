"""Operands with operators between them, as a tree: how tightly each operator binds."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

from hkc.frontend import syntax
from hkc.frontend.indent import span_of
from hkc.support.errors import Source, Span, error

LEVELS = {
    "OR": 0, "AND": 1, "NOT": 2, "COMPARE": 3, "BITOR": 4, "CARET": 5, "BITAND": 6, "SHIFT": 7,
    "PLUS": 8, "MINUS": 8, "TIMES": 9,
}  # fmt: skip
"""The kinds of operator by how tightly they bind, the loosest first."""

CHAINED = "combine two by `and`, for tiles by `&` and brackets"
"""What to write instead of `a < b < c`."""


def tree(source: Source, parts: Sequence[Token | syntax.Expr]) -> syntax.Expr:
    """The expression that operands and operators in turn make (`not` stands before its operand); equals bind to the
    left. Raises `HkcError` for comparisons in a chain."""
    waiting: list[Token] = []
    operands: list[syntax.Expr] = []
    for part in parts:
        if not isinstance(part, Token):
            operands.append(part)
            continue
        level = LEVELS[part.type]
        while part.type != "NOT" and waiting and LEVELS[waiting[-1].type] >= level:
            if part.type == waiting[-1].type == "COMPARE":
                raise error("HK112", "comparisons can't be chained", span_of(source, part), hint=CHAINED)
            _join(source, waiting.pop(), operands)
        waiting.append(part)
    while waiting:
        _join(source, waiting.pop(), operands)
    return operands[0]


def _join(source: Source, operator: Token, operands: list[syntax.Expr]) -> None:
    """Replace the last operands by what the operator makes of them."""
    right = operands.pop()
    if operator.type == "NOT":
        operands.append(syntax.Unary(_between(source, span_of(source, operator), right.span), "not", right))
    else:
        left = operands.pop()
        operands.append(syntax.Binary(_between(source, left.span, right.span), str(operator), left, right))


def _between(source: Source, first: Span, last: Span) -> Span:
    return Span(source, first.line, first.column, last.end_line, last.end_column)
