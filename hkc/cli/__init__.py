"""The command line. One module per command: `add` describes it to the parser, `run` does it.

Results go to stdout, logs, progress and errors to stderr; with `--json` or `--report json` stdout is one JSON document,
after an error, too. Exit codes: 0 all is well; 1 an error in the kernel or its data, a wrong result, something
missing on the machine; 2 a wrong call; 70 a bug of hkc; 130 after Ctrl-C, 141 where nobody reads the output.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

import hkc
from hkc.cli import check, check_syntax, compile, doctor, emulate, explain, explain_kernel, opt
from hkc.cli import run as run_command
from hkc.cli.failures import guarded
from hkc.support.errors import Diagnostic, HkcUsageError

COMMANDS = (compile, run_command, check, emulate, check_syntax, opt, explain, explain_kernel, doctor)


class Parser(argparse.ArgumentParser):
    """Raises its complaints as `HkcUsageError` HK528, like all others."""

    def error(self, message: str) -> NoReturn:
        """See `argparse.ArgumentParser`."""
        raise HkcUsageError(Diagnostic("HK528", message, hint=f"{self.prog} --help"))


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; what it returns has the command's function as `run`."""
    top = Parser(
        prog="hkc",
        description="A tile compiler for AMD GPUs, and an emulator that executes what it makes.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"hkc {hkc.__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Never raises."""
    words = list(sys.argv[1:] if arguments is None else arguments)

    def act() -> int:
        options = parser().parse_args(words)
        code: int = options.run(options)
        return code

    return guarded(act, words)
