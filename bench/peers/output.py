"""What the compile scripts of all peers share: their command line and the files they write. Needs Python alone."""

import argparse
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


class BuildError(Exception):
    """A kernel that this peer can't or won't compile for a chip, and why."""


def save(folder: str, peer: str, name: str, chip: str, hsaco: bytes, facts: dict[str, Any]) -> None:
    """Write a code object and what one must know to launch it."""
    stem = Path(folder) / f"{peer}-{name}.{chip}"
    Path(f"{stem}.hsaco").write_bytes(hsaco)
    Path(f"{stem}.json").write_text(json.dumps({"peer": peer, "name": name, "chip": chip, **facts}, indent=1) + "\n")


def main(text: str | None, names: list[str], build: Callable[[str, str, str], None]) -> int:
    """Compile what the command line asks for; 1 if the compiler failed on something. Failures go to stderr."""
    options = argparse.ArgumentParser(description=(text or "").partition("\n")[0])
    options.add_argument("folder")
    options.add_argument("chips", nargs="+")
    options.add_argument("--only", default="", help="words, one of which a kernel's name must contain")
    asked = options.parse_args()
    failed = False
    for name in (n for n in names if any(word in n for word in asked.only.split(","))):
        for chip in asked.chips:
            try:
                build(name, chip, asked.folder)
            except BuildError as reason:
                print(f"{name} for {chip}: not compiled: {reason}", file=sys.stderr)
            except Exception as failure:  # noqa: BLE001 (a peer fails in ways of its own; the others go on)
                failed = True
                print(f"{name} for {chip}: {traceback.format_exception_only(failure)[-1].strip()}", file=sys.stderr)
    return int(failed)
