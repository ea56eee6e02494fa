"""Whether computed numbers lie within a bound of an oracle's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Comparison:
    """How one output compares with its oracle.

    `max_error` is the largest distance; NaN against a number, or infinity against a number, is infinitely far.
    `worst` is the element that comes closest to its bound or exceeds it by the largest factor, `error` and `bound` its
    distance and bound (None and zeros for an empty output); `ok` says that every element is within its bound. Of the
    `unchecked` elements, those whose bound is infinite, it says nothing.
    """

    max_error: float
    max_bound: float
    error: float
    bound: float
    worst: tuple[int, ...] | None
    ok: bool
    unchecked: int


def compare(computed: Any, oracle: Any, bound: Any) -> Comparison:
    """Compare an output (any dtype) with float64 values of the same shape, within float64 bounds per element.

    A bound of infinity allows everything, 0 asks for the same number, infinity or NaN.
    """
    found, wanted = (np.asarray(x).astype(np.float64) for x in (computed, oracle))
    limit = np.broadcast_to(np.asarray(bound, np.float64), wanted.shape)
    if found.shape != wanted.shape:
        raise ValueError(f"shapes differ: {found.shape} computed, {wanted.shape} wanted")
    if not wanted.size:
        return Comparison(0.0, 0.0, 0.0, 0.0, None, True, 0)
    with np.errstate(all="ignore"):
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        distance = np.where(same, 0.0, np.abs(found - wanted))
        distance = np.where(np.isnan(distance), np.inf, distance)
        within = distance <= limit
        ratio = np.where(distance == 0, 0.0, np.where(np.isinf(limit), 0.0, distance / limit))
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(ratio)), ratio.shape))
    return Comparison(
        float(distance.max()),
        float(limit.max()),
        float(distance[worst]),
        float(limit[worst]),
        worst,
        bool(within.all()),
        int(np.count_nonzero(np.isinf(limit))),
    )
