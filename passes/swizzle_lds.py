"""Give every staged conversion its LDS buffer: how the tile lies in it, how it is read, and where the buffer starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import STAGED, kernels, walk
from hkc.dialects.tile.shape import DIRECT, LDS_FILLED, LDS_MAP, LDS_OFFSET, LDS_TRANSPOSED
from hkc.dialects.tile.through_lds import array_map
from hkc.dialects.translate import record_type, with_layout
from hkc.dialects.types import TileType
from hkc.layout import DistributedLayout, LdsMap
from hkc.layout.text import by
from hkc.passes.define import Pass
from hkc.passes.explain import explain
from hkc.passes.layout_graph import chain_from_memory
from hkc.passes.lds_plan import Plan, not_honoured, plans, through
from hkc.passes.locate import refuse, span
from hkc.passes.requests import requested
from hkc.support.errors import Note
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

ALIGNMENT = 16
"""Bytes to which buffers are aligned: the widest LDS access."""

STEP = 16
"""Extents of tiles are multiples of this."""

CONVERT = "hkc_tile.convert_layout"


@dataclass(frozen=True)
class SwizzleLds(Pass):
    """The byte map that costs a buffer's accesses the fewest clocks. Conversions of one tile have a buffer together
    where that costs less; buffers whose lives don't overlap share LDS.

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
            found = _buffers(function, chip, shared=True)
            if not _place(function, found, chip):
                found = _buffers(function, chip, shared=False)
                if not _place(function, found, chip):
                    raise _too_large(sorted(found, key=lambda b: -b.map.bytes), chip)
            _check_request(function, [buffer.map for buffer in found])
            for buffer in found:
                _write(function, buffer)


@dataclass
class _Buffer:
    """The buffer of some ops, in program order. `plan` says how conversions use it; other ops need rows one after
    another."""

    ops: tuple[Any, ...]
    map: LdsMap
    plan: Plan | None = None
    offset: int = 0

    @property
    def end(self) -> int:
        return self.offset + self.map.bytes


def _buffers(function: Any, chip: Chip, shared: bool) -> list[_Buffer]:
    """The buffers of a kernel; with `shared`, conversions of one tile in one block have one together where that pays.
    A buffer of one op is needed for that op only, and may overlap with all others."""
    found = []
    groups: dict[Any, list[Any]] = {}
    for op in walk(function):
        if STAGED in op.attributes:
            key = (op.operands[0], op.block) if shared and op.name == CONVERT else op
            groups.setdefault(key, []).append(op)
    for ops in groups.values():
        if ops[0].name == CONVERT:
            found += [_Buffer(made.ops, made.chosen.map, made) for made in plans(function, ops, chip)]
        else:
            found.append(_Buffer(tuple(ops), array_map(ops[0])))
    return found


def _write(function: Any, buffer: _Buffer) -> None:
    """What was decided, as attributes of the ops and in words."""
    number = ir.IntegerType.get_signless(64)
    for op in buffer.ops:
        op.attributes[LDS_MAP] = ir.StringAttr.get(buffer.map.text())
        op.attributes[LDS_OFFSET] = ir.IntegerAttr.get(number, buffer.offset)
    made = buffer.plan
    if made is None:
        return
    explain(function, made.ops[0], "LDS", made.option, made.others)
    for op, kind in zip(made.ops, made.kinds, strict=True):
        if kind == "read_transposed":
            op.attributes[LDS_TRANSPOSED] = ir.UnitAttr.get()
        if op != made.ops[0]:
            op.attributes[LDS_FILLED] = ir.UnitAttr.get()
    if made.direct is not None:
        _load_directly(made.ops, made.direct)


def _load_directly(ops: Sequence[Any], layout: DistributedLayout) -> None:
    """Let the load and what follows it hold the elements that each lane fetches, and mark them."""
    chain = chain_from_memory(ops) or []
    for i, made in enumerate(chain):
        result = made.results[0]
        result.set_type(with_layout(result.type, through(chain[i:], layout).text()))
        made.attributes[DIRECT] = ir.UnitAttr.get()


