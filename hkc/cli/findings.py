"""What checkers found, as text in the style of all diagnostics and as JSON."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hkc.emulate.checks import BANKS, CHECKS, REMARKS, name_of
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
    arch: str = ""
    wanted: bool = False
    """Whether its check was asked for by name."""

    @property
    def check(self) -> str:
        """The check's name."""
        return name_of(self.finding)

    @property
    def wrong(self) -> bool:
        """Whether it is an error: what is only slow is one to who asked for it."""
        return self.wanted or self.check not in REMARKS


class Collection:
    """What several runs find: one entry per chip, kind, instruction and other party's instruction, with counts.

    `named` are the checks that were asked for by name; without any, all count.
    """

    def __init__(self, named: Iterable[str] = ()) -> None:
        self._named = frozenset(named)
        self._found: dict[tuple[str, str, int, int], Found] = {}

    def add(self, findings: Iterable[Finding], case: str = "", arch: str = "") -> None:
        """Those of one run."""
        for f in findings:
            if self._named and name_of(f) not in self._named:
                continue
            key = (arch, f.kind, f.address, f.other.address if f.other else -1)
            old = self._found.get(key)
            if old is None:
                self._found[key] = Found(f, case, arch, name_of(f) in self._named)
            else:
                count = old.finding.count + f.count
                self._found[key] = replace(old, finding=replace(old.finding, count=count))

    def all(self, tolerated: Mapping[str, Container[int]] | None = None) -> list[Found]:
        """Errors first; bank conflicts at addresses that a chip tolerates are left out."""
        kept = [
            f
            for f in self._found.values()
            if f.check != BANKS or f.finding.address not in (tolerated or {}).get(f.arch, ())
        ]
        return sorted(kept, key=lambda f: not f.wrong)


def from_error(failure: HkcError) -> tuple[Finding, ...]:
    """What had been found when a run was stopped, and what stopped it."""
    from hkc.emulate import Fault, Finding

    diagnostic = failure.diagnostics[0]
    kinds = {CHECKS[kind]: kind.replace("-", " ") for kind in ("endless-loop", "assertion")}
    kind = kinds.get(diagnostic.code, "fault")
    message = diagnostic.message + (f" ({diagnostic.hint})" if diagnostic.hint and kind == "fault" else "")
    if not isinstance(failure, Fault):
        return (Finding(kind, 0, "", message, 0, 0),)
    stop = Finding(
        kind, failure.address, failure.text, message, failure.wave or 0, failure.lane,
        workgroup=failure.workgroup, line=failure.line,
    )  # fmt: skip
    return (*failure.before, stop)


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
        "arch": found.arch,
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
    if found.case or found.arch:
        notes.append(
            Note(" ".join([*(["with", found.case] if found.case else ()), *(["on", found.arch] if found.arch else ())]))
        )
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
