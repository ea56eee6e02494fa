"""Python's syntax tree to ours, node by node; what the language doesn't have is refused at its place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from hkc.frontend import syntax
from hkc.frontend.mistakes import INTO_PLACES, WORDS
from hkc.frontend.operators import CHAINED
from hkc.support.errors import HkcError, Source, Span, error

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.MatMult: "@",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}

INSTEAD = "docs/language.md lists all that the language has"
_BEFORE = "move it out of the kernel, to the level of the module"
_TILES = "compute with whole tiles, or write a `for` line"
_VALUES = "name the values one by one, or as a tuple"
_NAMES: dict[type[ast.AST], tuple[str, str]] = {
    ast.With: ("`with`", "hints of a kernel stand in @hkc.kernel(waves=4)"),
    ast.Try: ("`try`", WORDS["try"]),
    ast.Raise: ("`raise`", WORDS["raise"]),
    ast.Break: ("`break`", WORDS["break"]),
    ast.Continue: ("`continue`", WORDS["continue"]),
    ast.Pass: ("`pass`", WORDS["pass"]),
    ast.Import: ("`import`", _BEFORE),
    ast.ImportFrom: ("`import`", _BEFORE),
    ast.Delete: ("`del`", WORDS["del"]),
    ast.FunctionDef: ("a function in a function", _BEFORE),
    ast.ClassDef: ("a class", WORDS["class"]),
    ast.Lambda: ("`lambda`", WORDS["lambda"]),
    ast.ListComp: ("a comprehension", _TILES),
    ast.GeneratorExp: ("a comprehension", _TILES),
    ast.DictComp: ("a comprehension", _TILES),
    ast.SetComp: ("a comprehension", _TILES),
    ast.Dict: ("a dictionary", _VALUES),
    ast.Set: ("a set", _VALUES),
    ast.JoinedStr: ("an f-string", "print takes a text, then values"),
    ast.Starred: ("`*`", "write the values out"),
    ast.NamedExpr: ("`:=`", "assign in a statement of its own"),
    ast.Await: ("`await`", "leave it out; loads are waited for where they are used"),
    ast.Yield: ("`yield`", WORDS["yield"]),
    ast.Global: ("`global`", "pass the value as an argument, return it as a result"),
    ast.Nonlocal: ("`nonlocal`", "pass the value as an argument, return it as a result"),
    ast.Match: ("`match`", "write `if`, `elif`, `else`"),
}


def refuse(what: str, span: Span, hint: str) -> HkcError:
    """The error about a piece of Python that the language doesn't have, and what it has instead."""
    return error("HK109", f"{what} is not in the language", span, hint=hint)


def _refuse_node(node: ast.AST, span: Span) -> HkcError:
    what, hint = _NAMES.get(type(node), (f"this `{type(node).__name__.lower()}`", INSTEAD))
    return refuse(what, span, hint)


