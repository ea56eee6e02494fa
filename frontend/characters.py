"""Characters that no text of the language has outside comments: what each is called, and what stands for it."""

from __future__ import annotations

import unicodedata

from lark import Token

from hkc.frontend.indent import Layout, span_of
from hkc.support.errors import HkcError, error

_SIGNS = {"·": "*", "×": "*", "∗": "*", "⋅": "*", "÷": "/", "∕": "/", "−": "-", "‐": "-", "‑": "-", "–": "-", "—": "-",
          "≤": "<=", "≥": ">=", "≠": "!=", "¬": "not", "∧": "and", "∨": "or", "√": "sqrt( )", "∞": "inf",
          "∑": "sum( )", "∏": "prod( )", "∈": "in", "←": "=", "≔": "=", "⊕": "^",
          "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "′": "'"}  # fmt: skip
_LETTERS = dict(
    zip("АВЕКМНОРСТХЅІЈаеорсухѕіјΑΒΕΖΗΙΚΜΝΟΡΤΥΧονı", "ABEKMHOPCTXSIJaeopcyxsijABEZHIKMNOPTYXovi", strict=True)
)
"""Letters of Cyrillic and Greek, and the ones that look the same."""

ALPHABET = "names consist of the letters a to z and A to Z, digits and _"


def describe(character: str) -> str:
    """A character with its number and name, as its own picture where it has one."""
    shown = character if character.isprintable() and not character.isspace() else ""
    name = unicodedata.name(character, "")
    number = f"U+{ord(character):04X}{' ' if name else ''}{name}"
    return f"`{shown}` ({number})" if shown else number


def advice(character: str) -> str:
    """What to write in its place."""
    if character.isspace() or unicodedata.category(character) == "Zs":
        return "type a plain space; this one only looks like it"
    if unicodedata.category(character) in ("Cf", "Cc", "Co", "Cn"):
        return "delete it; it can't be seen, and often comes along with copied text"
    if character in _SIGNS:
        return f"the ASCII spelling is `{_SIGNS[character]}`"
    if "SUPERSCRIPT" in unicodedata.name(character, ""):
        return f"in a kernel multiply, or use exp2; in references x**{unicodedata.normalize('NFKC', character)}"
    folded = _LETTERS.get(character) or _plain(character)
    if folded.isascii() and (folded.isalnum() or len(folded) == 1):
        return f"the ASCII spelling is `{folded}`"
    if character.isalpha():
        return _of_letter(character)
    return f"{ALPHABET}; other characters stand only in comments and texts"


def _plain(character: str) -> str:
    """Full width, subscripts, ligatures and the digits of other scripts, as they are elsewhere."""
    digit = unicodedata.digit(character, None)
    return unicodedata.normalize("NFKC", character) if digit is None else str(digit)


def _of_letter(character: str) -> str:
    letter = unicodedata.normalize("NFKC", character)
    words = unicodedata.name(letter[0], "").lower().split()
    base = unicodedata.normalize("NFKD", letter)[0]
    if base.isascii():
        return f"{ALPHABET}: `{base}`, for example"
    if words[:1] == ["greek"] and "letter" in words:
        return f"{ALPHABET}: `{words[words.index('letter') + 1]}`, for example"
    return f"{ALPHABET}; other letters stand only in comments and texts"


def explain_character(layout: Layout, line: int, column: int, character: str) -> HkcError:
    """The mistake of a character that starts no token."""
    token = Token("", character, line=line, column=column, end_line=line, end_column=column + 1)
    span = span_of(layout.source, token)
    if character in "\"'":
        hint = f"close it on this line with {character}; comments start with #"
        return error("HK105", "this text has no closing quote", span, hint=hint)
    if character == "\\":
        hint = "lines continue inside brackets; put the expression in ( )"
        return error("HK111", "`\\` doesn't continue a line", span, hint=hint)
    if character == ";":
        return error("HK111", "`;` doesn't separate statements", span, hint="one statement per line")
    if character == "!":
        return error("HK111", "`!` is not an operator", span, hint="`not` negates a condition, `~` a tile of bools")
    if character in "{}":
        return error(
            "HK111", f"`{character}` has no meaning here", span, hint="lists are written [a, b]; blocks by indentation"
        )
    if character.isascii() and character.isprintable():
        choice = "`a if condition else b` chooses one of two numbers, where(condition, a, b) element by element"
        hint = choice if character == "?" else f"{ALPHABET}; comments start with #"
        return error("HK111", f"the character `{character}` has no meaning here", span, hint=hint)
    return error("HK111", f"the character {describe(character)} has no meaning here", span, hint=advice(character))
