"""Decide which conversions go through LDS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import STAGED, kernels, walk
from hkc.dialects.tile.lowering import parse_layout
from hkc.dialects.translate import element_name, layout_text
from hkc.layout.conversion import through_lds, within_wave
from hkc.layout.within_wave import steps
from hkc.passes.define import Pass
from hkc.passes.explain import Option, explain
from hkc.passes.layout_graph import from_memory
from hkc.support.dtypes import dtype
from hkc.support.mlir import ir
from hkc.targets.chip import Chip


@dataclass(frozen=True)
class StageThroughLds(Pass):
    """A conversion whose elements change waves is staged through LDS, and one whose elements change lanes if that is
    cheaper than instructions between lanes; the others stay in registers.

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
                if op.name == "hkc_tile.convert_layout" and _goes_through_lds(function, op, chip):
                    op.attributes[STAGED] = ir.UnitAttr.get()


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
