"""`hkc opt`: any passes on any module of ours."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hkc.cli.options import command, words

if TYPE_CHECKING:
    from hkc.cli.options import Commands


class _List(argparse.Action):
    """Print the passes and leave, as `--help` does."""

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        print(listing(), end="")
        parser.exit()


def add(commands: Commands) -> None:
    """Describe the command."""
    it = command(
        commands,
        "opt",
        run,
        "Run passes on the text of a module and print what comes out. Such texts come from `hkc compile --emit` and, "
        "with HKC_DUMP=1, from every pass. Chip, forms and dialect version travel in it. Ops are always checked by "
        "their verifiers. The page docs/reference/passes.md says what each pass does.",
    )
    it.add_argument("file", metavar="FILE.mlir", help="the module, or - for standard input")
    it.add_argument(
        "-p",
        "--passes",
        type=words,
        default=[],
        metavar="PASS,…",
        help="what to run, in order: passes of --list, and MLIR's own, such as canonicalize and cse",
    )
    it.add_argument(
        "--verify",
        action="store_true",
        help="check ops, layouts and forms after each pass, not just those that come in",
    )
    it.add_argument("--arch", metavar="CHIP", help="the chip (default: the one that the module names)")
    it.add_argument("-o", "--output", type=Path, metavar="FILE", help="where the text goes (default: standard output)")
    it.add_argument("-g", "--debug", action="store_true", help="print the places in the source that ops come from")
    it.add_argument("--list", action=_List, nargs=0, help="print all passes in the pipeline's order, and leave")


def run(options: argparse.Namespace) -> int:
    """Transform and print."""
    from hkc.frontend.parse import read
    from hkc.support import worker
    from hkc.support.errors import Source
    from hkc.support.files import write_all
    from hkc.targets.chip import load

    source = Source("-", sys.stdin.read()) if options.file == "-" else read(options.file)
    chip = load(options.arch).name if options.arch is not None else None
    arguments = (source, options.passes, chip, options.verify, options.debug)
    text = worker.call("hkc.pipeline:transform", *arguments, replay={"module.mlir": source.text})
    if options.output is None:
        print(text, end="")
    else:
        write_all({options.output: text.encode()})
    return 0


def listing() -> str:
    """A line per pass: its name and what its docstring begins with."""
    rows = [(name, _first(doc)) for _, name, doc, *_ in passes()]
    width = max(len(name) for name, _ in rows)
    return "".join(f"{name:{width}}  {what}\n" for name, what in rows)


def passes() -> Sequence[tuple[str, str, str, Sequence[str], Sequence[str], Sequence[str]]]:
    """See `hkc.pipeline.described`."""
    from hkc.support import worker

    found: Sequence[Any] = worker.call("hkc.pipeline:described")
    return found


def _first(doc: str) -> str:
    return " ".join(doc.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")
