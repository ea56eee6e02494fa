"""`hkc check`: run a kernel under all checkers, over shapes at the edges and over orders of its waves."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hkc import api
from hkc.cli.options import add_set, command, count, words

if TYPE_CHECKING:
    from hkc.api import CompiledKernel
    from hkc.cli.findings import Found
    from hkc.cli.options import Commands
    from hkc.emulate import Finding
    from hkc.frontend.program import Checked, Kernel
    from hkc.runtime.arrays import Array
    from hkc.support.errors import Source

Names = dict[str, int | float | bool]

_LIMIT = 1 << 24
_EDGES = 512  # no shape at the edges is larger, so that they take seconds


def add(commands: Commands) -> None:
    """Describe the command."""
    it = command(
        commands,
        "check",
        run,
        "Run a kernel's machine code on the emulator and look for what a GPU would not tell: races, missing waits and "
        "barriers, never-written values, accesses out of bounds, hazards, bank conflicts. It runs with the file's "
        "example, with extents at the edges (0, 1, one less and one more than a tile size), and with views that are "
        "not aligned, each under several orders of the waves. The exit code is 1 where anything is wrong.",
    )
    it.add_argument("file", type=Path, metavar="FILE.hk", help="the kernel")
    it.add_argument("--arch", metavar="CHIP", help="the chip (default: that of the GPU here)")
    add_set(it, "values for const and tune names, for dims and for numbers; a dim that is set stays as it is")
    it.add_argument(
        "--only", type=words, metavar="NAME,…", help="look for these alone (see the list that an unknown name gives)"
    )
    it.add_argument(
        "--interleavings", type=int, default=2, metavar="N", help="orders of waves per shape: in step, then drawn ones"
    )
    it.add_argument("--seed", type=count, default=0, metavar="N", help="of inputs and orders (default: 0)")
    it.add_argument(
        "--limit", type=int, default=_LIMIT, metavar="STEPS", help=f"an endless loop after so many ({_LIMIT})"
    )
    it.add_argument("--json", action="store_true", help="print one JSON document")


@dataclass(frozen=True)
class Case:
    """One run: values of dims and numbers, whether the tensors are views that are not aligned, and the waves' order."""

    names: Names
    crooked: bool
    order: int

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.names.items())
        views = "unaligned views" if self.crooked else ""
        order = f"waves in order {self.order}" if self.order else ""
        return ", ".join(part for part in (values, views, order) if part)


def run(options: argparse.Namespace) -> int:
    """Check; 1 where something is wrong."""
    api.warm_up()
    from hkc import pipeline
    from hkc.cli import trial
    from hkc.emulate.checks import CHECKS, observers
    from hkc.frontend.parse import read
    from hkc.targets.chip import load

    wanted = options.only or list(CHECKS)
    observers(wanted)
    arch = load(options.arch).name if options.arch is not None else api.gpu_arch()
    source = read(options.file)
    checked, settings = trial.check(source, options.set)
    kernel = pipeline.only_kernel(checked)
    known = trial.values(checked, kernel, settings, {})
    trials = _Trials(api.build(checked, arch), kernel, options, wanted)
    trials.run(list(_cases(checked, kernel, known, set(settings), options)))
    kept = sorted((f for f in trials.found.values() if f.check in wanted), key=lambda f: not f.wrong)
    _print(kept, trials, source)
    return 1 if any(f.wrong for f in kept) else 0


def _print(kept: list[Found], trials: _Trials, source: Source) -> None:
    from hkc.cli.findings import document, text

    kernel, arch = trials.kernel.name, trials.compiled.arch
    wrong = sum(f.wrong for f in kept)
    if trials.options.json:
        shown = {
            "kernel": kernel, "arch": arch, "ok": not wrong, "checks": trials.wanted, "cases": trials.ran,
            "refused": trials.refused, "findings": [document(f) for f in kept],
        }  # fmt: skip
        print(json.dumps(shown))
        return
    if kept:
        print(text(kept, source))
    print(f"{kernel} for {arch}: {len(trials.ran)} runs, {wrong} errors, {len(kept) - wrong} remarks")


