"""Typed bit patterns and their arithmetic, for `pseudocode`."""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

_TYPE = re.compile(r"(bf(?=16)|[uifb]|bf|fp)(\d+)$")
_FORMATS = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}


@dataclass(frozen=True)
class Value:
    """`kind`: u, i, b (plain bits), f, bf, or r: an exact rational, held in `exact`."""

    kind: str
    width: int
    bits: int
    exact: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", self.bits & (1 << self.width) - 1)


def parse_type(name: str) -> tuple[str, int]:
    """`u32` → ("u", 32); formats of 8 bits and less are plain bits."""
    found = _TYPE.match(name)
    if not found:
        raise NotImplementedError(name)
    kind, width = found.group(1), int(found.group(2))
    return ("b" if kind == "fp" or (kind == "bf" and width < 16) else kind), width


def as_type(value: Value, kind: str, width: int) -> Value:
    """The same bits seen as another type."""
    return Value(kind, width, value.bits)


def integer(value: Value) -> int:
    """The number that the bits mean."""
    if value.kind == "i" and value.bits >> value.width - 1:
        return value.bits - (1 << value.width)
    return value.bits


def number(value: Value) -> float:
    """The floating-point number that the bits mean; exact for every format."""
    if value.kind == "r":
        return float(value.exact)
    if value.kind == "bf":
        return float(struct.unpack("<f", struct.pack("<I", value.bits << 16))[0])
    if value.kind != "f":
        return float(integer(value))
    code, raw = _FORMATS[value.width]
    return float(struct.unpack(code, struct.pack(raw, value.bits))[0])


def from_float(x: float, width: int) -> Value:
    """The nearest value of the format, ties to even."""
    if math.isnan(x) or math.isinf(x) or x == 0:
        return _special(x, width)
    return from_exact(Fraction(x), width)


def _special(x: float, width: int) -> Value:
    exponent, fraction = {16: (5, 10), 32: (8, 23), 64: (11, 52)}[width]
    sign = int(math.copysign(1, x) < 0 and not math.isnan(x)) << width - 1
    top = ((1 << exponent) - 1) << fraction
    return Value("f", width, sign | (0 if x == 0 else top | int(math.isnan(x)) << fraction - 1))


def from_exact(x: Fraction, width: int) -> Value:
    """Rounds a rational once."""
    exponent_bits, fraction = {16: (5, 10), 32: (8, 23), 64: (11, 52)}[width]
    if x == 0:
        return Value("f", width, 0)
    bias = (1 << exponent_bits - 1) - 1
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    exponent = max(exponent, 1 - bias)
    scaled = round(size / Fraction(2) ** (exponent - fraction))  # Python rounds halves to even
    bits = scaled + ((exponent + bias - 1) << fraction)
    bits = min(bits, ((1 << exponent_bits) - 1) << fraction)
    return Value("f", width, bits | int(x < 0) << width - 1)


def _moved_nan(value: Value, width: int) -> Value:
    """A NaN in another format: sign and the upper part of the fraction stay."""
    old, new = (({16: 10, 32: 23, 64: 52}[w]) for w in (value.width, width))
    fraction = (value.bits & (1 << old) - 1) << 52 >> old >> 52 - new
    return Value("f", width, from_float(math.nan, width).bits | fraction | value.bits >> value.width - 1 << width - 1)


def convert(value: Value, kind: str, width: int) -> Value:
    """A cast: integers wrap, floats round; plain bits are only renamed."""
    if kind == "f":
        if value.kind == "b" or (value.kind in "ui" and value.width >= width and value.bits > 1 << 20):
            return Value("f", width, value.bits)  # `32'F(0xffc00000)`
        if value.kind == "f" and value.width == width:
            return value
        if value.kind == "r":
            return value  # a power of two on its way into a product
        if value.kind == "f" and math.isnan(number(value)):
            return _moved_nan(value, width)
        return from_float(number(value), width)
    if kind == "r":
        return value
    if value.kind in ("f", "bf", "r") and kind in ("u", "i"):
        return Value(kind, width, int(number(value)))
    return Value(kind, width, integer(value))


def truth(value: Value) -> bool:
    """Whether a condition holds."""
    return value.bits != 0


def _wider(a: Value, b: Value) -> tuple[str, int]:
    width = max(a.width, b.width, 32)
    signed = a.kind == "i" and b.kind == "i"
    return ("i" if signed else "u"), width


def _floating(name: str, a: Value, b: Value) -> Value:
    widths = [v.width for v in (a, b) if v.kind in ("f", "bf")]
    width = max([32, *widths]) if "bf" in (a.kind, b.kind) else max(widths, default=64)
    if "r" in (a.kind, b.kind):
        scale, other = (a, b) if a.kind == "r" else (b, a)
        if other.kind == "r":
            return Value("r", 64, 0, scale.exact * other.exact)
        if not math.isfinite(number(other)) or number(other) == 0:
            return other
        return from_exact(scale.exact * Fraction(number(other)), width)
    x, y = number(a), number(b)
    if name == "/":
        if y == 0:
            bad = x == 0 or math.isnan(x)
            return from_float(math.nan if bad else math.copysign(math.inf, x) * math.copysign(1, y), width)
        if math.isfinite(x) and math.isfinite(y) and x != 0:
            return from_exact(Fraction(x) / Fraction(y), width)
        return from_float(x / y, width)
    return from_float({"+": operator.add, "-": operator.sub, "*": operator.mul}[name](x, y), width)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<>": lambda a, b: a < b or a > b, "<": operator.lt,
    ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor,
}  # fmt: skip


def binary(name: str, a: Value, b: Value) -> Value:
    """Any two-operand operator."""
    floating = any(v.kind in ("f", "bf", "r") for v in (a, b))
    if name in _COMPARE:
        if name == "==" and floating and b.width == a.width and number(a) == number(b) == 0 and b.bits >> b.width - 1:
            return Value("u", 1, int(a.bits == b.bits))  # `x == -0.0` asks for the sign as well
        read: Any = number if floating else integer
        return Value("u", 1, int(_COMPARE[name](read(a), read(b))))
    if name == "**":
        return Value("r", 64, 0, Fraction(2) ** max(-6000, min(6000, integer(b))))
    if name == "<<":
        return Value(a.kind, a.width, a.bits << integer(b))
    if name == ">>":
        return Value(a.kind, a.width, integer(a) >> integer(b))
    if floating:
        return _floating(name, a, b)
    kind, width = _wider(a, b)
    return Value(kind, width, _INTEGER[name](integer(a), integer(b)))


def _negate(value: Value) -> Value:
    if value.kind in ("f", "bf"):
        return Value(value.kind, value.width, value.bits ^ 1 << value.width - 1)
    return Value(value.kind, value.width, -integer(value))


ARITHMETIC: dict[str, Callable[[Value], Value]] = {
    "unary -": _negate,
    "unary ~": lambda v: Value(v.kind, v.width, ~v.bits),
    "unary !": lambda v: Value("u", 1, int(v.bits == 0)),
}
"""Operators with one operand."""
