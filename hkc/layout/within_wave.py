"""Conversions between layouts within a wave, by instructions that move registers between lanes.

A step changes the layout by elementary operations on its bases: a register basis and a lane basis trade places, a
register basis is added to a lane basis, or lanes are mapped linearly. Renaming registers is free and may put any vector
of their span in a register basis. A plan proves itself: its last layout needs renaming alone.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hkc.layout.distributed import DistributedLayout, Vector
from hkc.layout.exchange import on_one_block
from hkc.layout.linear import Echelon

DPP: dict[int, tuple[int, ...]] = {1: (0xB1,), 2: (0x4E,), 4: (0x141, 0x1B), 8: (0x128,)}
"""The DPP controls, one after another, by which every lane gets what lane `lane ^ mask` holds: quad_perm:[1,0,3,2],
quad_perm:[2,3,0,1], row_half_mirror and quad_perm:[3,2,1,0], row_ror:8 (ISA manual, DPP_CTRL)."""

SWAPS = (16, 32)
"""Lane masks for which some chips have an instruction that swaps lanes of two registers (v_permlane*_swap)."""

WORD = 4
"""Bytes of a register."""


class LaneCosts(Protocol):
    """Clocks of a SIMD for one instruction of a wave; `swap` is None where the chip has no v_permlane*_swap."""

    @property
    def valu(self) -> int:
        """A vector instruction within lanes."""

    @property
    def dpp(self) -> int:
        """One with DPP."""

    @property
    def bpermute(self) -> int:
        """ds_bpermute_b32."""

    @property
    def swap(self) -> int | None:
        """v_permlane16_swap, v_permlane32_swap."""


@dataclass(frozen=True)
class Step:
    """One step from layout `before` to layout `after`, which have one block.

    swap     register bit `register` and lane bit `lane` trade places
    select   lanes whose bit `lane` is set trade the registers that differ in bit `register`
    gather   lane l gets the registers of the lane that is the XOR of the `columns` of l's set bits
    """

    kind: Literal["swap", "select", "gather"]
    before: DistributedLayout
    after: DistributedLayout
    register: int = 0
    lane: int = 0
    columns: Vector = ()

    def clocks(self, fragments: int, itemsize: int, costs: LaneCosts) -> int:
        """Clocks of one wave for so many fragments."""
        words = fragments * math.ceil(self.before.registers * itemsize / WORD)
        if self.kind == "gather":
            return words * costs.bpermute
        each = costs.valu * 2 if self.kind == "select" else _exchange(self.lane, costs)
        packing = 2 * words * costs.valu if itemsize << self.register < WORD else 0
        return math.ceil(words / 2) * each + packing

    def text(self) -> str:
        """How a report calls it."""
        if self.kind == "gather":
            return "ds_bpermute of lanes"
        return f"{self.kind} of register bit {self.register} and lane bit {self.lane}"


def _exchange(lane: int, costs: LaneCosts) -> int:
    """Clocks in which two registers and a lane bit trade places."""
    mask = 1 << lane
    if mask in SWAPS and costs.swap is not None:
        return costs.swap
    return 3 * costs.valu + (len(DPP[mask]) * costs.dpp if mask in DPP else costs.bpermute)


@functools.lru_cache(maxsize=4096)
def steps(source: DistributedLayout, target: DistributedLayout) -> tuple[Step, ...] | None:
    """A conversion within a wave: no steps where renaming registers is enough; None where waves hold other elements.

    Register bases go to the lanes that want them while there are such; then lanes are mapped, then registers chosen.
    That serves all layouts whose bases are the same vectors, or copies; None too for some that mix them otherwise.
    """
    held, needed = on_one_block(source, target)
    if held.wave != needed.wave:
        return None
    found: list[Step] = []
    while (step := _next_swap(held, needed)) is not None:
        found.append(step)
        held = step.after
    registers = Echelon(map(held.pack, held.register))
    if any(held.pack(basis) not in registers for basis in needed.register):
        return None
    rest = _map_lanes(held, needed) if held.lane != needed.lane else []
    return None if rest is None else (*found, *rest)


def _next_swap(held: DistributedLayout, needed: DistributedLayout) -> Step | None:
    """A swap that gives a lane what it wants, up to what registers are to hold in the end; copies come from a register
    basis of zero."""
    final, own = tuple(map(held.pack, needed.register)), tuple(map(held.pack, held.register))
    kept, here, both = Echelon(final), Echelon(own), Echelon(final + own)
    for lane, (have, want) in enumerate(zip(held.lane, needed.lane, strict=True)):
        missing = held.pack(have) in kept and held.pack(have) not in here  # registers want what is here
        solution = both.solve(held.pack(want))
        if solution is None or (held.pack(have) ^ held.pack(want) in kept and not missing):
            continue
        chosen = solution >> len(final)
        if not chosen and not missing:
            continue  # copies are wanted, but other lanes want what is here
        given = _combined(held, held.register, chosen)
        before, register = _with_basis(held, given) if chosen else _doubled(held)
        traded = _put(before.register, register, have), _put(before.lane, lane, given)
        return Step("swap", before, replace(before, register=traded[0], lane=traded[1]), register, lane)
    return None


def _with_basis(held: DistributedLayout, basis: Vector) -> tuple[DistributedLayout, int]:
    """The layout with its registers renamed so that a vector of their span is one of their bases, the highest that it
    can be."""
    combination = Echelon(map(held.pack, held.register)).solve(held.pack(basis)) or 0
    register = combination.bit_length() - 1
    return replace(held, register=_put(held.register, register, basis)), register


def _doubled(held: DistributedLayout) -> tuple[DistributedLayout, int]:
    """The layout with every register twice."""
    return replace(held, register=(*held.register, (0,) * held.rank)), len(held.register)


def _map_lanes(held: DistributedLayout, needed: DistributedLayout) -> list[Step] | None:
    """Lanes mapped linearly, then registers chosen by lanes; None where other waves hold something."""
    lanes, solver = len(held.lane), Echelon(map(held.pack, held.lane + held.register))
    solutions = [solver.solve(held.pack(want)) for want in needed.lane]
    if None in solutions:
        return None
    columns = tuple((s or 0) & ((1 << lanes) - 1) for s in solutions)
    mapped = replace(held, lane=tuple(_combined(held, held.lane, column) for column in columns))
    found = [Step("gather", held, mapped, columns=columns)]
    for lane, (solution, want) in enumerate(zip(solutions, needed.lane, strict=True)):
        choice = (solution or 0) >> lanes
        if choice:
            basis = _combined(held, held.register, choice)
            before, register = _with_basis(found[-1].after, basis)
            after = replace(before, lane=_put(before.lane, lane, want))
            found.append(Step("select", before, after, register, lane))
    return found if any(c != 1 << i for i, c in enumerate(columns)) else found[1:]


def _combined(layout: DistributedLayout, bases: tuple[Vector, ...], chosen: int) -> Vector:
    total = [0] * layout.rank
    for i, basis in enumerate(bases):
        if chosen >> i & 1:
            total = [a ^ b for a, b in zip(total, basis, strict=True)]
    return tuple(total)


def _put(vectors: tuple[Vector, ...], at: int, vector: Vector) -> tuple[Vector, ...]:
    return (*vectors[:at], vector, *vectors[at + 1 :])


def execute(step: Step, held: NDArray[np.generic]) -> NDArray[np.generic]:
    """What registers hold after a step: [fragment, register, lane, wave] to the same."""
    registers, lanes = (np.arange(n) for n in held.shape[1:3])
    if step.kind == "gather":
        origin = np.zeros_like(lanes)
        for bit, column in enumerate(step.columns):
            origin ^= (lanes >> bit & 1) * column
        return held[:, :, origin]
    r, lane = registers[:, None], lanes[None, :]
    upper, inside = r >> step.register & 1, lane >> step.lane & 1
    if step.kind == "select":
        return held[:, r ^ inside << step.register, lane]
    differ = upper ^ inside
    return held[:, r ^ differ << step.register, lane ^ differ << step.lane]
