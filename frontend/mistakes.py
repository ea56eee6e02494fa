"""Explains why a text is not in the grammar: a list of named mistakes, the first one that fits speaks.

Each rule sees the token that didn't fit, the ones before it on its line, what would have fitted, and the brackets that
are open. Missing punctuation is marked at the end of the token before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from lark import Token

from hkc.frontend.indent import CLOSING, Layout, end_of, span_of
from hkc.support.errors import HkcError, Note, Source, Span, error

_ITEMS = ("const", "tune", "def", "kernel", "example", "reference")
_OPERAND_STARTS = frozenset({"NAME", "NUMBER", "LPAR", "LSQB", "NOT", "TILDE"})
_OPERAND_ENDS = frozenset({"NAME", "NUMBER", "RPAR", "RSQB"})
WORDS = {
    "pass": "leave the block out",
    "break": "let the condition of a while say when to stop",
    "continue": "put what follows under an `if`",
    "lambda": "give the function a name with def",
    "is": "`==` compares",
    "class": "write functions",
    "del": "leave it out; what isn't used takes no registers",
    "try": "a kernel has no exceptions; `if` decides",
    "raise": 'assert condition, "text"',
    "yield": "return all values as a tuple",
}
"""What to write in place of Python's words."""
INTO_PLACES = "store(tensor, [offsets], value) writes into a tensor; where(condition, a, b) makes a changed tile"
"""What to write in place of an assignment to elements."""
_BLOCKS = ("FOR", "KERNEL", "IF", "ELIF", "ELSE", "WHILE", "DEF")
"""The tokens that start a line which ends with a colon."""
_LITERALS = {"COLON": ":", "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "EQUAL": "=", "IN": "in", "COMMA": ","}


def shorten(text: str) -> str:
    """A piece of source for use within a sentence."""
    return text if len(text) <= 40 else text[:37] + "…"


def quote_list(words: list[str]) -> str:
    """`` `a`, `b` or `c` ``."""
    quoted = [f"`{w}`" for w in words]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


@dataclass(frozen=True)
class Place:
    """Where the parser stopped: `token` doesn't fit, `expected` names the kinds of token that would."""

    source: Source
    token: Token
    expected: frozenset[str]
    line: tuple[Token, ...]
    brackets: tuple[Token, ...]

    @property
    def previous(self) -> Token | None:
        """The token before, on the same logical line."""
        return self.line[-1] if self.line else None

    @property
    def first(self) -> Token | None:
        """The first token of the logical line."""
        return next((t for t in (*self.line, self.token) if not t.type.startswith("_")), None)

    @property
    def on_later_row(self) -> bool:
        """Whether rows of text lie between the token and the one before it."""
        return self.previous is not None and (self.token.line or 0) > (self.previous.end_line or 0)


def explain_token(layout: Layout, token: Token, expected: frozenset[str]) -> HkcError:
    """The mistake that a token makes which doesn't fit."""
    if token.type == "$END" and not layout.brackets:
        token = layout.line[-1] if layout.line else token
    line = tuple(t for t in layout.line if t is not token)
    place = Place(layout.source, token, expected, line, tuple(t for t in layout.brackets if t is not token))
    return next(found for rule in _RULES if (found := rule(place)) is not None)


def _reserved(p: Place) -> HkcError | None:
    if p.token.type != "RESERVED":
        return None
    return error("HK109", f"`{p.token}` is not in the language", span_of(p.source, p.token), hint=WORDS[p.token])


def _import(p: Place) -> HkcError | None:
    """`import` alone, or within a kernel."""
    if p.token.type not in ("IMPORT", "FROM"):
        return None
    hint = "at the left margin, `from file import function` takes functions from file.hk beside this one"
    return error("HK109", f"`{p.token}` has no meaning here", span_of(p.source, p.token), hint=hint)


def _python_only(p: Place) -> HkcError | None:
    """Pieces of Python that would otherwise look like missing punctuation."""
    if p.token == "for" and p.brackets:
        hint = "compute with whole tiles, or write a `for` line"
        return error("HK109", "a comprehension is not in the language", span_of(p.source, p.token), hint=hint)
    if p.token.type == "COLON" and p.brackets and any(t.type == "COLON" for t in _since_comma(p)):
        hint = "reshape and slice: reshape(x, [8, 2])[:, 0:1]"
        return error("HK109", "a step in a slice is not in the language", span_of(p.source, p.token), hint=hint)
    if p.token.type == "DEF" and p.first is p.token:
        hint = "move it to the left margin, before the kernel"
        return error("HK109", "a function in a function is not in the language", span_of(p.source, p.token), hint=hint)
    if p.token.type == "_NEWLINE" and p.previous is not None and p.previous.type == "RETURN":
        hint = "a kernel ends with its last line; to end early, put what follows under an `if`"
        return error("HK312", "`return` gives the value of a function", span_of(p.source, p.previous), hint=hint)
    return None


def _since_comma(p: Place) -> list[Token]:
    """The tokens of the innermost bracket since it was opened, or since its last comma."""
    found: list[Token] = []
    for token in reversed(p.line):
        if token is p.brackets[-1] or token.type == "COMMA":
            break
        found.append(token)
    return found


def _doubled_operator(p: Place) -> HkcError | None:
    """`&&` and `||` of other languages."""
    word = {"&": "and", "|": "or"}.get(p.token)
    if word is None or p.previous != p.token:
        return None
    span = span_of(p.source, p.previous, p.token)
    hint = f"write `{word}`; between tiles of bools `{p.token}`"
    return error("HK111", f"`{p.token}{p.token}` is not an operator", span, hint=hint)


def _foreign_comment(p: Place) -> HkcError | None:
    if p.token not in ("/", "//") or p.first is not p.token:
        return None
    return error(
        "HK111", f"a line can't start with `{p.token}`", span_of(p.source, p.token), hint="comments start with #"
    )


def _annotation(p: Place) -> HkcError | None:
    """`x: f32 = …`, as Python has it."""
    if p.token.type != "COLON" or p.brackets or p.first is not p.previous or p.first is None or p.first.type != "NAME":
        return None
    if "=" not in span_of(p.source, p.token).behind:
        return None
    hint = f"`{p.previous} = …` takes the dtype of the value, which cast(value, dtype) converts"
    return error("HK101", f"the variable `{p.previous}` can't be given a type", span_of(p.source, p.token), hint=hint)


def _stray_word(p: Place) -> HkcError | None:
    """A word that is none of its own line: `else` without `if`, `if` as a name."""
    if p.token.type in ("ELSE", "ELIF") and p.first is p.token:
        hint = "it follows the indented block of an `if`, at its margin"
        return error("HK101", f"`{p.token}` belongs to no `if`", span_of(p.source, p.token), hint=hint)
    if p.token.type == "EQUAL" and p.first is not None and p.first.type in _BLOCKS and p.previous is p.first:
        message = f"`{p.first}` is a word of the language and can't be a name"
        return error("HK101", message, span_of(p.source, p.first), hint="choose another name")
    return None


def _missing_in(p: Place) -> HkcError | None:
    if p.expected != {"COMMA", "IN"} or p.previous is None:
        return None
    if p.previous == "in":
        span = span_of(p.source, p.previous)
        return error("HK101", "a name is missing before `in`", span, hint="for k in range(…):")
    hint = f"for {p.previous} in range(…):"
    return error("HK101", f"`in` is missing after `{p.previous}`", end_of(p.source, p.previous), hint=hint)


def _hints(p: Place) -> HkcError | None:
    """Hints that stand elsewhere than behind the parameters of a kernel and `with`."""
    if p.first is None or p.first.type not in _BLOCKS or p.brackets or p.previous is None:
        return None
    span, form = span_of(p.source, p.token), "kernel name(…) with waves=4, stages=2:"
    if p.token == "with" and p.token.type == "NAME":
        return error("HK101", "hints stand in the `kernel` line, behind its parameters", span, hint=form)
    if p.previous.type == "WITH" and p.token.type == "LPAR":
        return error("HK101", "hints have no brackets", span, hint=form)
    named = p.token.type == "NAME" and "WITH" in p.expected and span.behind.lstrip().startswith("=")
    if p.first.type == "KERNEL" and named:
        return error("HK101", f"`with` is missing before the hint `{p.token}`", span, hint=form)
    return None


def _default(p: Place) -> HkcError | None:
    """`n: f32 = 3` among a kernel's parameters."""
    header = p.first is not None and p.first.type == "KERNEL" and p.brackets and p.brackets[-1].type == "LPAR"
    if not header or p.token.type != "EQUAL" or [t.type for t in p.line[-3:-1]] != ["NAME", "COLON"]:
        return None
    hint = f"leave it out, or declare `const {p.line[-3]} = …` above the kernel"
    return error("HK103", "a kernel's parameters have no values of their own", span_of(p.source, p.token), hint=hint)


def _unclosed(p: Place) -> HkcError | None:
    """The line goes on as if its bracket had been closed."""
    if not p.brackets or p.previous is None or p.first is None:
        return None
    back_at_margin = p.on_later_row and (p.token.column or 0) <= (p.first.column or 0)
    assigns_in_header = p.token.type == "EQUAL" and p.first.type == "KERNEL" and len(p.line) > 2
    if p.token.type not in ("$END", "COLON") and not back_at_margin and not assigns_in_header:
        return None
    place = span_of(p.source, p.token)
    typed = p.token.type == "COLON" and p.first.type == "DEF" and len(p.brackets) == 1
    if typed and place.behind.partition("#")[0].strip():
        what, why = f"the argument `{p.previous}` can't be given a type", "name it alone: `kernel` lines have types"
        return error("HK101", what, place, hint=why)
    opened, last = p.brackets[-1], p.line[-2] if assigns_in_header else p.previous
    note = Note(f"`{opened}` is opened here", span_of(p.source, opened))
    hint = f"close it with `{CLOSING[opened]}`"
    return error("HK103", f"`{CLOSING[opened]}` is missing", end_of(p.source, last), notes=(note,), hint=hint)


def _missing_comma(p: Place) -> HkcError | None:
    if p.previous is None or p.previous.type not in _OPERAND_ENDS or p.token.type not in _OPERAND_STARTS:
        return None
    in_a_list = p.brackets or any(t.type in ("CONST", "TUNE", "EXAMPLE", "WITH") for t in p.line)
    if "COMMA" not in p.expected or not in_a_list:
        return None
    hint = "arguments and items are separated by `,`"
    return error("HK104", f"a comma is missing before `{shorten(p.token)}`", end_of(p.source, p.previous), hint=hint)


def _missing_type(p: Place) -> HkcError | None:
    if p.first is None or p.first.type != "KERNEL" or len(p.brackets) != 1 or p.expected != {"COLON"}:
        return None
    name = p.previous
    hint = f"write `{name}: global[f32, M, N]` for a tensor or `{name}: f32` for a number"
    return error("HK116", f"the parameter `{name}` has no type", span_of(p.source, name or p.token), hint=hint)


def _missing_colon(p: Place) -> HkcError | None:
    if p.first is None or p.first.type not in _BLOCKS or "COLON" not in p.expected or p.previous is None:
        return None
    if p.token.type != "_NEWLINE" and p.token.type not in _OPERAND_STARTS:
        return None
    return error(
        "HK102",
        f"`:` is missing at the end of this `{p.first}` line",
        end_of(p.source, p.previous),
        hint="an indented block follows the `:`",
    )


def _blocks(p: Place) -> HkcError | None:
    """Indentation that opens no block, or a block that isn't there."""
    if p.token.type == "_INDENT":
        return error(
            "HK110",
            "this line is indented deeper than the one before, but nothing opened a block",
            span_of(p.source, p.token),
            hint="give it the indentation of the line before",
        )
    line_end = p.previous or p.token
    place = Span(p.source, line_end.line or 1, line_end.column or 1, line_end.line or 1, (line_end.column or 1) + 1)
    if "_INDENT" in p.expected:
        hint = "indent what belongs to it, by four spaces for instance"
        return error("HK110", "an indented body must follow this line", place, hint=hint)
    if p.token.type == "_DEDENT" and line_end.type == "_NEWLINE":
        return error("HK110", "a statement must follow in this block", place, hint="a text alone is no statement")
    if p.expected == {"_NEWLINE"} and p.previous is not None and p.previous.type == "COLON":
        hint = "a line break after the `:`, and more indentation"
        return error("HK110", "the body starts on a line of its own", span_of(p.source, p.token), hint=hint)
    return None


def _unknown_item(p: Place) -> HkcError | None:
    if "KERNEL" not in p.expected or p.token.type == "_NEWLINE":
        return None
    close = get_close_matches(p.token.lower(), _ITEMS, n=1) if p.token.type == "NAME" else []
    hint = f"did you mean `{close[0]}`?" if close else "statements belong in the indented body of a kernel"
    rest = span_of(p.source, p.token).behind
    if not close and p.token.type == "NAME" and re.match(r"\s*=\s*[-.\d]", rest):
        hint = f"`const {p.token} = …`, or `tune {p.token} = …` for what only decides how fast a kernel is"
    message = f"`{shorten(p.token)}` starts nothing at the left margin"
    return error("HK108", message, span_of(p.source, p.token), hint=hint)


def _misspelt_statement(p: Place) -> HkcError | None:
    """A line of two names in a row: `fro k in …`, or an item within a kernel."""
    before = [t for t in p.line if not t.type.startswith("_")]
    if len(before) != 1 or before[0].type != "NAME" or p.token.type not in ("NAME", "NUMBER"):
        return None
    word, span = before[0], span_of(p.source, before[0])
    if word in _ITEMS:
        return error(
            "HK108", f"`{word}` can't stand in a kernel", span, hint="move it to the left margin, before the kernel"
        )
    close = get_close_matches(word, ["for", *_ITEMS], n=1)
    return error(
        "HK101",
        f"`{shorten(word)}` is followed by `{shorten(p.token)}` with nothing between",
        span,
        span_of(p.source, p.token),
        hint=f"did you mean `{close[0]}`?" if close else "an operator, a comma or a line break is missing",
    )


def _equals(p: Place) -> HkcError | None:
    if p.token.type != "EQUAL":
        return None
    span = span_of(p.source, p.token)
    if p.previous is not None and p.previous.type == "POWER":
        span = span_of(p.source, p.previous, p.token)
        return error("HK111", "`**=` is not an operator", span, hint="multiply: x *= x")
    if p.first is p.token:
        return error("HK115", "a name is missing before `=`", span, hint="x = …")
    if p.brackets or (p.first is not None and p.first.type == "FOR"):
        return error("HK107", "`=` can't stand in an expression", span, hint="`==` compares")
    return error("HK107", "a second `=` in one statement", span, hint="assign in two statements; `==` compares")


def _missing_expression(p: Place) -> HkcError | None:
    if not p.expected & _OPERAND_STARTS or p.expected <= {"NAME"} or p.token.type in _OPERAND_STARTS:
        return None
    if p.previous is None or p.previous.type in _OPERAND_ENDS or p.previous.type.startswith("_"):
        return None
    hint = f"put a value after `{p.previous}`, or leave it out"
    return error("HK115", f"an expression is missing after `{p.previous}`", end_of(p.source, p.previous), hint=hint)


def _missing_literal(p: Place) -> HkcError | None:
    """Only one piece of punctuation, or only a name, could have come next."""
    if len(p.expected) != 1 or p.previous is None:
        return None
    (kind,) = p.expected
    if kind == "NAME":
        hint = "a name starts with a letter"
        return error("HK101", f"a name is missing after `{p.previous}`", end_of(p.source, p.previous), hint=hint)
    if kind in _LITERALS:
        code = "HK103" if kind in ("LPAR", "RPAR", "LSQB", "RSQB") else "HK101"
        return error(
            code,
            f"`{_LITERALS[kind]}` is missing after `{p.previous}`",
            end_of(p.source, p.previous),
            hint=f"write `{p.previous} {_LITERALS[kind]} …`",
        )
    return None


def _text(p: Place) -> HkcError | None:
    if p.token.type != "STRING":
        return None
    word, argument = p.token.strip("\"'"), p.brackets and p.previous is not None and p.previous.type == "EQUAL"
    hint = (
        f"words have no quotes: {p.line[-2]}={word}" if argument and word.isidentifier() else "comments start with `#`"
    )
    return error("HK105", "a text can't stand here", span_of(p.source, p.token), hint=hint)


def _anything(p: Place) -> HkcError:
    if p.token.type in ("_NEWLINE", "_DEDENT", "$END") and p.previous is not None:
        return error(
            "HK101",
            f"the line ends too early after `{shorten(p.previous)}`",
            end_of(p.source, p.previous),
            hint="lines go on within brackets only",
        )
    known = sorted(_LITERALS[e] for e in p.expected if e in _LITERALS)
    hint = f"{quote_list(known)} could follow" if 0 < len(known) <= 3 else "leave it out"
    if p.token.type in _OPERAND_STARTS and "_NEWLINE" in p.expected:
        hint = "a new statement starts on a line of its own"
    return error("HK101", f"`{shorten(p.token)}` can't stand here", span_of(p.source, p.token), hint=hint)


_RULES: tuple[Callable[[Place], HkcError | None], ...] = (
    _reserved,
    _import,
    _python_only,
    _doubled_operator,
    _foreign_comment,
    _annotation,
    _stray_word,
    _missing_in,
    _hints,
    _blocks,
    _default,
    _unclosed,
    _unknown_item,
    _text,
    _missing_type,
    _missing_comma,
    _missing_colon,
    _misspelt_statement,
    _equals,
    _missing_expression,
    _missing_literal,
    _anything,
)
