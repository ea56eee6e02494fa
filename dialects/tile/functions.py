"""Functions that the chip has no instruction for, as arithmetic on scalars or per-lane vectors. Worker process only.

The bounds that they keep are in `hkc.dialects.builtin`. 16-bit floats go through f32 and round once more.

`tanh` and `erf` in f32: an odd polynomial near 0, fitted to the relative error, and 1 - 2 / (exp(2x) + 1), or
1 - exp(polynomial), from there on. `sin` and `cos` in f64, which costs these chips little: the multiple of pi/2 is
taken off by two fused steps with a pi/2 of 106 bits (exact for arguments below 2^53; beyond, the result is NaN), and
Taylor's series on a quarter turn errs by less than 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from hkc.dialects import build
from hkc.dialects.builtin import TURNS

HALF_PI = (math.pi / 2, 6.123233995736766e-17)
"""pi/2 in two parts: the double, and what it lacks."""

TANH = (-0.00658486969769001, 0.02129961922764778, -0.0539085753262043, 0.13333113491535187, -0.3333333134651184)
TANH_NEAR = 0.55
"""tanh(x) = x + x^3 P(x^2) below `TANH_NEAR`; coefficients from the highest power."""

ERF = (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
ERF_FAR = (-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1, -6.34846687e-1, -1.28717512e-1)
ERF_NEAR = 0.921875
"""erf(x) = x + x P(x^2) below `ERF_NEAR`, else 1 - exp(x Q(x) - x)."""


def _unary(name: str, x: Any) -> Any:
    return build.op(name, [x], [x.type])


def _times(a: Any, b: Any) -> Any:
    return build.binary("mulf", a, b)


def _fused(a: Any, b: Any, c: Any) -> Any:
    return build.op("math.fma", [a, b, c], [c.type])


def _choose(condition: Any, a: Any, b: Any) -> Any:
    return build.op("arith.select", [condition, a, b], [a.type])


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """By Horner's rule, the highest power first."""
    total = build.number(coefficients[0], x.type)
    for c in coefficients[1:]:
        total = _fused(total, x, build.number(c, x.type))
    return total


def _tanh(x: Any) -> Any:
    def number(value: float) -> Any:
        return build.number(value, x.type)

    size, square = _unary("math.absf", x), _times(x, x)
    near = _fused(_polynomial(square, TANH), _times(square, x), x)
    grown = build.binary("addf", _unary("math.exp", build.binary("addf", size, size)), number(1))
    far = build.binary("subf", number(1), build.binary("divf", number(2), grown))
    signed = build.op("math.copysign", [far, x], [x.type])
    return _choose(build.cmpf("olt", size, number(TANH_NEAR)), near, signed)


def _erf(x: Any) -> Any:
    size, square = _unary("math.absf", x), _times(x, x)
    near = _fused(_polynomial(square, ERF), x, x)
    power = _fused(_polynomial(size, ERF_FAR), size, _unary("arith.negf", size))
    far = build.binary("subf", build.number(1, x.type), _unary("math.exp", power))
    signed = build.op("math.copysign", [far, x], [x.type])
    return _choose(build.cmpf("ogt", size, build.number(ERF_NEAR, x.type)), signed, near)


def _turn(quarters: int) -> Callable[[Any], Any]:
    """The sine of an f32 argument `quarters` quarter turns further on: 0 sin, 1 cos."""

    def function(x: Any) -> Any:
        wide = build.op("arith.extf", [x], [build.like(x.type, build.elements_of("f64"))])

        def number(value: float) -> Any:
            return build.number(value, wide.type)

        turns = _unary("math.roundeven", _times(wide, number(2 / math.pi)))
        rest = _fused(turns, number(-HALF_PI[0]), wide)
        rest = _fused(turns, number(-HALF_PI[1]), rest)
        shifted = build.binary("addf", turns, number(quarters))
        quarter = _fused(_unary("math.floor", _times(shifted, number(0.25))), number(-4), shifted)
        square = _times(rest, rest)
        sine = _fused(_polynomial(square, _series(3)), _times(square, rest), rest)
        cosine = _fused(_polynomial(square, _series(2)), square, number(1))
        odd = build.binary("ori", *(build.cmpf("oeq", quarter, number(q)) for q in (1, 3)))
        value = _choose(odd, cosine, sine)
        turned = _choose(build.cmpf("oge", quarter, number(2)), _unary("arith.negf", value), value)
        known = build.cmpf("olt", _unary("math.absf", wide), number(TURNS))
        return build.op("arith.truncf", [_choose(known, turned, number(math.nan))], [x.type])

    return function


def _series(first: int) -> list[float]:
    """Taylor's coefficients of sin (from x^3) or cos (from x^2), in powers of x^2, the highest first."""
    return [(-1) ** (k // 2) / math.factorial(k) for k in range(first + 12, first - 1, -2)]


def _in_f32(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of f32 for 16-bit floats too."""

    def wrapped(x: Any) -> Any:
        kind = build.like(x.type, build.elements_of("f32"))
        if x.type == kind:
            return function(x)
        wide = function(build.op("arith.extf", [x], [kind]))
        return build.op("arith.truncf", [wide], [x.type])

    return wrapped


EXPANSIONS: dict[str, Callable[..., Any]] = {
    "math.tanh": _in_f32(_tanh),
    "math.erf": _in_f32(_erf),
    "math.sin": _in_f32(_turn(0)),
    "math.cos": _in_f32(_turn(1)),
}
"""Builtin ops that become arithmetic while tiles become vectors."""
