"""Give every staged conversion its LDS buffer: how the tile lies in it, how it is read, and where the buffer starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import STAGED, kernels, walk
from hkc.dialects.tile.lowering import parse_layout
from hkc.dialects.tile.shape import DIRECT, LDS_MAP, LDS_OFFSET, LDS_TRANSPOSED
from hkc.dialects.tile.through_lds import array_map
from hkc.dialects.translate import element_name, layout_text, record_type, with_layout
from hkc.dialects.types import TileType
from hkc.layout import DistributedLayout, LdsMap
from hkc.layout.accesses import Kind, Use
from hkc.layout.direct import direct_layout
from hkc.layout.synthesis import Candidate, Synthesis, synthesise
from hkc.layout.text import by
from hkc.passes.define import Pass
from hkc.passes.explain import Option, explain
from hkc.passes.layout_graph import from_memory
from hkc.passes.locate import refuse, span
from hkc.passes.requests import requested
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError, Note
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

ALIGNMENT = 16
"""Bytes to which buffers are aligned: the widest LDS access."""

STEP = 16
"""Extents of tiles are multiples of this."""

DIRECT_BYTES = 16
"""Bytes per lane of a copy straight from memory to LDS."""


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
            buffers = [_Buffer(op, _mapped(function, op, chip)) for op in staged]
            _check_request(function, [buffer.map for buffer in buffers])
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


def _mapped(function: Any, op: Any, chip: Chip) -> LdsMap:
    """The byte map of a staged op: rows one after another where another op than a conversion needs them like that."""
    found = _choose(function, op, chip) if op.name == "hkc_tile.convert_layout" else array_map(op)
    op.attributes[LDS_MAP] = ir.StringAttr.get(found.text())
    return found


def _choose(function: Any, op: Any, chip: Chip) -> LdsMap:
    """The best map for a conversion's write and read, whether the read is a transposed one, and whether the tile goes
    straight from memory to LDS: wherever that costs no more clocks, since it takes no registers and no instructions."""
    style = requested(function, "swizzle") or ""
    plain, transposed = syntheses(op, chip, style)
    kind: Kind = "read"
    chosen = plain.chosen
    if transposed is not None and transposed.chosen.rank < plain.chosen.rank:
        chosen, kind = transposed.chosen, "read_transposed"
    direct = _direct(op, chip, kind, style)
    others = [c for s in (plain, transposed) if s is not None for c in (s.chosen, s.runner_up) if c is not None]
    if direct is not None and direct[0].accesses[-1].total <= chosen.accesses[-1].total:
        chosen = direct[0]
        _load_directly(op, direct[1])
    options = [
        _option(c, "straight from memory" if c in (direct or ()) else "through registers") for c in (chosen, *others)
    ]
    explain(function, op, "LDS", options[0], options[1:])
    if kind == "read_transposed":
        op.attributes[LDS_TRANSPOSED] = ir.UnitAttr.get()
    return chosen.map


def _option(candidate: Candidate, way: str) -> Option:
    """A byte map and how the tile gets there, with what one wave's instructions cost."""
    costs = ", ".join(f"{a.instructions} {a.mnemonic} of {a.cycles}: {a.reason}" for a in candidate.accesses)
    return Option(f"{candidate.map}, {way} ({costs})", candidate.clocks)


def _check_request(function: Any, maps: Sequence[LdsMap]) -> None:
    """A request for a kind of maps that changes nothing is refused."""
    asked = requested(function, "swizzle")
    if asked is None:
        return
    if not maps:
        raise _not_honoured(function, asked, "no tile of this kernel goes through LDS")
    if asked == "xor" and not any(lds.xor for lds in maps):
        raise _not_honoured(function, asked, "no XOR map is better than plain blocks for any tile of this kernel")


def _not_honoured(op: Any, asked: str, why: str) -> Exception:
    hint = "leave it out, and the map that costs the fewest clocks is chosen"
    return refuse(op, "HK450", f"`swizzle={asked}` can't be honoured: {why}", hint=hint)


def _direct(op: Any, chip: Chip, kind: Kind, style: str) -> tuple[Candidate, DistributedLayout] | None:
    """The best map for a tile that goes straight from memory to LDS, and which elements each lane then fetches; None
    where it can't: the tile is no plain load used here alone, or lanes can't take 16 bytes. (Narrower copies would need
    four times as many instructions, each with a destination of its own: registers are cheaper.)"""
    chain = from_memory(op.operands[0])
    if chain is None or DIRECT_BYTES not in chip.direct_to_lds_bytes:
        return None
    target = parse_layout(layout_text(op.results[0].type) or "")
    shape, itemsize = _tile(op)
    try:
        chosen = synthesise(shape, itemsize, (Use(kind, target),), chip.lds.access, DIRECT_BYTES, style).chosen
    except HkcError:
        return None  # no map keeps as many bytes together
    layout = direct_layout(chosen.map, target.waves, target.lanes, DIRECT_BYTES)
    if layout is None or layout.covered(op.results[0].type.shape) != shape:
        return None
    loaded = _through(chain, layout)
    return (chosen, layout) if loaded.contiguous(loaded.rank - 1) * itemsize == DIRECT_BYTES else None


