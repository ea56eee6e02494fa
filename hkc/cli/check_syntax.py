"""`hkc check-syntax`: mistakes in kernel files, without compiling them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hkc.cli.options import command

if TYPE_CHECKING:
    from hkc.cli.options import Commands


def add(commands: Commands) -> None:
    """Describe the command."""
    it = command(
        commands,
        "check-syntax",
        run,
        "Check syntax, names, shapes and dtypes of kernel files. Prints a line for every file without a "
        "mistake, and the mistakes of the others on stderr.",
    )
    it.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="kernels: FILE.hk, or Python files, which are not run"
    )


def run(options: argparse.Namespace) -> int:
    """Check all files, however many have mistakes; 1 where any has."""
    from hkc import pipeline
    from hkc.frontend.parse import read
    from hkc.support.errors import HkcError

    code = 0
    for path in options.files:
        try:
            pipeline.check(read(path))
        except HkcError as failure:
            print(failure, file=sys.stderr)
            code = 1
        else:
            print(f"{path}: ok")
    return code
