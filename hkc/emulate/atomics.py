"""The arithmetic of atomic operations: old value and data (as words) to new value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.access import Combine
from hkc.emulate.floats import round_bf16, widen_bf16
from hkc.emulate.memory import Words

Array = NDArray[Any]


def _as(kind: Any, function: Callable[[Array, Array], Array]) -> Combine:
    """Words seen as one element of `kind` each."""

    def run(old: Words, given: Words) -> Words:
        a, b = (np.ascontiguousarray(x).view(kind) for x in (old, given))
        return np.ascontiguousarray(function(a, b).astype(kind)).view(np.uint32)

    return run


def _wrapping_inc(old: Array, limit: Array) -> Array:
    result: Array = np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))
    return result


def _wrapping_dec(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def _packed_bf16(old: Array, given: Array) -> Array:
    total: Array = round_bf16(widen_bf16(old) + widen_bf16(given))
    return total


_INTEGER: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "swap": lambda old, given: given, "inc": _wrapping_inc, "dec": _wrapping_dec,
    "umin": np.minimum, "umax": np.maximum,
}  # fmt: skip


def _swap_if_equal(words: int) -> Combine:
    """Data holds the new value, then the value to compare with."""

    def run(old: Words, given: Words) -> Words:
        equal = (old == given[:, words:]).all(axis=1, keepdims=True)
        return np.where(equal, given[:, :words], old)

    return run


def table() -> dict[str, tuple[Combine, int, int]]:
    """Suffix of `buffer_atomic_…` and kin → (operation, words of memory, words of data)."""
    found: dict[str, tuple[Combine, int, int]] = {}
    for name, function in _INTEGER.items():
        found[name] = (_as(np.uint32, function), 1, 1)
        found[f"{name}_x2"] = (_as(np.uint64, function), 2, 2)
    for name, function in (("smin", np.minimum), ("smax", np.maximum)):
        found[name] = (_as(np.int32, function), 1, 1)
        found[f"{name}_x2"] = (_as(np.int64, function), 2, 2)
    found["cmpswap"] = (_swap_if_equal(1), 1, 2)
    found["cmpswap_x2"] = (_swap_if_equal(2), 2, 4)
    for wide, kind in (("", np.uint32), ("_x2", np.uint64)):
        found[f"rsub{wide}"] = (_as(kind, lambda old, given: given - old), 1 + bool(wide), 1 + bool(wide))
    found["add_f32"] = (_as(np.float32, np.add), 1, 1)
    found["add_f64"] = (_as(np.float64, np.add), 2, 2)
    found["min_f64"] = (_as(np.float64, np.fmin), 2, 2)
    found["max_f64"] = (_as(np.float64, np.fmax), 2, 2)
    found["pk_add_f16"] = (_as(np.float16, np.add), 1, 1)
    found["pk_add_bf16"] = (_as(np.uint16, _packed_bf16), 1, 1)
    return found


GLOBAL = tuple(name for name in table() if not name.startswith("rsub"))
"""The operations that exist outside the LDS as well."""
