"""Rounding modes other than to nearest even, for the vector instructions that programs use under them.

The exact result is formed in f64 (rounded to odd where 53 bits do not hold it) and rounded once in the direction that
the mode register asks for: bits 1:0 for f32 results, bits 3:2 for f16 and f64 results and conversions from f64. Other
instructions that would have to round are refused (HK702) while such a mode is set.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hkc.emulate.faults import unsupported
from hkc.emulate.floats import F64, Array, round_to_odd, two_sum

if TYPE_CHECKING:
    from hkc.emulate.decode import Decoded
    from hkc.emulate.waves import Waves

Function = Callable[..., Any]

NEAREST, UP, DOWN, ZERO = range(4)
"""Values of the two fields of the mode register."""

_UNROUNDED = re.compile(
    r"v_(mov|cndmask|min|max|med|floor|ceil|trunc|rndne|fract|frexp|cube|div_(scale|fixup)|trig_preop|"
    # approximations with a bound of their own
    r"rcp|rsq|sqrt|exp|log|sin|cos|"
    # these have results that the format holds, or a rounding of their own
    r"cvt_(f64|f32_f16|f32_bf16|f32_ubyte|off|f32_fp8|f32_bf8|scalef32))"
)


def _sum(a: F64, b: F64) -> F64:
    total, error = two_sum(a, b)
    return np.where(np.isfinite(total), round_to_odd(total, error), total)


def _fused(a: F64, b: F64, c: F64) -> F64:
    return _sum(a * b, c)


_EXACT: dict[str, Callable[..., F64]] = {
    "add": _sum, "sub": lambda a, b: _sum(a, -b), "subrev": lambda a, b: _sum(b, -a), "mul": lambda a, b: a * b,
    "fma": _fused, "fmac": _fused, "fmamk": _fused, "fmaak": _fused,
    "ldexp": lambda a, n: np.ldexp(a, n.astype(np.int32)),
}  # fmt: skip
_CONVERSIONS = {"v_cvt_f16_f32": 2, "v_cvt_f32_f64": 2, "v_cvt_f32_i32": 0, "v_cvt_f32_u32": 0, "v_cvt_f16_i16": 2,
                "v_cvt_f16_u16": 2}  # fmt: skip


def rule(instruction: Decoded, result: str, sources: list[str]) -> Function | None:
    """What to do under a mode that is not to nearest: (waves, *arguments) → result. None: the same as ever."""
    base = instruction.base
    floating = result in ("f16", "f32", "f64") or (result == "half" and "f16" in sources)
    if not floating or _UNROUNDED.match(base):
        return None
    kind: Any = np.float16 if result in ("f16", "half") else np.float32
    name, _, suffix = base.removeprefix("v_").rpartition("_")
    exact = _EXACT.get(name) if suffix in ("f16", "f32") else None
    field = 0 if suffix == "f32" else 2
    if base in _CONVERSIONS:
        exact, field = _as_it_is, _CONVERSIONS[base]
    if exact is None:
        return _refusal(instruction)
    return _rounded(exact, kind, field, result == "half")


def refuse(w: Waves, instruction: Decoded) -> None:
    """Raise HK702 if a mode is set that this instruction can't follow."""
    if not w.nearest:
        raise unsupported(instruction, "a rounding mode other than to nearest even")


def _as_it_is(a: F64) -> F64:
    return a


def _refusal(instruction: Decoded) -> Function:
    def run(w: Waves, *arguments: Array) -> Array:
        raise unsupported(instruction, "a rounding mode other than to nearest even")

    return run


def _rounded(exact: Callable[..., F64], kind: Any, field: int, as_bits: bool) -> Function:
    def run(w: Waves, *arguments: Array) -> Array:
        wide = [a.astype(np.float64) for a in arguments]
        value = exact(*wide)
        mode = w.mode >> field & 3
        found = round_towards(value, kind, mode)
        if mode == DOWN and len(arguments) > 1 and exact is not _EXACT["mul"]:
            # a sum that cancels is -0 when rounding down
            cancelled = (value == 0) & (wide[0] != 0) & (wide[-1] != 0)
            found = np.where(cancelled, kind(-0.0), found)
        return found.view(np.uint16) if as_bits else found

    return run


def round_towards(value: F64, kind: Any, mode: int) -> Array:
    """f64 (rounded to odd) to `kind` in one of the four modes."""
    near: Array = value.astype(kind)
    if mode == NEAREST:
        return near
    back = near.astype(np.float64)
    if mode == UP:
        return np.where(back < value, np.nextafter(near, kind(np.inf)), near)
    if mode == DOWN:
        return np.where(back > value, np.nextafter(near, kind(-np.inf)), near)
    return np.where(np.abs(back) > np.abs(value), np.nextafter(near, kind(0)), near)
