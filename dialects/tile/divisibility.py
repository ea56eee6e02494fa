"""What is surely true of an index: what divides it, and whether a loop may count to it in 32 bits. Worker only."""

from __future__ import annotations

import math
from typing import Any

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
        case "arith.subi":
            return _is_rounded_down(*op.operands)
    return False


def _is_rounded_down(value: Any, rest: Any) -> bool:
    """`value - value % n`, for a value that fits."""
    is_rest = not isinstance(rest, ir.BlockArgument) and rest.owner.name == "arith.remui"
    return is_rest and rest.owner.operands[0] == value and fits_loop(value)
