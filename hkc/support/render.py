"""The one place where diagnostics become text: heading, source lines with carets, notes, hint.

::

    matmul.hk:14:13: error[HK203]: inner sizes differ: `a` is 64x32 but `b` is 16x64
       14 |   acc = dot(a, b, acc)
          |             ^  ^
    matmul.hk:11:7: note: `b` gets its shape here
    hint: dot needs columns of `a` = rows of `b`; load 32 rows
"""

from __future__ import annotations

from collections.abc import Iterable
from unicodedata import category, combining, east_asian_width

from hkc.support.errors import Diagnostic, Span

TAB = 4
WINDOW = 120


def render(diagnostics: Iterable[Diagnostic]) -> str:
    """The text of these diagnostics, one after the other, without a line end at the end."""
    return "\n".join("\n".join(_lines(d)) for d in diagnostics)


def _lines(diagnostic: Diagnostic) -> Iterable[str]:
    first = diagnostic.spans[0] if diagnostic.spans else None
    yield f"{_place(first)}{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"
    by_line: dict[tuple[str, int], list[Span]] = {}
    for span in diagnostic.spans:
        by_line.setdefault((span.source.name, span.line), []).append(span)
    for spans in by_line.values():
        yield from _excerpt(spans)
    for note in diagnostic.notes:
        yield f"{_place(note.span)}note: {note.message}"
    if diagnostic.hint:
        yield f"hint: {diagnostic.hint}"


def _place(span: Span | None) -> str:
    return f"{span.source.name}:{span.line}:{span.column}: " if span else ""


def _excerpt(spans: list[Span]) -> Iterable[str]:
    """The source line of these spans, and carets under each; nothing where the source has no such line."""
    rows = spans[0].source.rows
    if not 0 < spans[0].line <= len(rows) or not rows[spans[0].line - 1].strip():
        return
    row = rows[spans[0].line - 1]
    cells = [_cell(c) for c in row]
    marked: set[int] = set()
    for span in spans:
        first = min(max(span.column - 1, 0), len(row))
        end = span.end_column - 1 if span.end_line == span.line else len(row.rstrip())
        marked |= set(range(first, max(min(end, len(row)), first + 1)))
    start, stop = _window(len(cells), min(marked), max(marked) + 1)
    cells += [" "] * (max(marked) + 1 - len(cells))
    text = "".join(cells[start:stop]).rstrip()
    carets = "".join(
        ("^" if i in marked else " ") * _width(cells[i]) for i in range(start, min(stop, len(cells)))
    ).rstrip()
    left, right = ("…" if start else ""), ("…" if stop < len(row) else "")
    yield f"{spans[0].line:5} | {left}{text}{right}"
    yield f"      | {' ' * len(left)}{carets}"


def _cell(character: str) -> str:
    """What is printed for one character of the source; control characters must not reach a terminal."""
    if character == "\t":
        return " " * TAB
    return "\N{REPLACEMENT CHARACTER}" if category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") else character


def _width(cell: str) -> int:
    """Terminal columns of a cell."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in cell)


def _window(length: int, first: int, last: int) -> tuple[int, int]:
    """Which characters of a long line to show, so that the first mark is seen."""
    if max(length, last) <= WINDOW:
        return 0, max(length, last)
    start = max(0, min(first - WINDOW // 3, length - WINDOW))
    return start, start + WINDOW
