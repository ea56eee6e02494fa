"""Elements of typed buffers: how the bits of memory become components and the other way round.

Data formats (fields, sizes in bits) and number formats as the GFX9 ISA guides number them ("Memory Buffer
Instructions"; LLVM SIDefines.h, MTBUFFormat). Fields are listed from the lowest bit up, thus in the reverse order of
the names of packed formats (Mesa: R10G10B10A2 is 2_10_10_10, R11G11B10 is 10_11_11).

What the guides leave open is done as Direct3D 11 has it (functional specification, data conversion): -1 has two
encodings as SNORM; NaN is stored as 0, numbers beyond a normalised or scaled format as its limits; normalised numbers
are rounded to nearest even, scaled ones towards 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Numbers = Literal["unorm", "snorm", "uscaled", "sscaled", "uint", "sint", "float"]

FIELDS: dict[int, tuple[int, ...]] = {
    1: (8,), 2: (16,), 3: (8, 8), 4: (32,), 5: (16, 16), 6: (11, 11, 10), 7: (10, 11, 11), 8: (2, 10, 10, 10),
    9: (10, 10, 10, 2), 10: (8, 8, 8, 8), 11: (32, 32), 12: (16, 16, 16, 16), 13: (32, 32, 32), 14: (32, 32, 32, 32),
}  # fmt: skip
"""Data format → bits of each component."""

NUMBERS: dict[int, Numbers] = {
    0: "unorm", 1: "snorm", 2: "uscaled", 3: "sscaled", 4: "uint", 5: "sint", 7: "float",
}  # fmt: skip
"""Number formats."""

_SMALL = {16: 10, 11: 6, 10: 5}
"""Floats below 32 bits → bits of the fraction; the exponent has 5, and only those of 16 bits have a sign."""


@dataclass(frozen=True)
class Element:
    """One element: its fields and what they mean."""

    fields: tuple[int, ...]
    numbers: Numbers

    @property
    def nbytes(self) -> int:
        """Bytes of an element."""
        return sum(self.fields) // 8

    @property
    def whole(self) -> bool:
        """Components are whole numbers, in registers as well."""
        return self.numbers in ("uint", "sint")

    @property
    def packed(self) -> bool:
        """Components share bytes."""
        return any(bits % 8 for bits in self.fields)

    def load(self, words: NDArray[np.uint32]) -> list[Array]:
        """Memory [..., words] → components, float64 or int64 [...]."""
        return [_decode(field, bits, self.numbers) for field, bits in zip(self._split(words), self.fields, strict=True)]

    def store(self, components: list[Array]) -> list[NDArray[np.uint32]]:
        """Components, float64 or int64, → the bits of as many fields."""
        return [_encode(c, bits, self.numbers) for c, bits in zip(components, self.fields, strict=False)]

    def fits(self, components: list[Array]) -> Array:
        """Where all whole numbers fit into their fields (others always do)."""
        result = np.ones(components[0].shape, np.bool_)
        if self.whole:
            for values, bits in zip(components, self.fields, strict=False):
                low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if self.numbers == "sint" else (0, (1 << bits) - 1)
                result &= (values >= low) & (values <= high)
        return result

    def _split(self, words: NDArray[np.uint32]) -> list[NDArray[np.uint32]]:
        found, start = [], 0
        for bits in self.fields:
            word = words[..., start // 32] >> np.uint32(start % 32)
            found.append(word & np.uint32((1 << bits) - 1))
            start += bits
        return found


def element(data: int, numbers: int) -> Element | None:
    """The element of a data format and a number format; None where there is no such combination."""
    fields, kind = FIELDS.get(data), NUMBERS.get(numbers)
    if fields is None or kind is None:
        return None
    floats = kind == "float"
    if floats and not all(bits == 32 or bits in _SMALL for bits in fields):
        return None
    if 32 in fields and kind not in ("float", "uint", "sint"):
        return None
    return None if 11 in fields and not floats else Element(fields, kind)


def _decode(field: NDArray[np.uint32], bits: int, numbers: Numbers) -> Array:
    if numbers == "float":
        return field.view(np.float32).astype(np.float64) if bits == 32 else _widen(field, _SMALL[bits])
    value = field.astype(np.int64)
    if numbers in ("snorm", "sscaled", "sint"):
        value = value - (value >> bits - 1 << bits)
    if numbers in ("uint", "sint"):
        return value
    if numbers in ("uscaled", "sscaled"):
        return value.astype(np.float64)
    return np.maximum(value / _top(bits, numbers), -1.0)


def _encode(values: Array, bits: int, numbers: Numbers) -> NDArray[np.uint32]:
    if numbers == "float":
        return values.astype(np.float32).view(np.uint32) if bits == 32 else _narrow(values, _SMALL[bits])
    if numbers not in ("uint", "sint"):
        limit = _top(bits, numbers)
        numeric = np.where(np.isnan(values), 0.0, values)
        if numbers.endswith("norm"):
            values = np.rint(np.clip(numeric, -1.0 if numbers == "snorm" else 0.0, 1.0) * limit)
        else:
            values = np.trunc(np.clip(numeric, -limit - 1.0 if numbers == "sscaled" else 0.0, limit))
    return (values.astype(np.int64) & (1 << bits) - 1).astype(np.uint32)


def _top(bits: int, numbers: Numbers) -> int:
    return (1 << bits - (numbers[0] == "s")) - 1


def _widen(field: NDArray[np.uint32], fraction: int) -> Array:
    """A small float, shifted to where an f16, whose exponent is the same, has its fraction."""
    half = (field << np.uint32(10 - fraction)).astype(np.uint16)
    return half.view(np.float16).astype(np.float64)


def _narrow(values: Array, fraction: int) -> NDArray[np.uint32]:
    """The inverse, to nearest even; formats without a sign store negative numbers as 0."""
    signed = fraction == 10
    if not signed:
        values = np.where(values < 0, 0.0, values)
    finite = np.isfinite(values)
    unit = np.ldexp(1.0, np.maximum(np.frexp(np.where(finite, values, 1.0))[1] - 1, -14) - fraction)
    half = np.where(finite, np.rint(values / unit) * unit, values).astype(np.float16).view(np.uint16)
    kept = half.astype(np.uint32) >> np.uint32(10 - fraction)
    return kept & np.uint32((1 << 5 + fraction + signed) - 1)