def _through(chain: list[Any], layout: DistributedLayout) -> DistributedLayout:
    """The layout of the loaded tile where that at the end of a chain is `layout`."""
    for made in reversed(chain[1:]):
        permutation = list(made.attributes["permutation"])
        layout = layout.transpose([permutation.index(i) for i in range(len(permutation))])
    return layout


def _load_directly(op: Any, layout: DistributedLayout) -> None:
    """Let the load and what follows it hold the elements that each lane fetches, and mark them."""
    chain = from_memory(op.operands[0]) or []
    for i, made in enumerate(chain):
        result = made.results[0]
        result.set_type(with_layout(result.type, _through(chain[i:], layout).text()))
        made.attributes[DIRECT] = ir.UnitAttr.get()


def _tile(op: Any) -> tuple[tuple[int, ...], int]:
    """Extents in LDS and bytes per element of the tile that is converted: whole blocks of both layouts."""
    kind = op.results[0].type
    blocks = (parse_layout(layout_text(v.type) or "").block for v in (op.operands[0], op.results[0]))
    shape = tuple(n + -n % max(ab) for n, *ab in zip(kind.shape, *blocks, strict=True))
    return shape, dtype(element_name(kind.element_type)).bytes


def syntheses(op: Any, chip: Chip, style: str) -> tuple[Synthesis, Synthesis | None]:
    """The best maps (of a style, if one is asked for) for a conversion with a plain read, and with a transposed one
    where chip and layouts allow it."""
    source, target = (parse_layout(layout_text(v.type) or "") for v in (op.operands[0], op.results[0]))
    shape, itemsize = _tile(op)

    def best(kind: Kind) -> Synthesis:
        uses = Use("write", source), Use(kind, target)
        return synthesise(shape, itemsize, uses, chip.lds.access, style=style)

    try:
        plain = best("read")
    except HkcError as problem:
        if not style:
            raise
        raise _not_honoured(op, style, f"no such map of the {by(shape)} tile serves its accesses") from problem
    if itemsize > 2 or not chip.has("lds_read_transposed"):
        return plain, None
    try:
        return plain, best("read_transposed")
    except HkcError:
        return plain, None  # no transposed read gives this layout


# -- where buffers lie


def _place(function: Any, buffers: list[_Buffer], chip: Chip) -> None:
    """Buffers used within one loop get places of their own, which saves barriers; those of different parts of the
    kernel share, and all do where the LDS would not suffice otherwise."""
    parts = [_part(function, buffer.op) for buffer in buffers]
    if _assign(buffers, parts) > chip.lds.bytes and _assign(buffers, range(len(buffers))) > chip.lds.bytes:
        raise _too_large(sorted(buffers, key=lambda b: -b.map.bytes), chip)
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
    """The innermost loop that `op` lies in; outside loops, the outermost op of the kernel that holds it."""
    while op.parent != function.operation and op.name not in ("scf.for", "scf.while"):
        op = op.parent
    return op


def _too_large(buffers: Sequence[_Buffer], chip: Chip) -> Exception:
    """The error that names every tile, the largest first: that one alone does not fit."""
    notes = dict.fromkeys(Note(_size(buffer), span(buffer.op)) for buffer in buffers)
    largest = buffers[0]
    fitting = _fitting(largest.op.results[0].type.shape, largest.map, chip)
    return refuse(
        largest.op,
        "HK453",
        f"this kernel needs {largest.map.bytes} bytes of LDS, but a workgroup of {chip.name} has {chip.lds.bytes}",
        hint=f"make the tile smaller: {by(fitting)} would fit",
        notes=tuple(notes),
    )


def _size(buffer: _Buffer) -> str:
    tile = record_type(buffer.op.results[0].type)
    assert isinstance(tile, TileType)
    padding = buffer.map.bytes - math.prod(tile.shape) * buffer.map.itemsize
    padded = f", {padding} of them padding" if padding else ""
    return f"{buffer.map.bytes} bytes{padded} for the {by(tile.shape)} {tile.dtype} tile"


def _fitting(shape: Sequence[int], held: LdsMap, chip: Chip) -> tuple[int, ...]:
    """The shape with its largest extent cut down to the most that fits, where the whole is held like that."""
    largest = max(range(len(shape)), key=lambda d: shape[d])
    extent = held.shape[largest]
    step = STEP if extent == shape[largest] else extent & -extent
    fits = extent * chip.lds.bytes // held.bytes // step * step
    return tuple(max(STEP, fits) if d == largest else n for d, n in enumerate(shape))
