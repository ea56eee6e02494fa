"""Sums and other folds of arrays that carry error bounds.

A sum of n terms is bounded for every order of its n - 1 additions by ((1 + u)^n - 1) times the sum of the magnitudes. A
matrix product adds two to its depth: matrix units cut the products of a group below 2^-24 of the largest and let the
accumulator join by one more cut and one more rounding per group (the rule is in `hkc/emulate/matrix.py`), and groups of
more than one product have additions to spare. An addition right after it, in the same meaning, is part of that sum,
since an accumulator takes part in every one of its additions.

Where all terms are exact multiples of one power of two, and their magnitudes together so few of it that the dtype holds
every multiple up to there, nothing is rounded, whatever the order. So sums of small whole numbers are certain. (Where
subnormal numbers could be among them it is not claimed, since matrix units may take those for 0.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.reference.bounded import FLOAT64_ROUNDOFF, Bounded, is_float, precision, settled

_EXTRA_ROUNDINGS = 2
"""What a matrix unit may round beyond one rounding per product."""


def _reduce(ufunc: Any, values: Any, axis: int, keepdims: bool) -> Any:
    """NumPy's fold, without its widening of integers."""
    return ufunc.reduce(values, axis=axis, keepdims=keepdims, dtype=values.dtype)


def _growth(dtype: Any, roundings: int) -> float:
    """How much so many roundings can add to a sum, relative to the sum of the magnitudes."""
    return float(np.expm1(roundings * np.log1p(precision(dtype)[0])))


def _step(values: Any, axis: int) -> Any:
    """The largest power of two that all values along an axis are multiples of; infinity where all are 0."""
    fraction, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    digits = (fraction * 2.0**53).astype(np.int64)
    steps = np.where(digits == 0, np.inf, np.ldexp((digits & -digits).astype(np.float64), exponent - 53))
    return np.min(steps, axis=axis, keepdims=True, initial=np.inf)


def product(a: Bounded, b: Bounded) -> Bounded:
    """The matrix product."""
    if not is_float(a.dtype):
        unsure = a.error is not None or b.error is not None
        value = a.value @ b.value
        return Bounded(value, np.full(value.shape, np.inf) if unsure else None, value.dtype)
    value, magnitude = a.value @ b.value, np.abs(a.value) @ np.abs(b.value)
    brought: Any = 0.0
    if a.error is not None:
        brought = brought + a.error @ (np.abs(b.value) + b.spread)
    if b.error is not None:
        brought = brought + np.abs(a.value) @ b.error
    terms = int(np.count_nonzero((a.value != 0).any(axis=-2) & (b.value != 0).any(axis=-1)))  # adding 0 is exact
    step = _step(a.value, -1) * _step(b.value, -2)
    result = _of_sum(value, brought, magnitude + brought, terms + _EXTRA_ROUNDINGS, a.dtype, step)
    return Bounded(result.value, result.error, result.dtype, (terms, magnitude, brought, step))


def joined(x: Bounded, y: Bounded) -> Bounded:
    """A matrix product and what is added to it, as one sum."""
    product, other = (x, y) if x.sum_of else (y, x)
    assert product.sum_of is not None
    terms, magnitude, brought, step = product.sum_of
    brought = brought + other.spread
    total = magnitude + np.abs(other.value) + brought
    step = np.minimum(step, _step(other.value[..., None], -1)[..., 0])
    return _of_sum(x.value + y.value, brought, total, terms + _EXTRA_ROUNDINGS, product.dtype, step)


def _of_sum(value: Any, brought: Any, magnitude: Any, roundings: int, dtype: Any, step: Any) -> Bounded:
    """A sum in any order, from the error its terms brought and the sum of their magnitudes; all are multiples of `step`
    (those that are not exact may be anything)."""
    roundoff, tiny, largest = precision(dtype)
    own = (_growth(dtype, roundings) + FLOAT64_ROUNDOFF * roundings) * magnitude + roundings * tiny
    exact = (
        (np.asarray(brought) == 0) & (magnitude <= np.minimum(step / roundoff, largest)) & (step * roundoff >= 2 * tiny)
    )
    error = np.where(exact | (magnitude == 0), 0.0, np.where(magnitude > largest, np.inf, brought + own))
    return settled(value, error, dtype, 0.0, np.isfinite(brought) if np.ndim(brought) else True)


