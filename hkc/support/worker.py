"""The warm process that holds MLIR and LLVM, so that their aborts, leaks and symbol clashes never reach the caller's.

`call("module:function", …)` runs a function there and returns what it returns. Requests and answers are pickles with a
length in front, over two pipes of their own: stray output of the libraries goes to a file, whose tail is part of a bug
report. A crash, an abort or a time-out becomes an `HkcBug` with a folder that reproduces it; the next call starts a new
process. The worker ends when its pipe closes, thus with its parent, however that one ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from hkc.support.channel import receive, send
from hkc.support.errors import HkcBug, HkcError
from hkc.support.reproducer import save

_TAIL = 20_000  # bytes of the worker's output that a report quotes
_BOOT = "import sys; sys.path[:] = {path!r}; from hkc.support.worker_main import serve; serve({requests}, {answers})"


def start(*modules: str) -> None:
    """Begin to start the worker, which then imports `modules` at once, and don't wait for it."""
    with _worker.lock:
        _worker.ensure_started()
        for module in modules:
            _worker.preload(module)


def call(target: str, *args: Any, timeout: float = 600.0, replay: Mapping[str, str | bytes] | None = None) -> Any:
    """`function(*args)` of the target "module:function", run in the worker. Arguments and result must pickle.

    `HkcError` and `HkcBug` raised there are raised here. Anything else that ends the call (another exception, a crash,
    more than `timeout` seconds) raises `HkcBug` and leaves a reproducer folder, which also gets the `replay` files
    (name to content) so that a human can read what was compiled. In the worker itself it is a plain function call.
    """
    inside = sys.modules.get("hkc.support.worker_main")
    if inside is not None and inside.serving:
        return inside.resolve(target)(*args)
    request = pickle.dumps((target, args), pickle.HIGHEST_PROTOCOL)
    with _worker.lock:
        outcome = _worker.run(request, timeout)
    match outcome:
        case ("result", value):
            return value
        case ("error", HkcError() as failure):
            raise failure
        case ("bug", message, details):
            folder = save(request, replay or {}, f"{message}\n\n{details}")
            raise HkcBug(f"{message} (in {target})", folder, details)
    raise AssertionError(outcome)


def shutdown() -> None:
    """End the worker if there is one; the next call starts another."""
    with _worker.lock:
        _worker.stop()


def _at_exit() -> None:
    """End an idle worker. One that still works for a daemon thread ends by itself when its pipe closes."""
    if _worker.lock.acquire(blocking=False):
        _worker.stop()


class _Worker:
    """The process, its two pipes and the file that catches its output."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests = self._answers = -1
        self._output: IO[bytes] | None = None

    def ensure_started(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.stop()
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self._output = tempfile.TemporaryFile(prefix="hkc-worker-")  # noqa: SIM115 (closed by `forget`)
        boot = _BOOT.format(path=_search_path(), requests=requests, answers=answers)
        try:
            self._process = subprocess.Popen(
                # Without `site`, since the search path is complete already. faulthandler says where a crash was.
                [sys.executable, "-I", "-S", "-X", "faulthandler", "-c", boot],
                stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output, pass_fds=(requests, answers),
            )  # fmt: skip
        finally:
            os.close(requests)
            os.close(answers)

    def run(self, request: bytes, timeout: float) -> tuple[Any, ...]:
        """The answer to one request: ("result", value), ("error", HkcError) or ("bug", message, details)."""
        self.ensure_started()
        written = self._written()
        try:
            send(self._requests, request)
            answer = receive(self._answers, self._patience(timeout))
        except TimeoutError:
            self._abort()  # faulthandler then writes where it hangs
            return ("bug", f"no answer after {timeout:g} seconds", self._bury(written))
        except (EOFError, BrokenPipeError):
            return ("bug", self._cause_of_death(), self._bury(written))
        except BaseException:  # Ctrl-C, for instance: the answer on its way would be taken for the next call's
            self.stop()
            raise
        outcome: tuple[Any, ...] = pickle.loads(answer)
        if outcome[0] == "bug":
            outcome = ("bug", outcome[1], outcome[2] + self._tail(written))
        return outcome

    def preload(self, module: str) -> None:
        """Let the worker import `module` while this process goes on."""
        self.ensure_started()
        try:
            send(self._requests, pickle.dumps(("import", module)))
        except BrokenPipeError:  # it died at once; the next call reports why
            self.stop()

    def stop(self) -> None:
        """Kill the process and close what belongs to it. Idempotent."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self.forget()

    def forget(self) -> None:
        """Close this process's ends of the pipes and the output file, without touching the worker."""
        for descriptor in (self._requests, self._answers):
            if descriptor >= 0:
                os.close(descriptor)
        if self._output is not None:
            self._output.close()
        self._process, self._requests, self._answers, self._output = None, -1, -1, None

    def _patience(self, timeout: float) -> Callable[[], None]:
        """A function that waits until the worker has written something and raises `TimeoutError` when time is up."""
        deadline = time.monotonic() + timeout
        poll = select.poll()
        poll.register(self._answers, select.POLLIN | select.POLLHUP)

        def wait() -> None:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError

        return wait

    def _abort(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGABRT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)

    def _cause_of_death(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "the worker closed its pipe"
        return f"the worker died of {_signal_name(-code)}" if code < 0 else f"the worker left with {code}"

    def _bury(self, written: int) -> str:
        """Stop the process and return what it printed last."""
        tail = self._tail(written)
        self.stop()
        return tail

    def _written(self) -> int:
        assert self._output is not None
        return os.fstat(self._output.fileno()).st_size

    def _tail(self, begin: int) -> str:
        """What the worker printed from byte `begin` of its output on, at most the last `_TAIL` bytes of it."""
        assert self._output is not None
        end = self._written()
        begin = max(begin, end - _TAIL)
        return os.pread(self._output.fileno(), end - begin, begin).decode(errors="replace")


def _search_path() -> list[str]:
    """This process's module search path with absolute entries; hkc's own home may be known to an import hook only."""
    home = str(Path(__file__).absolute().parents[2])
    path = [str(Path(entry).absolute()) for entry in sys.path]
    return path if home in path else [*path, home]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _after_fork() -> None:
    """A forked child shares the pipes with its parent: let go of them and start a worker of its own when needed.

    The lock may have been held by a thread that doesn't exist here, therefore everything is made anew.
    """
    global _worker
    _worker.forget()
    _worker = _Worker()


_worker = _Worker()
os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
