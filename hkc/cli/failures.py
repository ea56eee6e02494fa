"""What becomes of everything that can go wrong: a text on stderr and an exit code, never a traceback."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
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
        return _report(bug)
    except SystemExit as leave:  # argparse has said why
        return leave.code if isinstance(leave.code, int) else 0
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Python flushes stdout once more when it exits, and must not fail there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except Exception as failure:  # noqa: BLE001 (whatever it is, it is our bug)
        return _report(_bug(failure, words))
    return code


def _say(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def _report(bug: HkcBug) -> int:
    from hkc.support.reproducer import command

    replay = f"\nreplay it: {command(bug.reproducer)}" if bug.reproducer else f"\n{bug.details}".rstrip()
    return _say(f"{bug}{replay}", bug.exit_code)


def _bug(failure: Exception, words: Sequence[str]) -> HkcBug:
    """The bug that an exception is, with a folder that repeats the command and holds its kernel."""
    from hkc.support.reproducer import save

    message, details = f"{type(failure).__name__}: {failure}", traceback.format_exc()
    files = {Path(word).name: _content(word) for word in words if word.endswith(".hk")}
    folder = save(pickle.dumps(("hkc.cli:main", (list(words),))), files, f"{message}\n\n{details}")
    return HkcBug(message, folder, details)


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        return str(problem).encode()