def _fold_sum(x: Bounded, axis: int, keepdims: bool) -> Bounded:
    value = _reduce(np.add, x.value, axis, keepdims)
    if not is_float(x.dtype):
        return Bounded(value, _fold_uncertain(x, axis, keepdims), x.dtype)
    brought = _reduce(np.add, x.errors, axis, keepdims)
    magnitude = _reduce(np.add, np.abs(x.value), axis, keepdims) + brought
    step = _step(x.value, axis)
    step = step if keepdims else np.squeeze(step, axis)
    return _of_sum(value, brought, magnitude, x.shape[axis], x.dtype, step)


def _fold_product(x: Bounded, axis: int, keepdims: bool) -> Bounded:
    value = _reduce(np.multiply, x.value, axis, keepdims)
    if not is_float(x.dtype):
        return Bounded(value, _fold_uncertain(x, axis, keepdims), x.dtype)
    high = _reduce(np.multiply, np.abs(x.value) + x.spread, axis, keepdims)
    roundings = x.shape[axis]
    error = high - np.abs(value) + _growth(x.dtype, roundings) * high + roundings * precision(x.dtype)[1]
    decided = np.all((x.spread < np.abs(x.value)) | (x.spread == 0), axis=axis, keepdims=keepdims)
    return settled(value, np.where(high > precision(x.dtype)[2], np.inf, error), x.dtype, 0.0, decided)


def _fold_extreme(ufunc: Any) -> Callable[..., Bounded]:
    def fold(x: Bounded, axis: int, keepdims: bool) -> Bounded:
        value = _reduce(ufunc, x.value, axis, keepdims)
        if x.error is None:
            return Bounded(value, None, x.dtype)
        if not is_float(x.dtype):
            return Bounded(value, _fold_uncertain(x, axis, keepdims), x.dtype)
        ends = [_reduce(ufunc, x.value + side * x.error, axis, keepdims) for side in (-1, 1)]
        error = np.maximum(*(np.abs(end - value) for end in ends))
        return settled(value, error, x.dtype, 0.0, np.all(np.isfinite(x.error), axis=axis, keepdims=keepdims))

    return fold


def _fold_uncertain(x: Bounded, axis: int, keepdims: bool) -> Any:
    if x.error is None:
        return None
    return np.where(np.any(x.error != 0, axis=axis, keepdims=keepdims), np.inf, 0.0)


def _fold_logical(ufunc: Any) -> Callable[..., Bounded]:
    def fold(x: Bounded, axis: int, keepdims: bool) -> Bounded:
        value = _reduce(ufunc, x.value, axis, keepdims)
        if x.error is None:
            return Bounded(value, None, np.bool_)
        return Bounded(value, np.max(x.error, axis=axis, keepdims=keepdims), np.bool_)

    return fold


FOLDS: dict[Any, Callable[..., Bounded]] = {
    np.logical_and: _fold_logical(np.logical_and),
    np.logical_or: _fold_logical(np.logical_or),
    np.add: _fold_sum,
    np.multiply: _fold_product,
    np.maximum: _fold_extreme(np.maximum),
    np.minimum: _fold_extreme(np.minimum),
}


# Atomic updates: the places are certain, the order of updates is not.


def _keep_errors(x: Bounded, at: Any, more: Bounded) -> None:
    if more.error is not None:
        if x.error is None:
            x.error = np.zeros(x.shape)
        np.maximum.at(x.error, at, more.errors)


def _pile_up(x: Bounded, at: Any, more: Bounded) -> None:
    """Add elements to places; a place's sum is bounded for every order of all the additions it ever got."""
    if not is_float(x.dtype):
        _keep_errors(x, at, more)
        np.add.at(x.value, at, more.value)
        return
    if x.piled is None:
        x.piled = (np.zeros(x.shape), np.abs(x.value) + x.spread, np.array(x.errors))
    count, magnitude, brought = x.piled
    np.add.at(count, at, 1)
    np.add.at(x.value, at, more.value)
    np.add.at(magnitude, at, np.abs(more.value) + more.spread)
    np.add.at(brought, at, more.errors)
    u, tiny, largest = precision(x.dtype)
    own = np.expm1(count * np.log1p(u)) * magnitude + count * (tiny + FLOAT64_ROUNDOFF * magnitude)
    x.error = np.where(count == 0, brought, np.where(magnitude > largest, np.inf, brought + own))


def _keep_extreme(ufunc: Any) -> Callable[..., None]:
    def update(x: Bounded, at: Any, more: Bounded) -> None:
        _keep_errors(x, at, more)
        ufunc.at(x.value, at, more.value)

    return update


UPDATES: dict[Any, Callable[..., None]] = {
    np.add: _pile_up,
    np.fmax: _keep_extreme(np.fmax),
    np.fmin: _keep_extreme(np.fmin),
}
"""What `ufunc.at` does, by ufunc."""
