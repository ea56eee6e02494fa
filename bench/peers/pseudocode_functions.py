"""The functions that the pseudocode calls and does not define, over values, under their names there."""

# ruff: noqa: N802

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from peers.pseudocode_values import Value, from_exact, from_float, integer, number

_MANTISSA = {16: 10, 32: 23, 64: 52}


def _f_isNAN(a: Value) -> Value:
    return Value("u", 1, int(math.isnan(number(a))))


def _quiet(a: Value) -> bool:
    return bool(a.bits >> _MANTISSA[a.width] - 1 & 1)


def _f_isSignalNAN(a: Value) -> Value:
    return Value("u", 1, int(math.isnan(number(a)) and not _quiet(a)))


def _f_isQuietNAN(a: Value) -> Value:
    return Value("u", 1, int(math.isnan(number(a)) and _quiet(a)))


def _f_cvtToQuietNAN(a: Value) -> Value:
    return Value("f", a.width, a.bits | 1 << _MANTISSA[a.width] - 1)


def _f_abs(a: Value) -> Value:
    if a.kind == "f":
        return Value("f", a.width, a.bits & ~(1 << a.width - 1))
    return Value(a.kind, a.width, abs(integer(a)))


def _f_sign(a: Value) -> Value:
    return Value("u", 1, a.bits >> a.width - 1)


def _f_exponent(a: Value) -> Value:
    fraction = _MANTISSA[a.width]
    return Value("i", 32, a.bits >> fraction & (1 << a.width - 1 - fraction) - 1)


def _f_floor(a: Value) -> Value:
    x = number(a)
    return from_float(math.copysign(math.floor(x), x), a.width) if math.isfinite(x) else a


def _f_trunc(a: Value) -> Value:
    x = number(a)
    return from_float(math.copysign(math.trunc(x), x), a.width) if math.isfinite(x) else a


def _f_sqrt(a: Value) -> Value:
    x = number(a)
    if math.isnan(x) or x < 0:
        return from_float(math.nan, a.width)
    return from_float(math.sqrt(x) if math.isfinite(x) else x, a.width)


def _f_fma(a: Value, b: Value, c: Value) -> Value:
    x, y, z = (number(v) for v in (a, b, c))
    if all(math.isfinite(v) for v in (x, y, z)):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if exact:
            return from_exact(exact, a.width)
        return from_float(
            0.0 * math.copysign(1, x) * math.copysign(1, y) + z if x * y == 0 and z == 0 else 0.0, a.width
        )
    if math.isinf(z) and math.isfinite(x) and math.isfinite(y):
        return c
    return from_float(x * y + z, a.width)


def _f_ldexp(a: Value, n: Value) -> Value:
    x = number(a)
    if not math.isfinite(x) or x == 0:
        return a
    return from_exact(Fraction(x) * Fraction(2) ** max(-6000, min(6000, integer(n))), a.width)


def _f_signext(a: Value) -> Value:
    return Value("i", 64, integer(Value("i", a.width, a.bits)))


def _f_signext_from_bit(a: Value, width: Value) -> Value:
    size = min(integer(width), a.width)
    return Value("i", a.width, integer(Value("i", size, a.bits)) if size else 0)


def _f_bitCount(a: Value) -> Value:
    return Value("u", 32, a.bits.bit_count())


def _saturated(a: Value, kind: str, width: int) -> Value:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if kind == "i" else (0, (1 << width) - 1)
    x = number(a)
    if math.isnan(x):
        return Value(kind, width, 0)
    return Value(kind, width, max(low, min(high, math.trunc(x) if math.isfinite(x) else (high if x > 0 else low))))


def _install_conversions() -> None:
    floats = ("f16", "f32", "f64")
    integers = ("i16", "u16", "i32", "u32")
    for source in (*floats, *integers):
        for kind, width in ((t[0], int(t[1:])) for t in floats):
            globals()[f"_f_{source}_to_{kind}{width}"] = lambda a, w=width: from_float(number(a), w)
        for kind, width in ((t[0], int(t[1:])) for t in integers):
            if source in floats:
                globals()[f"_f_{source}_to_{kind}{width}"] = lambda a, k=kind, w=width: _saturated(a, k, w)
    for bits in (4, 8, 16):
        globals()[f"_f_i{bits}_to_i32"] = lambda a, b=bits: Value("i", 32, integer(Value("i", b, a.bits)))
        globals()[f"_f_u{bits}_to_u32"] = lambda a: Value("u", 32, a.bits)


_install_conversions()


def _f_f32_to_u8(a: Value) -> Value:
    x = number(a)
    return Value("u", 8, 0 if math.isnan(x) else round(max(0.0, min(255.0, x))))


def _f_i32_to_i16(a: Value) -> Value:
    return Value("i", 16, max(-0x8000, min(0x7FFF, integer(a))))


def _f_u32_to_u16(a: Value) -> Value:
    return Value("u", 16, min(0xFFFF, integer(a)))


def _normalised(a: Value, low: float, scale: int) -> Value:
    x = number(a)
    return Value("i", 16, 0 if math.isnan(x) else round(Fraction(max(low, min(1.0, x))) * scale))


def _f_f32_to_snorm(a: Value) -> Value:
    return _normalised(a, -1.0, 0x7FFF)


def _f_f32_to_unorm(a: Value) -> Value:
    return _normalised(a, 0.0, 0xFFFF)


_f_f16_to_snorm, _f_f16_to_unorm = _f_f32_to_snorm, _f_f32_to_unorm


def _f_f32_to_bf16(a: Value) -> Value:
    x = number(a)
    if not math.isfinite(x):
        return Value("b", 16, a.bits >> 16 | int(math.isnan(x)) << 6)
    whole = a.bits & 0x7FFF_FFFF
    return Value("b", 16, (a.bits >> 16 & 0x8000) + round(Fraction(whole, 1 << 16)))


def _f_bf16_to_f32(a: Value) -> Value:
    return Value("f", 32, a.bits << 16)


def _ordered(a: Value, b: Value, largest: bool) -> Value:
    x, y = number(a), number(b)
    if math.isnan(x) or math.isnan(y):
        return from_float(math.nan, a.width)
    first = (x, -(a.bits >> a.width - 1)) > (y, -(b.bits >> b.width - 1))
    return a if first == largest else b


def _f_v_minimum_f32(a: Value, b: Value) -> Value:
    return _ordered(a, b, False)


def _f_v_maximum_f32(a: Value, b: Value) -> Value:
    return _ordered(a, b, True)


def _f_v_minimum3_f16(a: Value, b: Value, c: Value) -> Value:
    return _ordered(_ordered(a, b, False), c, False)


def _f_v_maximum3_f16(a: Value, b: Value, c: Value) -> Value:
    return _ordered(_ordered(a, b, True), c, True)


def _f_isEven(a: Value) -> Value:
    x = number(a)
    return Value("u", 1, int(math.isfinite(x) and x % 2 == 0))


def _f_fract(a: Value) -> Value:
    x = number(a)
    return from_float(x - math.floor(x) if math.isfinite(x) else math.nan, a.width)


def _f_mantissa(a: Value) -> Value:
    x = number(a)
    return from_float(math.frexp(x)[0], a.width) if math.isfinite(x) else a


def find(name: str) -> Callable[..., Value] | None:
    """The function that the guides call `name`, if it is known."""
    found: Callable[..., Value] | None = globals().get(f"_f_{name}")
    return found
