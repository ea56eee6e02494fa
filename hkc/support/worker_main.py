"""The worker process: serves calls over two pipes, or replays one saved call (`--replay FOLDER`).

Nothing heavy is imported before a call needs it, so that a disassembly doesn't pay for MLIR. The order in which MLIR
and LLVM come is free because both are loaded RTLD_LOCAL.
"""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import resource
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from hkc.support.channel import receive, send
from hkc.support.errors import HkcBug, HkcError, HkcUsageError

serving = False
"""Is this process a worker?"""


def serve(requests: int, answers: int) -> None:
    """Answer the calls that arrive on descriptor `requests` until the parent closes it. Never returns."""
    global serving
    serving = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what it means
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, inbox), daemon=True).start()
    # The main thread does the work: it alone has the big stack that deep recursions of MLIR and LLVM need.
    while True:
        target, args = pickle.loads(inbox.get())
        if target == "import":
            _preload(args)
        else:
            send(answers, _dump(_outcome(target, args)))


def replay(folder: Path) -> Any:
    """Repeat the call saved in `folder` in this process, so that a debugger can watch it, and return its result."""
    from hkc.support.reproducer import load

    target, args = load(folder)
    return resolve(target)(*args)


def resolve(target: str) -> Any:
    """The function that "module:function" names."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _listen(requests: int, inbox: queue.SimpleQueue[bytes]) -> None:
    """Queue what arrives. A closed pipe means that the parent is gone: leave at once, whatever the main thread does."""
    try:
        while True:
            inbox.put(receive(requests))
    except EOFError:
        os._exit(0)


def _preload(module: str) -> None:
    try:
        importlib.import_module(module)
    except Exception:  # noqa: BLE001 (the call that needs it will report it)
        traceback.print_exc()


def _outcome(target: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return ("result", resolve(target)(*args))
    except HkcError as failure:
        return ("error", failure)
    except HkcBug as bug:
        return ("bug", bug.message, f"{bug.details}\n{traceback.format_exc()}")
    except BaseException as failure:  # noqa: BLE001 (whatever it is, the caller is told)
        return ("bug", f"{type(failure).__name__}: {failure}", traceback.format_exc())


def _dump(outcome: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)
    except Exception as failure:  # noqa: BLE001 (reduce functions raise what they like)
        return pickle.dumps(("bug", f"the answer can't be sent: {failure}", traceback.format_exc()))


def main(arguments: list[str]) -> int:
    """`--replay FOLDER`: 0 when the saved call succeeds now, else the exit code of its error."""
    if len(arguments) != 2 or arguments[0] != "--replay":
        print("usage: python -m hkc.support.worker_main --replay FOLDER", file=sys.stderr)
        return HkcUsageError.exit_code
    try:
        print(repr(replay(Path(arguments[1])))[:2000])
    except (HkcError, HkcBug) as failure:
        print(failure, file=sys.stderr)
        return failure.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
