"""What the waves of one batch of workgroups hold: registers, masks, LDS, scratch, and who waits for what.

Vector registers are uint32 [register, wave, lane], so that an instruction that all waves execute together touches one
contiguous block per operand. Accumulation registers follow the ordinary ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import EXEC, SGPR_COUNT
from hkc.emulate.faults import Finding, Party
from hkc.emulate.memory import POISON, Mask, Memory, Space
from hkc.emulate.observe import Observer, listeners
from hkc.emulate.outstanding import Outstanding
from hkc.emulate.sync import WaveSync

if TYPE_CHECKING:
    from hkc.emulate.decode import Decoded

LANES = 64
EVERY_BIT = np.uint32(0xFFFFFFFF)
UNWRITTEN, IN_FLIGHT = 1, 2
"""Bits of a register's flag: some lane of some wave was never written; a load into it has not been waited for."""


@dataclass(frozen=True)
class Shape:
    """Sizes of one batch: waves, registers per file, and bytes of LDS per workgroup and of scratch per lane."""

    waves: int
    waves_per_group: int
    vgprs: int
    agprs: int
    lds: int
    scratch: int


class Findings:
    """Findings, at most one per kind, instruction and other party's instruction, with counts."""

    def __init__(self, waves_per_group: int = 1) -> None:
        self._waves_per_group = waves_per_group
        self._first: dict[tuple[str, int, int], Finding] = {}
        self._counts: Counter[tuple[str, int, int]] = Counter()

    def add(self, kind: str, by: Decoded, message: str, wave: int, lane: int, other: Party | None = None) -> None:
        """Record one; `wave` counts over the launch."""
        key = (kind, by.address, -1 if other is None else other.address)
        self._counts[key] += 1
        if key not in self._first:
            group = wave // self._waves_per_group
            self._first[key] = Finding(kind, by.address, by.text, message, wave, lane, workgroup=group, other=other)

    def all(self) -> tuple[Finding, ...]:
        """In the order in which they were first seen."""
        return tuple(replace(f, count=self._counts[k]) for k, f in self._first.items())


class State:
    """Everything mutable of one batch. Waves count inside the batch; `first_wave` makes them global."""

    def __init__(self, shape: Shape, memory: Memory, findings: Findings, first_wave: int) -> None:
        self.shape = shape
        self.memory = memory
        self.findings = findings
        self.first_wave = first_wave
        count = shape.vgprs + shape.agprs
        self.vector = np.full((count, shape.waves, LANES), POISON, np.uint32)
        self.registers = list(self.vector)
        self.flags = bytearray([UNWRITTEN]) * count
        self.unwritten: dict[int, Mask] = {}
        self.in_flight: dict[int, Mask] = {}
        self.scalar = np.full((SGPR_COUNT, shape.waves), POISON, np.uint32)
        self.scalar_flags = bytearray(SGPR_COUNT)
        self.scalar_in_flight = np.zeros((SGPR_COUNT, shape.waves), np.bool_)
        self.scalar_unwritten = np.zeros((SGPR_COUNT, shape.waves), np.uint32)  # bit by bit: they are lane masks, too
        self.scc_unwritten: NDArray[np.bool_] | None = None
        self.exec_mask = np.ones((shape.waves, LANES), np.bool_)
        self.scc = np.zeros(shape.waves, np.bool_)
        self.mode = np.zeros(shape.waves, np.uint32)
        self.clock = 0
        groups = shape.waves // shape.waves_per_group
        self.lds = Space(groups * shape.lds)
        self.lds_base = np.repeat(np.arange(groups, dtype=np.int64) * shape.lds, shape.waves_per_group)
        self.scratch = Space(shape.waves * LANES * shape.scratch)
        self.outstanding = Outstanding(shape.waves)
        self.sync = WaveSync()
        self.observers: tuple[Observer, ...] = ()
        self.listeners: tuple[Observer, ...] = ()
        self.code_base = 0

    def observe(self, observers: Iterable[Observer]) -> None:
        """From now on these see what happens here."""
        self.observers = tuple(observers)
        self.listeners = listeners(self.observers)
        for observer in self.observers:
            observer.begin(self)

    def forget_scalars(self, but: Collection[int]) -> None:
        """All scalar registers and SCC count as never written, but for these."""
        self.scc_unwritten = np.ones(self.shape.waves, np.bool_)
        for register in set(range(EXEC)) - set(but):
            self.scalar_unwritten[register] = EVERY_BIT
            self.scalar_flags[register] |= UNWRITTEN

    def launch_scalar(self, register: int, rows: NDArray[np.int64]) -> None:
        """A load into a scalar register was issued: it is poison until it lands."""
        self.scalar[register, rows] = POISON
        self.scalar_flags[register] |= IN_FLIGHT
        self.scalar_in_flight[register, rows] = True

    def land_scalar(self, register: int, rows: NDArray[np.int64], values: NDArray[np.uint32]) -> None:
        """The load's data arrives: `values` [rows]."""
        self.scalar[register, rows] = values
        self.scalar_in_flight[register, rows] = False
        self.scalar_unwritten[register, rows] = 0
        self.settle_scalar(register)

    def settle_scalar(self, register: int) -> None:
        """Bring a scalar register's flag up to date."""
        flight = IN_FLIGHT if self.scalar_in_flight[register].any() else 0
        self.scalar_flags[register] = flight | (UNWRITTEN if self.scalar_unwritten[register].any() else 0)

    def whole(self, register: int) -> Mask:
        """The never-written lanes of `register` as bool [wave, lane], created on demand."""
        found = self.unwritten.get(register)
        if found is None:
            start = bool(self.flags[register] & UNWRITTEN)
            found = self.unwritten[register] = np.full((self.shape.waves, LANES), start, np.bool_)
        return found

    def launch_flight(self, register: int, rows: NDArray[np.int64], mask: Mask) -> None:
        """A load into `register` was issued: its lanes are poison until it lands."""
        flight = self.in_flight.get(register)
        if flight is None:
            flight = self.in_flight[register] = np.zeros((self.shape.waves, LANES), np.bool_)
        flight[rows] |= mask
        values = self.registers[register]
        values[rows] = np.where(mask, POISON, values[rows])
        self.flags[register] |= IN_FLIGHT

    def land(
        self,
        register: int,
        rows: NDArray[np.int64],
        mask: Mask,
        values: NDArray[np.uint32],
        blank: Mask | None = None,
    ) -> None:
        """The load's data arrives: `values` [rows, lane] where `mask`, of which `blank` lanes were never written."""
        target = self.registers[register]
        if blank is None and len(rows) == self.shape.waves and mask.all():
            target[rows] = values
            self.flags[register] = 0
            self.in_flight.pop(register, None)
            self.unwritten.pop(register, None)
            return
        target[rows] = np.where(mask, values, target[rows])
        flight = self.in_flight.get(register)
        if flight is not None:
            flight[rows] &= ~mask
            if not flight.any():
                del self.in_flight[register]
                self.flags[register] &= ~IN_FLIGHT
        if blank is not None or self.flags[register] & UNWRITTEN:
            unwritten = self.whole(register)
            unwritten[rows] = np.where(mask, False if blank is None else blank, unwritten[rows])
            self.settle(register, unwritten)

    def settle(self, register: int, unwritten: Mask) -> None:
        """Bring the register's flag up to date with its never-written lanes."""
        if unwritten.any():
            self.flags[register] |= UNWRITTEN
        else:
            self.flags[register] &= ~UNWRITTEN
            self.unwritten.pop(register, None)
