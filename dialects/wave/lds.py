"""LDS buffers: a buffer's type carries its byte map; an access names the layout and the fragment it moves.

Addresses are not in the IR. They follow from the layout and the map, so that bank conflicts and races can be judged
from the op alone; the lowering derives the per-lane address expression and proves it on every lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import ANY, INT, INTEGER, TEXT, VECTOR, Mismatch, attribute, operand, result, wave_op
from hkc.dialects.types import OpaqueType, VectorType
from hkc.dialects.wave.machine import Bytes, Workgroup, byte_offsets
from hkc.layout import DistributedLayout, LdsMap
from hkc.layout.accesses import pointed_at
from hkc.support.dtypes import dtype

_PLAIN = "16x64:2 block 1x64 strides 128,128 order 1,0"
_SWIZZLED = "16x64:2 block 16x64 strides 2048,2048 order 1,0 xor 4^7,5^8,6^9"
_PADDED = "16x64:4 block 16x64 strides 4096,4096 order 1,0 pad 256+16"
_ACCESSES = (
    (_PLAIN, "8x64 r(0,1 0,2 0,4) l(0,8 0,16 0,32 1,0 2,0 4,0) w()", 1, "vector<8xf16>"),
    (_SWIZZLED, "8x64 r(0,1 0,2 0,4) l(0,8 0,16 0,32 1,0 2,0 4,0) w()", 1, "vector<8xbf16>"),
    (_SWIZZLED, "8x64 r(0,1 0,2) l(0,4 0,8 0,16 0,32 1,0 2,0) w(4,0)", 0, "vector<4xf16>"),
    (_SWIZZLED, "16x8 r() l(1,0 2,0 4,0 8,0 0,1 0,2) w(0,4)", 3, "vector<1xf16>"),
    (_SWIZZLED, "8x16 r(0,1) l(0,2 0,4 0,8 1,0 2,0 4,0) w(0,0)", 2, "vector<2xf16>"),
    (_PADDED, "4x64 r(0,1) l(0,2 0,4 0,8 0,16 0,32 1,0) w(2,0)", 3, "vector<2xf32>"),
    (_PADDED, "16x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w()", 2, "vector<4xf32>"),
)
"""Examples of accesses (map, layout, fragment, vector): plain, swizzled and padded maps, 2 to 16 bytes, rows, columns,
copies in several waves."""


def buffer_map(kind: OpaqueType) -> LdsMap:
    """The byte map in an LDS buffer type `!hkc_wave.lds<"…">`."""
    text = getattr(kind, "text", "")
    if not text.startswith("!hkc_wave.lds<"):
        raise Mismatch(f"an LDS buffer is needed, not {kind}", ("buffer",))
    return LdsMap.parse(text[text.index('"') + 1 : text.rindex('"')])


def offsets(layout: DistributedLayout, lds: LdsMap, fragment: int) -> Any:
    """Byte offsets [wave, lane, register] of a fragment's elements in a buffer."""
    at = lds.offset(layout.coordinates(lds.shape)[fragment])
    return np.moveaxis(at, (0, 1, 2), (2, 1, 0))


def _check(value: VectorType, buffer: OpaqueType, layout: str, fragment: int) -> None:
    held, lds = DistributedLayout.parse(layout), buffer_map(buffer)
    if not held.fits(lds.shape):
        raise Mismatch(f"layout {layout} does not fit the buffer's tile {lds.shape}")
    if not 0 <= fragment < held.fragments(lds.shape):
        raise Mismatch(f"fragment {fragment} does not exist: there are {held.fragments(lds.shape)}")
    if value.size != held.registers or dtype(value.dtype).bytes != lds.itemsize:
        raise Mismatch(f"a fragment has {held.registers} elements of {lds.itemsize} bytes, not {value}")


