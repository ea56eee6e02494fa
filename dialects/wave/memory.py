"""Global memory: buffer descriptors with hardware bounds, and plain 64-bit addresses under a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import ANY, INT, INTEGER, VECTOR, attribute, operand, result, wave_op
from hkc.dialects.types import OpaqueType
from hkc.dialects.wave.machine import Bytes, Workgroup, byte_offsets

OUT_OF_RANGE = -(1 << 31)
"""A byte offset (u32) that no buffer below 2 GiB contains: a lane that must not touch memory uses it. A uniform offset
inside such a buffer does not bring it back either, which -1 would allow: whether the hardware adds it in 32 bits is
disputed (`emulate/semantics/buffer.py`)."""

RAW_DWORDS = 0x27000
"""Word 3 of a raw buffer descriptor: 32-bit data format, no swizzle, no index (CDNA3 ISA manual, section 9.1.8)."""

BUFFER = "!hkc_wave.descriptor"


@wave_op("buffer")
class Buffer:
    """A descriptor of the `bytes` bytes (i64, at most 2^32 - 1) at a pointer: reads past its end give 0, writes are
    dropped."""

    pointer = operand(ANY)
    bytes = operand(INTEGER)
    d = result(ANY)
    examples = ('%r = "hkc_wave.buffer"(%p, %n) : (!llvm.ptr<1>, i64) -> !hkc_wave.descriptor',)

    @staticmethod
    def infer(pointer: Any, bytes: Any) -> OpaqueType:
        return OpaqueType(BUFFER)

    @staticmethod
    def meaning(machine: Workgroup, pointer: Bytes, bytes: int) -> Bytes:
        return Bytes(pointer.data[:bytes])

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        stride, flags = b.constant(0, b.int_type(16)), b.i32(RAW_DWORDS)
        return [b.op("rocdl.make.buffer.rsrc", [operands[0], stride, operands[1], flags], [b.pointer(8)])]


@wave_op("buffer_load", pure=False)
class BufferLoad:
    """Read a vector per lane at an unsigned byte offset (i32). Elements out of range read as 0.

    A second offset, if given, is the same in all lanes and lies in the buffer; it costs no vector instruction.
    """

    source = operand(ANY)
    offset = operand(INTEGER)
    uniform = operand(INTEGER, variadic=True)
    d = result(VECTOR)
    examples = (
        '%v = "hkc_wave.buffer_load"(%r, %o) : (!hkc_wave.descriptor, i32) -> vector<8xbf16>',
        '%v = "hkc_wave.buffer_load"(%r, %o, %u) : (!hkc_wave.descriptor, i32, i32) -> vector<8xbf16>',
    )

    @staticmethod
    def meaning(
        machine: Workgroup, source: Bytes, offset: Any, uniform: tuple[Any, ...], *, size: int, dtype: Any
    ) -> Any:
        return source.read(byte_offsets(offset, uniform), size, np.dtype(dtype))

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        kind = op.results[0].type
        raw = b.raw_type(kind)
        source, offset, *uniform = operands
        uniform = [b.op("rocdl.readfirstlane", [u], [u.type]) for u in uniform]
        inputs = [source, offset, *(uniform or [b.i32(0)])]
        loaded = b.op("rocdl.raw.ptr.buffer.load", inputs, [raw], aux=b.int_attr(0, 32))
        return [b.from_raw(loaded, kind)]


@wave_op("buffer_store", pure=False)
class BufferStore:
    """Write a vector per lane at an unsigned byte offset (i32). Elements out of range are dropped."""

    value = operand(VECTOR)
    target = operand(ANY)
    offset = operand(INTEGER)
    examples = ('"hkc_wave.buffer_store"(%v, %r, %o) : (vector<4xf32>, !hkc_wave.descriptor, i32) -> ()',)

    @staticmethod
    def meaning(machine: Workgroup, value: Any, target: Bytes, offset: Any) -> None:
        target.write(np.asarray(offset).astype(np.uint32).astype(np.int64), value)

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        value, target, offset = operands
        b.op("rocdl.raw.ptr.buffer.store", [b.to_raw(value), target, offset, b.i32(0)], aux=b.int_attr(0, 32))
        return []


@wave_op("global_load", pure=False)
class GlobalLoad:
    """Read a vector per lane at pointer + byte offset (i64), aligned to `align` bytes. Lanes whose mask is false
    touch no memory of the kernel's arguments and get an arbitrary value."""

    pointer = operand(ANY)
    offset = operand(INTEGER)
    mask = operand(INTEGER)
    align = attribute(INT)
    d = result(VECTOR)
    examples = (
        '%v = "hkc_wave.global_load"(%p, %o, %m) {align = 2 : i64} : (!llvm.ptr<1>, i64, i1) -> vector<1xbf16>',
    )

    @staticmethod
    def meaning(
        machine: Workgroup, pointer: Bytes, offset: Any, mask: Any, *, align: int, size: int, dtype: Any
    ) -> Any:
        values = pointer.read(np.where(mask, offset, 0), size, np.dtype(dtype))
        return np.where(np.asarray(mask)[..., None], values, np.zeros((), dtype))

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        # A masked lane reads the kernel-argument segment instead: always mapped, and no branch is needed.
        pointer, offset, mask = operands
        address = b.select(mask, b.gep(pointer, offset), b.kernel_arguments())
        align = b.int_attr(op.attributes["align"].value, 64)
        return [b.op("llvm.load", [address], [op.results[0].type], alignment=align)]


@wave_op("global_store", pure=False)
class GlobalStore:
    """Write a vector per lane at pointer + byte offset (i64), aligned to `align` bytes, where the mask is true."""

    value = operand(VECTOR)
    pointer = operand(ANY)
    offset = operand(INTEGER)
    mask = operand(INTEGER)
    align = attribute(INT)
    examples = (
        '"hkc_wave.global_store"(%v, %p, %o, %m) {align = 2 : i64} : (vector<1xf16>, !llvm.ptr<1>, i64, i1) -> ()',
    )

    @staticmethod
    def meaning(machine: Workgroup, value: Any, pointer: Bytes, offset: Any, mask: Any, *, align: int) -> None:
        pointer.write(np.where(mask, offset, -len(pointer.data) - value.nbytes), value)

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        value, pointer, offset, mask = operands
        align = b.int_attr(op.attributes["align"].value, 64)

        def store() -> None:
            b.op("llvm.store", [value, b.gep(pointer, offset)], alignment=align)

        b.if_else(mask, [], store, None)
        return []
