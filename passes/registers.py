"""Registers of a lane: what a value takes, and what a wave may use. 32 bits each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hkc.dialects.forms import walk
from hkc.dialects.tile.divisibility import is_constant
from hkc.passes.trips import LOOPS
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

ADDRESSES = 24
"""Registers that a loop takes for addresses and the like beside its tiles: what plans leave for them."""


def registers(value: Any) -> int:
    """Registers that a value of a per-lane type takes; uniform scalars take none."""
    if not isinstance(value.type, ir.VectorType):
        return 0
    bits = int(value.type.shape[0]) * _bits(value.type.element_type)
    return -(-bits // 32)


def _bits(element: Any) -> int:
    return int(element.width) if isinstance(element, (ir.IntegerType, ir.FloatType)) else 32


def budget(waves: int, chip: Chip, occupancy: int | None = None) -> int:
    """Registers that a wave may use in a workgroup of `waves` waves, with at least `occupancy` waves per SIMD."""
    sharing = max(1, -(-waves // chip.compute.simds), occupancy or 1)
    share = chip.registers.file // sharing
    return min(share - share % chip.registers.granule, chip.registers.vgprs + chip.registers.agprs)


def relief(waves: int, chip: Chip, occupancy: int | None = None) -> str:
    """What to do where tiles need more than the budget. Waves beyond one per SIMD bring no registers of their own."""
    if occupancy is not None and budget(waves, chip) > budget(waves, chip, occupancy):
        return f"use smaller tiles, or a smaller `waves_per_eu` than {occupancy}"
    simds = chip.compute.simds
    return f"use smaller tiles, or more waves: `with waves={simds}`" if waves < simds else "use smaller tiles"


class _Alive:
    """Values in registers that are alive, and how many they take together."""

    def __init__(self, values: Iterable[Any]) -> None:
        self.values: dict[Any, int] = {}
        self.size = 0
        self.add(values)

    def add(self, values: Iterable[Any]) -> None:
        """Constants take no register until they are used."""
        for value in values:
            if value not in self.values and (size := registers(value)) and not is_constant(value):
                self.values[value] = size
                self.size += size

    def remove(self, values: Iterable[Any]) -> None:
        for value in values:
            self.size -= self.values.pop(value, 0)


class Peak:
    """The most registers of a kernel in wave IR that are alive at once: at any place, and across the loop where these
    are the most."""

    def __init__(self, function: Any) -> None:
        self.registers = self.carried = 0
        self.loop: Any = None
        self._block(function.regions[0].blocks[0], ())

    def _block(self, block: Any, after: Iterable[Any]) -> None:
        """Follow a block backwards; `after` is alive behind it."""
        alive = _Alive(after)
        for op in reversed([op.operation for op in block.operations]):
            self.registers = max(self.registers, alive.size)
            alive.remove(op.results)
            if op.regions:
                self._inside(op, alive)
            alive.add(op.operands)
        self.registers = max(self.registers, alive.size)

    def _inside(self, op: Any, alive: _Alive) -> None:
        used = _captured(op)
        if op.name == "scf.for":
            carried = _Alive([*alive.values, *op.regions[0].blocks[0].arguments]).size
            if carried > self.carried:
                self.carried, self.loop = carried, op
        # What a loop uses from outside is needed again in its next trip.
        behind = [*alive.values, *(used if op.name in LOOPS else ())]
        for region in op.regions:
            for inner in region:
                self._block(inner, behind)
        alive.add(used)


def _captured(op: Any) -> set[Any]:
    """What an op with regions uses in them from outside."""
    inner = walk(op)
    made = {v for i in inner for v in i.results} | {a for i in (op, *inner) for a in _arguments(i)}
    return {o for i in inner for o in i.operands if o not in made}


def _arguments(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region:
            yield from block.arguments
