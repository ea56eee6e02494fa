"""Between lexer and parser: turns line starts into block tokens, drops line ends inside brackets, matches brackets."""

from __future__ import annotations

from collections.abc import Iterator

from lark import Token
from lark.lark import PostLex

from hkc.frontend.codes import NESTING
from hkc.support.errors import Note, Source, Span, error

WORDS = ("if", "elif", "else", "while", "def", "return", "assert", "and", "or", "not")
"""Words that can't be names, whatever would fit where they stand."""

CLOSING = {"(": ")", "[": "]"}
_OPENING, _CLOSING = ("LPAR", "LSQB"), ("RPAR", "RSQB")


def span_of(source: Source, first: Token, last: Token | None = None) -> Span:
    """The stretch from token `first` to the end of token `last`."""
    end = last or first
    return Span(source, first.line or 1, first.column or 1, end.end_line or 1, end.end_column or 1)


def end_of(source: Source, token: Token) -> Span:
    """The place just after a token, where something is missing."""
    line, column = token.end_line or 1, token.end_column or 1
    return Span(source, line, column, line, column + 1)


class Layout(PostLex):
    """Makes `_INDENT` and `_DEDENT` from `_NEWLINE`. It remembers what an explanation of a mistake needs.

    `line` holds the tokens of the current logical line (the last one is the one the parser has just been given),
    `brackets` those that are still open.
    """

    always_accept = ("_NEWLINE", "RESERVED", *(word.upper() for word in WORDS))

    def __init__(self) -> None:
        self.begin(Source("", ""))

    def begin(self, source: Source) -> None:
        """Forgets the previous file."""
        self.source = source
        self.line: list[Token] = []
        self.brackets: list[Token] = []
        self.levels = [0]

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The tokens of `stream` with block tokens in them. Raises `HkcError` for wrong indentation or brackets."""
        token = None
        for token in stream:
            if token.type == "_NEWLINE":
                if not self.brackets:
                    yield from self._line_end(token)
                continue
            if token.column != 1 and not self.line:
                hint = "start it at the left margin"
                raise error("HK110", "the first line is indented", span_of(self.source, token), hint=hint)
            self._bracket(token)
            self.line.append(token)
            yield token
        for _ in self.levels[1:]:
            yield Token.new_borrow_pos("_DEDENT", "", token) if token else Token("_DEDENT", "")

    def _line_end(self, token: Token) -> Iterator[Token]:
        self.line.append(token)
        yield token
        blanks = token.rpartition("\n")[2]
        place = Token("", blanks, line=token.end_line, column=1, end_line=token.end_line, end_column=1 + len(blanks))
        if "\t" in blanks:
            raise error("HK106", "a tab in the indentation", span_of(self.source, place), hint="indent with spaces")
        self.line = self.line[-1:]
        if len(blanks) > self.levels[-1]:
            self.levels.append(len(blanks))
            if len(self.levels) > NESTING:
                raise error(
                    "HK432",
                    f"blocks are nested more than {NESTING} deep",
                    span_of(self.source, place),
                    hint="move inner blocks to functions",
                )
            yield Token.new_borrow_pos("_INDENT", blanks, place)
        while len(blanks) < self.levels[-1]:
            self.levels.pop()
            if len(blanks) > self.levels[-1]:
                known = ", ".join(map(str, self.levels))
                raise error(
                    "HK110",
                    f"this line is indented by {len(blanks)}, which fits no block around it",
                    span_of(self.source, place),
                    hint=f"the open blocks are indented by {known}",
                )
            yield Token.new_borrow_pos("_DEDENT", "", place)

    def _bracket(self, token: Token) -> None:
        if token.type in _OPENING:
            self.brackets.append(token)
            if len(self.brackets) > NESTING:
                message = f"brackets are nested more than {NESTING} deep"
                hint = "give parts of the expression names of their own"
                raise error("HK432", message, span_of(self.source, token), hint=hint)
        elif token.type in _CLOSING:
            if not self.brackets:
                hint = "leave it out, or open its bracket before"
                raise error("HK103", f"`{token}` closes nothing", span_of(self.source, token), hint=hint)
            opened = self.brackets.pop()
            if CLOSING[opened] != token:
                note = Note(f"`{opened}` is opened here", span_of(self.source, opened))
                raise error(
                    "HK103",
                    f"`{token}` doesn't close `{opened}`",
                    span_of(self.source, token),
                    notes=(note,),
                    hint=f"close it with `{CLOSING[opened]}`",
                )
