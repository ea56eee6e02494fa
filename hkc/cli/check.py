"""`hkc check`: run a kernel under all checkers, over chips, shapes at the edges, and orders of its waves."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from hkc import api
from hkc.cli.options import add_kernel, add_limit, add_set, command, count, positive, words

if TYPE_CHECKING:
    from hkc.api import CompiledKernel
    from hkc.cli.findings import Found
    from hkc.cli.options import Commands
    from hkc.cli.trials import Trials
    from hkc.frontend.program import Checked
    from hkc.support.errors import Source


def add(commands: Commands) -> None:
    """Describe the command."""
    it = command(
        commands,
        "check",
        run,
        "Run a kernel's machine code on the emulator and look for what a GPU would not tell: races, missing waits and "
        "barriers, never-written values, accesses out of bounds, hazards, bank conflicts. It runs with the file's "
        "example, with extents around the tile sizes, each dim at its own pace, with dims of 0 and 1, and with views "
        "that are not aligned, each under several orders of the waves, on every chip that is named. The exit code is 1 "
        "where anything is wrong. Bank conflicts count as wrong only where --only names them, and only above the "
        "bound that was proved.",
    )
    it.add_argument("file", type=Path, metavar="FILE", help="the kernel: FILE.hk, or a Python file, which is not run")
    it.add_argument("--arch", type=words, metavar="CHIP,…", help="the chips (default: all for which it compiles)")
    add_kernel(it)
    add_set(it, "values for const and tune names, for dims and for numbers; a dim that is set stays as it is")
    it.add_argument(
        "--only", type=words, metavar="NAME,…", help="look for these alone (see the list that an unknown name gives)"
    )
    it.add_argument(
        "--interleavings",
        type=positive,
        default=2,
        metavar="N",
        help="orders of waves per shape: in step, then drawn ones",
    )
    it.add_argument("--seed", type=count, default=0, metavar="N", help="of inputs and orders (default: 0)")
    add_limit(it)
    it.add_argument("--json", action="store_true", help="print one JSON document")


def run(options: argparse.Namespace) -> int:
    """Check; 1 where something is wrong."""
    api.warm_up()
    from hkc import pipeline
    from hkc.cli import trial
    from hkc.cli.findings import Collection
    from hkc.cli.progress import Progress
    from hkc.cli.shapes import shapes
    from hkc.cli.trials import Trials, cases
    from hkc.emulate.checks import CHECKS, observers
    from hkc.frontend.parse import read

    wanted = options.only or list(CHECKS)
    observers(wanted)
    source = read(options.file)
    checked, settings = trial.check(source, options.set, options.kernel)
    kernel = pipeline.only_kernel(checked)
    known = trial.values(checked, kernel, settings, {})
    trials = Trials(kernel, wanted, options.seed, options.limit, Collection(options.only or ()))
    with Progress(f"checking {kernel.name}") as progress:
        progress(0, "compiling")
        built = _compile(checked, options.arch, trials)
        for n, compiled in enumerate(built):
            made = shapes(checked, compiled.info, known, set(settings))
            planned = list(cases(made, options.interleavings, options.seed))
            trials.run(compiled, planned, progress, n / len(built), 1 / len(built))
    found = trials.found.all({arch: table.tolerated() for arch, table in trials.tables.items()})
    print(_json(found, trials) if options.json else _text(found, trials, source))
    return 1 if any(f.wrong for f in found) else 0


def _compile(checked: Checked, chips: list[str] | None, trials: Trials) -> list[CompiledKernel]:
    """For the named chips, or for all that take the kernel. Raises what the last one says where none does."""
    from hkc.support.errors import HkcError
    from hkc.targets.chip import load, names

    if chips is not None:
        return [api.build(checked, load(chip).name) for chip in chips]
    built, problem = [], None
    for chip in names():
        try:
            built.append(api.build(checked, chip))
        except HkcError as refusal:
            problem = refusal
            trials.refused.append({"arch": chip, "case": "compiling", "why": refusal.diagnostics[0].message})
    if problem is not None and not built:
        raise problem
    return built


def _json(found: list[Found], trials: Trials) -> str:
    from hkc.cli.bank_table import documents
    from hkc.cli.findings import document

    shown = {
        "kernel": trials.kernel.name, "ok": not any(f.wrong for f in found), "checks": trials.wanted,
        "ran": trials.document(), "cases": [r.document() for r in trials.ran], "refused": trials.refused,
        "findings": [document(f) for f in found], "bank_conflicts": documents(trials.tables),
    }  # fmt: skip
    return json.dumps(shown)


def _text(found: list[Found], trials: Trials, source: Source) -> str:
    from hkc.cli import bank_table, findings
    from hkc.emulate.checks import BANKS

    blocks = [findings.text(found, source)] if found else []
    if BANKS in trials.wanted:
        blocks += [bank_table.text(arch, table.rows()) for arch, table in trials.tables.items()]
    blocks += [f"not on {r['arch']} with {r['case']}: {r['why']}" for r in trials.refused]
    ran, wrong = trials.document(), sum(f.wrong for f in found)
    chips = ", ".join(ran["chips"])
    blocks.append(
        f"{trials.kernel.name} for {chips}: {ran['runs']} runs ({ran['shapes']} shapes, {ran['interleavings']} orders "
        f"of waves), {ran['workgroups']:,} workgroups, {wrong} errors, {len(found) - wrong} remarks"
    )
    return "\n".join(blocks)
