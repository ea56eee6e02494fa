"""Floats of 8, 6 and 4 bits: what each bit pattern is worth, and rounding to them.

Formats: OCP 8-bit (E4M3 without infinities, E5M2), the FNUZ pair of the older chip, OCP MX 6- and 4-bit. Sources: OCP
8-bit Floating Point Specification 1.0, OCP Microscaling Formats 1.0, Micikevicius et al.; tests compare with ml_dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Narrow:
    """A format: exponent and fraction bits, bias, and what its top codes mean.

    `special`: `ieee` has infinities and NaNs; `one_nan` ends at S.1111.111 = NaN; `fnuz` has one NaN, the negative
    zero; `none` has numbers only.
    """

    exponent: int
    fraction: int
    bias: int
    special: Literal["ieee", "one_nan", "fnuz", "none"]

    @property
    def bits(self) -> int:
        """Bits of a whole number."""
        return 1 + self.exponent + self.fraction

    @property
    def least(self) -> int:
        """The exponent of denormals and of the smallest normal number."""
        return 1 - self.bias

    @property
    def largest(self) -> float:
        """The largest finite number."""
        finite = self.values[np.isfinite(self.values)]
        return float(finite.max())

    @property
    def values(self) -> NDArray[np.float64]:
        """The value of every bit pattern."""
        values: NDArray[np.float64] = _values(self)
        return values


@cache
def _values(form: Narrow) -> NDArray[np.float64]:
    codes = np.arange(1 << form.bits)
    fraction = codes & (1 << form.fraction) - 1
    exponent = codes >> form.fraction & (1 << form.exponent) - 1
    top = (1 << form.exponent) - 1
    significand = np.where(exponent > 0, fraction + (1 << form.fraction), fraction)
    value = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - form.bias - form.fraction)
    if form.special == "ieee":
        value = np.where(exponent == top, np.where(fraction == 0, np.inf, np.nan), value)
    if form.special == "one_nan":
        value = np.where((exponent == top) & (fraction == (1 << form.fraction) - 1), np.nan, value)
    value = np.where(codes >> form.bits - 1, -value, value)
    if form.special == "fnuz":
        value[1 << form.bits - 1] = np.nan
    result: NDArray[np.float64] = value
    return result


FORMATS = {
    "f8e4m3fn": Narrow(4, 3, 7, "one_nan"), "f8e5m2": Narrow(5, 2, 15, "ieee"),
    "f8e4m3fnuz": Narrow(4, 3, 8, "fnuz"), "f8e5m2fnuz": Narrow(5, 2, 16, "fnuz"),
    "f6e2m3": Narrow(2, 3, 1, "none"), "f6e3m2": Narrow(3, 2, 3, "none"), "f4e2m1": Narrow(2, 1, 1, "none"),
}  # fmt: skip


def unpack_bits(words: NDArray[np.uint32], bits: int) -> NDArray[np.uint8]:
    """[..., words] → [..., elements] of 4, 6 or 8 bits, lowest first."""
    raw = np.ascontiguousarray(words).view(np.uint8)
    if bits == 8:
        return raw
    if bits == 4:
        return np.stack((raw & 15, raw >> 4), axis=-1).reshape(*raw.shape[:-1], -1)
    threes = raw.reshape(*raw.shape[:-1], -1, 3).astype(np.uint32)
    joined = threes[..., 0] | threes[..., 1] << np.uint32(8) | threes[..., 2] << np.uint32(16)
    parts = [(joined >> np.uint32(6 * i) & np.uint32(63)).astype(np.uint8) for i in range(4)]
    return np.stack(parts, axis=-1).reshape(*raw.shape[:-1], -1)


def round_to(form: Narrow, values: NDArray[np.float64], clamp: bool) -> NDArray[np.uint8]:
    """To nearest even. What is too large becomes infinity or NaN, or with `clamp` the largest number; NaN stays NaN."""
    size = np.abs(values)
    exponent = np.maximum(np.frexp(np.where(np.isfinite(size), size, 1.0))[1] - 1, form.least)
    unit = np.ldexp(1.0, exponent - form.fraction)
    return _code(form, values, np.rint(size / unit) * unit, clamp)


def round_stochastic(
    form: Narrow, values: NDArray[Any], seeds: NDArray[np.uint32], clamp: bool, fraction: int = 23
) -> NDArray[np.uint8]:
    """Up with the probability of the part that is cut off: the seed's upper bits are added below the last place.

    `fraction`: bits of the fraction of what `values` (f32 or f64) were before.
    """
    wide = values.astype(np.float64)
    size = np.abs(wide)
    exponent = np.maximum(np.frexp(np.where(np.isfinite(size), size, 1.0))[1] - 1, form.least)
    unit = np.ldexp(1.0, exponent - form.fraction)
    dropped = fraction - form.fraction
    chance = np.ldexp((seeds >> np.uint32(32 - dropped)).astype(np.float64), -dropped)
    return _code(form, wide, np.floor(size / unit + chance) * unit, clamp)


def _code(form: Narrow, values: NDArray[np.float64], size: NDArray[np.float64], clamp: bool) -> NDArray[np.uint8]:
    positive = form.values[: 1 << form.bits - 1]
    finite = positive[np.isfinite(positive)]
    code = np.searchsorted(finite, np.where(np.isnan(size), 0.0, np.minimum(size, finite[-1]))).astype(np.uint8)
    sign = np.signbit(values).astype(np.uint8) << np.uint8(form.bits - 1)
    if form.special == "fnuz":
        sign = np.where(code == 0, np.uint8(0), sign)
    nan, overflow = _specials(form)
    result = code | sign
    if not clamp and form.special != "none":
        result = np.where(size > finite[-1], overflow if form.special == "fnuz" else overflow | sign, result)
    if form.special == "none":
        result = np.where(np.isnan(values), np.uint8((1 << form.bits - 1) - 1) | sign, result)
    else:
        result = np.where(np.isnan(values), nan if form.special == "fnuz" else nan | sign, result)
    return result.astype(np.uint8)


def _specials(form: Narrow) -> tuple[np.uint8, np.uint8]:
    """(NaN, what an overflow becomes), both positive."""
    if form.special == "fnuz":
        return np.uint8(0x80), np.uint8(0x80)
    if form.special == "one_nan":
        return np.uint8(0x7F), np.uint8(0x7F)
    return np.uint8(0x7E), np.uint8(0x7C)
