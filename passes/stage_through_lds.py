"""Decide which conversions go through LDS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import STAGED, kernels, walk
from hkc.dialects.load import create
from hkc.dialects.tile.lowering import parse_layout
from hkc.dialects.tile.shape import ConvertLayout, Transpose
from hkc.dialects.translate import element_name, layout_text, with_layout
from hkc.layout.conversion import through_lds, within_wave
from hkc.layout.within_wave import steps
from hkc.passes.define import Pass
from hkc.passes.explain import Option, explain
from hkc.passes.layout_graph import from_memory
from hkc.support.dtypes import dtype
from hkc.support.mlir import ir, run_passes
from hkc.targets.chip import Chip

CONVERT, TRANSPOSE = "hkc_tile.convert_layout", "hkc_tile.transpose"


@dataclass(frozen=True)
class StageThroughLds(Pass):
    """A conversion whose elements change waves is staged through LDS, and one whose elements change lanes if that is
    cheaper than instructions between lanes; the others stay in registers. Transposes of a tile that is staged several
    times are made after its conversions, which may then share a buffer.

    Before::

        #rows = #hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(0,8 0,16 0,32 1,0 2,0 4,0) w()">
        #columns = #hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(1,0 2,0 4,0 0,8 0,16 0,32) w()">
        #plain = strided<[?, ?]>
        %x = "hkc_tile.load"(%A, %f, %i, %i)
          : (memref<?x?xf16, #plain>, f16, index, index) -> tensor<16x64xf16, #rows>
        %y = "hkc_tile.convert_layout"(%x)
          : (tensor<16x64xf16, #rows>) -> tensor<16x64xf16, #columns>

    After::

        "hkc_tile.convert_layout"(%x) {hkc.staged}
    """

    name: ClassVar[str] = "stage_through_lds"
    needs: ClassVar[frozenset[str]] = frozenset({"layouts"})
    gives: ClassVar[frozenset[str]] = frozenset({"staged"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            for op in walk(function):
                if op.name == CONVERT and _goes_through_lds(function, op, chip):
                    op.attributes[STAGED] = ir.UnitAttr.get()
            _gather(function)
        run_passes(module, "cse")


def _gather(function: Any) -> None:
    """Where a tile and transposes of it are staged, or several transposes, it is converted first and transposed then:
    conversions of one tile may share a buffer."""
    found: dict[Any, list[Any]] = {}
    for op in walk(function):
        if op.name == CONVERT and STAGED in op.attributes:
            value = op.operands[0]
            while _is_transposed(value):
                value = value.owner.operands[0]
            found.setdefault(value, []).append(op)
    for ops in found.values():
        for op in ops if len(ops) > 1 else ():
            while _is_transposed(op.operands[0]):
                op = _exchange(op)


def _is_transposed(value: Any) -> bool:
    return not isinstance(value, ir.BlockArgument) and value.owner.name == TRANSPOSE


def _exchange(op: Any) -> Any:
    """Convert before the transpose that `op` converts the result of; returns that conversion."""
    turn, result = op.operands[0].owner, op.results[0]
    permutation = list(turn.attributes["permutation"])
    back = [permutation.index(i) for i in range(len(permutation))]
    layout = parse_layout(layout_text(result.type) or "").transpose(back)
    with ir.InsertionPoint(op), op.location:
        kind = with_layout(turn.operands[0].type, layout.text())
        made = create(ConvertLayout, turn.operands[0], results=[kind])
        made.operation.attributes[STAGED] = ir.UnitAttr.get()
        turned = create(Transpose, made.result, results=[result.type], permutation=permutation)
    result.replace_all_uses_with(turned.result)
    op.erase()
    return made.operation


def _goes_through_lds(function: Any, op: Any, chip: Chip) -> bool:
    """The cheaper way, explained where there is a choice. What comes from memory always goes through LDS, where it can
    arrive while a loop computes."""
    source, target = (parse_layout(layout_text(v.type) or "") for v in (op.operands[0], op.results[0]))
    plan = steps(source, target)
    if plan is None or (plan and from_memory(op.operands[0]) is not None):
        return True
    if not plan:
        return False
    tile = tuple(op.results[0].type.shape), dtype(element_name(op.results[0].type.element_type)).bytes
    inside = within_wave(source, target, *tile, chip.machine) or 0
    through = through_lds(source, target, *tile, chip.machine)
    ways = Option(", ".join(step.text() for step in plan), inside), Option("through LDS", through)
    chosen, other = ways if inside <= through else reversed(ways)
    explain(function, op, "conversion", chosen, [other])
    return through < inside
