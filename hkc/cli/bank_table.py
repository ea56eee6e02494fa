"""LDS instructions of a kernel: the clocks that their real addresses took, beside what was proved when compiling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hkc.emulate.bank_conflicts import Observed
from hkc.handover import Binary, LdsAccess
from hkc.machine.lines import Line, place
from hkc.targets.chip import load


@dataclass(frozen=True)
class Row:
    """One instruction: what was counted, its source line, and the proof for the uses that it may stem from, if any."""

    observed: Observed
    line: Line | None
    proof: LdsAccess | None

    @property
    def cycles(self) -> int:
        """Clocks of the costliest execution."""
        return max(self.observed.clocks)

    @property
    def bound(self) -> int:
        """Clocks that it must take: without conflicts, or what was proved that no byte map betters."""
        return max(self.observed.minimum, self.proof.lower_bound if self.proof else 0)

    def document(self) -> dict[str, Any]:
        """For JSON; `clocks` is clocks of an execution -> how often."""
        seen, line, proof = self.observed, self.line, self.proof
        return {
            "address": seen.address,
            "instruction": seen.text,
            "mnemonic": seen.mnemonic,
            "line": line.line if line else None,
            "executions": sum(seen.clocks.values()),
            "clocks": {str(clocks): count for clocks, count in sorted(seen.clocks.items())},
            "cycles": self.cycles,
            "minimum": seen.minimum,
            "proved_cycles": proof.cycles if proof else None,
            "lower_bound": proof.lower_bound if proof else None,
            "ok": self.cycles <= self.bound,
        }


@dataclass
class BankTable:
    """Counts of all runs of one kernel, by address."""

    binary: Binary
    _seen: dict[int, Observed] = field(default_factory=dict)

    def add(self, instructions: Iterable[Observed]) -> None:
        """Those of one more run."""
        for new in instructions:
            old = self._seen.get(new.address)
            clocks = Counter(old.clocks if old else {}) + Counter(new.clocks)
            self._seen[new.address] = replace(new, clocks=dict(clocks))

    def rows(self) -> tuple[Row, ...]:
        """All instructions that were executed."""
        return tuple(self._row(self._seen[address]) for address in sorted(self._seen))

    def tolerated(self) -> frozenset[int]:
        """Addresses of instructions that take no more clocks than they must."""
        return frozenset(row.observed.address for row in self.rows() if row.cycles <= row.bound)

    def _row(self, observed: Observed) -> Row:
        line = place(self.binary.lines, observed.address)
        kind = self._kind(observed.mnemonic)
        alike = [a for b in self.binary.lds for a in b.accesses if self._kind(a.mnemonic) == kind]
        here = [a for a in alike if line is not None and a.line == line.line] or alike
        return Row(observed, line, max(here, key=lambda a: a.lower_bound, default=None))

    def _kind(self, mnemonic: str) -> tuple[bool, bool, int]:
        """Instructions that the LDS serves alike: one of two parts counts like two."""
        return "write" in mnemonic, "_tr_" in mnemonic, load(self.binary.arch).lds.access(mnemonic).bytes


def text(arch: str, rows: Iterable[Row]) -> str:
    """A line per instruction that takes more clocks than without conflicts, or that there is none."""
    slow = [row for row in rows if row.cycles > row.observed.minimum]
    lines = [
        f"  {row.observed.address:#x}: {row.observed.text}{f', line {row.line.line}' if row.line else ''}: "
        f"{row.cycles} clocks, {row.observed.minimum} without conflicts, {row.bound} at least"
        for row in slow
    ]
    return "\n".join([f"bank conflicts on {arch}:{'' if slow else ' none'}", *lines])


def documents(tables: Mapping[str, BankTable]) -> dict[str, list[dict[str, Any]]]:
    """All tables for JSON, by chip."""
    return {arch: [row.document() for row in table.rows()] for arch, table in tables.items()}
