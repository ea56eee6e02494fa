"""Registers are few: what comes after a loop is computed there, from arguments and ids that are read once more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import ENTRY, clone, kernels, walk
from hkc.dialects.load import create
from hkc.dialects.tile.divisibility import is_constant
from hkc.dialects.wave.ids import ArgumentAgain, IdsAgain
from hkc.passes.define import Pass
from hkc.passes.trips import LOOPS
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

AGAIN, DESCRIPTOR = "hkc_wave.argument_again", "hkc_wave.buffer"
LANE, WAVE = "hkc_wave.lane_id", "hkc_wave.wave_id"
DIVISIONS = ("arith.div", "arith.floordiv", "arith.ceildiv", "arith.rem")
"""What costs too much to be computed again, but for constant divisors."""


@dataclass(frozen=True)
class ComputeLate(Pass):
    """While a loop runs, no register holds what can be computed behind it from what is there anyway.

    Aligned entries are short of vector registers. Behind a loop, in a loop around other loops, and in the branches of
    an `if` with loops, what follows from the ids of lane and wave is computed from ids that the code generator takes
    for new ones. Else it takes the offsets of a whole epilogue out of a loop around other loops, and keeps what both
    branches need through the loop in one of them.

    General entries are short of scalar registers, which their masks take. Behind a loop, extents, strides and bases of
    tensors are read from memory again; in a loop around other loops those of both entries are, before and behind the
    inner ones. Tile ids stay, since they take divisions.

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
        func.func @l(%r: !hkc_wave.descriptor, %m: i32, %v: vector<4xf32>) attributes {hkc.kernel, hkc.entry = "aligned"} {
          %l = "hkc_wave.lane_id"() : () -> i32
          %c0 = arith.constant 0 : i32
          %c16 = arith.constant 16 : i32
          %o = arith.muli %l, %c16 : i32
          scf.for %k = %c0 to %m step %c16 : i32 {
            "hkc_wave.buffer_store"(%v, %r, %k) : (vector<4xf32>, !hkc_wave.descriptor, i32) -> ()
          }
          "hkc_wave.buffer_store"(%v, %r, %o) : (vector<4xf32>, !hkc_wave.descriptor, i32) -> ()
          return
        }

    After::

        scf.for
        %q = "hkc_wave.argument_again"(%arg0)
        %o = "hkc_wave.argument_again"(%arg1)
        %s = "hkc_wave.buffer"(%q, %o)
        %i = "hkc_wave.argument_again"(%arg2)
        "hkc_wave.buffer_store"(%arg3, %s, %i)
        scf.for
        %j:2 = "hkc_wave.ids_again"()
        %p = arith.muli %j#0, %c
        "hkc_wave.buffer_store"(%arg2, %arg0, %p)
    """  # noqa: E501

    name: ClassVar[str] = "compute_late"
    needs: ClassVar[frozenset[str]] = frozenset({"waves", "entries", "pipelined"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            general = ir.StringAttr(function.attributes[ENTRY]).value == "general"
            for ops, arguments in list(_later(function.regions[0].blocks[0], general)):
                _Again(function, arguments, not general).compute(ops)


def _later(block: Any, arguments: bool) -> Iterator[tuple[list[Any], bool]]:
    """Ops of a block that come after a loop, and those in an op that has a loop among them (the code generator may put
    the branches of an `if` in either order), with whether arguments are wanted there; inner blocks first."""
    ops = [op.operation for op in block.operations]
    for op in (bearing := [op for op in ops if _loops(op)]):
        inner = [region.blocks[0] for region in op.regions if len(region.blocks)]
        nested = any(_loops(o) for body in inner for o in body.operations)
        around = nested and op.name in LOOPS
        for body in inner:
            yield from _later(body, arguments or around)
        if nested:
            yield from (([o.operation for o in body.operations], around) for body in inner)
    if bearing:
        yield ops[ops.index(bearing[-1]) + 1 :], arguments


def _loops(op: Any) -> bool:
    """Is an op a loop, or has it one?"""
    return any(o.name in LOOPS for o in (op.operation, *walk(op.operation)))


class _Again:
    """Computes once more what follows from the kernel's `arguments`, from the `ids` of lane and wave, or from both."""

    def __init__(self, function: Any, arguments: bool, ids: bool) -> None:
        self._entry = function.regions[0].blocks[0]
        self._arguments, self._ids = arguments, ids
        self._values: dict[Any, Any] = {}
        self._lane_and_wave: Any = None

    def compute(self, ops: list[Any]) -> None:
        """Let ops take it from a computation in front of them."""
        inner = [o for op in ops for o in (op, *walk(op)) if o.name != AGAIN]
        made = {v for op in inner for v in op.results} | {
            a for op in inner for region in op.regions for block in region.blocks for a in block.arguments
        }
        ids = [o.results[0] for o in inner if o.name in (LANE, WAVE)]
        with ir.InsertionPoint(ops[0]), ops[0].location:
            for value in dict.fromkeys([*ids, *(o for op in inner for o in op.operands if o not in made)]):
                self._make(value)
        for op in inner:
            for i, operand in enumerate(op.operands):
                if operand in self._values:
                    op.operands[i] = self._values[operand]

    def _make(self, value: Any) -> None:
        if value in self._values or not self._follows(value):
            return
        if isinstance(value, ir.BlockArgument):
            self._values[value] = create(ArgumentAgain, value).result
        elif value.owner.name in (LANE, WAVE):
            self._values[value] = self._id(value.owner.name)
        else:
            for operand in value.owner.operands:
                self._make(operand)
            clone([value.owner.operation], self._values)

    def _id(self, name: str) -> Any:
        if self._lane_and_wave is None:
            self._lane_and_wave = create(IdsAgain).results
        return self._lane_and_wave[name == WAVE]

    def _follows(self, value: Any) -> bool:
        """Is a value such an argument or id, or computed from these and constants alone?"""
        if isinstance(value, ir.BlockArgument):
            scalar = not isinstance(value.type, ir.VectorType)
            return bool(self._arguments and value.owner == self._entry and scalar)
        name, given = value.owner.name, list(value.owner.operands)
        if name in (LANE, WAVE):
            return self._ids
        operands = [o for o in given if not is_constant(o)]
        plain = name == DESCRIPTOR or name.startswith("arith.")
        if not plain or not operands or (name.startswith(DIVISIONS) and not is_constant(given[1])):
            return False
        return all(self._follows(o) for o in operands)
