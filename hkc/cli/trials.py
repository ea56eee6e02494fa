"""Many runs of one kernel under checkers: over shapes, views that are not aligned, and orders of the waves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hkc.api import CompiledKernel
from hkc.cli import trial
from hkc.cli.bank_table import BankTable
from hkc.cli.findings import Collection, from_error
from hkc.cli.shapes import Names
from hkc.emulate import Fault
from hkc.emulate.checks import observers
from hkc.emulate.checks.conflicts import Conflicts
from hkc.machine.abi import GlobalParam
from hkc.runtime.emulator import Emulator
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcBug, HkcError
from hkc.support.extents import evaluate

if TYPE_CHECKING:
    from hkc.cli.progress import Progress
    from hkc.emulate import Finding
    from hkc.frontend.program import Kernel
    from hkc.runtime.arguments import Arguments
    from hkc.runtime.arrays import Array


@dataclass(frozen=True)
class Case:
    """One run: values of dims and numbers, whether the tensors are views that are not aligned, and the waves' order
    (0: in step; else the seed that it is drawn from)."""

    names: Names
    crooked: bool
    order: int

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.names.items())
        views = "unaligned views" if self.crooked else ""
        order = f"waves in order {self.order}" if self.order else ""
        return ", ".join(part for part in (values, views, order) if part)


@dataclass(frozen=True)
class Ran:
    """A run that was made, and how much it was."""

    arch: str
    case: Case
    workgroups: int
    instructions: int | None

    def document(self) -> dict[str, Any]:
        """For JSON; `instructions` are those of waves, null for a run that was stopped."""
        views = "unaligned" if self.case.crooked else "aligned"
        return {
            "arch": self.arch, "set": self.case.names, "views": views, "order": self.case.order,
            "workgroups": self.workgroups, "instructions": self.instructions, "case": str(self.case),
        }  # fmt: skip


@dataclass
class Trials:
    """Runs of a kernel under the `wanted` checks, what they found, and the clocks of LDS instructions by chip.

    `seed` is that of inputs and orders; `limit` is in steps of a batch of workgroups.
    """

    kernel: Kernel
    wanted: list[str]
    seed: int
    limit: int
    found: Collection
    ran: list[Ran] = field(default_factory=list)
    refused: list[dict[str, str]] = field(default_factory=list)
    tables: dict[str, BankTable] = field(default_factory=dict)

    def run(self, compiled: CompiledKernel, cases: list[Case], progress: Progress, part: float, whole: float) -> None:
        """All of these on one chip, which are `part` of the `whole` progress."""
        self.tables[compiled.arch] = BankTable(compiled.binary)
        for number, case in enumerate(cases):
            progress(part + whole * number / len(cases), f"{compiled.arch}, {case}")
            self._attempt(compiled, case)

    def document(self) -> dict[str, Any]:
        """How much was run: chips, shapes, seeds of orders, runs, workgroups, wave-instructions."""
        return {
            "chips": list(self.tables),
            "shapes": len({tuple(r.case.names.items()) for r in self.ran}),
            "seeds": sorted({r.case.order for r in self.ran}),
            "interleavings": len({r.case.order for r in self.ran}),
            "runs": len(self.ran),
            "workgroups": sum(r.workgroups for r in self.ran),
            "instructions": sum(r.instructions or 0 for r in self.ran),
        }

    def _attempt(self, compiled: CompiledKernel, case: Case) -> None:
        """One run, or why the kernel does not take these arguments."""
        arrays = trial.inputs(self.kernel, case.names, {}, self.seed)
        if case.crooked:
            arrays = _crooked(self.kernel, case.names, arrays)
        try:
            arguments = compiled.bind(**{**case.names, **arrays})
        except HkcError as refusal:
            why = refusal.diagnostics[0].message
            self.refused.append({"arch": compiled.arch, "case": str(case), "why": why})
            return
        findings, instructions = self._launch(compiled, arguments, case)
        workgroups = compiled.info.workgroups(arguments.names)
        self.ran.append(Ran(compiled.arch, case, workgroups, instructions))
        self.found.add(findings, str(case), compiled.arch)

    def _launch(
        self, compiled: CompiledKernel, arguments: Arguments, case: Case
    ) -> tuple[tuple[Finding, ...], int | None]:
        """What is found, and how many instructions were executed."""
        watching = observers(self.wanted)
        try:
            result = compiled.launch(arguments, Emulator(case.order, watching, self.limit))
        except Fault as failed:
            return from_error(failed), None
        except HkcBug as stopped:
            if not isinstance(stopped.__cause__, HkcError):
                raise
            return from_error(stopped.__cause__), None
        if result.entry is not None:
            for observer in watching:
                if isinstance(observer, Conflicts):
                    self.tables[compiled.arch].add(observer.instructions())
        return result.findings, result.instructions


def cases(made: Sequence[Names], interleavings: int, seed: int) -> Iterator[Case]:
    """All these shapes in step and in drawn orders, and the smallest that is ragged as views that are not aligned."""
    ragged = min(made[1:] or made, key=lambda shape: (0 in shape.values() or 1 in shape.values(), sum(shape.values())))
    for order in range(max(interleavings, 1)):
        drawn = seed + order if order else 0
        yield from (Case(shape, False, drawn) for shape in made)
        yield Case(ragged, True, drawn)


def _crooked(kernel: Kernel, names: Names, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Views of all tensors, outputs too, that start one element late and whose rows lie an odd distance apart."""
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
