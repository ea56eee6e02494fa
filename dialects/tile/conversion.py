"""How elements change their dtype, on per-lane vectors. Worker process only.

Floats of 8, 6 and 4 bits are codes in i8 and go through f32, which holds all of their values: decoding moves the code's
fields to where f32 has them and scales by a power of two, encoding rounds integers. Where the chip has instructions for
a format (`EncodeF8`), they do it; all else needs no instruction that only some chips have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hkc.dialects import build
from hkc.dialects.load import create
from hkc.dialects.tile.convert import largest
from hkc.dialects.tile.reduce import integer_range
from hkc.dialects.wave.convert import DecodeF8, EncodeF8
from hkc.support.dtypes import DTYPES, DType

MANTISSA, BIAS, INFINITY = 23, 127, 0x7F800000
"""f32: stored mantissa bits, exponent bias, the code of infinity."""


@dataclass(frozen=True)
class Format:
    """A float of 8 bits or fewer: mantissa bits, exponent bias, position of the sign, the codes (without sign) of the
    largest number, of what is beyond it and of NaN, and whether the code of -0 is NaN."""

    mantissa: int
    bias: int
    sign: int
    top: int
    beyond: int
    nan: int | None
    no_minus_zero: bool = False

    @property
    def magnitude(self) -> int:
        """The bits of a code without its sign."""
        return (1 << self.sign) - 1


FORMATS = {
    "f8e4m3fn": Format(3, 7, 7, 0x7E, 0x7F, 0x7F),
    "f8e4m3fnuz": Format(3, 8, 7, 0x7F, 0x80, 0x80, True),
    "f8e5m2": Format(2, 15, 7, 0x7B, 0x7C, 0x7E),
    "f8e5m2fnuz": Format(2, 16, 7, 0x7F, 0x80, 0x80, True),
    "f6e2m3": Format(3, 1, 5, 0x1F, 0x1F, None),
    "f6e3m2": Format(2, 3, 5, 0x1F, 0x1F, None),
    "f4e2m1": Format(1, 1, 3, 0x07, 0x07, None),
}
"""The OCP formats and AMD's FNUZ ones (facts of the formats' specifications; e8m0 has its own rules)."""


def convert(v: Any, source: str, target: str, saturate: bool, rounding: str, native: Mapping[str, str]) -> Any:
    """A vector of `source` elements as one of `target` elements. `native` are the 8-bit floats that the chip itself
    converts, with its names for them."""
    if DTYPES[source].is_narrow and source != target:
        v = create(DecodeF8, v, format=native[source]).result if source in native else decode(v, source)
        source = "f32"
    if source == target:
        return v
    old, new, toward_zero = DTYPES[source], DTYPES[target], rounding == "toward_zero"
    if new.kind == "bool":
        return build.cmpf("une", v, build.zero(v.type)) if old.is_float else build.cmp("ne", v, 0)
    if new.is_float:
        v, old = (v, old) if old.is_float else _exact(v, old, new)
        if not new.is_narrow:
            return v if old == new else _to_float(v, old, new, saturate, toward_zero)
        v = _to_f32(v, old, new, saturate, toward_zero)
        if target in native and not toward_zero:
            return create(EncodeF8, v, format=native[target]).result
        return encode(v, target, toward_zero)
    if old.is_float:
        return _to_integer(v, old, new, saturate, rounding == "nearest_even")
    return _integers(v, old, new, saturate)


def _as(name: str, v: Any, target: str) -> Any:
    return build.op(f"arith.{name}", [v], [build.like(v.type, build.elements_of(target))])


def _bits(v: Any) -> Any:
    """A vector of floats as integers of the same width."""
    return build.op("arith.bitcast", [v], [build.like(v.type, build.int_type(v.type.element_type.width))])


def _of_bits(v: Any, name: str) -> Any:
    return build.op("arith.bitcast", [v], [build.like(v.type, build.elements_of(name))])


def _choose(condition: Any, a: Any, b: Any) -> Any:
    a, b = (build.number(x, y.type) if isinstance(x, (int, float)) else x for x, y in ((a, b), (b, a)))
    return build.op("arith.select", [condition, a, b], [a.type])


def _abs(v: Any) -> Any:
    return build.op("math.absf", [v], [v.type])


# -- floats to floats


def _to_float(v: Any, old: DType, new: DType, saturate: bool, toward_zero: bool) -> Any:
    if old.bits == 16 and (new.bits == 16 or saturate):
        return _to_float(_as("extf", v, "f32"), DTYPES["f32"], new, saturate, toward_zero)
    if saturate:
        v = _clamp(v, largest(new))
    if old.name == "f64" and new.bits < 32 and not toward_zero:
        # One rounding: the code generator's own way from f64 to bf16 has two.
        v, old = _round_to_odd(v), DTYPES["f32"]
    if new.bits > old.bits:
        return _as("extf", v, new.name)
    if new == old:
        return v
    near = _as("truncf", v, new.name)
    return _stepped_back(near, v, old) if toward_zero else near


def _to_f32(v: Any, old: DType, new: DType, saturate: bool, toward_zero: bool) -> Any:
    """f32 that a narrow float is then made of, with as much of the number as its rounding asks for."""
    v = _as("extf", v, "f32") if old.bits == 16 else v
    v = _clamp(v, largest(new)) if saturate else v
    if old.name != "f64":
        return v
    return _cut(v) if toward_zero else _round_to_odd(v)


def _clamp(v: Any, top: float) -> Any:
    """NaN stays."""
    limit = build.number(top, v.type)
    lowest = build.number(-top, v.type)
    v = _choose(build.cmpf("ogt", v, limit), limit, v)
    return _choose(build.cmpf("olt", v, lowest), lowest, v)


def _stepped_back(near: Any, v: Any, old: DType) -> Any:
    """The neighbour towards zero of a number that was rounded away from it."""
    away = build.cmpf("ogt", _abs(_as("extf", near, old.name)), _abs(v))
    words = _bits(near)
    back = _choose(away, build.sub(words, 1), words)
    return build.op("arith.bitcast", [back], [near.type])


def _cut(v: Any) -> Any:
    """f64 as f32, rounded towards zero."""
    return _stepped_back(_as("truncf", v, "f32"), v, DTYPES["f64"])


def _round_to_odd(v: Any) -> Any:
    """f64 as f32, towards zero with the last bit set where that was inexact: rounding again is then right."""
    cut = _cut(v)
    inexact = build.cmpf("une", _as("extf", cut, "f64"), v)
    words = _bits(cut)
    number = build.both(inexact, build.cmpf("ord", v, v))
    return build.op("arith.bitcast", [_choose(number, build.binary("ori", words, 1), words)], [cut.type])


# -- narrow floats


def decode(v: Any, name: str) -> Any:
    """Codes as f32; exact."""
    word = _as("extui", v, "i32")
    if name == "e8m0":
        small = _choose(build.cmp("eq", word, 0), 1 << (MANTISSA - 1), build.binary("shli", word, MANTISSA))
        return _of_bits(_choose(build.cmp("eq", word, 0xFF), 0x7FC00000, small), "f32")
    form = FORMATS[name]
    size = build.binary("andi", word, form.magnitude)
    fields = _of_bits(build.binary("shli", size, MANTISSA - form.mantissa), "f32")
    value = _bits(build.binary("mulf", fields, build.number(2.0 ** (BIAS - form.bias), fields.type)))
    sign = build.binary("shli", build.binary("andi", word, 1 << form.sign), 31 - form.sign)
    if form.no_minus_zero:
        value = _choose(build.cmp("eq", word, form.nan or 0), 0x7FC00000, value)
    elif form.beyond != form.top:
        value = _choose(build.cmp("uge", size, form.beyond), INFINITY if form.beyond != form.nan else 0x7FC00000, value)
        value = _choose(build.cmp("ugt", size, form.beyond), 0x7FC00000, value)
    return _of_bits(build.binary("ori", value, sign), "f32")


def encode(v: Any, name: str, toward_zero: bool) -> Any:
    """f32 as codes."""
    bits = _bits(v)
    size = build.binary("andi", bits, 0x7FFFFFFF)
    if name == "e8m0":
        return _encode_scale(bits, size, toward_zero)
    form = FORMATS[name]
    code = _rounded(v, size, form, toward_zero)
    limit = form.top if toward_zero else form.beyond
    code = _choose(build.cmp("ugt", code, form.top), limit, code)
    code = _choose(build.cmp("uge", size, INFINITY), form.beyond, code)
    sign = build.binary("andi", build.binary("shrui", bits, 31 - form.sign), 1 << form.sign)
    if form.no_minus_zero:
        sign = _choose(build.cmp("eq", code, 0), 0, sign)
    code = build.binary("ori", code, sign)
    if form.nan is not None:
        nan = build.cmp("ugt", size, INFINITY)
        signed = form.nan if form.no_minus_zero else build.binary("ori", sign, form.nan)
        code = _choose(nan, signed, code)
    return _as("trunci", code, "i8")


def _rounded(v: Any, size: Any, form: Format, toward_zero: bool) -> Any:
    """The code of a magnitude, as if exponents went on for ever."""
    shift = MANTISSA - form.mantissa
    moved = size
    if not toward_zero:
        even = build.binary("andi", build.binary("shrui", size, shift), 1)
        moved = build.add(build.add(size, (1 << (shift - 1)) - 1), even)
    normal = build.sub(build.binary("shrui", moved, shift), (BIAS - form.bias) << form.mantissa)
    steps = build.binary("mulf", _abs(v), build.number(2.0 ** (form.bias - 1 + form.mantissa), v.type))
    least = build.cmp("ult", size, (BIAS + 1 - form.bias) << MANTISSA)
    steps = _choose(least, steps, 0.0)
    whole = build.op("math.trunc" if toward_zero else "math.roundeven", [steps], [steps.type])
    return _choose(least, _as("fptoui", whole, "i32"), normal)


def _encode_scale(bits: Any, size: Any, toward_zero: bool) -> Any:
    """The nearest power of two, ties to the larger; what is not positive is NaN, and so is what is beyond 2^127."""
    half = 0 if toward_zero else 1 << (MANTISSA - 1)
    normal = build.binary("shrui", build.add(size, half), MANTISSA)
    tiny = _as("extui", build.cmp("uge", size, 3 << (MANTISSA - 2)), "i32") if half else 0
    code = _choose(build.cmp("ult", size, 1 << MANTISSA), tiny, normal)
    code = _choose(build.cmp("sle", bits, 0), 0xFF, build.binary("minui", code, 0xFF))
    return _as("trunci", code, "i8")


# -- integers


def _exact(v: Any, old: DType, new: DType) -> tuple[Any, DType]:
    """Integers as floats that hold them, or as much of them as one more rounding to `new` asks for."""
    name = "uitofp" if old.kind in ("uint", "bool") else "sitofp"
    if old.bits <= 16 and new.name != "f64":
        return _as(name, v, "f32"), DTYPES["f32"]
    if new.is_narrow or (old.bits == 64 and new.name == "f32"):
        return _as(name, v, "f32"), DTYPES["f32"]
    if old.bits == 64 and new.name != "f64":
        v = _sticky(v)
    return _as(name, v, "f64"), DTYPES["f64"]


def _sticky(v: Any) -> Any:
    """i64 with at most 53 significant bits: the lowest of them says whether any below was set."""
    below = build.binary("andi", v, 0x7FF)
    rest = _choose(build.cmp("ne", below, 0), 1 << 11, build.zero(v.type))
    cut = build.binary("ori", build.binary("andi", v, ~0x7FF), rest)
    size = build.op("math.absi", [v], [v.type])
    return _choose(build.cmp("ult", size, 1 << 53), v, cut)


def _to_integer(v: Any, old: DType, new: DType, saturate: bool, nearest: bool) -> Any:
    if old.bits == 16:
        v = _as("extf", v, "f32")
    if nearest:
        v = build.op("math.roundeven", [v], [v.type])
    name = "fptoui" if new.kind == "uint" else "fptosi"
    if not saturate:
        return _as(name, v, f"i{new.bits}")
    low, high = integer_range(new)
    above = build.cmpf("oge", v, build.number(math.ldexp(1.0, (high + 1).bit_length() - 1), v.type))
    below = build.cmpf("olt", v, build.number(float(low), v.type))
    bad = build.binary("ori", build.binary("ori", above, below), build.cmpf("uno", v, v))
    inside = _as(name, _choose(bad, 0.0, v), f"i{new.bits}")
    return _choose(above, high, _choose(below, low, inside))


def _integers(v: Any, old: DType, new: DType, saturate: bool) -> Any:
    if saturate and old.kind != "bool":
        v, old = _between(v, old, new)
    if old.bits == new.bits:
        return v
    if old.bits > new.bits:
        return _as("trunci", v, f"i{new.bits}")
    return _as("extsi" if old.kind == "int" else "extui", v, f"i{new.bits}")


def _between(v: Any, old: DType, new: DType) -> tuple[Any, DType]:
    """Integers clamped to a range, in 32 bits where those hold them, else in 64."""
    wide = DTYPES["i32" if old.bits < 32 or old.name == "i32" else "i64"]
    v = _integers(v, old, wide, False)
    low, high = integer_range(new)
    least, most = integer_range(wide)
    v = build.binary("maxsi", v, max(low, least))
    return build.binary("minsi", v, min(high, most)), wide
