"""`hkc explain`: what the code of an error means."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hkc.cli.options import command

if TYPE_CHECKING:
    from hkc.cli.options import Commands


def add(commands: Commands) -> None:
    """Describe the command."""
    it = command(commands, "explain", run, "Explain the code of an error, such as HK203. Without a code: all of them.")
    it.add_argument("code", nargs="?", metavar="CODE", help="as printed in brackets after `error`")


def run(options: argparse.Namespace) -> int:
    """Print the rule behind a code, or all rules."""
    codes = all_codes()
    if options.code is None:
        print(*(f"{code}  {rule}" for code, rule in codes.items()), sep="\n")
        return 0
    code = options.code.upper()
    if code not in codes:
        from difflib import get_close_matches

        from hkc.support.errors import Diagnostic, HkcUsageError

        near = get_close_matches(code, codes, n=1)
        hint = f"did you mean {near[0]}?" if near else "`hkc explain` lists them"
        raise HkcUsageError(Diagnostic("HK516", f"no explanation is known for `{options.code}`", hint=hint))
    print(f"{code}  {codes[code]}")
    return 0


def all_codes() -> dict[str, str]:
    """The rule behind every code, in order."""
    from hkc.emulate import codes as emulation
    from hkc.frontend import codes as language
    from hkc.layout import codes as layouts
    from hkc.machine import codes as objects
    from hkc.runtime import codes as calls
    from hkc.support import codes as tools
    from hkc.targets import codes as chips

    parts = (language, calls, objects, emulation, layouts, chips, tools)
    return dict(sorted((code, rule) for part in parts for code, rule in part.CODES.items()))
