"""`hkc doctor`: what hkc found on this machine, and the proof that it compiles."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from hkc.cli.options import command

if TYPE_CHECKING:
    from hkc.backend.doctor import Check
    from hkc.cli.options import Commands


def add(commands: Commands) -> None:
    """Describe the command."""
    it = command(
        commands,
        "doctor",
        run,
        "Show every piece that hkc needs, where it was found, and prove that it compiles for each chip. Fails where "
        "something is missing that hkc can't do without.",
    )
    it.add_argument("--json", action="store_true", help="print one JSON document")


def run(options: argparse.Namespace) -> int:
    """Make the checks, print each as it is made; 1 where a required one fails."""
    from dataclasses import asdict

    from hkc.backend.doctor import diagnose, prove
    from hkc.targets.chip import names

    checks = diagnose()
    if not options.json:
        print(*map(_line, checks), sep="\n", flush=True)
    for chip in names():
        checks.append(prove(chip))
        if not options.json:
            print(_line(checks[-1]), flush=True)
    ok = all(check.ok for check in checks if check.required)
    if options.json:
        print(json.dumps({"ok": ok, "checks": [asdict(check) for check in checks]}, indent=2))
    return 0 if ok else 1


def _line(check: Check) -> str:
    mark = "ok" if check.ok else "MISSING" if check.required else "-"
    found = "  ".join(part for part in (check.version, check.where, check.note) if part)
    return f"{mark:7}  {check.name:16}  {found}"
