"""Conversions between 16-, 32- and 64-bit types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.emulate.floats import round_bf16, widen_bf16
from hkc.emulate.operands import Array
from hkc.emulate.vector import valu


def saturate(values: Array, kind: Any) -> Array:
    """Floats to integers: towards zero, clamped to the range, NaN gives 0."""
    info = np.iinfo(kind)
    wide = np.where(np.isnan(values), 0, np.trunc(values.astype(np.float64)))
    return np.clip(wide, float(info.min), float(info.max)).astype(np.int64).astype(kind)


def _to(kind: Any, rounding: Callable[[Array], Array] = np.trunc) -> Callable[[Array], Array]:
    return lambda a: saturate(rounding(a), kind)


def _from(kind: Any) -> Callable[[Array], Array]:
    return lambda a: a.astype(kind)


for _signature, _name, _function in (
    ("f32 = i32", "f32_i32", _from(np.float32)), ("f32 = u32", "f32_u32", _from(np.float32)),
    ("f64 = i32", "f64_i32", _from(np.float64)), ("f64 = u32", "f64_u32", _from(np.float64)),
    ("f16 = u16", "f16_u16", _from(np.float16)), ("f16 = i16", "f16_i16", _from(np.float16)),
    ("f32 = f16", "f32_f16", _from(np.float32)), ("f16 = f32", "f16_f32", _from(np.float16)),
    ("f64 = f32", "f64_f32", _from(np.float64)), ("f32 = f64", "f32_f64", _from(np.float32)),
    ("i32 = f32", "i32_f32", _to(np.int32)), ("u32 = f32", "u32_f32", _to(np.uint32)),
    ("i32 = f64", "i32_f64", _to(np.int32)), ("u32 = f64", "u32_f64", _to(np.uint32)),
    ("i16 = f16", "i16_f16", _to(np.int16)), ("u16 = f16", "u16_f16", _to(np.uint16)),
    ("i32 = f32", "rpi_i32_f32", _to(np.int32, lambda a: np.floor(a.astype(np.float64) + 0.5))),
    ("i32 = f32", "flr_i32_f32", _to(np.int32, np.floor)),
    ("f32 = u16", "f32_bf16", widen_bf16),
):  # fmt: skip
    valu(_signature, f"v_cvt_{_name}")(_function)


def _byte(n: int) -> Callable[[Array], Array]:
    return lambda a: (a >> np.uint32(8 * n) & np.uint32(255)).astype(np.float32)


for _n in range(4):
    valu("f32 = u32", f"v_cvt_f32_ubyte{_n}")(_byte(_n))
valu("f32 = u32", "v_cvt_off_f32_i4")(
    lambda a: (((a & np.uint32(15)).astype(np.int32) ^ 8) - 8).astype(np.float32) / 16
)


def _pair(low: Array, high: Array) -> Array:
    """Two 16-bit halves in one word."""
    return low.astype(np.uint16).astype(np.uint32) | high.astype(np.uint16).astype(np.uint32) << np.uint32(16)


def _half_to_zero(a: Array) -> Array:
    """f32 → f16 bits, towards zero; what is too large becomes the largest number, infinity stays."""
    near = a.astype(np.float16)
    away = np.abs(near.astype(np.float32)) > np.abs(a)
    return np.where(away, near.view(np.uint16) - np.uint16(1), near.view(np.uint16))


def normalised(a: Array, scale: int, kind: Any) -> Array:
    """[-1, 1] (unsigned: [0, 1]) to 16-bit integers; NaN is 0."""
    low = -1.0 if kind is np.int16 else 0.0
    clean = np.where(np.isnan(a), 0, np.clip(a.astype(np.float64), low, 1.0))
    result: Array = np.rint(clean * scale).astype(kind)
    return result


def _normalised(scale: int, kind: Any) -> Callable[[Array, Array], Array]:
    return lambda a, b: _pair(*(normalised(x, scale, kind).view(np.uint16) for x in (a, b)))


valu("u32 = f32 f32", "v_cvt_pkrtz_f16_f32")(lambda a, b: _pair(_half_to_zero(a), _half_to_zero(b)))
valu("u32 = f32 f32", "v_cvt_pk_f16_f32")(
    lambda a, b: _pair(a.astype(np.float16).view(np.uint16), b.astype(np.float16).view(np.uint16))
)
valu("u32 = f32 f32", "v_cvt_pk_bf16_f32")(lambda a, b: _pair(round_bf16(a), round_bf16(b)))
valu("u32 = i32 i32", "v_cvt_pk_i16_i32")(
    lambda a, b: _pair(*(np.clip(x, -0x8000, 0x7FFF).astype(np.int16).view(np.uint16) for x in (a, b)))
)
valu("u32 = u32 u32", "v_cvt_pk_u16_u32")(lambda a, b: _pair(*(np.minimum(x, np.uint32(0xFFFF)) for x in (a, b))))
valu("u32 = f32 f32", "v_cvt_pknorm_i16_f32")(_normalised(0x7FFF, np.int16))
valu("u32 = f32 f32", "v_cvt_pknorm_u16_f32")(_normalised(0xFFFF, np.uint16))
valu("u32 = f16 f16", "v_cvt_pknorm_i16_f16")(_normalised(0x7FFF, np.int16))
valu("u32 = f16 f16", "v_cvt_pknorm_u16_f16")(_normalised(0xFFFF, np.uint16))


def to_byte(a: Array, byte: Array, old: Array) -> Array:
    """f32 as u8, saturated, put into the byte of `old` that `byte` names."""
    shift = (byte & np.uint32(3)) * np.uint32(8)
    value = np.clip(np.where(np.isnan(a), 0, np.rint(a)), 0, 255).astype(np.uint32)
    result: Array = old & ~(np.uint32(255) << shift) | value << shift
    return result


valu("u32 = f32 u32 u32", "v_cvt_pk_u8_f32")(to_byte)


def _shifted_bytes(low: int, high: int) -> Callable[[Array, Array, Array], Array]:
    def run(a: Array, b: Array, n: Array) -> Array:
        parts = [np.clip(x >> (n & np.uint32(31)).astype(np.int32), low, high) & 255 for x in (a, b)]
        return (parts[0] | parts[1] << 8).astype(np.uint16)

    return run


valu("half = i32 i32 u32", "v_ashr_pk_i8_i32")(_shifted_bytes(-128, 127))
valu("half = i32 i32 u32", "v_ashr_pk_u8_i32")(_shifted_bytes(0, 255))