_TRANSPOSED = (
    (
        "32x64:2 block 32x64 strides 4096,4096 order 1,0 xor 5^8,6^9",
        "32x16 r(1,0 2,0 4,0) l(0,1 0,2 0,4 0,8 8,0 16,0) w(0,0)",
        "vector<8xbf16>",
    ),
    (
        "64x64:1 block 64x64 strides 4096,4096 order 0,1 xor 4^8",
        "16x32 r(0,1 0,2 0,4) l(1,0 2,0 4,0 8,0 0,8 0,16) w()",
        "vector<8xi8>",
    ),
)
"""Buffers, layouts and fragment types that transposed reads can give."""


@wave_op("lds_alloc", pure=False)
class LdsAlloc:
    """An LDS buffer at byte `offset` of the workgroup's LDS; its type says how a tile lies in it."""

    offset = attribute(INT)
    d = result(ANY)
    examples = (
        '%b = "hkc_wave.lds_alloc"() {offset = 0 : i64} : () -> '
        '!hkc_wave.lds<"16x64:2 block 16x64 strides 2048,128 order 1,0">',
    )

    @staticmethod
    def meaning(machine: Workgroup, *, offset: int, result: OpaqueType) -> tuple[Bytes, LdsMap]:
        lds = buffer_map(result)
        return Bytes(machine.lds[offset : offset + lds.bytes]), lds

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        return [b.lds_pointer(op.attributes["offset"].value)]


@wave_op("lds_write", pure=False)
class LdsWrite:
    """Write fragment `fragment` of a tile held in `layout` to an LDS buffer. Of replicated elements the lane and wave
    without set copy bits writes, the others don't."""

    value = operand(VECTOR)
    buffer = operand(ANY)
    layout = attribute(TEXT)
    fragment = attribute(INT)
    examples = tuple(
        f'"hkc_wave.lds_write"(%v, %b) {{layout = "{layout}", fragment = {fragment} : i64}}'
        f' : ({vector}, !hkc_wave.lds<"{lds}">) -> ()'
        for lds, layout, fragment, vector in _ACCESSES
    )

    @staticmethod
    def infer(value: VectorType, buffer: OpaqueType, *, layout: str, fragment: int) -> tuple[()]:
        _check(value, buffer, layout, fragment)
        return ()

    @staticmethod
    def meaning(machine: Workgroup, value: Any, buffer: tuple[Bytes, LdsMap], *, layout: str, fragment: int) -> None:
        memory, lds = buffer
        held = DistributedLayout.parse(layout)
        lane, wave = held.replication()
        copy = (np.arange(machine.lanes) & lane | (np.arange(machine.waves) & wave)[:, None]) != 0
        at = np.where(copy[..., None], -1, offsets(held, lds, fragment))
        memory.write(at, value[..., None])

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        b.lds_write(op, *operands)
        return []


@wave_op("lds_read", pure=False)
class LdsRead:
    """Read fragment `fragment` of a tile in `layout` from an LDS buffer."""

    buffer = operand(ANY)
    layout = attribute(TEXT)
    fragment = attribute(INT)
    d = result(VECTOR)
    examples = tuple(
        f'%r = "hkc_wave.lds_read"(%b) {{layout = "{layout}", fragment = {fragment} : i64}}'
        f' : (!hkc_wave.lds<"{lds}">) -> {vector}'
        for lds, layout, fragment, vector in _ACCESSES
    )

    @staticmethod
    def check(d: VectorType, buffer: OpaqueType, *, layout: str, fragment: int) -> None:
        """The result is one fragment of the layout."""
        _check(d, buffer, layout, fragment)

    @staticmethod
    def meaning(machine: Workgroup, buffer: tuple[Bytes, LdsMap], *, layout: str, fragment: int, dtype: Any) -> Any:
        memory, lds = buffer
        return memory.read(offsets(DistributedLayout.parse(layout), lds, fragment), 1, np.dtype(dtype))[..., 0]

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        return [b.lds_read(op, *operands)]


