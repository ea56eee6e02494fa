"""Options for looking into a run on the emulator: breakpoints, a trace, watches over memory."""

from __future__ import annotations

import argparse
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from hkc.cli.options import count, words

if TYPE_CHECKING:
    from hkc.emulate import Break, Memory, Observer, Watch

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
        type=words,
        action="extend",
        default=[],
        metavar="WHAT,…",
        help="what --break prints: v3, a[0:3], s[4:5], vcc, lds[0:64], 0x…[0:16] (default: what the instruction names)",
    )
    to.add_argument(
        "--wave", type=count, metavar="N", help="the wave at which --break stops (default: the first to come)"
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
    values = (options.stop, options.trace, options.watch, options.show, options.trace_values)
    return any(values) or options.wave is not None


def element(name: str, index: tuple[int, ...], extents: Mapping[str, tuple[int, ...]]) -> None:
    """Raise `HkcUsageError` HK305 unless that names an element of one of these tensors."""
    if name not in extents:
        near = get_close_matches(name, extents, n=1)
        raise _usage(
            f"there is no `{name}` to watch", f"did you mean {near[0]}?" if near else f"there are {', '.join(extents)}"
        )
    if len(index) != len(extents[name]) or any(map(operator.ge, index, extents[name])):
        shape = " x ".join(map(str, extents[name]))
        raise _usage(f"`{name}` has {shape} elements, so `{name}[{','.join(map(str, index))}]` is none of them")


@contextmanager
def observers(options: argparse.Namespace, find: Find) -> Iterator[list[Observer]]:
    """What the options ask for. Breakpoints and watches print on stderr; the trace's file is closed at the end."""
    from hkc.emulate import Break, Trace
    from hkc.support.errors import error

    if not options.stop and (options.show or options.wave is not None):
        raise _usage("--show and --wave say what --break prints, and there is no --break")
    if options.trace_values and options.trace is None:
        raise _usage("--trace-values says what --trace writes, and there is no --trace")
    found: list[Break | Watch] = []
    for text in options.stop:
        try:
            line = not text.startswith("0x")
            where = int(text, 10 if line else 16)
        except ValueError:
            raise _usage(f"--break takes an address such as 0x1f00 or the number of a line, not `{text}`") from None
        found.append(Break(where, sys.stderr, line=line, show=options.show, wave=options.wave))
    found += [_watch(text, find) for text in options.watch]
    if options.trace is None:
        yield list(found)
        _tell(found)
        return
    try:
        stream = options.trace.open("w", encoding="utf-8")
    except OSError as problem:
        raise error("HK520", f"can't write `{options.trace}`: {problem.strerror}") from None
    with stream:
        yield [*found, Trace(stream, options.trace_values)]
    _tell(found)


def _tell(found: Iterable[Break | Watch]) -> None:
    """Say what did not happen, so that silence is never mistaken for it."""
    from hkc.emulate import Break

    for each in found:
        if not each.reached:
            print(f"{each} was not {'reached' if isinstance(each, Break) else 'written'}", file=sys.stderr)


def _watch(text: str, find: Find) -> Watch:
    from hkc.emulate import Watch

    parts = _WATCH.match(text)
    if parts is None:
        raise _usage(f"--watch takes an element such as C[3,5] or an address such as 0x7e0000000000:16, not `{text}`")
    name, index, size = parts[1], tuple(int(i) for i in (parts[2] or "0").split(",")), int(parts[3] or 4)
    if parts[3] and not name.startswith("0x"):
        raise _usage(f"a number of bytes belongs to an address, not to an element as in `{text}`")
    if name.startswith("0x"):
        return Watch(lambda memory: (int(name, 16), size), sys.stderr, text)
    return Watch(lambda memory: find(memory, name, index), sys.stderr, text)


def _usage(message: str, hint: str | None = None) -> Exception:
    from hkc.support.errors import Diagnostic, HkcUsageError

    return HkcUsageError(Diagnostic("HK305", message, hint=hint))
