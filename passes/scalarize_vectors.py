"""Lanes that hold one element hold a scalar where one of them has 64 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import kernels, single, values, walk
from hkc.passes.define import Pass
from hkc.support.mlir import ir, llvm
from hkc.targets.chip import Chip

SAME = ("llvm.extractelement", "llvm.insertelement", "llvm.bitcast")
"""What hands its value on: into a vector of one, out of it, and as another type where that has become the same."""


@dataclass(frozen=True)
class ScalarizeVectors(Pass):
    """In a kernel with a lane that holds one 64-bit element of a tile, lanes that hold one element hold a scalar.
    LLVM's instruction selection does not come to an end where it adds a constant to a `<1 x i64>` of which it knows
    bits and that comes from another block: it splits the sum into halves and joins them again. Kernels without such
    lanes stay as they are: vectors of one do no harm there, and take LLVM fewer registers.

    Before::

        llvm.func @k(%v: i64) attributes {hkc.kernel} {
          %z = llvm.mlir.constant(0 : i32) : i32
          %p = llvm.mlir.poison : vector<1xi64>
          %c = llvm.mlir.constant(dense<3> : vector<1xi64>) : vector<1xi64>
          %w = llvm.insertelement %v, %p[%z : i32] : vector<1xi64>
          %s = llvm.add %w, %c : vector<1xi64>
          %b = llvm.bitcast %s : vector<1xi64> to vector<2xi32>
          llvm.return
        }

    After::

        %c = llvm.mlir.constant(3 : i64)
        %s = llvm.add %arg0, %c : i64
        %b = llvm.bitcast %s : i64 to vector<2xi32>
    """

    name: ClassVar[str] = "scalarize_vectors"
    needs: ClassVar[frozenset[str]] = frozenset({"llvm"})
    gives: ClassVar[frozenset[str]] = frozenset({"scalars"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            ops = [function, *walk(function)]
            if not any(single(value.type, of_64_bits=True) for op in ops for value in values(op)):
                continue
            concerned = [op for op in ops if any(single(value.type) for value in (*op.operands, *op.results))]
            for op in ops:
                _retype(op)
            for op in concerned:
                _replace(op)


def _retype(op: Any) -> None:
    """Give an op's results and block arguments their scalar types, and a constant its only element."""
    for value in filter(lambda v: single(v.type), values(op)):
        if op.name == "llvm.mlir.constant":
            op.attributes["value"] = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
        value.set_type(ir.VectorType(value.type).element_type)


def _replace(op: Any) -> None:
    """Take an op out that moves elements between vectors and has nothing left to do, or has it in another way."""
    source = op.operands[op.name == "llvm.insertelement"] if op.name in SAME else None
    with ir.InsertionPoint(op), op.location:
        if op.name == "llvm.shufflevector":
            source = _shuffled(op)
    if source is not None and source.type == op.results[0].type:
        op.results[0].replace_all_uses_with(source)
        op.erase()


def _shuffled(op: Any) -> Any:
    """The elements that a shuffle takes, of vectors or of scalars that were vectors of one."""
    first, second = op.operands
    count = ir.VectorType(first.type).shape[0] if isinstance(first.type, ir.VectorType) else 1
    taken = [
        _element(first, place) if place < count else _element(second, place - count) for place in op.attributes["mask"]
    ]
    if not isinstance(op.results[0].type, ir.VectorType):
        return taken[0]
    made = llvm.PoisonOp(op.results[0].type).result
    for place, element in enumerate(taken):
        made = llvm.InsertElementOp(made, element, _number(place)).result
    return made


def _element(value: Any, place: int) -> Any:
    return llvm.ExtractElementOp(value, _number(place)).result if isinstance(value.type, ir.VectorType) else value


def _number(value: int) -> Any:
    i32 = ir.IntegerType.get_signless(32)
    return llvm.ConstantOp(i32, ir.IntegerAttr.get(i32, value)).result
