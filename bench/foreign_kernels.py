"""Kernels of other compilers on the emulator: compiled without a GPU, executed, compared with NumPy.

    python bench/foreign_kernels.py                    compiles, runs, prints the table
    python bench/foreign_kernels.py --env DIR          with the peers of that environment (HKC_PEERS names DIR too)
    python bench/foreign_kernels.py --from FOLDER      runs what an earlier `--keep FOLDER` compiled

The peers are no dependencies of hkc. The first run makes an environment with them in `build/peers` (1.5 GB), or where
`--install DIR` says. Exits with 1 where something is missing or wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from peers import iree_cases, triton_cases  # noqa: E402
from peers.environment import PEERS, compile_all, install  # noqa: E402
from peers.numerics import Case  # noqa: E402

from hkc import emulate  # noqa: E402
from hkc.support.errors import HkcError  # noqa: E402

CHIPS = ("gfx942", "gfx950")


@dataclass(frozen=True)
class Row:
    """One line of the table; `error` and `bound` are those of the element that comes closest to its bound."""

    peer: str
    version: str
    kernel: str
    chip: str
    shape: str
    instructions: int | None
    seconds: float | None
    error: float | None
    bound: float | None
    findings: int
    ok: bool
    problem: str = ""


def case(facts: dict[str, Any]) -> Case:
    """The inputs and references for a compiled kernel."""
    if facts["peer"] == "iree":
        return iree_cases.CASES[facts["name"]]()
    return triton_cases.CASES[facts["name"]](facts["chip"], facts["constants"])


def launch(path: Path, it: Case, watching: Sequence[emulate.Observer] = ()) -> emulate.Result:
    """Execute one compiled kernel on its case's arguments, under these observers. Raises `HkcError`."""
    facts = json.loads(path.read_text())
    program = emulate.Program.load(path.with_suffix(".hsaco").read_bytes())
    spare = len(emulate.explicit(program.kernel(facts["symbol"]))) - len(it.arguments)
    return emulate.run(
        program,
        *it.arguments,
        *[None] * spare,  # Triton's scratch pointers, unused here
        kernel=facts["symbol"],
        grid=it.grid or facts["grid"],
        block=facts["threads"],
        dynamic_lds=facts["dynamic_lds"],
        observers=watching,
    )


def run(path: Path) -> Row:
    """Execute one compiled kernel and compare."""
    facts = json.loads(path.read_text())
    names = (facts["peer"], facts["version"], facts["name"], facts["chip"])
    it = case(facts)
    start = time.perf_counter()
    try:
        result = launch(path, it)
    except HkcError as failure:
        return Row(*names, it.shape, None, None, None, None, 0, False, str(failure))
    seconds = time.perf_counter() - start
    judged = [check.judge() for check in it.checks]
    error, bound, _ = max(judged, key=lambda j: (not j[2], j[0] / j[1] if j[1] else 0.0))
    problem = "; ".join(f"{f.kind} at {f.address:#x} {f.text}: {f.message}" for f in result.findings)
    ok = all(good for *_, good in judged)
    return Row(*names, it.shape, result.instructions, seconds, error, bound, len(result.findings), ok, problem)


def text(row: Row) -> str:
    """One line."""
    numbers = [f"{x:.2e}" if x is not None else "-" for x in (row.error, row.bound)]
    seconds = f"{row.seconds:.2f}" if row.seconds is not None else "-"
    line = (
        f"{row.peer:7}{row.version:8}{row.kernel:18}{row.chip:8}{row.shape:14}{row.instructions or 0:>9,}"
        f"{seconds:>8}{numbers[0]:>10}{numbers[1]:>10}  {'ok' if row.ok else 'WRONG'}"
    )
    return f"{line}\n    {row.problem}" if row.problem else line


HEAD = "peer   version kernel            chip    shape            instr. seconds     error     bound"


def options() -> argparse.Namespace:
    """The command line."""
    it = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    it.add_argument("--install", type=Path, metavar="DIR", help="make an environment and stop")
    it.add_argument("--env", type=Path, metavar="DIR", default=os.environ.get("HKC_PEERS"), help="use this one")
    it.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the compiled kernels")
    it.add_argument("--from", type=Path, metavar="FOLDER", dest="source", help="run kernels compiled earlier")
    it.add_argument("--peer", choices=tuple(PEERS), action="append", help="default: all")
    it.add_argument("--chip", choices=CHIPS, action="append", help="default: all")
    it.add_argument("--only", default="", metavar="WORD,…", help="kernels whose name contains one of the words")
    it.add_argument("--json", action="store_true", help="print one JSON document")
    return it.parse_args()


def main() -> int:
    """Compile, run, print; 1 where something is missing or wrong."""
    asked = options()
    if asked.install:
        install(asked.install)
        return 0
    peers, chips = asked.peer or list(PEERS), asked.chip or list(CHIPS)
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.source or asked.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        missing = []
        if asked.source is None:
            environment = Path(asked.env) if asked.env else None
            missing = compile_all(environment, folder, "kernels", peers, chips, asked.only)
        rows = []
        if not asked.json:
            print(HEAD)
        for path in sorted(folder.glob("*.json")):
            peer, _, rest = path.stem.partition("-")
            name, _, chip = rest.rpartition(".")
            if peer in peers and chip in chips and any(word in name for word in asked.only.split(",")):
                rows.append(run(path))
                if not asked.json:
                    print(text(rows[-1]), flush=True)
    for line in missing:
        print(f"missing: {line}", file=sys.stderr)
    if asked.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "missing": missing}, indent=1))
    return 0 if rows and not missing and all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
