"""Errors of passes point into the kernel author's source: from an op's location to a `Span`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hkc.support.errors import Diagnostic, HkcError, Note, Source, Span
from hkc.support.mlir import UNNAMED, places


def span(op: Any) -> Span | None:
    """Where an op comes from; the source's text is filled in by whoever has it. None where the op has no place."""
    found = places(op.location)
    if not found:
        return None
    at = found[0]
    return Span(Source(at.file, ""), at.line, at.column, at.line, at.column + 1)


def refuse(op: Any, code: str, message: str, hint: str | None = None, notes: tuple[Note, ...] = ()) -> HkcError:
    """An error about what the kernel author wrote at `op`."""
    at = span(op)
    return HkcError(Diagnostic(code, message, (at,) if at else (), notes, hint))


@contextmanager
def quote(source: Source) -> Iterator[None]:
    """Give the errors raised inside the text of the source that they point into."""

    def known(span: Span) -> Span:
        return replace(span, source=source) if span.source.name in (source.name, UNNAMED) else span

    try:
        yield
    except HkcError as failure:
        raise type(failure)(
            *(
                replace(
                    d,
                    spans=tuple(map(known, d.spans)),
                    notes=tuple(replace(n, span=n.span and known(n.span)) for n in d.notes),
                )
                for d in failure.diagnostics
            )
        ) from None
