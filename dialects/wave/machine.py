"""What the NumPy meanings of wave ops work on: the state of one workgroup.

A per-lane vector is an array [wave, lane, element], a per-lane number [wave, lane], a uniform number a plain int.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hkc.targets.chip import Chip


@dataclass
class Workgroup:
    """One workgroup of `waves` waves on a chip, with its LDS as bytes."""

    chip: Chip
    waves: int
    lds: Any = field(default=None)

    def __post_init__(self) -> None:
        if self.lds is None:
            self.lds = np.zeros(self.chip.lds.bytes, np.uint8)

    @property
    def lanes(self) -> int:
        """Lanes per wave."""
        return self.chip.compute.wave


def byte_offsets(offset: Any, uniform: tuple[Any, ...]) -> Any:
    """Unsigned 32-bit offsets [wave, lane], with those added that are the same in all lanes of a wave."""
    total = np.asarray(offset).astype(np.uint32).astype(np.int64)
    for number in uniform:
        total = total + (np.asarray(number)[..., None] if np.ndim(number) == 1 else number)
    return total


@dataclass(frozen=True)
class Bytes:
    """Memory behind a pointer or a buffer descriptor: a byte array; everything else is out of range."""

    data: Any

    def read(self, offsets: Any, size: int, dtype: Any) -> Any:
        """[…, size] elements at byte `offsets` […]; an element that is not wholly inside reads as 0."""
        at = np.asarray(offsets)[..., None] + np.arange(size) * dtype.itemsize
        inside = (at >= 0) & (at + dtype.itemsize <= len(self.data))
        where = np.where(inside, at, 0)[..., None] + np.arange(dtype.itemsize)
        raw = self.data[where] if len(self.data) else np.zeros(where.shape, np.uint8)
        values = np.ascontiguousarray(raw).view(dtype)[..., 0]
        return np.where(inside, values, np.zeros((), dtype))

    def write(self, offsets: Any, values: Any) -> None:
        """Store elements [..., size] at byte `offsets` [...]; those not wholly inside are dropped."""
        itemsize = values.dtype.itemsize
        at = np.asarray(offsets)[..., None] + np.arange(values.shape[-1]) * itemsize
        inside = (at >= 0) & (at + itemsize <= len(self.data))
        raw = np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, itemsize)
        self.data[at[inside][:, None] + np.arange(itemsize)] = raw[inside]
