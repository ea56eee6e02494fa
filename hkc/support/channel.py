"""Messages over a pipe: eight bytes of length, then the content."""

from __future__ import annotations

import os
from collections.abc import Callable

_SIZE = 8


def send(descriptor: int, content: bytes) -> None:
    """Write one message. Raises `BrokenPipeError` when nobody reads any more."""
    view = memoryview(len(content).to_bytes(_SIZE, "little") + content)
    while view:
        view = view[os.write(descriptor, view) :]


def receive(descriptor: int, wait: Callable[[], None] = lambda: None) -> bytes:
    """Read one message; `wait` is called before each read. Raises `EOFError` when the other side has closed."""
    size = int.from_bytes(_read(descriptor, _SIZE, wait), "little")
    return _read(descriptor, size, wait)


def _read(descriptor: int, size: int, wait: Callable[[], None]) -> bytes:
    content = bytearray()
    while len(content) < size:
        wait()
        piece = os.read(descriptor, min(size - len(content), 1 << 20))
        if not piece:
            raise EOFError
        content += piece
    return bytes(content)
