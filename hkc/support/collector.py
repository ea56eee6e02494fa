"""Python's search for cycles of garbage, held while many records are made that hold none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held() -> Iterator[None]:
    """Within it the collector rests: it would walk every record of a long file again and again, for a third of the
    time that parsing and checking take. Reference counts free what is dropped, as ever."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