@wave_op("lds_read_transposed", pure=False)
class LdsReadTransposed:
    """Read fragment `fragment` of a tile in `layout` from rows across which 16 lanes transpose while they read.

    The low lane bits of `layout` walk the buffer's innermost dim, its low registers another one.
    """

    feature = "lds_read_transposed"
    buffer = operand(ANY)
    layout = attribute(TEXT)
    fragment = attribute(INT)
    d = result(VECTOR)
    examples = tuple(
        f'%r = "hkc_wave.lds_read_transposed"(%b) {{layout = "{layout}", fragment = 1 : i64}}'
        f' : (!hkc_wave.lds<"{lds}">) -> {vector}'
        for lds, layout, vector in _TRANSPOSED
    )

    @staticmethod
    def check(d: VectorType, buffer: OpaqueType, *, layout: str, fragment: int) -> None:
        """The result is one fragment of the layout, and the layout is one that transposed reads can give."""
        _check(d, buffer, layout, fragment)
        lds = buffer_map(buffer)
        if pointed_at(DistributedLayout.parse(layout), lds.order[0], lds.itemsize) is None:
            raise Mismatch(f"no transposed read gives the layout {layout}")

    @staticmethod
    def meaning(machine: Workgroup, buffer: tuple[Bytes, LdsMap], *, layout: str, fragment: int, dtype: Any) -> Any:
        return LdsRead.meaning(machine, buffer, layout=layout, fragment=fragment, dtype=dtype)

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        return [b.lds_read_transposed(op, *operands)]


@wave_op("copy_to_lds", pure=False)
class CopyToLds:
    """Copy `bytes` bytes per lane from a buffer (per-lane byte offset) straight into LDS, without registers.

    Lane l's bytes land at `base + l * bytes` of the LDS buffer; `base` is uniform, as is the second offset into the
    source, if given. Asynchronous: the data is there after a `wait_async` (in this wave) and a `barrier` (for the
    others).
    """

    source = operand(ANY)
    offset = operand(INTEGER)
    buffer = operand(ANY)
    base = operand(INTEGER)
    uniform = operand(INTEGER, variadic=True)
    bytes = attribute(INT)
    examples = tuple(
        f'"hkc_wave.copy_to_lds"(%s, %o, %b, %z) {{bytes = {size} : i64}}'
        f' : (!hkc_wave.descriptor, i32, !hkc_wave.lds<"{_PLAIN}">, i32) -> ()'
        for size in (4, 16)
    )

    @staticmethod
    def infer(
        source: OpaqueType, offset: Any, buffer: OpaqueType, base: Any, uniform: tuple[Any, ...], *, bytes: int
    ) -> tuple[()]:
        if bytes not in (4, 12, 16):
            raise Mismatch(f"a direct copy moves 4, 12 or 16 bytes per lane, not {bytes}")
        return ()

    @staticmethod
    def meaning(
        machine: Workgroup,
        source: Bytes,
        offset: Any,
        buffer: tuple[Bytes, LdsMap],
        base: Any,
        uniform: tuple[Any, ...],
        *,
        bytes: int,
    ) -> None:
        at = byte_offsets(offset, uniform)
        values = source.read(at, bytes // 4, np.dtype(np.uint32)).view(np.uint8)
        where = np.asarray(base)[..., None] if np.ndim(base) == 1 else np.asarray(base)
        buffer[0].write(where + np.arange(machine.lanes) * bytes, values)

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        source, offset, buffer, base, *uniform = operands
        uniform = [b.op("rocdl.readfirstlane", [u], [u.type]) for u in uniform]
        size, none, aux = op.attributes["bytes"].value, b.i32(0), b.int_attr(0, 32)
        target = b.gep(buffer, base)
        b.op(
            "rocdl.raw.ptr.buffer.load.async.lds",
            [source, target, b.i32(size), offset, *(uniform or [none]), none],
            aux=aux,
        )
        return []
