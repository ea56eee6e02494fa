"""Bits of uncertain numbers read as another dtype.

Among numbers of one sign the bits of floats, read as integers, are in the order of the numbers or in the opposite one.
So how far one may be off follows from how far the other may be, by looking at both ends. Across zero nothing is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def of_floats(value: Any, error: Any, floats: Any, integers: Any) -> tuple[Any, Any]:
    """The bits of numbers of dtype `floats` that lie within `error` of `value`: integers, and how far off they are."""
    low, high = (np.nextafter(value + side * error, side * np.inf) for side in (-1, 1))  # float64 has rounded, too
    bits, *ends = (x.astype(floats).view(integers) for x in (value, low, high))
    off = [np.abs(end.astype(np.int64) - bits).astype(np.float64) for end in ends]
    far = np.maximum(*off)
    far = np.where(far < 2.0**53, far, np.nextafter(far, np.inf))  # whole numbers that float64 may have rounded
    return bits, _known(far, error, np.signbit(low) != np.signbit(high))


def of_integers(value: Any, error: Any, integers: Any, floats: Any) -> tuple[Any, Any]:
    """The floats whose bits lie within `error` of `value`, in float64, and how far off they are."""
    limits = np.iinfo(integers)
    reach = np.ceil(np.minimum(error, float(2**62))).astype(np.int64)
    low = np.maximum(value, limits.min + reach) - reach
    high = np.minimum(value, limits.max - reach) + reach
    found, *ends = (x.astype(integers).view(floats).astype(np.float64) for x in (value, low, high))
    off = [np.nextafter(np.abs(end - found), np.inf) for end in ends]
    return found, _known(np.maximum(*off), error, (low < 0) != (high < 0))


def _known(off: Any, error: Any, across: Any) -> Any:
    """How far off a result is: not at all where its operand is certain, any distance where the sign is not known."""
    return np.where(error == 0, 0.0, np.where(across | ~np.isfinite(error) | np.isnan(off), np.inf, off))
