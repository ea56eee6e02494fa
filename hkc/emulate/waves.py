"""A group of waves that execute the same instruction together, and how instructions reach their state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import EXEC, M0, VCC
from hkc.emulate.faults import unsupported
from hkc.emulate.memory import Mask
from hkc.emulate.state import EVERY_BIT, IN_FLIGHT, LANES, UNWRITTEN, State

if TYPE_CHECKING:
    from hkc.emulate.decode import Decoded

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

_ROUND_F32, _ROUND_F64, _DENORM_F32, _DENORM_F64 = 0x3, 0xC, 0x30, 0xC0
_ARITHMETIC = (1 << 27) - 1  # above are modes of control: relative registers, skipping, the stack of forks
DX10_CLAMP, IEEE = 1 << 8, 1 << 9
"""Bits of the mode register: clamp turns NaN into 0; signalling NaNs are quieted by minimum and maximum."""

SPECIAL = {VCC: "vcc_lo", VCC + 1: "vcc_hi", M0: "m0"}
"""Names of scalar registers that have one."""


def lane_bits(mask: Mask) -> U64:
    """bool [..., 64] → one uint64 per wave, lane 0 lowest."""
    return np.packbits(mask, axis=-1, bitorder="little").view(np.uint64)[..., 0]


def lane_mask(bits: U64) -> Mask:
    """The inverse of `lane_bits`."""
    raw = np.ascontiguousarray(bits)[..., None].view(np.uint8)
    return np.unpackbits(raw, axis=-1, bitorder="little").view(np.bool_)


def _halves(words: U64) -> list[U32]:
    """The lower and the upper 32 bits."""
    return [(words >> np.uint64(shift)).astype(np.uint32) for shift in (0, 32)]


def _all_lanes(waves: NDArray[np.bool_]) -> Mask:
    """bool [waves] → [waves, lanes]."""
    return np.broadcast_to(waves[:, None], (len(waves), LANES))


class Waves:
    """The waves `rows` of a state. Arrays that go in and out are [waves, lanes] or broadcast to it, scalars [waves]."""

    def __init__(self, state: State, rows: NDArray[np.int64]) -> None:
        self.state = state
        self.rows = rows
        self.count = len(rows)
        self.whole = self.count == state.shape.waves
        self.instruction: Decoded | None = None
        self.taint: Mask | None = None
        self.scalar_taint: NDArray[np.bool_] | None = None
        self._registers = state.registers
        self._flags = state.flags
        self._scalar_flags = state.scalar_flags
        self.refresh_exec()
        self.refresh_mode()

    # masks and modes

    def refresh_exec(self) -> None:
        """Call after EXEC changed."""
        mask = self.state.exec_mask
        self.mask: Mask = mask if self.whole else mask[self.rows]
        self.full = bool(self.mask.all())

    def refresh_mode(self) -> None:
        """Call after the mode register changed."""
        modes = self.state.mode[self.rows]
        self.mode = int(modes[0]) & _ARITHMETIC
        if (modes & np.uint32(_ARITHMETIC) != self.mode).any():
            raise unsupported(self.by, "waves with different mode registers that run together, as")
        self.flush32 = not self.mode & _DENORM_F32
        self.flush64 = not self.mode & _DENORM_F64
        self.nearest = not self.mode & (_ROUND_F32 | _ROUND_F64)

    @property
    def by(self) -> Decoded:
        """The instruction being executed."""
        assert self.instruction is not None
        return self.instruction

    @property
    def exec(self) -> U64:
        """EXEC as one word per wave."""
        return lane_bits(self.mask)

    @exec.setter
    def exec(self, bits: U64) -> None:
        fresh = self.state.exec_mask.copy()
        fresh[self.rows] = lane_mask(np.broadcast_to(bits, (self.count,)))
        self.state.exec_mask = fresh
        self.refresh_exec()

    @property
    def scc(self) -> NDArray[np.bool_]:
        """The condition bit of each wave."""
        if self.state.scc_unwritten is not None:
            self._taint_scalar(self.state.scc_unwritten[self.rows])
        return self.state.scc if self.whole else self.state.scc[self.rows]

    @scc.setter
    def scc(self, value: NDArray[np.bool_]) -> None:
        state = self.state
        state.scc[self.rows] = value
        if state.scc_unwritten is not None or self.scalar_taint is not None:
            unwritten = np.zeros(state.shape.waves, np.bool_) if state.scc_unwritten is None else state.scc_unwritten
            unwritten[self.rows] = False if self.scalar_taint is None else self.scalar_taint
            state.scc_unwritten = unwritten if unwritten.any() else None

    def some(self, chosen: NDArray[np.bool_]) -> Waves:
        """Those of these waves, executing the same instruction."""
        if chosen.all():
            return self
        part = Waves(self.state, self.rows[chosen])
        part.instruction = self.instruction
        part.taint = None if self.taint is None else self.taint[chosen]
        part.scalar_taint = None if self.scalar_taint is None else self.scalar_taint[chosen]
        return part

    # vector registers

    def read(self, register: int) -> U32:
        """[waves, lanes]; a view of the register when all waves are here, so never write into it."""
        if self._flags[register]:
            self._suspect(register)
        values = self._registers[register]
        return values if self.whole else values[self.rows]

    def write(self, register: int, value: U32, mask: Mask | None = None) -> None:
        """Store where EXEC (or the given narrower mask) is set. `value` broadcasts to [waves, lanes]."""
        target = self._registers[register]
        where = self.mask if mask is None else mask
        complete = self.full if mask is None else bool(mask.all())
        if self.whole:
            if complete:
                target[...] = value
            else:
                np.copyto(target, value, where=where)
        elif complete:
            target[self.rows] = value
        else:
            target[self.rows] = np.where(where, value, target[self.rows])
        if self._flags[register] or self.taint is not None:
            self._track(register, where, complete)

    def _suspect(self, register: int) -> None:
        state, flags = self.state, self._flags[register]
        if flags & IN_FLIGHT:
            hit = state.in_flight[register][self.rows] & self.mask
            if hit.any():
                self.find("missing wait", f"{self.name(register)} is read before its load was waited for", hit)
        if flags & UNWRITTEN:
            stale = self.unwritten(register)
            if stale.any():
                self.taint = stale if self.taint is None else self.taint | stale

    def unwritten(self, register: int) -> Mask:
        """The active lanes [waves, lanes] of a register that were never written."""
        if not self._flags[register] & UNWRITTEN:
            return np.zeros_like(self.mask)
        stale: Mask = self.state.whole(register)[self.rows] & self.mask
        return stale

    def _track(self, register: int, where: Mask, complete: bool) -> None:
        state = self.state
        if self._flags[register] & IN_FLIGHT:
            hit = state.in_flight[register][self.rows] & where
            if hit.any():
                message = f"{self.name(register)} is written while a load into it is outstanding"
                self.find("missing wait", message, hit)
        if self.whole and complete and self.taint is None:
            self._flags[register] &= ~UNWRITTEN
            state.unwritten.pop(register, None)
            return
        unwritten = state.whole(register)
        fresh = np.zeros_like(where) if self.taint is None else self.taint
        unwritten[self.rows] = np.where(where, fresh, unwritten[self.rows])
        state.settle(register, unwritten)

    def name(self, register: int) -> str:
        """What assembly calls a vector register of the state's single file."""
        accumulators = register - self.state.shape.vgprs
        return f"v{register}" if accumulators < 0 else f"a{accumulators}"

    # scalar registers

    def scalar(self, register: int) -> U32:
        """[waves]. EXEC is not kept among the scalar registers: see `exec`."""
        if register >= EXEC:
            half: U32 = (self.exec >> np.uint64(32 * (register - EXEC))).astype(np.uint32)
            return half
        if self._scalar_flags[register]:
            self._suspect_scalar(register)
        values = self.state.scalar[register]
        result: U32 = values if self.whole else values[self.rows]
        return result

    def scalar64(self, register: int) -> U64:
        """[waves], from a register pair."""
        if register == EXEC:
            return self.exec
        low, high = self.scalar(register), self.scalar(register + 1)
        return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)

    def set_scalar(self, register: int, value: U32, unwritten: U32 | None = None) -> None:
        """Write one word per wave. `unwritten`: the bits of it that come from what was never written; without it they
        all do if anything that was read does."""
        if register >= EXEC:
            if self.scalar_taint is not None:
                self.consume("EXEC")
            shift = np.uint64(32 * (register - EXEC))
            keep = self.exec & ~(np.uint64(0xFFFFFFFF) << shift)
            self.exec = keep | np.asarray(value, np.uint64) << shift
            return
        if self.whole:
            self.state.scalar[register] = value
        else:
            self.state.scalar[register, self.rows] = value
        if self._scalar_flags[register] or self.scalar_taint is not None:
            self._track_scalar(register, unwritten)

    def set_scalar64(self, register: int, value: U64, unwritten: U64 | None = None) -> None:
        """Write a register pair, or EXEC. `unwritten`: as for `set_scalar`."""
        if register == EXEC:
            if self.scalar_taint is not None:
                self.consume("EXEC")
            self.exec = value
            return
        wide = np.asarray(value, np.uint64)
        halves = [None, None] if unwritten is None else _halves(unwritten)
        for i, half in enumerate(_halves(wide)):
            self.set_scalar(register + i, half, halves[i])

    def _suspect_scalar(self, register: int) -> None:
        self._find_flight(register, "is read before its load was waited for")
        self._taint_scalar(self.state.scalar_unwritten[register, self.rows] != 0)

    def _find_flight(self, register: int, what: str) -> None:
        hit = self.state.scalar_in_flight[register, self.rows]
        if hit.any():
            self.find("missing wait", f"{SPECIAL.get(register, f's{register}')} {what}", _all_lanes(hit))

    def _taint_scalar(self, hit: NDArray[np.bool_]) -> None:
        if hit.any():
            self.scalar_taint = hit if self.scalar_taint is None else self.scalar_taint | hit
            wide = _all_lanes(hit) & self.mask
            if wide.any():
                self.taint = wide if self.taint is None else self.taint | wide

    def _track_scalar(self, register: int, unwritten: U32 | None) -> None:
        state = self.state
        self._find_flight(register, "is written while a load into it is outstanding")
        if unwritten is None and self.scalar_taint is not None:
            unwritten = np.where(self.scalar_taint, EVERY_BIT, np.uint32(0))
        state.scalar_unwritten[register, self.rows] = 0 if unwritten is None else unwritten
        state.settle_scalar(register)

    def unwritten_bits(self, register: int, bits: int) -> U64:
        """Which of a register's 32 `bits`, or a pair's 64, were never written: [waves]."""
        if register >= EXEC:
            return np.zeros(self.count, np.uint64)
        words = self.state.scalar_unwritten[register : register + bits // 32, self.rows].astype(np.uint64)
        wide: U64 = words[0] if bits == 32 else words[0] | words[1] << np.uint64(32)
        return wide

    def lanes_of(self, register: int) -> Mask:
        """A scalar register pair as a lane mask [waves, lanes], each lane with a bit of its own."""
        if register == EXEC:
            return self.mask
        before = self.taint, self.scalar_taint
        lanes = lane_mask(self.scalar64(register))
        if self.scalar_taint is not None:
            self.taint, self.scalar_taint = before
            stale = lane_mask(self.unwritten_bits(register, 64)) & self.mask
            if stale.any():
                self.taint = stale if self.taint is None else self.taint | stale
        return lanes

    def set_lanes(self, register: int, value: Mask) -> None:
        """Write a comparison's outcome: inactive lanes give 0."""
        if self.taint is not None:
            self.consume("a comparison")
        if value.shape != self.mask.shape:
            value = np.broadcast_to(value, self.mask.shape)
        self.set_scalar64(register, lane_bits(value if self.full else value & self.mask))

    @property
    def vcc(self) -> Mask:
        """VCC as a lane mask."""
        return self.lanes_of(VCC)

    # findings

    def find(self, kind: str, message: str, lanes: Mask) -> None:
        """Record a finding about the first of `lanes`."""
        wave, lane = (int(i[0]) for i in np.nonzero(lanes))
        self.state.findings.add(kind, self.by, message, self.state.first_wave + int(self.rows[wave]), lane)

    def consume(self, what: str) -> None:
        """A value with visible effect was used: report it if it comes from something never written."""
        tainted = self.taint if self.scalar_taint is None else _all_lanes(self.scalar_taint)
        if tainted is not None:
            self.find("uninitialised", f"{what} depends on a register or scratch that was never written", tainted)
        self.taint = self.scalar_taint = None
