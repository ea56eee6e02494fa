"""Scalar registers are few: what only comes after a loop is computed there, from arguments that are read once more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import ENTRY, clone, kernels, walk
from hkc.dialects.load import create
from hkc.dialects.tile.divisibility import is_constant
from hkc.dialects.wave.ids import ArgumentAgain
from hkc.passes.define import Pass
from hkc.passes.trips import LOOPS
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

AGAIN, DESCRIPTOR = "hkc_wave.argument_again", "hkc_wave.buffer"
DIVISIONS = ("arith.div", "arith.floordiv", "arith.ceildiv", "arith.rem")
"""What costs too much to be computed again, but for constant divisors."""


@dataclass(frozen=True)
class ReadArgumentsLate(Pass):
    """Extents, strides and bases of tensors wait in memory rather than in scalar registers while a loop runs that does
    not need them: behind a loop of a general entry, whose masks take most of these registers, and in a loop around
    other loops, before and behind them. Tile ids stay, since they take divisions.

    Before::

        func.func @k(%p: !llvm.ptr<1>, %n: i64, %m: i32, %v: vector<4xf32>) attributes {hkc.kernel, hkc.entry = "general"} {
          %r = "hkc_wave.buffer"(%p, %n) : (!llvm.ptr<1>, i64) -> !hkc_wave.descriptor
          %c0 = arith.constant 0 : i32
          %c1 = arith.constant 1 : i32
          scf.for %k = %c0 to %m step %c1 : i32 {
            "hkc_wave.buffer_store"(%v, %r, %k) : (vector<4xf32>, !hkc_wave.descriptor, i32) -> ()
          }
          "hkc_wave.buffer_store"(%v, %r, %m) : (vector<4xf32>, !hkc_wave.descriptor, i32) -> ()
          return
        }

    After::

        scf.for
        %q = "hkc_wave.argument_again"(%arg0)
        %o = "hkc_wave.argument_again"(%arg1)
        %s = "hkc_wave.buffer"(%q, %o)
        %i = "hkc_wave.argument_again"(%arg2)
        "hkc_wave.buffer_store"(%arg3, %s, %i)
    """  # noqa: E501

    name: ClassVar[str] = "read_arguments_late"
    needs: ClassVar[frozenset[str]] = frozenset({"waves", "entries", "pipelined"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            general = ir.StringAttr(function.attributes[ENTRY]).value == "general"
            for ops in list(_later(function.regions[0].blocks[0], general)):
                _compute_again(ops, function)


def _later(block: Any, behind: bool) -> Iterator[list[Any]]:
    """Ops of a block that come after a loop, if those are wanted, or that have one among them in a loop of their own;
    inner blocks first."""
    ops = [op.operation for op in block.operations]
    bearing = [i for i, op in enumerate(ops) if any(o.name in LOOPS for o in (op, *walk(op)))]
    for i in bearing:
        around = ops[i].name in LOOPS and any(o.name in LOOPS for o in walk(ops[i]))
        for inner in (inner for region in ops[i].regions for inner in region.blocks):
            yield from _later(inner, behind or around)
            if around:
                yield [op.operation for op in inner.operations]
    if behind and bearing:
        yield ops[bearing[-1] + 1 :]


def _compute_again(ops: list[Any], function: Any) -> None:
    """Let ops take what follows from the kernel's arguments alone from a computation in front of them."""
    inner = [o for op in ops for o in (op, *walk(op)) if o.name != AGAIN]
    made = {v for op in inner for v in op.results} | {
        a for op in inner for region in op.regions for block in region.blocks for a in block.arguments
    }
    values: dict[Any, Any] = {}
    with ir.InsertionPoint(ops[0]), ops[0].location:
        for operand in dict.fromkeys(o for op in inner for o in op.operands if o not in made):
            if _follows(operand, function):
                _again(operand, function, values)
    for op in inner:
        for i, operand in enumerate(op.operands):
            if operand in values:
                op.operands[i] = values[operand]


def _again(value: Any, function: Any, values: dict[Any, Any]) -> None:
    if value in values or not _follows(value, function):
        return
    if isinstance(value, ir.BlockArgument):
        values[value] = create(ArgumentAgain, value).result
        return
    for operand in value.owner.operands:
        _again(operand, function, values)
    clone([value.owner.operation], values)


def _follows(value: Any, function: Any) -> bool:
    """Is a value an argument, or computed from such and constants alone?"""
    if isinstance(value, ir.BlockArgument):
        return bool(value.owner == function.regions[0].blocks[0] and not isinstance(value.type, ir.VectorType))
    name, given = value.owner.name, list(value.owner.operands)
    operands = [o for o in given if not is_constant(o)]
    plain = name == DESCRIPTOR or name.startswith("arith.")
    if not plain or not operands or (name.startswith(DIVISIONS) and not is_constant(given[1])):
        return False
    return all(_follows(o, function) for o in operands)
