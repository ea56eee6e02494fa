"""A coarse model of a loop of MFMAs on one SIMD: the share of its time that the matrix unit works.

Waves issue in order, one instruction per wave and slot of four clocks, one per slot and class; the oldest wave of the
highest priority first. Modelled are the matrix and vector units, LDS bandwidth with a short queue, vector-memory
bandwidth with a constant latency, wait counters, barriers and priorities; registers are not, since the code waits for
what it needs. All four SIMDs do the same, so one of them has a fourth of the LDS and of the memory path.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from hkc.machine.disassemble import Instruction
from hkc.targets.chip import Chip

SLOT = 4
"""Clocks in which a SIMD issues an instruction of each class."""

MEMORY_LATENCY, LDS_LATENCY, L1_RATE, LDS_QUEUE, MEMORY_QUEUE = 700, 64, 64, 4, 256
"""Clocks of latency, bytes per clock of a compute unit, operations and clocks of work that a queue holds."""

TRIPS, WARM_UP = 14, 6
"""Trips that are simulated, and those of them that don't count."""

_BYTES = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "b32": 4, "b64": 8, "b96": 12, "b128": 16}
_SLOW = re.compile(r"v_(fma|add|mul|max|min)_f64|v_(mul_lo|mul_hi)_[ui]32|v_mad_[ui]64")
_TRANSCENDENTAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_")


@dataclass(frozen=True)
class Step:
    """An instruction as the model sees it: its class, the slots for which it holds its unit, the counts of a wait."""

    unit: str
    slots: float = 1
    vm: int | None = None
    lgkm: int | None = None


@dataclass
class Wave:
    """A wave on its way: where it stands, when it may issue again, and when what it asked for arrives."""

    number: int
    at: int = 0
    trip: int = 0
    ready: float = 0
    priority: int = 0
    parked: bool = False
    vm: list[float] = field(default_factory=list)
    lgkm: list[float] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


def steps(loop: Sequence[Instruction], chip: Chip, lds_rate: int | None = None) -> list[Step]:
    """A loop's instructions; `lds_rate` is bytes per clock of LDS reads (default: the chip's)."""
    rate = lds_rate or chip.lds.read_bytes_per_clock
    return [_step(i, chip, rate) for i in loop]


def _step(i: Instruction, chip: Chip, rate: int) -> Step:
    name = i.mnemonic
    if name.startswith(("v_mfma", "v_smfmac")):
        return Step("matrix", _mfma_clocks(i, chip) / SLOT)
    if name.startswith("v_"):
        return Step("vector", 4 if _TRANSCENDENTAL.match(name) else 2 if _SLOW.match(name) else 1)
    if name.startswith("ds_"):
        taken = rate if "read" in name else chip.lds.write_bytes_per_clock
        return Step("lds", _moved(name, chip) / taken / SLOT)
    if name.startswith(("buffer_", "global_", "scratch_")):
        return Step("memory", _moved(name, chip) / L1_RATE / SLOT)
    if name == "s_waitcnt":
        return Step("wait", vm=_count(i, "vmcnt"), lgkm=_count(i, "lgkmcnt"))
    if name == "s_setprio":
        return Step("priority", int(i.operands[0], 0))
    if name == "s_nop":
        return Step("nop", int(i.operands[0], 0) + 1)
    return Step("barrier" if name == "s_barrier" else "scalar")


def _mfma_clocks(i: Instruction, chip: Chip) -> int:
    codes = (int(i.modifiers.get(key, "0"), 0) for key in ("cbsz", "blgp"))
    a, b = codes if "f8f6f4" in i.mnemonic else (0, 0)
    return chip.mfma(i.mnemonic.removesuffix("_e64"), a, b).cycles


def _moved(name: str, chip: Chip) -> int:
    """Bytes that an instruction moves in the waves of all SIMDs."""
    width = next((size for word, size in _BYTES.items() if word in name.split("_")), 4)
    return width * chip.compute.wave * chip.compute.simds


def _count(i: Instruction, counter: str) -> int | None:
    return int(i.modifiers[counter]) if counter in i.modifiers else None


