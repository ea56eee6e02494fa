"""Which number surely divides an index: what alignment can be built on. Worker process only."""

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
