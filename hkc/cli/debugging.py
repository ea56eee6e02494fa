"""Options for looking into a run on the emulator: breakpoints, a trace, watches over memory."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hkc.emulate import Memory, Observer

Find = Callable[["Memory", str, tuple[int, ...]], tuple[int, int]]
"""Where an element of a tensor or argument is: the memory, its name or number, the index → address and bytes."""

_WATCH = re.compile(r"(\w+)(?:\[(\d+(?:,\d+)*)\])?(?::(\d+))?$")


def add(to: argparse.ArgumentParser, name: str) -> None:
    """The options; `name` says what a watch names (`NAME` or `N`)."""
    to.add_argument(
        "--break",
        dest="stop",
        action="append",
        default=[],
        metavar="ADDRESS|LINE",
        help="print state before the instruction at 0x…, or before the first ones of a source line; may be repeated",
    )
    to.add_argument(
        "--show",
        action="append",
        default=[],
        metavar="WHAT",
        help="what --break prints: v3, a[0:3], s[4:5], vcc, lds[0:64], 0x…[0:16] (default: what the instruction names)",
    )
    to.add_argument(
        "--wave", type=int, metavar="N", help="the wave at which --break stops (default: the first to come)"
    )
    to.add_argument("--trace", type=Path, metavar="FILE", help="write a line per instruction and group of waves")
    to.add_argument("--trace-values", action="store_true", help="with what each has written (first wave, lane 0)")
    to.add_argument(
        "--watch",
        action="append",
        default=[],
        metavar=f"{name}[INDEX]|ADDRESS[:BYTES]",
        help="print every write to an element, or to bytes from an address on (default: 4); may be repeated",
    )


def asked(options: argparse.Namespace) -> bool:
    """Whether any of the options was given."""
    return bool(options.stop or options.trace or options.watch)


@contextmanager
def observers(options: argparse.Namespace, find: Find) -> Iterator[list[Observer]]:
    """What the options ask for. Breakpoints and watches print on stderr; the trace's file is closed at the end."""
    from hkc.emulate import Break, Trace
    from hkc.support.errors import error

    found: list[Observer] = []
    for text in options.stop:
        try:
            line = not text.startswith("0x")
            where = int(text, 10 if line else 16)
        except ValueError:
            raise _usage(f"--break takes an address such as 0x1f00 or the number of a line, not `{text}`") from None
        found.append(Break(where, sys.stderr, line=line, show=options.show, wave=options.wave))
    found += [_watch(text, find) for text in options.watch]
    if options.trace is None:
        yield found
        return
    try:
        stream = options.trace.open("w", encoding="utf-8")
    except OSError as problem:
        raise error("HK520", f"can't write `{options.trace}`: {problem.strerror}") from None
    with stream:
        yield [*found, Trace(stream, options.trace_values)]


def _watch(text: str, find: Find) -> Observer:
    from hkc.emulate import Watch

    parts = _WATCH.match(text)
    if parts is None:
        raise _usage(f"--watch takes an element such as C[3,5] or an address such as 0x7e0000000000:16, not `{text}`")
    name, index, size = parts[1], tuple(int(i) for i in (parts[2] or "0").split(",")), int(parts[3] or 4)
    if name.startswith("0x"):
        return Watch(lambda memory: (int(name, 16), size), sys.stderr, text)
    return Watch(lambda memory: find(memory, name, index), sys.stderr, text)


def _usage(message: str) -> Exception:
    from hkc.support.errors import Diagnostic, HkcUsageError

    return HkcUsageError(Diagnostic("HK305", message))
