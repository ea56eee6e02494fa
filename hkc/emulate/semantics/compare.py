"""Vector comparisons: every type and predicate, `v_cmp_*` and `v_cmpx_*`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.emulate.operands import Array
from hkc.emulate.vector import valu


def _constant(value: bool) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.full(np.broadcast_shapes(a.shape, b.shape), value)


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


_INTEGER: dict[str, Callable[[Array, Array], Any]] = {
    "f": _constant(False), "lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater, "ne": np.not_equal,
    "ge": np.greater_equal, "t": _constant(True),
}  # fmt: skip
_FLOAT: dict[str, Callable[[Array, Array], Any]] = {
    "f": _constant(False), "lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater,
    "lg": lambda a, b: (a < b) | (a > b), "ge": np.greater_equal,
    "o": lambda a, b: ~_unordered(a, b), "u": _unordered,
    "nge": lambda a, b: ~(a >= b), "nlg": lambda a, b: ~((a < b) | (a > b)), "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b), "neq": lambda a, b: ~(a == b), "nlt": lambda a, b: ~(a < b),
    "tru": _constant(True),
}  # fmt: skip
for _prefix in ("v_cmp", "v_cmpx"):
    for _kind in ("i16", "u16", "i32", "u32", "i64", "u64"):
        for _name, _function in _INTEGER.items():
            valu(f"mask = {_kind} {_kind}", f"{_prefix}_{_name}_{_kind}")(_function)
    for _kind in ("f16", "f32", "f64"):
        for _name, _function in _FLOAT.items():
            valu(f"mask = {_kind} {_kind}", f"{_prefix}_{_name}_{_kind}")(_function)
