"""How layouts write extents and vectors."""

from collections.abc import Sequence

BY, COMMAS = r"\d+(?:x\d+)*", r"\d+(?:,\d+)*"
"""Patterns of what `by` and `commas` write."""


def by(extents: Sequence[int]) -> str:
    """`64x32`."""
    return "x".join(map(str, extents))


def commas(vector: Sequence[int]) -> str:
    """`64,32`."""
    return ",".join(map(str, vector))


def numbers(text: str, separator: str) -> tuple[int, ...]:
    """What `by` (separator `x`) or `commas` (separator `,`) wrote."""
    return tuple(map(int, text.split(separator)))
