"""Progress on stderr: a line that keeps changing on a terminal, now and then a new line elsewhere, nothing if short."""

from __future__ import annotations

import sys
import time

_PATIENCE = {True: 1.0, False: 10.0}  # seconds before the first sign of life, on a terminal and elsewhere
_PERIOD = {True: 0.2, False: 10.0}  # and between two


class Progress:
    """Shows how far something is; call it with a part (0 to 1) and a phrase. `end` clears a terminal's line."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._terminal = sys.stderr.isatty()
        self._next = time.monotonic() + _PATIENCE[self._terminal]
        self._shown = False

    def __call__(self, part: float, phrase: str) -> None:
        """Show it if it is time to."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _PERIOD[self._terminal]
        line = f"{self._what}: {part:4.0%} ({phrase})"
        sys.stderr.write(f"\r{line}\033[K" if self._terminal else f"{line}\n")
        sys.stderr.flush()
        self._shown = True

    def end(self) -> None:
        """It is over."""
        if self._shown and self._terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
