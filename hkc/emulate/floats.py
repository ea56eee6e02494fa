"""IEEE arithmetic that NumPy does not offer: single-rounded fma, flushing, NaN rules, rounding to narrow formats."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Array = NDArray[Any]

_BITS: dict[Any, Any] = {np.dtype(np.float16): np.uint16, np.dtype(np.float32): np.uint32,
                         np.dtype(np.float64): np.uint64}  # fmt: skip
_QUIET: dict[Any, int] = {np.dtype(np.float16): 0x0200, np.dtype(np.float32): 0x0040_0000,
                          np.dtype(np.float64): 0x0008_0000_0000_0000}  # fmt: skip


def bits_of(values: Array) -> Array:
    """The bit patterns of a float array."""
    return values.view(_BITS[values.dtype])


def flush(values: Array) -> Array:
    """Denormals become zeros of the same sign."""
    tiny = np.finfo(values.dtype).tiny
    small = np.abs(values) < tiny
    if not small.any():
        return values
    return np.where(small, np.copysign(values.dtype.type(0), values), values)


def quiet(values: Array) -> Array:
    """Signalling NaNs become quiet."""
    nan = np.isnan(values)
    if not nan.any():
        return values
    bits = bits_of(values)
    quieted: Array = np.where(nan, bits | bits.dtype.type(_QUIET[values.dtype]), bits).view(values.dtype)
    return quieted


def is_signalling(values: Array) -> NDArray[np.bool_]:
    """Where the values are signalling NaNs."""
    quiet_bit = _QUIET[values.dtype]
    found: NDArray[np.bool_] = np.isnan(values) & (bits_of(values) & quiet_bit == 0)
    return found


def settle_nan(result: Array, sources: tuple[Array, ...]) -> Array:
    """NaN results: the first NaN source, quieted; the default NaN (positive, quiet) where no source is NaN."""
    nan = np.isnan(result)
    kind = result.dtype
    default = np.full((), np.nan, kind)
    chosen = np.broadcast_to(np.abs(default), result.shape)
    for values in reversed(sources):
        if values.dtype == kind:
            chosen = np.where(np.isnan(values), quiet(values), chosen)
    return np.where(nan, chosen, result)


def clamp01(values: Array, nan_to_zero: bool) -> Array:
    """The clamp modifier."""
    kind = values.dtype.type
    clamped = np.minimum(np.maximum(values, kind(0)), kind(1))
    clamped = np.where(clamped == 0, kind(0), clamped)
    result: Array = np.where(np.isnan(clamped), kind(0), clamped) if nan_to_zero else clamped
    return result


def two_sum(a: F64, b: F64) -> tuple[F64, F64]:
    """a + b = sum + error, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def round_to_odd(total: F64, error: F64) -> F64:
    """The exact value total + error, rounded to odd at 53 bits, so that a second rounding to f32 or f16 is right."""
    bits = total.view(np.int64)
    wrong = (error != 0) & (bits & 1 == 0) & np.isfinite(total)
    if not wrong.any():
        return total
    away = (error > 0) == (total > 0)
    return np.where(wrong, bits + np.where(away, 1, -1), bits).view(np.float64)


def fma32(a: F32, b: F32, c: F32) -> F32:
    """a·b + c in f32 with one rounding: the product is exact in f64, the sum is rounded to odd first."""
    a, b, c = np.broadcast_arrays(a, b, c)
    total, error = two_sum(a.astype(np.float64) * b, c.astype(np.float64))
    return round_to_odd(total, error).astype(np.float32)


def fma16(a: Array, b: Array, c: Array) -> Array:
    """a·b + c in f16 with one rounding."""
    a, b, c = np.broadcast_arrays(a, b, c)
    total, error = two_sum(a.astype(np.float64) * b, c.astype(np.float64))
    return round_to_odd(total, error).astype(np.float16)


def two_product(a: F64, b: F64) -> tuple[F64, F64]:
    """a · b = product + error, exactly, for operands away from the range's ends (Dekker, Veltkamp splitting)."""
    product = a * b
    factor = np.float64(2**27 + 1)
    a_high = a * factor - (a * factor - a)
    b_high = b * factor - (b * factor - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def fma64(a: F64, b: F64, c: F64) -> F64:
    """a·b + c in f64 with one rounding.

    Error-free transformations where no intermediate leaves the range; exact rational arithmetic for the rest.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    product, low = two_product(a, b)
    # Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd".
    inner, inner_error = two_sum(c, low)
    total, error = two_sum(product, inner)
    errors, rest = two_sum(inner_error, error)
    result = total + round_to_odd(errors, rest)
    exponents = [np.frexp(x)[1] for x in (a, b, c)]
    risky = (exponents[0] + exponents[1] > 960) | (exponents[0] + exponents[1] < -900) | (exponents[2] > 960)
    risky |= (np.abs(exponents[0]) > 960) | (np.abs(exponents[1]) > 960)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    plain = a * b + c
    zero = (a == 0) | (b == 0)
    result = np.where(finite & ~zero, result, plain)
    for at in zip(*np.nonzero(risky & finite & ~zero), strict=True):
        result[at] = _fma_exact(float(a[at]), float(b[at]), float(c[at]))
    return result


def _fma_exact(a: float, b: float, c: float) -> float:
    from fractions import Fraction

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


def round_bf16(values: F32) -> NDArray[np.uint16]:
    """f32 → bf16 bits, to nearest even; NaN becomes quiet."""
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), bits >> np.uint32(16) | np.uint32(0x40), rounded).astype(np.uint16)


def widen_bf16(halves: NDArray[np.uint16]) -> F32:
    """bf16 bits → f32."""
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
