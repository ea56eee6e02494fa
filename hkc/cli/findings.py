"""What checkers found, as text in the style of all diagnostics and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hkc.emulate.checks import CHECKS, REMARKS, name_of
from hkc.support.errors import Diagnostic, HkcError, Note, Source, Span
from hkc.support.render import render

if TYPE_CHECKING:
    from hkc.emulate import Finding
    from hkc.machine.lines import Line


@dataclass(frozen=True)
class Found:
    """A finding, the check that it belongs to, and in which of several runs it turned up first."""

    finding: Finding
    case: str = ""

    @property
    def check(self) -> str:
        """The check's name."""
        return name_of(self.finding)

    @property
    def wrong(self) -> bool:
        """Whether it is an error, not only slow."""
        return self.check not in REMARKS


def from_error(failure: HkcError) -> Finding:
    """What stopped a run, as a finding."""
    from hkc.emulate import Finding
    from hkc.emulate.faults import Fault

    diagnostic = failure.diagnostics[0]
    kind = "endless loop" if diagnostic.code == CHECKS["endless-loop"] else "fault"
    message = diagnostic.message + (f" ({diagnostic.hint})" if diagnostic.hint and kind == "fault" else "")
    if not isinstance(failure, Fault):
        return Finding(kind, 0, "", message, 0, 0)
    return Finding(kind, failure.address, "", message, failure.wave, failure.lane, line=failure.line)


def text(found: Iterable[Found], source: Source | None = None) -> str:
    """One block per finding; `source` is the kernel's text, shown where a finding comes from it."""
    return render(_diagnostic(f, source) for f in found)


def document(found: Found) -> dict[str, Any]:
    """A finding for JSON."""
    f = found.finding
    other = f.other and {
        "address": f.other.address, "instruction": f.other.text, "wave": f.other.wave, **_place(f.other.line)
    }  # fmt: skip
    return {
        "check": found.check,
        "code": CHECKS[found.check],
        "severity": "error" if found.wrong else "remark",
        "message": f.message,
        "address": f.address,
        "instruction": f.text,
        "wave": f.wave,
        "workgroup": f.workgroup,
        "lane": f.lane,
        "count": f.count,
        **_place(f.line),
        "other": other,
        "case": found.case,
    }


def _place(line: Line | None) -> dict[str, Any]:
    if line is None:
        return {"file": None, "line": None, "column": None}
    return {"file": line.file, "line": line.line, "column": line.column}


def _diagnostic(found: Found, source: Source | None) -> Diagnostic:
    f = found.finding
    notes = []
    if f.text:
        times = f", {f.count} times" if f.count > 1 else ""
        where = f"wave {f.wave}, workgroup {f.workgroup}, lane {f.lane}{times}"
        notes.append(Note(f"at {f.address:#x}: {f.text} ({where})"))
    if f.other is not None:
        notes.append(
            Note(
                f"the other at {f.other.address:#x}: {f.other.text} (wave {f.other.wave})", _span(f.other.line, source)
            )
        )
    if found.case:
        notes.append(Note(f"with {found.case}"))
    span = _span(f.line, source)
    severity = "error" if found.wrong else "remark"
    message = f"{f.kind}: {f.message}"
    return Diagnostic(CHECKS[found.check], message, (span,) if span else (), tuple(notes), severity=severity)


def _span(line: Line | None, source: Source | None) -> Span | None:
    if line is None:
        return None
    column = max(line.column, 1)
    known = source is not None and Path(source.name).name == Path(line.file).name
    shown = source if known and source is not None else Source(line.file, "")
    return Span(shown, line.line, column, line.line, column + 1)
