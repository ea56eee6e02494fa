"""`hkc explain-kernel`: a page, a picture or JSON about what was decided for a kernel."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from hkc import api
from hkc.cli.options import add_kernel, add_set, command, words

if TYPE_CHECKING:
    from hkc.cli.options import Commands
    from hkc.figures.facts import Facts
    from hkc.targets.chip import Chip

SUFFIXES = (".svg", ".png")
"""What a single picture may be written as."""


def add(commands: Commands) -> None:
    """Describe the command."""
    it = command(
        commands,
        "explain-kernel",
        run,
        "Show what was decided for a kernel: layouts, LDS maps with their bank conflicts, matrix instructions, "
        "conversions, loops, resources, and the runner-up of each choice. Writes one HTML page that needs nothing "
        "else, or one picture of it, and prints its path; clocks are modelled.",
    )
    it.add_argument("file", type=Path, metavar="FILE", help="the kernel: FILE.hk, or a Python file, which is not run")
    it.add_argument("--arch", type=words, required=True, metavar="CHIP,…", help="the chips, all on one page")
    add_kernel(it)
    add_set(it, "values for the file's const and tune names")
    it.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to write (default: STEM.html or NAME.svg)")
    it.add_argument("--figure", metavar="NAME", help="only this picture, as .svg or .png; an unknown name lists all")
    it.add_argument("--json", action="store_true", help="print the data instead (and write the page only with -o)")


def run(options: argparse.Namespace) -> int:
    """Compile, collect the facts, then write or print them."""
    api.warm_up()
    from dataclasses import asdict

    from hkc import pipeline
    from hkc.figures.facts import facts
    from hkc.frontend.parse import read
    from hkc.support.files import write_all
    from hkc.targets.chip import load

    chips = [load(name) for name in options.arch]
    _check(options)
    checked = pipeline.check(read(options.file), dict(options.set), options.kernel)
    known = [(facts(api.build(checked, chip.name).binary, checked, chip), chip) for chip in chips]
    path, content = _content(options, known)
    if options.json:
        print(json.dumps({"kernels": [asdict(it) for it, _ in known]}, indent=2))
    if options.output is not None or not options.json:
        write_all({path: content})
        if not options.json:
            print(path)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Raise `HkcUsageError` HK516 for options that don't go together."""
    from hkc.support.errors import Diagnostic, HkcUsageError

    if options.figure is None:
        return
    if len(options.arch) > 1:
        message = "a picture shows one chip, but several are named"
        raise HkcUsageError(Diagnostic("HK516", message, hint=f"--arch {options.arch[0]}"))
    if options.output is not None and options.output.suffix not in SUFFIXES:
        message = f"a picture is written as .svg or .png, not as `{options.output.name}`"
        raise HkcUsageError(Diagnostic("HK516", message))


def _content(options: argparse.Namespace, known: list[tuple[Facts, Chip]]) -> tuple[Path, bytes]:
    """The file to write. Raises `HkcUsageError` HK516 for a picture that there is not."""
    from hkc.figures.drawings import drawings, png
    from hkc.figures.page import page
    from hkc.figures.svg import STYLE
    from hkc.support.errors import Diagnostic, HkcUsageError

    if options.figure is None:
        return options.output or Path(f"{options.file.stem}.html"), page(known).encode()
    drawn = drawings(*known[0])
    if options.figure not in drawn:
        message = f"there is no picture `{options.figure}` of this kernel"
        raise HkcUsageError(Diagnostic("HK516", message, hint=f"there are {', '.join(drawn)}"))
    path = options.output or Path(f"{options.figure}.svg")
    drawing = drawn[options.figure]
    return path, png(drawing) if path.suffix == ".png" else drawing.svg(STYLE).encode()