class Converter:
    """Makes syntax of nodes of a Python file. `resolve` gives the language's word for a free name, "" for a module."""

    def __init__(self, source: Source, resolve: Callable[[str, Span], str]) -> None:
        self.source = source
        self.resolve = resolve

    def span(self, node: Any) -> Span:
        """The place of a node; Python counts columns in bytes, we in characters."""
        return Span(
            self.source,
            node.lineno,
            self._column(node.lineno, node.col_offset),
            node.end_lineno,
            self._column(node.end_lineno, node.end_col_offset),
        )

    def _column(self, line: int, offset: int) -> int:
        return len(self.source.rows[line - 1].encode()[:offset].decode(errors="ignore")) + 1

    def name_span(self, node: ast.FunctionDef) -> Span:
        """The place of a function's name."""
        first = self.source.rows[node.lineno - 1].index(node.name, self._column(node.lineno, node.col_offset)) + 1
        return Span(self.source, node.lineno, first, node.lineno, first + len(node.name))

    def parameter(self, argument: ast.arg) -> syntax.Parameter:
        """A parameter of a kernel."""
        span = self.span(argument)
        place = Span(self.source, span.line, span.column, span.line, span.column + len(argument.arg))
        name = syntax.Name(place, argument.arg)
        if argument.annotation is None:
            raise error("HK116", f"the parameter `{argument.arg}` has no type", span, hint="global_[f32, M, N] or f32")
        return syntax.Parameter(span, name, self._annotation(argument.annotation))

    def _annotation(self, node: ast.expr) -> syntax.Expr:
        """A type; `Annotated[global_[f16, M], declare(align=16)]` is `global[f16, M](align=16)`."""
        kind = self.expr(node)
        if isinstance(kind, syntax.Index) and kind.word == "Annotated" and len(kind.items) == 2:
            tensor, declared = kind.items
            if isinstance(declared, syntax.Call) and not isinstance(tensor, syntax.Cut):
                return syntax.Call(kind.span, tensor, declared.arguments, declared.keywords)
        return kind

    # Statements.

    def body(self, nodes: Sequence[ast.stmt]) -> tuple[syntax.Statement, ...]:
        """Statements in order, without the text that documents them."""
        first = nodes[0].value if isinstance(nodes[0], ast.Expr) else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            nodes = nodes[1:]
            if not nodes:
                hint = "a text alone is no statement"
                raise error("HK110", "a statement must follow in this block", self.span(first), hint=hint)
        return tuple(self.statement(n) for n in nodes)

    def statement(self, node: ast.stmt) -> syntax.Statement:
        """One statement."""
        match node:
            case ast.Assign(targets=[target], value=value):
                return self._assign(node, target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return self._assign(node, target, value)
            case ast.AugAssign(target=target, op=op, value=value):
                return syntax.Augment(self.span(node), self._target(target), _BINARY[type(op)], self.expr(value))
            case ast.Expr(value=value):
                return syntax.Evaluate(self.span(node), self.expr(value))
            case ast.Return(value=ast.expr() as value):
                return syntax.Return(self.span(node), self._several(value))
            case ast.Assert():
                return self._assert(node)
        return self._block(node)

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> syntax.Assign:
        """One name takes a tuple as it is."""
        values = self._several(value) if isinstance(target, ast.Tuple) else (self.expr(value),)
        return syntax.Assign(self.span(node), self._targets(target), values)

    def _block(self, node: ast.stmt) -> syntax.Statement:
        match node:
            case ast.For(target=target, iter=iterable, body=body, orelse=[]):
                span = self._between(target, iterable)
                return syntax.For(span, self._targets(target), self.expr(iterable), self.body(body))
            case ast.If(test=test, body=body, orelse=orelse):
                rest = self.body(orelse) if orelse else ()
                return syntax.If(self._between(node, test), self.expr(test), self.body(body), rest)
            case ast.While(test=test, body=body, orelse=[]):
                return syntax.While(self._between(node, test), self.expr(test), self.body(body))
            case ast.Assign():
                raise error("HK107", "a second `=` in one statement", self.span(node), hint="assign in two statements")
        raise _refuse_node(node, self.span(node))

    def _assert(self, node: ast.Assert) -> syntax.Assert:
        message = node.msg.value if isinstance(node.msg, ast.Constant) else ""
        if node.msg is not None and not isinstance(message, str):
            raise refuse("a message that is no text", self.span(node.msg), "a text in quotes; print shows values")
        return syntax.Assert(self._between(node, node.test), self.expr(node.test), str(message))

    def _between(self, first: Any, last: Any) -> Span:
        start, end = self.span(first), self.span(last)
        return Span(self.source, start.line, start.column, end.end_line, end.end_column)

    def _several(self, node: ast.expr) -> tuple[syntax.Expr, ...]:
        """`a, b` without brackets is several values, with or without names for them."""
        return tuple(map(self.expr, node.elts)) if isinstance(node, ast.Tuple) else (self.expr(node),)

    def _targets(self, node: ast.expr) -> tuple[syntax.Name, ...]:
        return tuple(map(self._target, node.elts)) if isinstance(node, ast.Tuple) else (self._target(node),)

    def _target(self, node: ast.expr) -> syntax.Name:
        if not isinstance(node, ast.Name):
            indexed = isinstance(node, ast.Subscript)
            hint = INTO_PLACES if indexed else "x = …"
            raise error("HK113", "only a name can be assigned to", self.span(node), hint=hint)
        return syntax.Name(self.span(node), node.id)

    # Expressions.

    def expr(self, node: ast.expr) -> syntax.Expr:
        """One expression."""
        span = self.span(node)
        match node:
            case ast.Constant(value=value):
                return self._constant(value, span)
            case ast.Name(id=name):
                return syntax.Name(span, self.resolve(name, span) or name)
            case ast.UnaryOp(op=op, operand=operand):
                return syntax.Unary(span, _UNARY[type(op)], self.expr(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return syntax.Binary(span, _BINARY[type(op)], self.expr(left), self.expr(right))
            case ast.BoolOp():
                return self._logical(node, span)
            case ast.Compare():
                return self._comparison(node, span)
            case ast.IfExp(test=test, body=yes, orelse=no):
                return syntax.Conditional(span, self.expr(yes), self.expr(test), self.expr(no))
        return self._compound(node, span)

    def _compound(self, node: ast.expr, span: Span) -> syntax.Expr:
        match node:
            case ast.Call(func=callee, args=arguments, keywords=keywords):
                named = tuple(self._keyword(k) for k in keywords)
                return syntax.Call(span, self.expr(callee), tuple(map(self.expr, arguments)), named)
            case ast.Attribute(value=base, attr=word):
                return self._attribute(base, word, span)
            case ast.Subscript(value=base, slice=where):
                items = where.elts if isinstance(where, ast.Tuple) else [where]
                return syntax.Index(span, self.expr(base), tuple(self._subscript(i) for i in items))
            case ast.List(elts=items):
                return syntax.Sequence(span, tuple(map(self.expr, items)))
            case ast.Tuple(elts=items):
                return syntax.Several(span, tuple(map(self.expr, items)))
        raise _refuse_node(node, span)

    def _constant(self, value: Any, span: Span) -> syntax.Expr:
        if value is None or isinstance(value, bool):
            return syntax.Name(span, str(value))
        if isinstance(value, str):
            return syntax.Text(span, value)
        if not isinstance(value, (int, float)):
            raise refuse("this value", span, "numbers, True, False and texts are values")
        if isinstance(value, int) and value >= 2**64:
            raise error("HK114", "this is too large a number", span, hint="a whole number has at most 64 bits")
        return syntax.Number(span, value)

    def _logical(self, node: ast.BoolOp, span: Span) -> syntax.Expr:
        made, *rest = map(self.expr, node.values)
        for each in rest:
            made = syntax.Binary(span, "and" if isinstance(node.op, ast.And) else "or", made, each)
        return made

    def _comparison(self, node: ast.Compare, span: Span) -> syntax.Expr:
        if len(node.ops) > 1:
            raise error("HK112", "comparisons can't be chained", span, hint=CHAINED)
        op = _COMPARE.get(type(node.ops[0]))
        if op is None:
            raise refuse("this comparison", span, "`==` and `!=` compare numbers")
        return syntax.Binary(span, op, self.expr(node.left), self.expr(node.comparators[0]))

    def _keyword(self, node: ast.keyword) -> syntax.Keyword:
        span = self.span(node)
        if node.arg is None:
            raise refuse("`**`", span, "write the arguments out")
        name = Span(self.source, span.line, span.column, span.line, span.column + len(node.arg))
        return syntax.Keyword(span, syntax.Name(name, node.arg), self.expr(node.value))

    def _attribute(self, base: ast.expr, word: str, span: Span) -> syntax.Expr:
        end = Span(self.source, span.end_line, span.end_column - len(word), span.end_line, span.end_column)
        if isinstance(base, ast.Name) and self.resolve(base.id, span) == "":
            return syntax.Name(span, word.removesuffix("_"))
        return syntax.Attribute(span, self.expr(base), syntax.Name(end, word))

    def _subscript(self, node: ast.expr) -> syntax.Expr | syntax.Cut:
        if not isinstance(node, ast.Slice):
            return self.expr(node)
        if node.step is not None:
            raise refuse("a step in a slice", self.span(node), "reshape and slice: reshape(x, [8, 2])[:, 0:1]")
        start, stop = (self.expr(n) if n is not None else None for n in (node.lower, node.upper))
        return syntax.Cut(self.span(node), start, stop)
