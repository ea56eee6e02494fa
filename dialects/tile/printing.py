"""How machine code prints: every wave appends a record to a buffer in memory, which the launch decodes afterwards.

Bytes are reserved atomically, so that no record is torn, and a record that would end behind the buffer is dropped. What
a wave writes is its fragments as they are; the host knows the layout. Worker process only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hkc.dialects import build
from hkc.dialects.load import create
from hkc.dialects.translate import element_name, layout_text
from hkc.dialects.wave.atomic import GlobalAtomic
from hkc.dialects.wave.ids import WorkgroupId
from hkc.dialects.wave.memory import GlobalStore
from hkc.machine.abi import PRINTED_BYTES, PRINTED_START, RECORD_HEAD, Print, PrintedValue
from hkc.support.mlir import ir


def record(low: Any, prefix: str, values: Sequence[Any], more: bool, unsigned: bool) -> None:
    """Append a record of these tiles, numbers and indices; `unsigned` integers have no sign."""
    pieces = [_pieces(low, value) for value in values]
    described = tuple(_described(low, v, p, unsigned) for v, p in zip(values, pieces, strict=True))
    shown = Print(prefix, described, int(more))
    lanes = low.chip.compute.wave
    at, fits = _reserve(low, shown.bytes(lanes))
    group = build.to_i32(create(WorkgroupId).result)
    head = [build.i32(len(low.prints)), low.identity("wave"), group, build.i32(1)]
    _store(low, build.pack(head), at, fits)
    low.prints.append(shown)
    at = build.add(at, RECORD_HEAD)
    lane = build.to_i64(low.identity("lane"))
    for value, vectors in zip(shown.values, pieces, strict=True):
        size = value.registers * _itemsize(vectors[0])
        for i, vector in enumerate(vectors):
            _store(low, vector, build.add(build.add(at, i * size * lanes), build.mul(lane, size)), fits)
        at = build.add(at, value.bytes(lanes))


def _pieces(low: Any, value: Any) -> list[Any]:
    """The vectors that a lane writes, as they lie in memory."""
    if isinstance(value.type, ir.RankedTensorType):
        return [low.as_bytes(fragment) for fragment in low.fragments(value)]
    number = low.scalar(value)
    return [low.as_bytes(build.pack([build.to_i64(number) if isinstance(value.type, ir.IndexType) else number]))]


def _described(low: Any, value: Any, pieces: Sequence[Any], unsigned: bool) -> PrintedValue:
    kind = value.type
    tile = isinstance(kind, ir.RankedTensorType)
    name = "i64" if isinstance(kind, ir.IndexType) else element_name(kind.element_type if tile else kind)
    name = name.replace("i", "u") if unsigned else name
    if not tile:
        return PrintedValue(name, (), "", 1, 1)
    return PrintedValue(name, tuple(kind.shape), layout_text(kind) or "", len(pieces), low.layout(value).registers)


def _reserve(low: Any, size: int) -> tuple[Any, Any]:
    """Where a record of so many bytes starts in the buffer (i64), and whether it fits: the same in all lanes."""
    first = build.cmp("eq", low.identity("lane"), 0)
    asked = build.pack([build.i64(size)])
    old = create(GlobalAtomic, asked, low.print_buffer, build.i64(0), first, kind="add", align=8).result
    start = build.add(low.uniform(build.extract(old, 0)), PRINTED_START)
    return start, build.cmp("ule", start, PRINTED_BYTES - size)


def _store(low: Any, vector: Any, at: Any, fits: Any) -> None:
    create(GlobalStore, vector, low.print_buffer, at, fits, align=_itemsize(vector))


def _itemsize(vector: Any) -> int:
    return int(vector.type.element_type.width) // 8
