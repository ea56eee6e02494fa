"""v_trig_preop_f64: a slice of the bits of 2 / pi, for reducing large angles (pseudocode of the CDNA ISA guides)."""

from __future__ import annotations

from functools import cache

import numpy as np

from hkc.emulate.operands import Array
from hkc.emulate.vector import valu

_BITS, _SLICE = 1201, 53


@cache
def two_over_pi(bits: int) -> int:
    """The first `bits` bits of the fraction of 2 / pi (Machin: pi / 4 = 4 atan(1/5) - atan(1/239))."""
    scale = 1 << bits + 64

    def arctangent(x: int) -> int:
        power = total = scale // x
        n, sign = 3, -1
        while power:
            power //= x * x
            total += sign * (power // n)
            n, sign = n + 2, -sign
        return total

    pi = 4 * (4 * arctangent(5) - arctangent(239))
    return (2 * scale << bits) // pi


@valu("f64 = f64 u32", "v_trig_preop_f64")
def _(a: Array, part: Array) -> Array:
    a, part = np.broadcast_arrays(a, part)
    exponent = (a.view(np.uint64) >> np.uint64(52) & np.uint64(0x7FF)).astype(np.int64)
    shift = (part & np.uint32(31)).astype(np.int64) * _SLICE + np.maximum(exponent - 1077, 0)
    scale = -_SLICE - shift + np.where(exponent >= 1968, 128, 0)
    known = two_over_pi(_BITS)
    slices = {int(n): float((known << int(n)) % (1 << _BITS) >> _BITS - _SLICE) for n in np.unique(shift)}
    values = np.array([slices[int(n)] for n in shift.ravel()]).reshape(shift.shape)
    result: Array = np.ldexp(values, scale.astype(np.int32))
    return result
