"""What becomes of everything that can go wrong: a text on stderr and an exit code, never a traceback."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from hkc.support.errors import Diagnostic, HkcBug, HkcError

INTERRUPTED = 130
"""128 + SIGINT, as a shell reports it."""
NOBODY_READS = 141
"""128 + SIGPIPE."""


def guarded(act: Callable[[], int], words: Sequence[str]) -> int:
    """`act()`, its failures reported; `words` is the command line, for a reproducer and for whether JSON is wanted."""
    try:
        code = act()
        sys.stdout.flush()
    except SystemExit as leave:  # argparse has shown help, a list or the version
        return leave.code if isinstance(leave.code, int) else 0
    except BrokenPipeError:
        _forget_output()
        return NOBODY_READS
    except OSError as failure:
        if failure.errno != errno.ENOSPC:
            return _told(_bug(failure, words), words)
        _forget_output()
        print("error: can't write the output: no space left on device", file=sys.stderr)
        return HkcError.exit_code
    except BaseException as failure:  # noqa: BLE001 (whatever it is, it gets a text and an exit code)
        return _told(_failure(failure, words), words)
    return code


@dataclass(frozen=True)
class _Failure:
    """What is shown on stderr, the exit code, and what `--json` prints for each mistake."""

    text: str
    code: int
    errors: tuple[dict[str, Any], ...]


def _told(failure: _Failure, words: Sequence[str]) -> int:
    """Report it, where JSON is wanted as a document as well."""
    print(failure.text, file=sys.stderr)
    if "--json" in words or "--report=json" in words or ("--report", "json") in pairwise(words):
        print(json.dumps({"ok": False, "exit_code": failure.code, "errors": failure.errors}))
    return failure.code


def _failure(raised: BaseException, words: Sequence[str]) -> _Failure:
    if isinstance(raised, HkcError):
        return _Failure(str(raised), raised.exit_code, tuple(map(_document, raised.diagnostics)))
    if isinstance(raised, HkcBug):
        return _report(raised, words)
    if isinstance(raised, MemoryError):
        text = f"there is not enough memory ({raised})"
        return _Failure(f"error: {text}", HkcError.exit_code, ({"code": None, "message": text},))
    if isinstance(raised, KeyboardInterrupt):
        return _Failure("interrupted", INTERRUPTED, ({"code": None, "message": "interrupted"},))
    return _bug(raised, words)


def _document(diagnostic: Diagnostic) -> dict[str, Any]:
    place: dict[str, Any] = {"file": None, "line": None, "column": None}
    if diagnostic.spans:
        first = diagnostic.spans[0]
        place = {"file": first.source.name, "line": first.line, "column": first.column}
    notes = [note.message for note in diagnostic.notes]
    return {"code": diagnostic.code, "message": diagnostic.message, **place, "notes": notes, "hint": diagnostic.hint}


def _forget_output() -> None:
    """Python flushes stdout once more when it exits, and must not fail there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(raised: BaseException, words: Sequence[str]) -> _Failure:
    import traceback

    return _report(HkcBug(f"{type(raised).__name__}: {raised}", details=traceback.format_exc()), words)


def _report(bug: HkcBug, words: Sequence[str]) -> _Failure:
    """A bug. One that left no reproducer gets a folder that repeats the command and holds its kernel."""
    import pickle

    from hkc.support.reproducer import command, save

    folder = bug.reproducer
    if folder is None:
        files = {Path(word).name: _content(word) for word in words if word.endswith((".hk", ".mlir", ".py"))}
        report = f"{bug.message}\n\n{bug.details}"
        folder = save(pickle.dumps(("hkc.cli:main", (list(words),))), files, report)
    saved = f"reproducer: {folder}\nreplay it: {command(folder)}" if folder else bug.details
    error = {"code": None, "message": bug.message, "reproducer": str(folder) if folder else None}
    return _Failure(f"internal error: {bug.message}\n{saved}", bug.exit_code, (error,))


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        return str(problem).encode()