class Simd:
    """One SIMD that runs a loop in some waves; with `shifted`, half of them stay one barrier behind the others."""

    def __init__(self, program: list[Step], waves: int, shifted: bool) -> None:
        self.program = program
        self.waves = [Wave(n, parked=shifted and n >= waves // 2 > 0) for n in range(waves)]
        self.slot = 0
        self.free = dict.fromkeys(("matrix", "vector", "lds", "memory"), 0.0)
        self.queue: list[float] = []

    def clocks(self) -> float:
        """Clocks per trip, the mean of all waves."""
        while any(w.trip < TRIPS for w in self.waves):
            self._release()
            self.queue = [t for t in self.queue if t > self.slot]
            used: set[str] = set()
            for wave in sorted(self.waves, key=lambda w: (-w.priority, w.trip * len(self.program) + w.at, w.number)):
                if wave.trip < TRIPS and wave.ready <= self.slot and not wave.parked:
                    self._issue(wave, used)
            self.slot += 1
        spans = [(w.ends[-2] - w.ends[WARM_UP - 1]) / (len(w.ends) - 1 - WARM_UP) for w in self.waves]
        return SLOT * sum(spans) / len(spans)

    def _release(self) -> None:
        if all(w.parked or w.trip >= TRIPS for w in self.waves):
            for wave in self.waves:
                wave.parked, wave.ready = False, max(wave.ready, self.slot + 1)

    def _issue(self, wave: Wave, used: set[str]) -> None:
        step = self.program[wave.at]
        if not getattr(self, f"_{step.unit}")(wave, step, used):
            return
        wave.ready = max(wave.ready, self.slot + 1)
        wave.at += 1
        if wave.at == len(self.program):
            wave.at, wave.trip = 0, wave.trip + 1
            wave.ends.append(self.slot)

    def _matrix(self, wave: Wave, step: Step, used: set[str]) -> bool:
        return self._valu("matrix", step, used)

    def _vector(self, wave: Wave, step: Step, used: set[str]) -> bool:
        return self._valu("vector", step, used)

    def _valu(self, unit: str, step: Step, used: set[str]) -> bool:
        if "valu" in used or max(self.free["vector"], self.free[unit]) > self.slot:
            return False
        used.add("valu")
        self.free[unit] = self.slot + step.slots
        return True

    def _lds(self, wave: Wave, step: Step, used: set[str]) -> bool:
        if "lds" in used or len(self.queue) >= LDS_QUEUE:
            return False
        used.add("lds")
        self.free["lds"] = max(self.free["lds"], self.slot) + step.slots
        self.queue.append(self.free["lds"])
        wave.lgkm.append(self.free["lds"] + LDS_LATENCY / SLOT)
        return True

    def _memory(self, wave: Wave, step: Step, used: set[str]) -> bool:
        start = max(self.free["memory"], self.slot)
        if "memory" in used or start > self.slot + MEMORY_QUEUE / SLOT:
            return False
        used.add("memory")
        self.free["memory"] = start + step.slots
        wave.vm.append(self.free["memory"] + MEMORY_LATENCY / SLOT)
        return True

    def _wait(self, wave: Wave, step: Step, used: set[str]) -> bool:
        wave.vm = [t for t in wave.vm if t > self.slot]
        wave.lgkm = [t for t in wave.lgkm if t > self.slot]
        pairs = ((step.vm, wave.vm), (step.lgkm, wave.lgkm))
        return all(most is None or len(waiting) <= most for most, waiting in pairs)

    def _barrier(self, wave: Wave, step: Step, used: set[str]) -> bool:
        wave.parked = True
        return True

    def _priority(self, wave: Wave, step: Step, used: set[str]) -> bool:
        wave.priority = int(step.slots)
        return True

    def _nop(self, wave: Wave, step: Step, used: set[str]) -> bool:
        wave.ready = self.slot + step.slots
        return True

    def _scalar(self, wave: Wave, step: Step, used: set[str]) -> bool:
        free = "scalar" not in used
        used.add("scalar")
        return free


def share_of_peak(
    loop: Sequence[Instruction], chip: Chip, waves: int, shifted: bool, lds_rate: int | None = None
) -> float:
    """Per cent of the matrix unit's time that a loop fills with `waves` waves per SIMD."""
    program = steps(loop, chip, lds_rate)
    busy = SLOT * sum(s.slots for s in program if s.unit == "matrix")
    return 100 * waves * busy / Simd(program, waves, shifted).clocks()
