"""f32 and f64 vector arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.emulate.decode import Decoded
from hkc.emulate.floats import bits_of, fma32, fma64, is_signalling, quiet
from hkc.emulate.operands import Array
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.vector import step_of, valu
from hkc.emulate.waves import IEEE, Waves


def minimum(a: Array, b: Array, ieee: bool) -> Array:
    """The smaller number; NaN loses; -0 is below +0. With the IEEE mode bit a signalling NaN wins, quieted."""
    a, b = np.broadcast_arrays(a, b)
    zeros = np.where(np.signbit(a), a, b)
    result = np.where((a == 0) & (b == 0), zeros, np.fmin(a, b))
    return _signals(result, ieee, a, b)


def maximum(a: Array, b: Array, ieee: bool) -> Array:
    """The larger number, by the same rules."""
    a, b = np.broadcast_arrays(a, b)
    zeros = np.where(np.signbit(a), b, a)
    result = np.where((a == 0) & (b == 0), zeros, np.fmax(a, b))
    return _signals(result, ieee, a, b)


def _signals(result: Array, ieee: bool, *sources: Array) -> Array:
    if not ieee or not any(np.isnan(s).any() for s in sources):
        return result
    for values in reversed(sources):
        result = np.where(is_signalling(values), quiet(values), result)
    return result


def _in_mode(function: Callable[[Array, Array, bool], Array]) -> Callable[[Waves, Array, Array], Array]:
    return lambda w, a, b: function(a, b, bool(w.mode & IEEE))


def _three(function: Callable[[Array, Array, bool], Array]) -> Callable[[Waves, Array, Array, Array], Array]:
    def run(w: Waves, a: Array, b: Array, c: Array) -> Array:
        ieee = bool(w.mode & IEEE)
        return function(function(a, b, ieee), c, ieee)

    return run


def median(w: Waves, a: Array, b: Array, c: Array) -> Array:
    """The middle one; with any NaN the smallest number."""
    ieee = bool(w.mode & IEEE)
    low, high = minimum(a, b, ieee), maximum(a, b, ieee)
    middle = maximum(low, minimum(high, c, ieee), ieee)
    nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
    return np.where(nan, minimum(low, c, ieee), middle)


def _legacy(a: Array, b: Array) -> Array:
    """0 times anything is 0."""
    return np.where((a == 0) | (b == 0), a.dtype.type(0), a * b)


def fraction(a: Array) -> Array:
    """a - floor(a), below 1 by the smallest step."""
    result: Array = np.minimum(a - np.floor(a), np.nextafter(a.dtype.type(1), a.dtype.type(0)))
    return result


def scale_by(a: Array, n: Array) -> Array:
    """a · 2^n, rounded once."""
    return np.ldexp(a, np.clip(n, -5000, 5000).astype(np.int32))


def frexp_mantissa(a: Array) -> Array:
    """The significand in [0.5, 1); infinities and NaN stay."""
    return np.where(np.isfinite(a), np.frexp(a)[0], a)


def frexp_exponent(a: Array) -> Array:
    """The exponent that goes with `frexp_mantissa`; 0 for infinities and NaN."""
    return np.where(np.isfinite(a), np.frexp(a)[1], 0).astype(np.int32)


for _kind, _fma in (("f32", fma32), ("f64", fma64)):
    _one, _two, _all = f"{_kind} = {_kind}", f"{_kind} = {_kind} {_kind}", f"{_kind} = {_kind} {_kind} {_kind}"
    valu(_two, f"v_add_{_kind}")(lambda a, b: a + b)
    valu(_two, f"v_mul_{_kind}")(lambda a, b: a * b)
    valu(_two, f"v_min_{_kind}", waves=True)(_in_mode(minimum))
    valu(_two, f"v_max_{_kind}", waves=True)(_in_mode(maximum))
    valu(_all, f"v_fma_{_kind}")(_fma)
    valu(f"{_kind} = {_kind} {_kind} dst", f"v_fmac_{_kind}")(_fma)
    valu(_one, f"v_floor_{_kind}")(np.floor)
    valu(_one, f"v_ceil_{_kind}")(np.ceil)
    valu(_one, f"v_trunc_{_kind}")(np.trunc)
    valu(_one, f"v_rndne_{_kind}")(np.rint)
    valu(_one, f"v_fract_{_kind}")(fraction)
    valu(f"{_kind} = {_kind} i32", f"v_ldexp_{_kind}")(scale_by)
    valu(_one, f"v_frexp_mant_{_kind}")(frexp_mantissa)
    valu(f"i32 = {_kind}", f"v_frexp_exp_i32_{_kind}")(frexp_exponent)
valu("f32 = f32 f32", "v_sub_f32")(lambda a, b: a - b)
valu("f32 = f32 f32", "v_subrev_f32")(lambda a, b: b - a)
valu("f32 = f32 f32", "v_mul_legacy_f32")(_legacy)
valu("f32 = f32 f32 f32", "v_min3_f32", waves=True)(_three(minimum))
valu("f32 = f32 f32 f32", "v_max3_f32", waves=True)(_three(maximum))
valu("f32 = f32 f32 f32", "v_med3_f32", waves=True)(median)
valu("f32 = f32 f32 f32", "v_fmamk_f32", "v_fmaak_f32")(fma32)


def _propagating(function: Any) -> Callable[[Array, Array, Array], Array]:
    def run(a: Array, b: Array, c: Array) -> Array:
        def two(x: Array, y: Array) -> Array:
            return np.where(np.isnan(x) | np.isnan(y), np.nan, function(x, y, False)).astype(x.dtype)

        return two(two(a, b), c)

    return run


valu("f32 = f32 f32 f32", "v_minimum3_f32")(_propagating(minimum))
valu("f32 = f32 f32 f32", "v_maximum3_f32")(_propagating(maximum))


@op("v_cmp_class_f32", "v_cmpx_class_f32", "v_cmp_class_f64", "v_cmpx_class_f64", "v_cmp_class_f16", "v_cmpx_class_f16")
def _(instruction: Decoded, context: Context) -> Step:
    """Test for kinds of numbers; the bits of the second operand ask for: sNaN, qNaN, -inf, -normal, -denormal, -0, and
    the positive ones upwards."""
    kind = instruction.base[-3:]
    return step_of(instruction, context, classify, f"mask = {kind} {'u16' if kind == 'f16' else 'u32'}")


def classify(a: Array, wanted: Array) -> Array:
    """Whether `a` is of one of the wanted kinds."""
    negative, signalling = np.signbit(a), is_signalling(a)
    tiny = np.finfo(a.dtype).tiny
    size = np.abs(a)
    rank = np.where(np.isinf(a), 3, np.where(size >= tiny, 2, np.where(bits_of(size) != 0, 1, 0)))
    number = np.where(negative, 5 - rank, 6 + rank)
    number = np.where(np.isnan(a), np.where(signalling, 0, 1), number)
    return (wanted.astype(np.uint32) >> number.astype(np.uint32) & np.uint32(1)).astype(np.bool_)
