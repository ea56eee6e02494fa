"""The three steps of IEEE division: v_div_scale, v_div_fmas, v_div_fixup (pseudocode of the GFX9 ISA guides)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hkc.emulate.decode import Decoded
from hkc.emulate.floats import fma64, quiet, round_to_odd, two_sum
from hkc.emulate.operands import Array
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.vector import step_of, valu
from hkc.emulate.waves import Waves


@dataclass(frozen=True)
class _Range:
    """Exponent thresholds of a format: scaling step, largest exponent difference, small exponents."""

    kind: Any
    step: int
    difference: int
    small: int


_F32 = _Range(np.float32, 64, 96, 23)
_F64 = _Range(np.float64, 128, 768, 53)


def _exponent(a: Array, r: _Range) -> Array:
    """The biased exponent field."""
    if r.kind is np.float32:
        return (a.view(np.uint32) >> np.uint32(23) & np.uint32(0xFF)).astype(np.int64)
    return (a.view(np.uint64) >> np.uint64(52) & np.uint64(0x7FF)).astype(np.int64)


def _scale(r: _Range, chosen: Array, denominator: Array, numerator: Array) -> tuple[Array, Array]:
    chosen, d, n = np.broadcast_arrays(chosen, denominator, numerator)
    tiny = np.finfo(r.kind).tiny
    up, down = r.kind(2.0**r.step), r.kind(2.0**-r.step)
    is_d, is_n = chosen == d, chosen == n
    reciprocal = np.abs(1.0 / d.astype(np.float64)) if r.kind is np.float32 else np.abs(1.0 / d)
    quotient = np.abs(n.astype(np.float64) / d) if r.kind is np.float32 else np.abs(n / d)
    scaled = chosen * up
    gap = _exponent(n, r) - _exponent(d, r)
    denormal_d = (np.abs(d) < tiny) & (d != 0)
    tests = [
        ((n == 0) | (d == 0), np.full_like(chosen, np.nan), False),
        (gap >= r.difference, np.where(is_d, scaled, chosen), True),
        (denormal_d, scaled, False),
        # The guides say "up" here, but a denominator whose reciprocal is denormal would overflow: 1 / 3e38 is a number.
        ((reciprocal < tiny) & (quotient < tiny), np.where(is_d, chosen * down, chosen), True),
        (reciprocal < tiny, chosen * down, False),
        (quotient < tiny, np.where(is_n, scaled, chosen), True),
        (_exponent(n, r) <= r.small, scaled, False),
    ]
    result, flag = chosen, np.zeros(chosen.shape, np.bool_)
    for condition, value, mark in reversed(tests):
        result = np.where(condition, value, result)
        flag = np.where(condition, mark, flag)
    return result, flag


valu("f32 mask = f32 f32 f32", "v_div_scale_f32")(lambda a, b, c: _scale(_F32, a, b, c))
valu("f64 mask = f64 f64 f64", "v_div_scale_f64")(lambda a, b, c: _scale(_F64, a, b, c))


@op("v_div_fmas_f32", "v_div_fmas_f64")
def _(instruction: Decoded, context: Context) -> Step:
    """A fused multiply-add that undoes the scaling where v_div_scale set VCC: up for large addends, down for others."""
    kind = instruction.base[-3:]
    run = _fmas32 if kind == "f32" else _fmas64
    return step_of(instruction, context, run, f"{kind} = {kind} {kind} {kind}", waves=True)


def _fmas32(w: Waves, a: Array, b: Array, c: Array) -> Array:
    total, error = two_sum(a.astype(np.float64) * b, c.astype(np.float64) + np.zeros(w.mask.shape))
    factor = np.where(_exponent(c, _F32) > 127, 2.0**64, 2.0**-64)
    exact = round_to_odd(total, error)
    # scaled before the one rounding, so that denormal quotients are right
    return np.where(w.vcc, exact * factor, exact).astype(np.float32)


def _fmas64(w: Waves, a: Array, b: Array, c: Array) -> Array:
    a, b, c = np.broadcast_arrays(a, b, np.broadcast_to(c, w.mask.shape))
    result = fma64(a, b, c)
    factor = np.where(_exponent(c, _F64) > 1023, 2.0**128, 2.0**-128)
    scaled = np.where(w.vcc, result * factor, result)
    denormal = w.vcc & (np.abs(scaled) < np.finfo(np.float64).tiny) & np.isfinite(result)
    for at in zip(*np.nonzero(denormal), strict=True):  # rounded once, from the exact value
        exact = Fraction(float(a[at])) * Fraction(float(b[at])) + Fraction(float(c[at]))
        scaled[at] = float(exact * Fraction(float(factor[at])))
    return scaled


def _fixup(r: _Range, q: Array, d: Array, n: Array) -> Array:
    q, d, n = np.broadcast_arrays(q, d, n)
    negative = np.signbit(n) != np.signbit(d)
    sign = np.where(negative, r.kind(-1), r.kind(1))
    infinite, zero = sign * r.kind(np.inf), sign * r.kind(0)
    gap = _exponent(n, r) - _exponent(d, r)
    widest = 150 if r.kind is np.float32 else 1075
    result = np.copysign(q, sign)
    result = np.where(gap < -widest, zero, result)
    result = np.where(np.isinf(d) | (n == 0), zero, result)
    result = np.where((d == 0) | np.isinf(n), infinite, result)
    undefined = ((d == 0) & (n == 0)) | (np.isinf(d) & np.isinf(n))
    result = np.where(undefined, -r.kind(np.nan), result)
    result = np.where(np.isnan(d), quiet(d), result)
    return np.where(np.isnan(n), quiet(n), result)


# results as bits, since 0 / 0 is the NaN with a sign
valu("u32 = f32 f32 f32", "v_div_fixup_f32")(lambda q, d, n: _fixup(_F32, q, d, n).view(np.uint32))
valu("u64 = f64 f64 f64", "v_div_fixup_f64")(lambda q, d, n: _fixup(_F64, q, d, n).view(np.uint64))


def _fixup16(q: Array, d: Array, n: Array) -> Array:
    wide = _fixup(_F32, q.astype(np.float32), d.astype(np.float32), n.astype(np.float32))
    return wide.astype(np.float16).view(np.uint16)


valu("half = f16 f16 f16", "v_div_fixup_f16")(_fixup16)
valu("u16 = f16 f16 f16", "v_div_fixup_legacy_f16")(_fixup16)