def _check_request(function: Any, maps: Sequence[LdsMap]) -> None:
    """A request for a kind of maps that changes nothing is refused."""
    asked = requested(function, "swizzle")
    if asked is None:
        return
    if not maps:
        raise not_honoured(function, asked, "no tile of this kernel goes through LDS")
    if asked == "xor" and not any(lds.xor for lds in maps):
        raise not_honoured(function, asked, "no XOR map is better than plain blocks for any tile of this kernel")


# -- where buffers lie


def _place(function: Any, buffers: list[_Buffer], chip: Chip) -> bool:
    """Buffers used within one loop get places of their own, which saves barriers; those of different parts of the
    kernel share, and all do where the LDS would not suffice otherwise. No two share that are needed at once. Says
    whether the LDS suffices."""
    order = {op: i for i, op in enumerate(walk(function))}
    lives = [(order[buffer.ops[0]], order[buffer.ops[-1]]) for buffer in buffers]
    parts = [_part(function, buffer.ops[0]) for buffer in buffers]
    return any(_assign(buffers, lives, kept) <= chip.lds.bytes for kept in (parts, range(len(buffers))))


def _assign(buffers: list[_Buffer], lives: Sequence[tuple[int, int]], parts: Sequence[Any]) -> int:
    """First fit in program order, buffers of one part and those that live at once apart from one another; returns the
    bytes needed."""
    for i, buffer in enumerate(buffers):
        others = [
            buffers[j]
            for j in range(i)
            if parts[j] == parts[i] or (lives[i][0] < lives[j][1] and lives[j][0] < lives[i][1])
        ]
        starts = sorted({0, *(b.end + -b.end % ALIGNMENT for b in others)})
        buffer.offset = next(s for s in starts if all(s >= b.end or s + buffer.map.bytes <= b.offset for b in others))
    return max((b.end for b in buffers), default=0)


def _part(function: Any, op: Any) -> Any:
    """The innermost loop that `op` lies in; outside loops, the outermost op of the kernel that holds it."""
    while op.parent != function.operation and op.name not in ("scf.for", "scf.while"):
        op = op.parent
    return op


def _too_large(buffers: Sequence[_Buffer], chip: Chip) -> Exception:
    """The error that names every tile, the largest first: that one alone does not fit."""
    notes = dict.fromkeys(Note(_size(buffer), span(buffer.ops[0])) for buffer in buffers)
    largest = buffers[0]
    fitting = _fitting(_tile(largest).shape, largest.map, chip)
    return refuse(
        largest.ops[0],
        "HK453",
        f"this kernel needs {largest.map.bytes} bytes of LDS, but a workgroup of {chip.name} has {chip.lds.bytes}",
        hint=f"make the tile smaller: {by(fitting)} would fit",
        notes=tuple(notes),
    )


def _size(buffer: _Buffer) -> str:
    tile = _tile(buffer)
    padding = buffer.map.bytes - math.prod(tile.shape) * buffer.map.itemsize
    padded = f", {padding} of them padding" if padding else ""
    return f"{buffer.map.bytes} bytes{padded} for the {by(tile.shape)} {tile.dtype} tile"


def _tile(buffer: _Buffer) -> TileType:
    """The tile that the buffer holds: what is converted, else the array that an op goes through."""
    kind = record_type(buffer.ops[0].results[0].type)
    assert isinstance(kind, TileType)
    return kind if buffer.plan is not None else TileType(buffer.map.shape, kind.dtype)


def _fitting(shape: Sequence[int], held: LdsMap, chip: Chip) -> tuple[int, ...]:
    """The shape with its largest extent cut down to the most that fits, where the whole is held like that."""
    largest = max(range(len(shape)), key=lambda d: shape[d])
    extent = held.shape[largest]
    step = STEP if extent == shape[largest] else extent & -extent
    fits = extent * chip.lds.bytes // held.bytes // step * step
    if not fits:  # more waves than share the tile: they share a power of two at least as well
        row = held.bytes // extent
        fits = next(n for n in (1 << i for i in reversed(range(extent.bit_length()))) if n * row <= chip.lds.bytes)
    return tuple(max(STEP, fits) if d == largest else n for d, n in enumerate(shape))
