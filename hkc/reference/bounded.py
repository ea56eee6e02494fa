"""Arrays that carry a bound on their own rounding error: the source of every tolerance.

A `Bounded` holds, for each element, the value in float64 and a bound on how far a computation in the array's dtype can
be from it. It stands in for an array in the NumPy meanings of ops (`__array_ufunc__`, `__array_function__`), so that
the very meaning that says what a kernel computes also says how exactly.

The analysis is the running error analysis of Higham, "Accuracy and Stability of Numerical Algorithms", sections 3.1 to
3.3 and 4.2, without dropping second-order terms. Every function spreads the errors of its operands and adds its own
rounding: `ulps` times the spacing at the largest value the computed result may have.

An error is 0 where a result is certain, infinities and NaN included; it is infinite where nothing is known: past an
overflow, at a division by what may be zero. Truth values are uncertain (error 1) where the operands' errors overlap.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from hkc.dialects.builtin import ULPS
from hkc.reference.bits import of_floats, of_integers
from hkc.reference.spreads import SIGN_MATTERS, SPREADS
from hkc.support.dtypes import from_numpy

FLOAT64_ROUNDOFF = 2.0**-53
"""The error of the values themselves, which are computed in float64."""


class Undecided(Exception):
    """What happens next depends on a value that rounding errors leave open: an index, or a condition."""


class Bounded(np.lib.mixins.NDArrayOperatorsMixin):
    """Values with error bounds. `value` is float64 for float dtypes, else of `dtype`; `error` None means exact.

    `sum_of` is set on a fresh matrix product: the number of terms, their summed magnitudes, the part of the error that
    the operands brought, and the power of two of which all terms are multiples. `piled` belongs to atomic additions:
    their number, magnitudes and errors.
    """

    __slots__ = ("dtype", "error", "piled", "sum_of", "value")

    def __init__(self, value: Any, error: Any, dtype: Any, sum_of: tuple[Any, ...] | None = None) -> None:
        self.value = value
        self.error = error
        self.dtype = np.dtype(dtype)
        self.sum_of = sum_of
        self.piled: tuple[Any, Any, Any] | None = None

    @classmethod
    def exact(cls, array: Any) -> Bounded:
        """An array taken as it is."""
        array = np.asarray(array)
        return cls(array.astype(np.float64) if is_float(array.dtype) else array, None, array.dtype)

    @classmethod
    def literal(cls, array: Any) -> Bounded:
        """Numbers that the author wrote in decimal. Those that use up the digits of the dtype were surely rounded."""
        made = cls.exact(array)
        if not is_float(made.dtype):
            return made
        with np.errstate(all="ignore"):
            rounded = np.isfinite(made.value) & (made.value.astype(np.float16) != made.value)
        error = np.where(rounded, precision(made.dtype)[0] * np.abs(made.value), 0.0)
        return cls(made.value, error if error.any() else None, made.dtype)

    @property
    def spread(self) -> Any:
        """The error bounds as something to compute with."""
        return 0.0 if self.error is None else self.error

    @property
    def errors(self) -> Any:
        """The error bounds as a float64 array."""
        return np.broadcast_to(np.float64(0), self.shape) if self.error is None else self.error

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return tuple(np.shape(self.value))

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, at: Any) -> Bounded:
        return Bounded(self.value[at], None if self.error is None else self.error[at], self.dtype)

    def __setitem__(self, at: Any, new: Bounded) -> None:
        self.value[at] = new.value
        if self.error is None and new.error is not None:
            self.error = np.zeros(self.shape)
        if self.error is not None:
            self.error[at] = new.spread

    def __bool__(self) -> bool:
        return bool(self._certain())

    def __int__(self) -> int:
        return int(self._certain())

    def _certain(self) -> Any:
        if self.error is not None and np.any(self.error):
            raise Undecided
        return self.value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The plain values, where all are certain: masks and indices."""
        return np.array(self._certain(), dtype)

    def copy(self) -> Bounded:
        """A copy that can be written to."""
        return self._moved(np.array)

    def astype(self, dtype: Any) -> Bounded:
        """Converted as `hkc_tile.cast` does it."""
        target = np.dtype(dtype)
        if is_float(target):
            return self._rounded(target, 0.5)
        if not is_float(self.dtype):
            error = self.error if self.dtype.kind == "b" else _all_or_nothing(self)
            return Bounded(self.value.astype(target), error, target)
        with np.errstate(all="ignore"):
            whole = np.trunc(self.value)
            ends = [np.abs(np.trunc(self.value + side * self.spread) - whole) for side in (-1, 1)]
            return Bounded(whole.astype(target), None if self.error is None else np.maximum(*ends), target)

    def toward_zero(self, dtype: Any) -> Bounded:
        """Converted to another float type by cutting digits off."""
        return self._rounded(np.dtype(dtype), 1.0)

    def _rounded(self, target: Any, ulps: float) -> Bounded:
        value = self.value.astype(np.float64)
        ulps = 0.0 if _holds(target, self.dtype) else ulps
        return settled(value, self.error, target, ulps, decided=np.isfinite(self.spread))

    def view(self, dtype: Any) -> Bounded:
        """The same bits as another type; who writes to one writes to both, errors included, where both are integers."""
        if is_float(self.dtype) or is_float(dtype):
            return self._reread(np.dtype(dtype))
        if self.error is None:
            self.error = np.zeros(self.shape)
        return Bounded(self.value.view(dtype), self.error, dtype)

    def _reread(self, dtype: Any) -> Bounded:
        """The same bits as another type, at least one of the two being of floats."""
        whole = np.dtype(f"i{dtype.itemsize}")
        value, error = self.value, self.errors
        with np.errstate(all="ignore"):
            if is_float(self.dtype):
                value, error = of_floats(value, error, self.dtype, whole)
            if is_float(dtype):
                value, error = of_integers(value.view(whole), error, whole, dtype)
            else:
                value = value.view(dtype)
        return Bounded(value, error if np.any(error) else None, dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        from hkc.reference.sums import FOLDS, UPDATES, product

        if method == "at" and ufunc in UPDATES:
            return UPDATES[ufunc](*inputs)
        operands = [_lifted(x, self.dtype) for x in inputs]
        keywords = {k: v for k, v in keywords.items() if k != "dtype"}
        with np.errstate(all="ignore"):
            if method == "reduce" and ufunc in FOLDS:
                return FOLDS[ufunc](*operands, **keywords)
            if method == "__call__" and not keywords:
                if ufunc is np.matmul:
                    return product(*operands)
                if ufunc in SPREADS:
                    return _apply(ufunc, *operands)
        return NotImplemented

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        if function is np.where:
            return _where(*map(_lifted, arguments))
        if function is np.concatenate:
            return _concatenate(arguments[0], **keywords)
        if function in (np.argmax, np.argmin):
            return _extreme_place(function, self, **keywords)
        if function in _MOVES:
            return self._moved(lambda part: function(part, *arguments[1:], **keywords))
        return NotImplemented

    def _moved(self, move: Callable[[Any], Any]) -> Bounded:
        return Bounded(move(self.value), None if self.error is None else move(self.error), self.dtype)


def is_float(dtype: Any) -> bool:
    """Whether a NumPy dtype is a float, those of ml_dtypes included."""
    known = from_numpy(np.dtype(dtype))
    return known is not None and known.is_float


@functools.cache
def precision(dtype: Any) -> tuple[float, float, float]:
    """Unit roundoff, half the spacing of subnormals, and the largest number."""
    known = from_numpy(dtype)
    assert known is not None
    return known.unit_roundoff, known.tiny, float(ml_dtypes.finfo(dtype).max)


@functools.cache
def _holds(wide: Any, narrow: Any) -> bool:
    """Every number of the one dtype is one of the other."""
    if not is_float(narrow):
        return False
    (fine, small, large), (coarse, least, most) = precision(wide), precision(narrow)
    return fine <= coarse and small <= least and large >= most


def _lifted(x: Any, like: Any = None) -> Bounded:
    """An operand as `Bounded`; a bare number is of the other operands' dtype, where `like` gives one, else an index."""
    if isinstance(x, Bounded):
        return x
    return Bounded.exact(np.asarray(x, like) if isinstance(x, (bool, int, float)) else x)


def _all_or_nothing(*operands: Bounded) -> Any:
    """Nothing is known of what an uncertain integer leads to."""
    if all(x.error is None for x in operands):
        return None
    unsure = functools.reduce(np.logical_or, (x.spread != 0 for x in operands))
    return np.where(unsure, np.inf, 0.0)


def settled(value: Any, error: Any, dtype: Any, ulps: float, decided: Any) -> Bounded:
    """A result from its value and the error that its operands brought: adds `ulps` of rounding, sees to overflow.

    `decided` says where a value that is no finite number is certain to be just that.
    """
    roundoff, tiny, largest = precision(dtype)
    with np.errstate(all="ignore"):
        brought = 0.0 if error is None else error
        size = np.abs(value) + brought
        if ulps:
            own = 2 * ulps * (roundoff * size + tiny) + FLOAT64_ROUNDOFF * np.abs(value)
            if ulps <= 0.5:  # a number of the dtype needs no rounding
                own = np.where((brought == 0) & (value.astype(dtype).astype(np.float64) == value), 0.0, own)
            error = brought + own
        elif error is None and np.isfinite(value).all():
            return Bounded(value, None, dtype)
        unknown = (size > largest) | np.isnan(size)
        error = np.where(unknown, np.inf, brought if error is None else error)
        error = np.where(np.isfinite(value), error, np.where(decided, 0.0, np.inf))
    return Bounded(value, error if error.any() else None, dtype)


_MOVES = frozenset({np.transpose, np.reshape, np.broadcast_to, np.expand_dims, np.zeros_like})
"""Functions that only move elements."""


# Elementwise functions.


def _apply(ufunc: Any, *operands: Bounded) -> Bounded:
    if ufunc is np.add and any(x.sum_of for x in operands):
        from hkc.reference.sums import joined

        return joined(*operands)
    value = ufunc(*(x.value for x in operands))
    if value.dtype == np.object_:  # a function that NumPy lacks
        value = value.astype(np.float64)
    exact = all(x.error is None for x in operands)
    dtype = operands[0].dtype
    if value.dtype == np.bool_:
        return Bounded(
            value, None if exact else np.broadcast_to(SPREADS[ufunc](value, *operands), value.shape), np.bool_
        )
    if not is_float(dtype):
        return Bounded(value, _all_or_nothing(*operands), value.dtype)
    error = None if exact else SPREADS[ufunc](value, *operands)
    return settled(value, error, dtype, ULPS.get(ufunc, 0.0), _decided(ufunc, operands))


def _decided(ufunc: Any, operands: tuple[Bounded, ...]) -> Any:
    known = True
    for x in operands:
        clear = (x.spread < np.abs(x.value)) | (x.spread == 0) if ufunc in SIGN_MATTERS else np.isfinite(x.spread)
        known = known & clear
    for x in operands:
        known = known | np.isnan(x.value) & (x.spread == 0)
    return known


def _where(condition: Bounded, x: Bounded, y: Bounded) -> Bounded:
    value = np.where(condition.value, x.value, y.value)
    if condition.error is None and x.error is None and y.error is None:
        return Bounded(value, None, x.dtype)
    error = np.where(condition.value, x.spread, y.spread)
    with np.errstate(all="ignore"):
        apart = np.abs(np.asarray(x.value, np.float64) - y.value)
        other = np.maximum(x.spread, y.spread) + np.where(x.value == y.value, 0.0, apart)
    return Bounded(value, np.where(condition.spread != 0, np.where(np.isnan(other), np.inf, other), error), x.dtype)


def _concatenate(parts: Any, axis: int) -> Bounded:
    value = np.concatenate([p.value for p in parts], axis=axis)
    if all(p.error is None for p in parts):
        return Bounded(value, None, parts[0].dtype)
    return Bounded(value, np.concatenate([p.errors for p in parts], axis=axis), parts[0].dtype)


def _extreme_place(function: Any, x: Bounded, axis: int) -> Bounded:
    """Where the largest or smallest element is: unknown where another one within its error could take its place."""
    found = function(x.value, axis=axis)
    if x.error is None:
        return Bounded(found, None, found.dtype)
    chosen = np.expand_dims(found, axis)
    best, reach = (np.take_along_axis(part, chosen, axis) for part in (x.value, x.errors))
    with np.errstate(all="ignore"):
        near = ~(np.abs(x.value - best) > x.errors + reach) & (x.errors + reach > 0)
    np.put_along_axis(near, chosen, False, axis)
    return Bounded(found, np.where(near.any(axis=axis), np.inf, 0.0), found.dtype)
