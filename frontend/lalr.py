"""Runs the tables that lark makes of the grammar: lexer and parser in one loop.

Lark's own loop takes most of the time of a long file. This one knows that no token but text and line ends holds a line
end, and that a word such as `in` is one only where the parser could take it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lark import Lark, Token, Transformer
from lark.lark import PostLex
from lark.lexer import TerminalDef
from lark.parsers.lalr_analysis import Shift

END = "$END"
BLANK = "_BLANK"


@dataclass(frozen=True)
class UnexpectedToken(Exception):
    """The parser can't go on with `token`; it could with those of the kinds `expected`."""

    token: Token
    expected: frozenset[str]


@dataclass(frozen=True)
class UnexpectedCharacter(Exception):
    """No token starts with this character."""

    line: int
    column: int
    character: str


@dataclass(frozen=True)
class Reduce:
    """Replace the last `size` values by what `make` gives for them: a piece of the kind `rule`."""

    make: Callable[[list[Any]], Any]
    size: int
    rule: str


class Machine:
    """The tables of one grammar; each rule calls the method of `build` of its name, `layout` changes the stream of
    tokens on its way to the parser. Runs one parse at a time."""

    def __init__(self, grammar: str, build: Transformer[Token, Any], layout: PostLex) -> None:
        lark = Lark(grammar, parser="lalr", lexer="contextual", transformer=build, postlex=layout)
        table, callbacks = lark.parser.parser.parser.parse_table, lark.parser.parser.parser.callbacks
        self._layout = layout
        self._start, self._end = table.start_states["start"], table.end_states["start"]
        self._actions: dict[int, dict[str, int | Reduce]] = {
            state: {
                kind: arg if action is Shift else Reduce(callbacks[arg], len(arg.expansion), arg.origin.name)
                for kind, (action, arg) in row.items()
            }
            for state, row in table.states.items()
        }
        self._states = [self._start]
        self._words = {t.pattern.value: t.name for t in lark.terminals if t.pattern.value.isalpha()}
        kinds = sorted((t for t in lark.terminals if t.name not in (BLANK, *self._words.values())), key=_order)
        choices = "|".join(f"(?P<{t.name}>{t.pattern.to_regexp()})" for t in kinds)
        self._match = re.compile(rf"[ \t\f]*(?:{choices})").match

    def parse(self, text: str) -> Any:
        """What the start rule's method makes of a text that ends with a line end. Raises `UnexpectedToken` and
        `UnexpectedCharacter`."""
        self._states = [self._start]
        values: list[Any] = []
        token = Token("", "", line=1, column=1, end_line=1, end_column=1)
        for token in self._layout.process(self._tokens(text)):
            self._take(token, values)
        self._take(Token.new_borrow_pos(END, "", token), values)
        return values[-1]

    def _take(self, token: Token, values: list[Any]) -> None:
        """Reduces what the token ends, and shifts the token, unless that was all."""
        states, actions = self._states, self._actions
        while states[-1] != self._end:
            action = actions[states[-1]].get(token.type)
            if action is None:
                raise UnexpectedToken(token, frozenset(k for k in actions[states[-1]] if k.isupper()))
            if isinstance(action, int):
                states.append(action)
                values.append(token)
                return
            start = len(values) - action.size
            made = action.make(values[start:])
            del values[start:], states[start + 1 :]
            states.append(actions[states[-1]][action.rule])
            values.append(made)

    def _tokens(self, text: str) -> Iterator[Token]:
        line, begin, at = 1, 0, 0
        while at < len(text):
            found = self._match(text, at)
            if found is None:
                at += len(text[at:]) - len(text[at:].lstrip(" \t\f"))
                raise UnexpectedCharacter(line, at - begin + 1, text[at])
            kind = found.lastgroup or ""
            value = found[kind]
            if kind == "NAME" and (word := self._words.get(value)) in self._actions[self._states[-1]]:
                kind = word or kind
            at = found.end()
            first, column = line, at - len(value) - begin + 1
            if "\n" in value:
                line += value.count("\n")
                begin = at - len(value) + value.rindex("\n") + 1
            yield Token(kind, value, at - len(value), first, column, line, at - begin + 1, at)


def _order(terminal: TerminalDef) -> tuple[int, int, str]:
    """Which terminal is tried first where several fit: that of higher priority, then the longer one, as in lark."""
    return -terminal.priority, -terminal.pattern.max_width, terminal.name
