"""16-bit integer and f16 vector instructions (one value per lane)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.emulate.floats import fma16
from hkc.emulate.operands import Array
from hkc.emulate.semantics.valu_float import (
    _in_mode,
    _three,
    fraction,
    frexp_exponent,
    frexp_mantissa,
    maximum,
    median,
    minimum,
    scale_by,
)
from hkc.emulate.vector import valu

_15 = np.uint16(15)

_FLOAT: dict[str, Callable[[Array, Array], Array]] = {
    "v_add_f16": lambda a, b: a + b, "v_sub_f16": lambda a, b: a - b, "v_subrev_f16": lambda a, b: b - a,
    "v_mul_f16": lambda a, b: a * b,
}  # fmt: skip
for _name, _function in _FLOAT.items():
    valu("f16 = f16 f16", _name)(_function)
valu("f16 = f16 f16", "v_min_f16", waves=True)(_in_mode(minimum))
valu("f16 = f16 f16", "v_max_f16", waves=True)(_in_mode(maximum))
valu("f16 = f16 f16 f16", "v_min3_f16", waves=True)(_three(minimum))
valu("f16 = f16 f16 f16", "v_max3_f16", waves=True)(_three(maximum))
valu("f16 = f16 f16 f16", "v_med3_f16", waves=True)(median)
valu("half = f16 f16 f16", "v_fma_f16")(lambda a, b, c: fma16(a, b, c).view(np.uint16))
valu("half = f16 f16 f16", "v_mad_f16")(lambda a, b, c: (a * b + c).astype(np.float16).view(np.uint16))
for _name, _one in (
    ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("rndne", np.rint), ("fract", fraction),
    ("frexp_mant", frexp_mantissa),
):  # fmt: skip
    valu("f16 = f16", f"v_{_name}_f16")(_one)
valu("i16 = f16", "v_frexp_exp_i16_f16")(frexp_exponent)
valu("f16 = f16 i16", "v_ldexp_f16")(scale_by)


def _clamped(function: Callable[[Array, Array], Array], low: int, high: int) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.clip(function(a.astype(np.int32), b.astype(np.int32)), low, high)


_U16: dict[str, Callable[[Any, Any], Any]] = {
    "v_add_u16": lambda a, b: a + b, "v_sub_u16": lambda a, b: a - b, "v_subrev_u16": lambda a, b: b - a,
    "v_mul_lo_u16": lambda a, b: a * b, "v_max_u16": np.maximum, "v_min_u16": np.minimum,
    "v_lshlrev_b16": lambda n, a: a << (n & _15), "v_lshrrev_b16": lambda n, a: a >> (n & _15),
}  # fmt: skip
for _name, _function in _U16.items():
    valu("u16 = u16 u16", _name, clamped=_clamped(_function, 0, 0xFFFF))(_function)
valu("i16 = u16 i16", "v_ashrrev_i16")(lambda n, a: a >> (n & _15).astype(np.int16))
valu("i16 = i16 i16", "v_max_i16")(np.maximum)
valu("i16 = i16 i16", "v_min_i16")(np.minimum)
valu("half = i16 i16", "v_add_i16", clamped=_clamped(lambda a, b: a + b, -0x8000, 0x7FFF))(lambda a, b: a + b)
valu("half = i16 i16", "v_sub_i16", clamped=_clamped(lambda a, b: a - b, -0x8000, 0x7FFF))(lambda a, b: a - b)
valu("half = u16 u16 u16", "v_mad_u16", "v_mad_i16")(lambda a, b, c: a * b + c)
# the older forms clear the upper half
valu("u16 = u16 u16 u16", "v_mad_legacy_u16", "v_mad_legacy_i16")(lambda a, b, c: a * b + c)
valu("f16 = f16 f16 f16", "v_mad_legacy_f16", "v_madmk_f16", "v_madak_f16")(lambda a, b, c: a * b + c)
valu("f16 = f16 f16 dst", "v_mac_f16")(lambda a, b, c: a * b + c)
valu("f16 = f16 f16 f16", "v_fma_legacy_f16")(fma16)
valu("u32 = u16 u16 u32", "v_mad_u32_u16")(lambda a, b, c: a.astype(np.uint32) * b + c)
valu("i32 = i16 i16 i32", "v_mad_i32_i16")(lambda a, b, c: a.astype(np.int32) * b + c)
for _kind in ("i16", "u16"):
    valu(f"{_kind} = {_kind} {_kind} {_kind}", f"v_min3_{_kind}")(lambda a, b, c: np.minimum(np.minimum(a, b), c))
    valu(f"{_kind} = {_kind} {_kind} {_kind}", f"v_max3_{_kind}")(lambda a, b, c: np.maximum(np.maximum(a, b), c))
    valu(f"{_kind} = {_kind} {_kind} {_kind}", f"v_med3_{_kind}")(
        lambda a, b, c: np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    )
valu("u32 = u16 u16", "v_pack_b32_f16")(lambda a, b: a.astype(np.uint32) | b.astype(np.uint32) << np.uint32(16))
