"""Decide which conversions go through LDS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import STAGED, kernels, walk
from hkc.dialects.tile.lowering import parse_layout
from hkc.dialects.translate import layout_text
from hkc.passes.define import Pass
from hkc.support.mlir import ir
from hkc.targets.chip import Chip


@dataclass(frozen=True)
class StageThroughLds(Pass):
    """A conversion whose elements change lanes or waves is staged through LDS; the others stay in registers.

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
                if op.name == "hkc_tile.convert_layout" and _crosses(op):
                    op.attributes[STAGED] = ir.UnitAttr.get()


def _crosses(op: Any) -> bool:
    source, target = (parse_layout(layout_text(v.type) or "") for v in (op.operands[0], op.results[0]))
    return (source.lane, source.wave) != (target.lane, target.wave)
