"""What follows the sums of a product: the caller's words, checked, as constants and arguments of the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hkc.kernels.arrays import as_array, broadcast, dtype_of, flat, rows_of, shown, unread
from hkc.support.dtypes import DTYPES, dtype
from hkc.support.errors import error

ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4}
"""What `activation` may be, and its number in the kernels."""

Constants = dict[str, str | int | bool]


@dataclass(frozen=True)
class Epilogue:
    """`(activation(alpha * row_scales * column_scales * sums + beta * out + bias) + residual) * out_scale`."""

    bias: Any = None
    activation: str | None = None
    residual: Any = None
    alpha: float = 1.0
    beta: float = 0.0
    row_scales: Any = None
    column_scales: Any = None
    out_scale: float = 1.0

    def checked(self, shape: Sequence[int], rows: bool) -> Epilogue:
        """The same for a result of this shape, the arrays as the kernels want them: where all `rows` of a batch are
        those of one matrix, their factors may differ from matrix to matrix. Raises `HkcError`."""
        columns = shape[-1:]
        factors = self.row_scales
        if factors is not None:
            wanted = shape[:-1] if rows else shape[-2:-1]
            factors = broadcast("row_scales", as_array("row_scales", factors, 1), wanted, "the result's rows are")
            factors = _floats("row_scales", flat(factors, (rows_of(shape),) if rows else wanted))
        added = self.residual
        if added is not None:
            added = broadcast("residual", as_array("residual", added, 1), shape, "the result is")
        return Epilogue(
            _vector("bias", self.bias, columns),
            self.activation,
            added,
            number("alpha", self.alpha),
            number("beta", self.beta),
            factors,
            _floats("column_scales", _vector("column_scales", self.column_scales, columns)),
            number("out_scale", self.out_scale),
        )

    def constants(self, out: str, total: str) -> Constants:
        """Which steps the kernel has, for results of one dtype of sums of another."""
        return {
            "OUT": out, "SUM": total, "SATURATE": dtype(out).bits <= 8, "ACT": activation_number(self.activation),
            "SCALED": self.alpha != 1.0, "ROWS": self.row_scales is not None,
            "COLUMNS": self.column_scales is not None, "BETA": self.beta != 0.0, "BIASED": self.bias is not None,
            "ADDED": self.residual is not None, "RESCALED": self.out_scale != 1.0,
            "TR": "f32" if self.residual is None else dtype_of("residual", self.residual),
            "TBIAS": "f32" if self.bias is None else dtype_of("bias", self.bias),
        }  # fmt: skip

    def arguments(self, shape: Sequence[int], like: Any) -> dict[str, Any]:
        """What the kernels take, for a result whose extents they see as `shape`."""
        rows, columns = shape[-2:-1], shape[-1:]
        return {
            "RS": unread(rows, "f32", like) if self.row_scales is None else self.row_scales,
            "CS": unread(columns, "f32", like) if self.column_scales is None else self.column_scales,
            "BIAS": unread(columns, "f32", like) if self.bias is None else self.bias,
            "R": unread(shape, "f32", like) if self.residual is None else flat(self.residual, shape),
            "alpha": self.alpha, "beta": self.beta, "scale": self.out_scale,
        }  # fmt: skip

    @property
    def arrays(self) -> dict[str, Any]:
        """Those that are given, by name."""
        named = {n: getattr(self, n) for n in ("bias", "residual", "row_scales", "column_scales")}
        return {name: value for name, value in named.items() if value is not None}


def activation_number(name: str | None) -> int:
    """What the kernels call it. Raises `HkcError` HK501 for one that there isn't."""
    if not (name is None or isinstance(name, str)) or name not in ACTIVATIONS:
        raise error("HK501", f"there is no activation `{name}`", hint=", ".join(a for a in ACTIVATIONS if a))
    return ACTIVATIONS[name]


def number(what: str, value: Any) -> float:
    """A number. Raises `HkcError` HK502 for what is none."""
    try:
        if not isinstance(value, str | bytes | bytearray):  # `float` would read their digits
            return float(value)
    except (TypeError, ValueError):
        pass
    except OverflowError:
        raise error("HK506", f"`{what}` is f32, which can't hold so large a number") from None
    raise error("HK502", f"`{what}` must be a number, not {value!r}")


def result_dtype(name: Any) -> str:
    """A dtype's name. Raises `HkcError` HK503 for what is none, or one that nothing is computed in."""
    found = DTYPES.get(name) if isinstance(name, str) else None
    if found is None or found.kind == "bool":
        hint = "f32, f16, bf16, i32, i8, f8e4m3fn, … as a text"
        raise error("HK503", f"`out_dtype` is {name!r}, which is no dtype of a product", hint=hint)
    return found.name


def _vector(what: str, value: Any, columns: Sequence[int]) -> Any:
    if value is None:
        return None
    value = as_array(what, value, 1)
    if tuple(value.shape) != tuple(columns):
        hint = "one number for each column"
        raise error("HK505", f"`{what}` is {shown(value.shape)}, but the result has {columns[0]} columns", hint=hint)
    return value


def _floats(what: str, value: Any) -> Any:
    if value is not None and dtype_of(what, value) != "f32":
        raise error("HK503", f"`{what}` holds {dtype_of(what, value)}, but factors are f32", hint="convert it")
    return value
