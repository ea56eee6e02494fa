"""Give every staged conversion its LDS buffer: how the tile lies in it, and where the buffer starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import STAGED, kernels, walk
from hkc.dialects.tile.lowering import parse_layout
from hkc.dialects.tile.shape import LDS_MAP, LDS_OFFSET
from hkc.dialects.translate import element_name, layout_text, record_type
from hkc.layout import LdsMap
from hkc.passes.define import Pass
from hkc.passes.locate import refuse, span
from hkc.support.dtypes import dtype
from hkc.support.errors import Note
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

ALIGNMENT = 16
"""Bytes to which buffers are aligned: the widest LDS access."""


@dataclass(frozen=True)
class SwizzleLds(Pass):
    """Rows along the dim in which the reader holds neighbours; buffers one after another, within the chip's LDS.

    Before::

        %x = "hkc_tile.load"(%A, %f, %i, %i) : (memref<?x?xf16, strided<[?, ?]>>, f16, index, index) -> tensor<16x64xf16, #hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(0,8 0,16 0,32 1,0 2,0 4,0) w()">>
        %y = "hkc_tile.convert_layout"(%x) {hkc.staged} : (tensor<16x64xf16, #hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(0,8 0,16 0,32 1,0 2,0 4,0) w()">>) -> tensor<16x64xf16, #hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(1,0 2,0 4,0 0,8 0,16 0,32) w()">>

    After::

        "hkc_tile.convert_layout"(%x) {hkc.lds_map = "16x64:2
    """

    name: ClassVar[str] = "swizzle_lds"
    needs: ClassVar[frozenset[str]] = frozenset({"staged"})
    gives: ClassVar[frozenset[str]] = frozenset({"lds_mapped"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            staged = [op for op in walk(function) if STAGED in op.attributes]
            offset = 0
            sizes = []
            for op in staged:
                chosen = _row_map(op)
                op.attributes[LDS_MAP] = ir.StringAttr.get(chosen.text())
                op.attributes[LDS_OFFSET] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), offset)
                offset += chosen.bytes + -chosen.bytes % ALIGNMENT
                sizes.append((op, chosen.bytes))
            if offset > chip.lds.bytes:
                raise _too_large(function, sizes, offset, chip)


def _row_map(op: Any) -> LdsMap:
    """Plain rows; innermost is the dim along which the reader, then the writer, holds the longest run of neighbours."""
    source, target = (parse_layout(layout_text(v.type) or "") for v in (op.operands[0], op.results[0]))
    shape = tuple(op.results[0].type.shape)
    inner = max(range(len(shape)), key=lambda d: (target.contiguous(d), source.contiguous(d), d))
    order = (inner, *(d for d in reversed(range(len(shape))) if d != inner))
    return LdsMap.row_major(shape, dtype(element_name(op.results[0].type.element_type)).bytes, order=order)


def _too_large(function: Any, sizes: list[tuple[Any, int]], total: int, chip: Chip) -> Exception:
    notes = tuple(Note(f"{size} bytes for {record_type(op.results[0].type)}", span(op)) for op, size in sizes)
    return refuse(
        sizes[-1][0],
        "HK453",
        f"this kernel needs {total} bytes of LDS, but a workgroup of {chip.name} has {chip.lds.bytes}",
        hint="use smaller tiles",
        notes=notes,
    )
