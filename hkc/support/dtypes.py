"""The element types of the language: name, width, kind, MLIR spelling and NumPy twin, in one table.

Every element takes whole bytes in memory: a `bool` is a byte, 0 or 1; a float of 6 or 4 bits lies in the low bits
of a byte of its own, as in ml_dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["float", "int", "uint", "bool"]


@dataclass(frozen=True)
class DType:
    """An element type. `digits` counts the significand bits including the implicit one (floats only)."""

    name: str
    bits: int
    kind: Kind
    mlir: str
    digits: int = 0

    @property
    def bytes(self) -> int:
        """Storage size in bytes of one element (whole bytes only; `bool` and floats below 8 bits take one)."""
        return max(1, self.bits // 8)

    @property
    def is_narrow(self) -> bool:
        """Whether this is a float of 8 bits or fewer: registers hold its code as an i8, and only casts and matrix
        products know its value."""
        return self.is_float and self.bits <= 8

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point numbers."""
        return self.kind == "float"

    @property
    def unit_roundoff(self) -> float:
        """u = 2^-digits, the relative error of one rounding to nearest; 0 for integers."""
        return 2.0**-self.digits if self.is_float else 0.0

    @property
    def tiny(self) -> float:
        """Half the spacing of the subnormals: the absolute error of one rounding near zero; 0 for integers."""
        if not self.is_float:
            return 0.0
        import ml_dtypes

        return float(ml_dtypes.finfo(self.numpy).smallest_subnormal) / 2

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy (or ml_dtypes) dtype with the same bits."""
        import ml_dtypes
        import numpy as np

        return np.dtype(getattr(ml_dtypes, _NUMPY[self.name]) if self.name in _ML else _NUMPY[self.name])

    def __str__(self) -> str:
        return self.name


_NUMPY = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "bool": "bool", "i64": "int64",
    "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32",
    "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz", "f6e2m3": "float6_e2m3fn", "f6e3m2": "float6_e3m2fn", "f4e2m1": "float4_e2m1fn",
    "e8m0": "float8_e8m0fnu",
}  # fmt: skip
_ML = frozenset(name for name, twin in _NUMPY.items() if twin == "bfloat16" or "_" in twin)

_TABLE = (
    DType("f64", 64, "float", "f64", 53),
    DType("f32", 32, "float", "f32", 24),
    DType("f16", 16, "float", "f16", 11),
    DType("bf16", 16, "float", "bf16", 8),
    DType("f8e4m3fn", 8, "float", "f8E4M3FN", 4),
    DType("f8e4m3fnuz", 8, "float", "f8E4M3FNUZ", 4),
    DType("f8e5m2", 8, "float", "f8E5M2", 3),
    DType("f8e5m2fnuz", 8, "float", "f8E5M2FNUZ", 3),
    DType("f6e2m3", 6, "float", "f6E2M3FN", 4),
    DType("f6e3m2", 6, "float", "f6E3M2FN", 3),
    DType("f4e2m1", 4, "float", "f4E2M1FN", 2),
    DType("e8m0", 8, "float", "f8E8M0FNU", 1),
    DType("i8", 8, "int", "i8"),
    DType("u8", 8, "uint", "i8"),
    DType("i16", 16, "int", "i16"),
    DType("u16", 16, "uint", "i16"),
    DType("i32", 32, "int", "i32"),
    DType("u32", 32, "uint", "i32"),
    DType("i64", 64, "int", "i64"),
    DType("bool", 1, "bool", "i1"),
)

DTYPES: dict[str, DType] = {d.name: d for d in _TABLE}


def dtype(name: str) -> DType:
    """The dtype called `name`. Raises `KeyError` for a name that the language doesn't have."""
    return DTYPES[name]


def from_numpy(array_dtype: np.dtype[np.generic]) -> DType | None:
    """The dtype whose NumPy twin is `array_dtype`, or None."""
    wanted = str(array_dtype)
    return next((d for d in _TABLE if _NUMPY[d.name] == wanted), None)
