"""Which tiles surely hold the same element all along a dim, by the ops that make them. Worker process only."""

from __future__ import annotations

from typing import Any

from hkc.support.mlir import ir

_ELEMENTWISE = frozenset(f"hkc_tile.{name}" for name in ("cast", "floordiv", "floormod", "convert_layout"))
"""Ops of ours that give a tile whose elements depend on those in the same place of their operands alone."""


def alike(value: Any, dim: int) -> bool:
    """Are the elements of a tile surely equal along a dim? A scalar is, along all of them."""
    if not isinstance(value.type, ir.RankedTensorType) or value.type.shape[dim] == 1:
        return True
    if isinstance(value, ir.BlockArgument):
        return False
    op = value.owner
    match op.name:
        case "arith.constant":
            return bool(ir.DenseElementsAttr(op.attributes["value"]).is_splat)
        case "tensor.splat":
            return True
        case "hkc_tile.iota":
            return bool(op.attributes["axis"].value != dim)
        case "hkc_tile.broadcast":
            return alike(op.operands[0], dim)
    if op.name.startswith(("arith.", "math.")) or op.name in _ELEMENTWISE:
        return all(alike(operand, dim) for operand in op.operands)
    return False
