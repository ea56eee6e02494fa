"""Give every staged conversion its LDS buffer: how the tile lies in it, how it is read, and where the buffer starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import STAGED, kernels, walk
from hkc.dialects.tile.lowering import parse_layout
from hkc.dialects.tile.shape import LDS_MAP, LDS_OFFSET, LDS_TRANSPOSED
from hkc.dialects.translate import element_name, layout_text, record_type
from hkc.dialects.types import TileType
from hkc.layout import LdsMap
from hkc.layout.accesses import Use
from hkc.layout.synthesis import Synthesis, synthesise
from hkc.layout.text import by
from hkc.passes.define import Pass
from hkc.passes.locate import refuse, span
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError, Note
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

ALIGNMENT = 16
"""Bytes to which buffers are aligned: the widest LDS access."""


@dataclass(frozen=True)
class SwizzleLds(Pass):
    """The byte map that costs a buffer's accesses the fewest clocks; buffers whose lives don't overlap share LDS.

    Before::

        #rows = #hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(0,8 0,16 0,32 1,0 2,0 4,0) w()">
        #columns = #hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(1,0 2,0 4,0 0,8 0,16 0,32) w()">
        #plain = strided<[?, ?]>
        %x = "hkc_tile.load"(%A, %f, %i, %i)
          : (memref<?x?xf16, #plain>, f16, index, index) -> tensor<16x64xf16, #rows>
        %y = "hkc_tile.convert_layout"(%x) {hkc.staged}
          : (tensor<16x64xf16, #rows>) -> tensor<16x64xf16, #columns>

    After::

        "hkc_tile.convert_layout"(%x) {hkc.lds_map = "16x64:2
    """

    name: ClassVar[str] = "swizzle_lds"
    needs: ClassVar[frozenset[str]] = frozenset({"staged"})
    gives: ClassVar[frozenset[str]] = frozenset({"lds_mapped"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            staged = [op for op in walk(function) if STAGED in op.attributes]
            buffers = [_Buffer(op, _choose(op, chip)) for op in staged]
            _place(function, buffers, chip)


@dataclass
class _Buffer:
    """The buffer of one conversion."""

    op: Any
    map: LdsMap
    offset: int = 0

    @property
    def end(self) -> int:
        return self.offset + self.map.bytes


def _choose(op: Any, chip: Chip) -> LdsMap:
    """The best map for a conversion's write and read, and whether the read is a transposed one."""
    plain, transposed = syntheses(op, chip)
    chosen = plain
    if transposed is not None and transposed.chosen.rank < plain.chosen.rank:
        chosen = transposed
        op.attributes[LDS_TRANSPOSED] = ir.UnitAttr.get()
    op.attributes[LDS_MAP] = ir.StringAttr.get(chosen.chosen.map.text())
    return chosen.chosen.map


def syntheses(op: Any, chip: Chip) -> tuple[Synthesis, Synthesis | None]:
    """The best maps for a conversion with a plain read, and with a transposed one where chip and layouts allow it."""
    source, target = (parse_layout(layout_text(v.type) or "") for v in (op.operands[0], op.results[0]))
    shape = tuple(op.results[0].type.shape)
    itemsize = dtype(element_name(op.results[0].type.element_type)).bytes
    write = Use("write", source)
    plain = synthesise(shape, itemsize, (write, Use("read", target)), chip.lds.access)
    if itemsize > 2 or not chip.has("lds_read_transposed"):
        return plain, None
    try:
        return plain, synthesise(shape, itemsize, (write, Use("read_transposed", target)), chip.lds.access)
    except HkcError:
        return plain, None  # no transposed read gives this layout


# -- where buffers lie


def _place(function: Any, buffers: list[_Buffer], chip: Chip) -> None:
    """Buffers used within one loop get places of their own, which saves barriers; those of different parts of the
    kernel share, and all do where the LDS would not suffice otherwise."""
    parts = [_part(function, buffer.op) for buffer in buffers]
    if _assign(buffers, parts) > chip.lds.bytes and _assign(buffers, range(len(buffers))) > chip.lds.bytes:
        raise _too_large(max(buffers, key=lambda b: b.map.bytes), chip)
    for buffer in buffers:
        buffer.op.attributes[LDS_OFFSET] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), buffer.offset)


def _assign(buffers: list[_Buffer], parts: Sequence[Any]) -> int:
    """First fit in program order, buffers of one part apart from one another; returns the bytes needed."""
    for i, buffer in enumerate(buffers):
        others = [b for b, part in zip(buffers[:i], parts, strict=False) if part == parts[i]]
        starts = sorted({0, *(b.end + -b.end % ALIGNMENT for b in others)})
        buffer.offset = next(s for s in starts if all(s >= b.end or s + buffer.map.bytes <= b.offset for b in others))
    return max((b.end for b in buffers), default=0)


def _part(function: Any, op: Any) -> Any:
    """The outermost op of the kernel that `op` lies in: a loop, or `op` itself."""
    while op.parent != function.operation:
        op = op.parent
    return op


def _too_large(buffer: _Buffer, chip: Chip) -> Exception:
    tile = record_type(buffer.op.results[0].type)
    assert isinstance(tile, TileType)
    padding = buffer.map.bytes - math.prod(tile.shape) * buffer.map.itemsize
    padded = f", {padding} of them padding" if padding else ""
    return refuse(
        buffer.op,
        "HK453",
        f"this kernel needs {buffer.map.bytes} bytes of LDS, but a workgroup of {chip.name} has {chip.lds.bytes}",
        hint=f"make the tile smaller: {by(_halved(tile.shape))} needs half as much",
        notes=(Note(f"{buffer.map.bytes} bytes{padded} for the {by(tile.shape)} {tile.dtype} tile", span(buffer.op)),),
    )


def _halved(shape: Sequence[int]) -> tuple[int, ...]:
    largest = max(range(len(shape)), key=lambda d: shape[d])
    return tuple(n // 2 if d == largest else n for d, n in enumerate(shape))
