"""What becomes of everything that can go wrong: a text on stderr and an exit code, never a traceback."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from hkc.support.errors import HkcBug, HkcError

INTERRUPTED = 130
"""128 + SIGINT, as a shell reports it."""
NOBODY_READS = 141
"""128 + SIGPIPE."""


def guarded(act: Callable[[], int], words: Sequence[str]) -> int:
    """`act()`, its failures reported; `words` is the command line, for a reproducer."""
    try:
        code = act()
        sys.stdout.flush()
    except HkcError as failure:
        return _say(str(failure), failure.exit_code)
    except HkcBug as bug:
        return _report(bug, words)
    except SystemExit as leave:  # argparse has said why
        return leave.code if isinstance(leave.code, int) else 0
    except MemoryError as failure:
        return _say(f"error: there is not enough memory ({failure})", HkcError.exit_code)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _forget_output()
        return NOBODY_READS
    except OSError as failure:
        if failure.errno != errno.ENOSPC:
            return _bug(failure, words)
        _forget_output()
        return _say("error: can't write the output: no space left on device", HkcError.exit_code)
    except Exception as failure:  # noqa: BLE001 (whatever it is, it is our bug)
        return _bug(failure, words)
    return code


def _say(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def _forget_output() -> None:
    """Python flushes stdout once more when it exits, and must not fail there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(failure: Exception, words: Sequence[str]) -> int:
    import traceback

    return _report(HkcBug(f"{type(failure).__name__}: {failure}", details=traceback.format_exc()), words)


def _report(bug: HkcBug, words: Sequence[str]) -> int:
    """Print a bug. One that left no reproducer gets a folder that repeats the command and holds its kernel."""
    import pickle

    from hkc.support.reproducer import command, save

    folder = bug.reproducer
    if folder is None:
        files = {Path(word).name: _content(word) for word in words if word.endswith((".hk", ".mlir", ".py"))}
        report = f"{bug.message}\n\n{bug.details}"
        folder = save(pickle.dumps(("hkc.cli:main", (list(words),))), files, report)
    saved = f"reproducer: {folder}\nreplay it: {command(folder)}" if folder else bug.details
    return _say(f"internal error: {bug.message}\n{saved}", bug.exit_code)


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        return str(problem).encode()
