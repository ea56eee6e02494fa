"""Progress on stderr where that is a terminal: a line that keeps changing, and goes away. Nothing elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType

_PATIENCE = 1.0  # seconds before the first sign of life
_PERIOD = 0.2  # and between two
_WIDTH = 20


class Progress:
    """Shows how far something is: call it with a part (0 to 1) and a phrase. Use it in a `with`, which clears the line.

    A thread draws, so that a step which takes long is seen to be at work.
    """

    def __init__(self, what: str) -> None:
        self._what, self._now, self._began = what, (0.0, "starting"), time.monotonic()
        self._over = threading.Event()
        self._painter = threading.Thread(target=self._paint, daemon=True) if sys.stderr.isatty() else None

    def __call__(self, part: float, phrase: str) -> None:
        """From now on show this."""
        self._now = part, phrase

    def __enter__(self) -> Progress:
        if self._painter is not None:
            self._painter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._painter is not None:
            self._painter.join()

    def _paint(self) -> None:
        wait = _PATIENCE
        while not self._over.wait(wait):
            part, phrase = self._now
            bar, seconds = "#" * int(_WIDTH * part), time.monotonic() - self._began
            line = f"{self._what} [{bar:{_WIDTH}}] {part:4.0%} {seconds:.0f} s ({phrase})"
            room = (os.get_terminal_size(sys.stderr.fileno()).columns or 80) - 1  # a line that wraps can't be redrawn
            sys.stderr.write(f"\r{line[:room]}\033[K")
            sys.stderr.flush()
            wait = _PERIOD
        if wait == _PERIOD:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