@dataclass
class _Trials:
    """Runs of one kernel, and what they have found: by kind, instruction and the other party's instruction."""

    compiled: CompiledKernel
    kernel: Kernel
    options: argparse.Namespace
    wanted: list[str]
    found: dict[tuple[str, int, int], Found] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    refused: list[dict[str, str]] = field(default_factory=list)

    def run(self, cases: list[Case]) -> None:
        """All of these."""
        from hkc.cli.progress import Progress

        progress = Progress(f"checking {self.kernel.name} on {self.compiled.arch}")
        try:
            for number, case in enumerate(cases):
                outcome = _attempt(self.compiled, self.kernel, case, self.options, self.wanted)
                if isinstance(outcome, str):
                    self.refused.append({"case": str(case), "why": outcome})
                else:
                    self.ran.append(str(case))
                    _merge(self.found, outcome, case)
                progress((number + 1) / len(cases), str(case))
        finally:
            progress.end()


def _merge(found: dict[tuple[str, int, int], Found], outcome: tuple[Finding, ...], case: Case) -> None:
    from hkc.cli.findings import Found

    for f in outcome:
        key = (f.kind, f.address, f.other.address if f.other else -1)
        if key in found:
            old = found[key]
            found[key] = replace(old, finding=replace(old.finding, count=old.finding.count + f.count))
        else:
            found[key] = Found(f, str(case))


def _cases(
    checked: Checked, kernel: Kernel, known: Names, fixed: set[str], options: argparse.Namespace
) -> Iterator[Case]:
    free = [dim for dim in kernel.dims if dim not in fixed]
    tiles = sorted({int(v) for _, v in checked.constants if isinstance(v, int) and 1 < v <= _EDGES}, reverse=True)
    edges = dict.fromkeys([1, 0, *(t + d for t in tiles for d in (-1, 1))])
    shapes = [known, *({**known, **dict.fromkeys(free, edge)} for edge in edges if free)]
    views = {**known, **dict.fromkeys(free, tiles[-1] + 1 if tiles else 3)}
    for order in range(max(options.interleavings, 1)):
        drawn = order and options.seed + order
        yield from (Case(shape, False, drawn) for shape in shapes)
        yield Case(views, True, drawn)


def _attempt(
    compiled: CompiledKernel, kernel: Kernel, case: Case, options: argparse.Namespace, wanted: list[str]
) -> tuple[Finding, ...] | str:
    """What is found, or why the kernel does not take these arguments."""
    from hkc.cli import trial
    from hkc.cli.findings import from_error
    from hkc.emulate.checks import observers
    from hkc.runtime.emulator import Emulator
    from hkc.support.errors import HkcBug, HkcError

    arrays = trial.inputs(kernel, case.names, {}, options.seed)
    if case.crooked:
        arrays = _crooked(kernel, case.names, arrays)
    try:
        arguments = compiled.bind(**{**case.names, **arrays})
    except HkcError as refusal:
        return refusal.diagnostics[0].message
    device = Emulator(case.order, observers(wanted), options.limit)
    try:
        return compiled.launch(arguments, device).findings
    except HkcBug as stopped:
        if not isinstance(stopped.__cause__, HkcError):
            raise
        return (from_error(stopped.__cause__),)


def _crooked(kernel: Kernel, names: Names, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Views of all tensors, outputs too, that start one element late and whose rows lie an odd distance apart."""
    import numpy as np

    from hkc.machine.abi import GlobalParam
    from hkc.support.dtypes import dtype
    from hkc.support.extents import evaluate

    found = {}
    whole = {name: value for name, value in names.items() if isinstance(value, int)}
    for p in kernel.params:
        if isinstance(p, GlobalParam) and p.dims:
            shape = [evaluate(dim, whole) for dim in p.dims]
            wide = np.zeros([*shape[:-1], shape[-1] + 2 + shape[-1] % 2], dtype(p.dtype).numpy)
            found[p.name] = wide[..., 1 : shape[-1] + 1]
            if p.name in arrays:
                found[p.name][...] = arrays[p.name]
    return found
