"""How far the errors of a function's operands spread into its value.

Each function takes the value, computed without errors, and the operands, anything with `value` and `spread` (the bound
on the operand's error), and gives a bound on how far the function of other operands within their bounds can be away.
Second-order terms are kept. The rounding of the function itself is not in here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.dialects.builtin import ERF


def _sum(value: Any, x: Any, y: Any) -> Any:
    return x.spread + y.spread


def _product(value: Any, x: Any, y: Any) -> Any:
    return np.abs(x.value) * y.spread + np.abs(y.value) * x.spread + x.spread * y.spread


def _quotient(value: Any, x: Any, y: Any) -> Any:
    least = np.abs(y.value) - y.spread
    return np.where(least > 0, (x.spread + np.abs(value) * y.spread) / least, np.inf)


def _same(value: Any, x: Any) -> Any:
    return x.spread


def _either(value: Any, x: Any, y: Any) -> Any:
    return np.maximum(x.spread, y.spread)


def _extreme(value: Any, x: Any, y: Any) -> Any:
    """Of the greater or lesser of two: an operand well behind the other one brings none of its error along."""
    gaps = [
        np.where(o.value == value, 0.0, np.where(np.isnan(o.value), np.inf, np.abs(value - o.value))) for o in (x, y)
    ]
    beyond = np.maximum(x.spread - gaps[0], y.spread - gaps[1])
    return np.maximum(beyond, np.minimum(x.spread + gaps[0], y.spread + gaps[1]))


def _step(value: Any, x: Any) -> Any:
    return np.where(x.spread == 0, 0.0, x.spread + 1.0)


def _root(value: Any, x: Any) -> Any:
    low = x.value - x.spread
    moved = x.spread / (value + np.sqrt(np.maximum(low, 0)))
    return np.where(x.spread == 0, 0.0, np.where(low >= 0, moved, np.inf))


def _exponential(factor: float) -> Callable[..., Any]:
    def spread(value: Any, x: Any) -> Any:
        highest = np.exp(factor * (x.value + x.spread))  # where this is 0, so is the spread, however uncertain x is
        return np.where(x.spread == 0, 0.0, highest * -np.expm1(-factor * x.spread))

    return spread


def _logarithm(factor: float) -> Callable[..., Any]:
    def spread(value: Any, x: Any) -> Any:
        return np.where(
            x.spread == 0, 0.0, np.where(x.spread < x.value, -factor * np.log1p(-x.spread / x.value), np.inf)
        )

    return spread


def _erf(value: Any, x: Any) -> Any:
    return x.spread * 1.1284  # its slope is at most 2 / sqrt(pi)


def _comparison(value: Any, x: Any, y: Any) -> Any:
    reach = x.spread + y.spread
    return np.where((reach > 0) & ~(np.abs(x.value - y.value) > reach), 1.0, 0.0)


def _isnan(value: Any, x: Any) -> Any:
    return np.where(np.isinf(x.spread), 1.0, 0.0)


SPREADS: dict[Any, Callable[..., Any]] = {
    np.add: _sum, np.subtract: _sum, np.multiply: _product, np.divide: _quotient,
    np.negative: _same, np.absolute: _same, np.invert: _same,
    np.maximum: _extreme, np.minimum: _extreme, np.fmax: _extreme, np.fmin: _extreme,
    np.logical_and: _either, np.logical_or: _either, np.logical_not: _same, np.rint: _step, np.floor: _step,
    np.ceil: _step, np.tanh: _same, np.sin: _same, np.cos: _same, ERF: _erf,
    np.bitwise_and: _either, np.bitwise_or: _either, np.bitwise_xor: _either,
    np.sqrt: _root, np.exp: _exponential(1.0), np.exp2: _exponential(float(np.log(2))),
    np.log: _logarithm(1.0), np.log2: _logarithm(float(1 / np.log(2))),
    np.equal: _comparison, np.not_equal: _comparison, np.less: _comparison, np.less_equal: _comparison,
    np.greater: _comparison, np.greater_equal: _comparison, np.isnan: _isnan,
    np.floor_divide: _sum, np.fmod: _sum, np.remainder: _sum, np.left_shift: _sum, np.right_shift: _sum,
}  # fmt: skip
"""The spread of a function, by NumPy ufunc: from its value and operands."""

SIGN_MATTERS = frozenset({np.multiply, np.divide, np.sqrt, np.log, np.log2})
"""Functions whose infinities and NaN hang on the sign of an operand, or on whether it is zero."""
