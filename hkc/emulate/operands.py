"""Operands as readers and writers: what an instruction's functions see is plain NumPy arrays of the right type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import EXEC, VCC, Decoded, Operand
from hkc.emulate.faults import unsupported
from hkc.emulate.registry import Context
from hkc.emulate.waves import U32, U64, Waves

Array = NDArray[Any]
Reader = Callable[[Waves], Array]

SHARED_BASE, PRIVATE_BASE = 0x0001_0000_0000_0000, 0x0002_0000_0000_0000
"""Where flat addresses mean LDS and scratch (4 GiB windows; any unmapped windows serve)."""

_INLINE_TURNS = 0.15915494309189535
_SPECIAL64 = {
    "shared_base": SHARED_BASE, "shared_limit": SHARED_BASE + 0xFFFFFFFF,
    "private_base": PRIVATE_BASE, "private_limit": PRIVATE_BASE + 0xFFFFFFFF,
}  # fmt: skip


def constant(operand: Operand, bits: int) -> int:
    """The bit pattern of an immediate as an operand of `bits` (16, 32 or 64) bits.

    Inline floats have the width of the operand; a literal of a 64-bit float operand is its upper half, which the
    caller handles.
    """
    if operand.kind == "float":
        value = _INLINE_TURNS if abs(operand.value - _INLINE_TURNS) < 1e-4 else operand.value
        kinds: dict[int, tuple[Any, Any]] = {
            16: (np.float16, np.uint16), 32: (np.float32, np.uint32), 64: (np.float64, np.uint64),
        }  # fmt: skip
        wide, raw = kinds[bits]
        return int(np.array(value, wide).view(raw))
    return int(operand.value) & ((1 << bits) - 1)


def scalar_reader(operand: Operand, bits: int, by: Decoded) -> Callable[[Waves], Array]:
    """Reads a scalar operand of 32 or 64 bits: uint32 or uint64 [waves]."""
    if operand.kind == "sgpr":
        index = operand.index
        if bits == 64:
            return lambda w: w.scalar64(index)
        return lambda w: w.scalar(index)
    if operand.kind in ("int", "float"):
        value = constant(operand, bits)
        if bits == 64 and operand.kind == "int" and operand.name.startswith("0x"):
            value = int(operand.value) & 0xFFFFFFFF
        fixed = np.array([value], np.uint64 if bits == 64 else np.uint32)
        return lambda w: fixed
    if operand.kind == "special":
        return _special(operand, bits, by)
    raise unsupported(by, f"the scalar operand {operand}")


def _special(operand: Operand, bits: int, by: Decoded) -> Callable[[Waves], Array]:
    name = operand.name.removeprefix("src_")
    kind: Any = np.uint64 if bits == 64 else np.uint32
    if name in _SPECIAL64:
        value = _SPECIAL64[name] if bits == 64 else _SPECIAL64[name] & 0xFFFFFFFF
        fixed = np.array([value], kind)
        return lambda w: fixed
    if name == "scc":
        return lambda w: w.scc.astype(kind)
    if name == "vccz":
        return lambda w: (w.scalar64(VCC) == 0).astype(kind)
    if name == "execz":
        return lambda w: (w.exec == 0).astype(kind)
    raise unsupported(by, f"the operand {operand}")


def word_reader(operand: Operand, by: Decoded, context: Context, word: int = 0, bits: int = 32) -> Reader:
    """Reads word number `word` of a vector-instruction source as uint32 that broadcasts to [waves, lanes]."""
    if operand.kind in ("vgpr", "agpr"):
        register = context.vector(operand) + word
        return lambda w: w.read(register)
    if operand.kind == "sgpr":
        index = operand.index + word
        return lambda w: w.scalar(index)[:, None]
    if operand.kind in ("int", "float"):
        value = constant(operand, max(bits, 32) if operand.kind == "int" else bits)
        fixed = np.array([[value >> 32 * word & 0xFFFFFFFF]], np.uint32)
        return lambda w: fixed
    inner = scalar_reader(operand, 64 if operand.count == 2 else 32, by)
    return lambda w: (inner(w) >> 32 * word).astype(np.uint32)[:, None]


def pair_reader(operand: Operand, by: Decoded, context: Context, floating: bool) -> Callable[[Waves], U64]:
    """Reads a 64-bit source as uint64 that broadcasts to [waves, lanes]."""
    if operand.kind in ("vgpr", "agpr"):
        low = context.vector(operand)
        return lambda w: join(w.read(low), w.read(low + 1))
    if operand.kind == "int" and floating and operand.name.startswith("0x"):
        fixed = np.array([[(int(operand.value) & 0xFFFFFFFF) << 32]], np.uint64)
        return lambda w: fixed
    inner = scalar_reader(operand, 64, by)
    return lambda w: inner(w)[:, None]


def join(low: U32, high: U32) -> U64:
    """Two words as one: uint64 of the broadcast shape."""
    low, high = np.broadcast_arrays(low, high)
    return np.stack((low, high), axis=-1).view(np.uint64)[..., 0]


def split(value: U64) -> tuple[U32, U32]:
    """The inverse of `join`."""
    words = np.ascontiguousarray(value, np.uint64)[..., None].view(np.uint32)
    return words[..., 0], words[..., 1]


def lanes_index(operand: Operand, by: Decoded) -> int:
    """The scalar register pair that holds a lane mask."""
    if operand.kind != "sgpr" or operand.index > EXEC:
        raise unsupported(by, f"the lane mask operand {operand}")
    return operand.index


def lanes_reader(operand: Operand, by: Decoded) -> Callable[[Waves], NDArray[np.bool_]]:
    """Reads a lane mask: bool [waves, lanes]."""
    if operand.kind == "int":
        bits = np.array([int(operand.value) & (1 << 64) - 1], np.uint64)
        from hkc.emulate.waves import lane_mask

        fixed = lane_mask(bits)
        return lambda w: fixed
    index = lanes_index(operand, by)
    return lambda w: w.lanes_of(index)
