"""The builtin ops that tile IR adopts: one record each, plain data without MLIR.

An op is here if the front end emits it or MLIR's canonicaliser may make it. All but `tensor.splat` act element by
element, on scalars, indices and tiles alike. Meanings take arrays (an index is a plain int) and give arrays; where the
result's type matters they take its `dtype` or `shape`, as the meanings of our own ops do.

`ulps` bounds the error of one float evaluation in the result's dtype, for inputs taken as they are; 0 is exact. It is
what LLVM's AMDGPU code generator keeps to without fast-math flags, subnormals included:

* `+ - * /`, square root and conversions round once, to nearest even: 0.5. Division expands into `v_div_scale`,
  `v_div_fmas`, `v_div_fixup`, and the square root of f32 into `v_sqrt_f32` with a correction, for just that reason.
  16-bit floats compute in f32 and round once more, which for these operations is harmless (f32 has more than twice
  their digits and two).
* `v_exp_f32` and `v_log_f32` are within 1 ulp (CDNA3 ISA manual, VOP1). The expansions of `exp`, `exp2`, `log`, `log2`
  around them (`lowerFEXP`, `lowerFLOGCommon`) scale subnormals and carry the argument, or the result, in two parts;
  what is left of their own rounding is below 1 ulp, which makes 2. OpenCL would allow 3.
* `tanh`, `erf`, `sin` and `cos` are our own expansions (`hkc/dialects/tile/functions.py`): against float64 on two
  million arguments tanh stayed below 1.5 ulp and erf below 1 with an exact exponential, whose 2 ulp come on top; sin
  and cos err by one rounding for arguments below 2^53 in magnitude, and are NaN beyond.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

INTEGER_PREDICATES: tuple[Any, ...] = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip
"""By the predicate's number in `arith.cmpi`; from 6 on they compare unsigned."""

ORDERED: tuple[Any, ...] = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal)
"""What predicates 1 to 6 of `arith.cmpf` compare (false for NaN), and 8 to 13 (true for NaN)."""


@dataclass(frozen=True)
class Builtin:
    """A builtin op: its MLIR name, NumPy meaning, error in ulps, and how a kernel author writes it, if at all."""

    name: str
    meaning: Callable[..., Any]
    ulps: float = 0.0
    spelling: str | None = None

    @property
    def elementwise(self) -> bool:
        """Whether the same op on each lane's elements is its lowering."""
        return self.name != "tensor.splat"


