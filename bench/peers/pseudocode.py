"""An interpreter for the pseudocode of AMD's instruction set guides, as the package tinygrad carries it.

Values are bit patterns with a type: `Value("f", 32, 0x3F800000)`. Floating point is done in exact rational or f64
arithmetic and rounded once; a NaN that arithmetic makes is the default one, so only NaN-ness is meaningful there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from peers import pseudocode_functions as functions
from peers.pseudocode_places import Place, Unsupported, literal, read, read_part, write
from peers.pseudocode_values import ARITHMETIC, Value, as_type, binary, convert, integer, parse_type, truth

_TOKEN = re.compile(
    r"\s*(?://[^\n]*)?(?:"
    r"(?P<cast>\d+'(?:BF|[UIFB]))|(?P<sized>\d+'(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)U?)"
    r"|(?P<number>0x[0-9a-fA-F]+(?:ULL|LL|U)?|\d+\.\d+F?|\d+(?:ULL|LL|U|F)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<op>\+:|\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||[-+*/]=|[-+*/&|^~!<>=?:;,.(){}\[\]]))"
)
_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>"), ("<", ">", "<=", ">="), ("<<", ">>"),
           ("+", "-"), ("*", "/"), ("**",))  # fmt: skip


@dataclass
class Break(Exception):
    """`break` inside a loop."""


@dataclass
class Return(Exception):
    """`return` inside a lambda."""

    value: Value


class Machine:
    """Variables, and the registers that an instruction sees: S0..S2, D0, VCC, EXEC, SCC as values."""

    def __init__(self, table: dict[str, str], variables: dict[str, Any]) -> None:
        self.table = table
        self.variables = variables
        self.written: dict[str, int] = {}
        self.kind: dict[str, str] = {}

    def run(self, text: str) -> None:
        """Execute a text."""
        parser = Parser(text)
        for statement in parser.block(()):
            statement(self)

    def call(self, name: str, arguments: list[Value]) -> Value:
        """A lambda of the text, a function, or another instruction (`v_max_f32`)."""
        if name in self.variables:
            result: Value = self.variables[name](self, arguments)
            return result
        if function := functions.find(name):
            return function(*arguments)
        if name not in self.table:
            raise Unsupported(name)
        inner = {**self.variables, **{f"S{i}": v for i, v in enumerate(arguments)}, "D0": Value("b", 64, 0)}
        machine = Machine(self.table, inner)
        machine.run(self.table[name])
        kind, width = parse_type(machine.kind["D0"])
        return as_type(machine.variables["D0"], kind, width)


Expression = Callable[[Machine], Any]
Statement = Callable[[Machine], None]


class Parser:
    """Text to closures."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        at, text = 0, re.sub(r"//[^\n]*", "", text).rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if not found or not found.lastgroup:
                raise Unsupported(text[at : at + 20])
            self.tokens.append((found.lastgroup, found.group(found.lastgroup)))
            at = found.end()
        self.at = 0

    def peek(self, offset: int = 0) -> str:
        """A token without taking it; empty at the end."""
        at = self.at + offset
        return self.tokens[at][1] if at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        """The next token, which must be `expected`."""
        token = self.peek()
        if expected is not None and token != expected:
            raise Unsupported(f"{token!r} for {expected!r}")
        self.at += 1
        return token

    # statements

    def block(self, ends: tuple[str, ...]) -> list[Statement]:
        """Statements up to one of `ends`."""
        statements: list[Statement] = []
        while self.peek() and self.peek() not in ends:
            if self.peek() == ";":
                self.take()
                continue
            statements.append(self.statement())
        return statements

    def statement(self) -> Statement:
        """One statement."""
        special = {"if": self._if, "for": self._for, "declare": self._declare, "break": self._break,
                   "return": self._return}.get(self.peek())  # fmt: skip
        if special:
            return special()
        if self.peek() == "{":
            return self._unpack()
        target = self._place()
        operator = self.take()
        if operator == "=" and self.peek() == "lambda":
            return self._lambda(target)
        value = self.expression()
        if self.peek() == "=":  # `EXEC.u64[laneId] = D0.u64[laneId] = …`
            raise Unsupported("chained assignment")

        def run(m: Machine) -> None:
            new = value(m)
            if operator != "=":
                new = binary(operator[0], read(m, target), new)
            write(m, target, new)

        return run

    def _unpack(self) -> Statement:
        self.take("{")
        high = self._place()
        self.take(",")
        low = self._place()
        self.take("}")
        self.take("=")
        value = self.expression()

        def run(m: Machine) -> None:
            new = value(m)
            _, width = parse_type(low[1][-1][1])
            write(m, low, new)
            write(m, high, Value("u", 1, new.bits >> width & 1))

        return run

    def _if(self) -> Statement:
        arms: list[tuple[Expression, list[Statement]]] = []
        otherwise: list[Statement] = []
        while self.peek() in ("if", "elsif"):
            self.take()
            condition = self.expression()
            self.take("then")
            arms.append((condition, self.block(("elsif", "else", "endif"))))
        if self.peek() == "else":
            self.take()
            otherwise = self.block(("endif",))
        self.take("endif")

        def run(m: Machine) -> None:
            body = next((body for condition, body in arms if truth(condition(m))), otherwise)
            for statement in body:
                statement(m)

        return run

    def _for(self) -> Statement:
        self.take("for")
        name = self.take()
        self.take("in")
        first = self.expression()
        self.take(":")
        last = self.expression()
        self.take("do")
        body = self.block(("endfor",))
        self.take("endfor")

        def run(m: Machine) -> None:
            for i in range(integer(first(m)), integer(last(m)) + 1):
                m.variables[name] = Value("i", 32, i)
                try:
                    for statement in body:
                        statement(m)
                except Break:
                    break

        return run

    def _declare(self) -> Statement:
        self.take("declare")
        name = self.take()
        self.take(":")
        width, kind = self.take().split("'")
        array = 0
        if self.peek() == "[":
            self.take()
            array = int(self.take())
            self.take("]")
        zero = Value(kind.lower(), int(width), 0)

        def run(m: Machine) -> None:
            m.variables[name] = [zero] * array if array else zero

        return run

    def _break(self) -> Statement:
        self.take()

        def run(m: Machine) -> None:
            raise Break

        return run

    def _return(self) -> Statement:
        self.take()
        value = self.expression()

        def run(m: Machine) -> None:
            raise Return(value(m))

        return run

    def _lambda(self, target: Place) -> Statement:
        self.take("lambda")
        self.take("(")
        names = []
        while self.take() != ")":
            names.append(self.peek(-1))
            if self.peek() == ",":
                self.take()
        self.take("(")
        simple = self.peek() not in ("if", "declare")
        value = self.expression() if simple else None
        body = [] if simple else self.block((")",))
        self.take(")")

        def call(m: Machine, arguments: list[Value]) -> Value:
            inner = Machine(m.table, {**m.variables, **dict(zip(names, arguments, strict=True))})
            if value is not None:
                result: Value = value(inner)
                return result
            try:
                for statement in body:
                    statement(inner)
            except Return as found:
                return found.value
            raise Unsupported("a lambda without a result")

        return lambda m: m.variables.__setitem__(target[0], call)

    # expressions

    def expression(self) -> Expression:
        """An expression, conditional ones included."""
        condition = self._binary(0)
        if self.peek() != "?":
            return condition
        self.take()
        yes = self.expression()
        self.take(":")
        no = self.expression()
        return lambda m: yes(m) if truth(condition(m)) else no(m)

    def _binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self.peek() in _LEVELS[level]:
            operator = self.take()
            left = _apply(operator, left, self._binary(level + 1))
        return left

    def _unary(self) -> Expression:
        operator = self.peek()
        if operator not in ("-", "+", "~", "!"):
            return self._postfix()
        self.take()
        value = self._unary()
        if operator == "+":
            return value
        return lambda m: ARITHMETIC[f"unary {operator}"](value(m))

    def _postfix(self) -> Expression:
        if self.tokens[self.at][0] == "name" and self.peek(1) != "(":
            place = self._place()
            return lambda m: read(m, place)
        value = self._primary()
        accessors = self._accessors()
        if not accessors:
            return value
        return lambda m: read_part(m, value(m), accessors)

    def _primary(self) -> Expression:
        group, token = self.tokens[self.at]
        if token == "(":
            self.take()
            inner = self.expression()
            self.take(")")
            return inner
        if token == "{":
            return self._concatenation()
        self.take()
        if group == "cast":
            width, kind = token.split("'")
            self.take("(")
            value = self.expression()
            self.take(")")
            return lambda m: convert(value(m), kind.lower(), int(width))
        if group == "name":
            return self._call(token)
        fixed = literal(token)
        return lambda m: fixed

    def _call(self, name: str) -> Expression:
        self.take("(")
        arguments = []
        while self.peek() != ")":
            arguments.append(self.expression())
            if self.peek() == ",":
                self.take()
        self.take(")")
        return lambda m: m.call(name, [argument(m) for argument in arguments])

    def _concatenation(self) -> Expression:
        self.take("{")
        parts = [self.expression()]
        while self.peek() == ",":
            self.take()
            parts.append(self.expression())
        self.take("}")

        def run(m: Machine) -> Value:
            bits = width = 0
            for part in parts:
                value = part(m)
                bits, width = bits << value.width | value.bits, width + value.width
            return Value("b", width, bits)

        return run

    def _place(self) -> Place:
        name = self.take()
        return name, self._accessors()

    def _accessors(self) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        while self.peek() in (".", "["):
            if self.take() == ".":
                found.append(("type", self.take()))
                continue
            first = self.expression()
            if self.peek() in (":", "+:"):
                relative = self.take() == "+:"
                found.append(("part" if relative else "slice", (first, self.expression())))
            else:
                found.append(("bit", first))
            self.take("]")
        return found


def _apply(operator: str, left: Expression, right: Expression) -> Expression:
    if operator == "&&":
        return lambda m: Value("u", 1, int(truth(left(m)) and truth(right(m))))
    if operator == "||":
        return lambda m: Value("u", 1, int(truth(left(m)) or truth(right(m))))
    return lambda m: binary(operator, left(m), right(m))
