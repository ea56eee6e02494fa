"""Characters that no text of the language has outside comments: what each is called, and what stands for it."""

from __future__ import annotations

import unicodedata

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
