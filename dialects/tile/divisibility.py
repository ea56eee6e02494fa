"""What is surely true of a value: what divides an index, whether a loop may count to it in 32 bits, whether the bits of
a constant are all 0. Worker only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hkc.dialects.translate import element_name
from hkc.support.dtypes import DTYPES
from hkc.support.mlir import ir

ANYTHING = 1 << 30
"""Stands for the divisors of zero: every power of two that matters divides it."""


def divisor(value: Any) -> int:
    """A power of two that divides an index value wherever it is computed; 1 where nothing is known."""
    found = _divisor(value)
    return min(found & -found, ANYTHING) if found else ANYTHING


def _divisor(value: Any) -> int:
    """A divisor of the value; 0 for the value zero itself."""
    if isinstance(value, ir.BlockArgument):
        return _of_argument(value)
    op = value.owner
    match op.name:
        case "arith.constant":
            return abs(int(op.attributes["value"].value))
        case "arith.muli":
            a, b = (_divisor(o) for o in op.operands)
            return a * b
        case "arith.floordivsi":
            a, b = (_divisor(o) for o in op.operands)
            return a // b if constant(op.operands[1]) and a % b == 0 else 1
        case "arith.addi" | "arith.subi" | "arith.minsi" | "arith.maxsi":
            return math.gcd(*(_divisor(o) for o in op.operands))
        case "arith.select":
            return math.gcd(*(_divisor(o) for o in list(op.operands)[1:]))
    return 1


def _of_argument(argument: Any) -> int:
    """A loop's induction variable is a multiple of what divides both its start and its step."""
    parent = argument.owner.owner
    if parent.name != "scf.for" or argument.arg_number != 0:
        return 1
    start, _, step = list(parent.operands)[:3]
    return math.gcd(_divisor(start), _divisor(step))


LOOP_LIMIT = 1 << 30
"""Bounds and steps up to here can be added up in 32 bits."""


def fits_loop(value: Any) -> bool:
    """Does an index surely lie in 0..`LOOP_LIMIT`, given that every extent does (the aligned entry's promise)?"""
    if isinstance(value, ir.BlockArgument):
        return False
    op = value.owner
    match op.name:
        case "arith.constant":
            return 0 <= int(op.attributes["value"].value) <= LOOP_LIMIT
        case "memref.dim":
            return True
        case "arith.remui" | "arith.divui" | "arith.ceildivsi":
            return all(fits_loop(o) for o in op.operands)
        case "arith.minsi":
            return any(fits_loop(o) for o in op.operands) and nonnegative(value)
        case "arith.subi":
            return _is_rounded_down(*op.operands)
    return False


def _is_rounded_down(value: Any, rest: Any) -> bool:
    """`value - (value - start) % n` for a value that fits and a start of at least 0 (or none)."""
    if isinstance(rest, ir.BlockArgument) or rest.owner.name != "arith.remui":
        return False
    span = rest.owner.operands[0]
    if span != value:
        if isinstance(span, ir.BlockArgument) or span.owner.name != "arith.maxsi":
            return False
        difference = span.owner.operands[0].owner
        if difference.name != "arith.subi" or difference.operands[0] != value:
            return False
        if not nonnegative(difference.operands[1]):
            return False
    return fits_loop(value)


_KEEP_SIGN = frozenset(f"arith.{name}" for name in ("addi", "muli", "minsi", "ceildivsi", "floordivsi", "index_cast"))
"""Ops that give no negative number where they take none, short of an overflow that 64 bits don't see."""


def nonnegative(value: Any) -> bool:
    """Is an index surely at least 0? Tile ids are; so are the variables of loops that start there and step up."""
    if isinstance(value, ir.BlockArgument):
        parent = value.owner.owner
        return parent.name == "scf.for" and value.arg_number == 0 and nonnegative(parent.operands[0])
    op = value.owner
    if op.name == "arith.constant":
        return int(op.attributes["value"].value) >= 0
    if op.name == "arith.maxsi":
        return any(nonnegative(o) for o in op.operands)
    if op.name in _KEEP_SIGN:
        return all(nonnegative(o) for o in op.operands)
    return op.name in ("memref.dim", "arith.remui", "arith.divui", "hkc_tile.tile_id", "hkc_wave.workgroup_id")


def is_constant(value: Any) -> bool:
    """Is a value a constant?"""
    return not isinstance(value, ir.BlockArgument) and value.owner.name == "arith.constant"


def constant(value: Any) -> int | None:
    """The number that an index or integer is; None where it is no constant."""
    return int(ir.IntegerAttr(value.owner.attributes["value"]).value) if is_constant(value) else None


def has_zero_bits(value: Any) -> bool:
    """Is a scalar the constant whose bits are all 0, as a buffer reads out of range? For floats that is 0 and not -0,
    for e8m0 the least number."""
    if not is_constant(value):
        return False
    number = np.array(value.owner.attributes["value"].value).astype(DTYPES[element_name(value.type)].numpy)
    return not any(number.tobytes())