def _unsigned(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the operands read as unsigned numbers."""

    def meaning(*operands: Any) -> Any:
        kind = _array(operands[0]).dtype
        result = function(*(_array(x).view(_unsigned_type(kind)) for x in operands))
        return result if result.dtype == np.bool_ else result.view(kind)

    return meaning


def _array(x: Any) -> Any:
    """An operand as something with a dtype: an index is a plain int."""
    return np.asarray(x) if isinstance(x, int) else x


def _unsigned_type(kind: np.dtype[Any]) -> np.dtype[Any]:
    return kind if kind.kind == "b" else np.dtype(f"u{kind.itemsize}")


def _ceil_divide(a: Any, b: Any) -> Any:
    return -np.floor_divide(np.negative(a), b)


def _truncating_divide(a: Any, b: Any) -> Any:
    return np.floor_divide(a - np.fmod(a, b), b)


def _compare_integers(a: Any, b: Any, *, predicate: int) -> Any:
    compare = INTEGER_PREDICATES[predicate]
    return _unsigned(compare)(a, b) if predicate >= 6 else compare(a, b)


def _compare_floats(a: Any, b: Any, *, predicate: int) -> Any:
    nan = np.isnan(a) | np.isnan(b)
    if predicate in (0, 15):
        return np.zeros_like(nan) | (predicate == 15)
    if predicate in (7, 14):
        return nan if predicate == 14 else ~nan
    return ORDERED[predicate - 1](a, b) & ~nan if predicate < 7 else ORDERED[predicate - 8](a, b) | nan


def _sign_extend(x: Any, *, dtype: Any) -> Any:
    x = _array(x)
    wide = x.astype(dtype)
    return -wide if x.dtype == np.bool_ else wide


def _zero_extend(x: Any, *, dtype: Any) -> Any:
    x = _array(x)
    return x.view(_unsigned_type(x.dtype)).astype(dtype)


def _truncate(x: Any, *, dtype: Any) -> Any:
    x = _array(x)
    return (x & 1).astype(dtype) if np.dtype(dtype) == np.bool_ else x.astype(dtype)


def _float_to_unsigned(x: Any, *, dtype: Any) -> Any:
    return x.astype(_unsigned_type(np.dtype(dtype))).view(dtype)


def _convert(x: Any, *, dtype: Any) -> Any:
    return x.astype(dtype)


def _bitcast(x: Any, *, dtype: Any) -> Any:
    return x.view(dtype)


def _splat(x: Any, *, shape: tuple[int, ...]) -> Any:
    return np.broadcast_to(x, shape)


def _reciprocal_root(x: Any) -> Any:
    # MLIR expands it into a square root and a division: two roundings.
    return np.ones((), x.dtype) / np.sqrt(x)


ERF: Any = np.frompyfunc(math.erf, 1, 1)
"""The error function as a ufunc; it gives Python floats."""


def _erf(x: Any) -> Any:
    made = ERF(x)
    return made if hasattr(made, "errors") else np.asarray(made).astype(x.dtype)


TURNS = 2.0**53
"""Arguments of sine and cosine from here on in magnitude give NaN."""


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def meaning(x: Any) -> Any:
        return np.where(np.abs(x.astype(np.float64)) < TURNS, function(x), np.full((), np.nan, x.dtype))

    return meaning


_RECORDS = (
    Builtin("arith.addf", np.add, 0.5, "+"),
    Builtin("arith.subf", np.subtract, 0.5, "-"),
    Builtin("arith.mulf", np.multiply, 0.5, "*"),
    Builtin("arith.divf", np.divide, 0.5, "/"),
    Builtin("arith.negf", np.negative, 0, "-x"),
    Builtin("arith.maximumf", np.maximum, 0, "maximum(a, b)"),
    Builtin("arith.minimumf", np.minimum, 0, "minimum(a, b)"),
    Builtin("arith.maxnumf", np.fmax),
    Builtin("arith.minnumf", np.fmin),
    Builtin("arith.cmpf", _compare_floats, 0, "== != < <= > >="),
    Builtin("arith.addi", np.add, 0, "+"),
    Builtin("arith.subi", np.subtract, 0, "-"),
    Builtin("arith.muli", np.multiply, 0, "*"),
    Builtin("arith.floordivsi", np.floor_divide, 0, "//"),
    Builtin("arith.ceildivsi", _ceil_divide, 0, "cdiv(a, b)"),
    Builtin("arith.divsi", _truncating_divide),
    Builtin("arith.remsi", np.fmod),
    Builtin("arith.divui", _unsigned(np.floor_divide)),
    Builtin("arith.remui", _unsigned(np.remainder)),
    Builtin("arith.ceildivui", _unsigned(lambda a, b: a // b + (a % b != 0))),
    Builtin("arith.maxsi", np.maximum, 0, "maximum(a, b)"),
    Builtin("arith.minsi", np.minimum, 0, "minimum(a, b)"),
    Builtin("arith.maxui", _unsigned(np.maximum)),
    Builtin("arith.minui", _unsigned(np.minimum)),
    Builtin("arith.andi", np.bitwise_and),
    Builtin("arith.ori", np.bitwise_or),
    Builtin("arith.xori", np.bitwise_xor),
    Builtin("arith.shli", np.left_shift),
    Builtin("arith.shrsi", np.right_shift),
    Builtin("arith.shrui", _unsigned(np.right_shift)),
    Builtin("arith.cmpi", _compare_integers, 0, "== != < <= > >="),
    Builtin("arith.select", np.where, 0, "where(condition, a, b)"),
    Builtin("arith.extf", _convert, 0, "cast(x, dtype)"),
    Builtin("arith.truncf", _convert, 0.5, "cast(x, dtype)"),
    Builtin("arith.sitofp", _sign_extend, 0.5, "cast(x, dtype)"),
    Builtin("arith.uitofp", _zero_extend, 0.5, "cast(x, dtype)"),
    Builtin("arith.fptosi", _convert, 0, "cast(x, dtype)"),
    Builtin("arith.fptoui", _float_to_unsigned),
    Builtin("arith.extsi", _sign_extend, 0, "cast(x, dtype)"),
    Builtin("arith.extui", _zero_extend, 0, "cast(x, dtype)"),
    Builtin("arith.trunci", _truncate, 0, "cast(x, dtype)"),
    Builtin("arith.index_cast", _sign_extend, 0, "cast(x, dtype)"),
    Builtin("arith.index_castui", _zero_extend),
    Builtin("arith.bitcast", _bitcast),
    Builtin("math.absf", np.absolute, 0, "abs(x)"),
    Builtin("math.absi", np.absolute, 0, "abs(x)"),
    Builtin("math.exp", np.exp, 2, "exp(x)"),
    Builtin("math.exp2", np.exp2, 2, "exp2(x)"),
    Builtin("math.log", np.log, 2, "log(x)"),
    Builtin("math.log2", np.log2, 2, "log2(x)"),
    Builtin("math.sqrt", np.sqrt, 0.5, "sqrt(x)"),
    Builtin("math.rsqrt", _reciprocal_root, 1, "rsqrt(x)"),
    Builtin("math.tanh", np.tanh, 4, "tanh(x)"),
    Builtin("math.erf", _erf, 3, "erf(x)"),
    Builtin("math.sin", _reduced(np.sin), 1, "sin(x)"),
    Builtin("math.cos", _reduced(np.cos), 1, "cos(x)"),
    Builtin("math.floor", np.floor, 0, "floor(x)"),
    Builtin("math.ceil", np.ceil, 0, "ceil(x)"),
    Builtin("tensor.splat", _splat),
)

BUILTINS: dict[str, Builtin] = {b.name: b for b in _RECORDS}

ULPS: dict[Any, float] = {
    ERF: BUILTINS["math.erf"].ulps,
    np.sin: BUILTINS["math.sin"].ulps,
    np.cos: BUILTINS["math.cos"].ulps,
    **{b.meaning: b.ulps for b in _RECORDS if isinstance(b.meaning, np.ufunc) and b.ulps},
}
"""The error of a NumPy function where it is the meaning of a float op."""
