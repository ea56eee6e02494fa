"""Errors: `HkcError` is the user's (exit code 1, or 2 for usage), `HkcBug` is ours (exit code 70).

A diagnostic points into a `Source` by `Span`; `hkc.support.render` turns it into the text that the kernel author sees.
Everything here is plain data that travels through pickle, since diagnostics are made in the worker process too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """One input text and the name under which the user knows it (a path as given, or `<string>`)."""

    name: str
    text: str

    @property
    def rows(self) -> list[str]:
        """The lines of the text, without their ends."""
        return _rows(self.text)


@lru_cache(maxsize=4)
def _rows(text: str) -> list[str]:
    return text.split("\n")


@dataclass(frozen=True)
class Span:
    """A stretch of a source: 1-based line and column (in characters), the end exclusive."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def text(self) -> str:
        """What stands here, as far as its first line goes."""
        end = self.end_column - 1 if self.end_line == self.line else None
        return self.source.rows[self.line - 1][self.column - 1 : end]

    @property
    def behind(self) -> str:
        """What follows on its last line."""
        return self.source.rows[self.end_line - 1][self.end_column - 1 :]


@dataclass(frozen=True)
class Note:
    """A remark that belongs to a diagnostic, with its own place where it has one."""

    message: str
    span: Span | None = None


@dataclass(frozen=True)
class Diagnostic:
    """One mistake: a stable code (`HK203`), one sentence, the places it concerns, notes, and at most one hint.

    The first span is the place named in the heading; carets mark every span that lies on the same line. `severity` is
    the heading's word: "error", or "remark" for what needs no correction.
    """

    code: str
    message: str
    spans: tuple[Span, ...] = ()
    notes: tuple[Note, ...] = ()
    hint: str | None = None
    severity: str = "error"


class HkcError(Exception):
    """The user's mistake, as one or more diagnostics in source order. `str()` is the rendered text."""

    exit_code = 1

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        from hkc.support.render import render

        return render(self.diagnostics)


class HkcUsageError(HkcError):
    """A call that can't be carried out as put: unknown chip, unknown option, contradictory flags."""

    exit_code = 2


@dataclass
class HkcBug(Exception):
    """Our mistake: what happened, in which step, and the folder that holds a reproducer (where one was saved)."""

    message: str
    reproducer: Path | None = None
    details: str = field(default="", repr=False)
    exit_code = 70

    def __str__(self) -> str:
        saved = f"\nreproducer: {self.reproducer}" if self.reproducer else ""
        return f"internal error: {self.message}{saved}"


def count(number: int, what: str) -> str:
    """`1 name`, `2 names`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def error(code: str, message: str, *spans: Span, notes: tuple[Note, ...] = (), hint: str | None = None) -> HkcError:
    """An `HkcError` with a single diagnostic."""
    return HkcError(Diagnostic(code, message, spans, notes, hint))
