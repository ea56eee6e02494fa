"""References and error bounds of the cases. Everything in float64; bounds count roundings, they are not fitted."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

U = 2.0**-24
"""The error of one rounding to f32."""

UNIT = {np.dtype(k): u for k, u in (
    (np.float64, 2.0**-53), (np.float32, U), (np.float16, 2.0**-11), (ml_dtypes.bfloat16, 2.0**-8),
)}  # fmt: skip
TINY = {np.dtype(k): t for k, t in (
    (np.float64, 0.0), (np.float32, 2.0**-150), (np.float16, 2.0**-25), (ml_dtypes.bfloat16, 2.0**-134),
)}  # fmt: skip


@dataclass(frozen=True)
class Check:
    """An output, what it should hold, and how far off each element may be (0: exact)."""

    actual: Array
    expected: Array
    bound: Array | float

    def judge(self) -> tuple[float, float, bool]:
        """Error and bound of the element that comes closest to its bound, and whether all are within theirs."""
        if self.actual.dtype.kind in "iu" and self.expected.dtype.kind in "iu":  # float64 can't tell all of them apart
            error = (self.actual != self.expected).astype(np.float64)
        else:
            error = np.abs(self.actual.astype(np.float64) - self.expected.astype(np.float64))
        bound = np.broadcast_to(np.asarray(self.bound, np.float64), error.shape)
        parts = np.where(error == 0, 0.0, error / np.where(bound == 0, 2.0**-1074, bound))
        parts = np.where(np.isnan(parts), np.inf, parts)
        worst = np.unravel_index(int(np.argmax(parts)), parts.shape)
        return float(error[worst]), float(bound[worst]), bool((parts <= 1).all())


@dataclass(frozen=True)
class Case:
    """One launch: arguments in order (as `hkc.emulate.run` takes them), workgroups, and what to look at afterwards."""

    shape: str
    arguments: tuple[Any, ...]
    grid: tuple[int, ...]
    checks: tuple[Check, ...]


def draw(seed: int, *shape: int, dtype: Any = np.float32, scale: float = 1.0) -> Array:
    """Normal numbers, rounded to a type."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32).astype(dtype)


def rounded(expected: Array, dtype: Any) -> Array:
    """The error of rounding the exact result to the output's type."""
    return UNIT[np.dtype(dtype)] * np.abs(expected) + TINY[np.dtype(dtype)]


def product(a: Array, b: Array, out: Array, inputs: float = 0.0) -> Check:
    """C = A · B. Each of the K products and sums may err by an ulp: matrix units may truncate in between.

    `inputs` is the relative error of a factor that the kernel rounds first.
    """
    if out.dtype.kind == "i":
        return Check(out, a.astype(np.int64) @ b.astype(np.int64), 0)
    wide, right = a.astype(np.float64), b.astype(np.float64)
    expected = wide @ right
    unit = min(U, UNIT[out.dtype])
    slip = 2 * unit * (a.shape[1] + 8) + 2 * inputs
    return Check(out, expected, rounded(expected, out.dtype) + slip * (np.abs(wide) @ np.abs(right)))


def softmax(x: Array, out: Array, unit: float = U) -> Check:
    """Along the last dimension, computed with roundings of `unit`.

    An exponent d errs by a few of them relative to d, so e^d by as many times |d|; the sum takes some 30 steps.
    """
    d = x.astype(np.float64) - x.astype(np.float64).max(axis=-1, keepdims=True)
    expected = np.exp(d) / np.exp(d).sum(axis=-1, keepdims=True)
    return Check(out, expected, rounded(expected, out.dtype) + expected * (4 * np.abs(d) + 40) * unit)


def attention(
    q: Array, k: Array, v: Array, out: Array, lse: Array | None, scale: float, causal: bool, scaled_query: bool = False
) -> tuple[Check, ...]:
    """Per head. The probabilities are rounded to the inputs' type before they meet `v`.

    `scaled_query` says that the kernel multiplies q by the scale in the inputs' type first.
    """
    unit, tiny, length = UNIT[q.dtype], TINY[q.dtype], k.shape[1]
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s, size = q @ k.swapaxes(1, 2) * scale, np.abs(q) @ np.abs(k).swapaxes(1, 2) * scale
    if causal:
        s = np.where(np.tri(s.shape[1], length, dtype=bool), s, -np.inf)
    high = s.max(axis=-1, keepdims=True)
    p = np.exp(s - high)
    total = p.sum(axis=-1, keepdims=True)
    expected = p @ v / total
    slip = (2 * U * (q.shape[2] + 16) * size + (unit * size if scaled_query else 0)).max(axis=-1, keepdims=True)
    weight = p @ np.abs(v) / total
    bound = weight * (2 * slip + unit + 2 * U * (length + 40)) + tiny * np.abs(v).sum(axis=1, keepdims=True)
    checks = (Check(out, expected, bound + rounded(expected, out.dtype)),)
    if lse is None:
        return checks
    sums = (high + np.log(total))[..., 0]
    return *checks, Check(lse, sums, slip[..., 0] + 2 * U * (np.abs(sums) + length))
