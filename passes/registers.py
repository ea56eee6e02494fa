"""Registers of a lane: what a value takes, and what a wave may use. 32 bits each."""

from __future__ import annotations

from typing import Any

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
