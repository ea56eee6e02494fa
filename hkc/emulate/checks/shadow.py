"""Which cells of a shadow an access touches. A cell is as many bytes as the program's narrowest access, at most 4."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.memory import Words
from hkc.emulate.program import Program

_BYTES = re.compile(r"_[uib]8\b|_[uib]8_|[us]?byte")
_HALVES = re.compile(r"_[uib]16\b|_[uib]16_|[us]?short")


def granule(program: Program, *prefixes: str) -> int:
    """Bytes of a cell: 1, 2 or 4, by the narrowest access among the instructions that begin with `prefixes`."""
    names = {i.base for i in program.instructions if i.base.startswith(prefixes) and "_tr_" not in i.base}
    if any(_BYTES.search(name) for name in names):
        return 1
    return 2 if any(_HALVES.search(name) for name in names) else 4


@dataclass(frozen=True)
class Cells:
    """Touched cells, one entry each: number, and the row and lane of the access."""

    index: NDArray[np.int64]
    row: NDArray[np.int64]
    lane: NDArray[np.int64]
    size: int
    """Bytes of a cell."""

    def values(self, words: Words, nbytes: int) -> NDArray[np.int64] | None:
        """What a store of `words` [rows, lanes, k] puts into each cell; None where cells are written in part."""
        count = nbytes // self.size
        if count * self.size != nbytes or len(self.index) % count:
            return None
        row, lane = self.row[::count], self.lane[::count]
        if (np.repeat(row, count) != self.row).any() or (np.repeat(lane, count) != self.lane).any():
            return None
        raw = np.ascontiguousarray(words[row, lane]).view(np.uint8)[:, :nbytes]
        unit: Any = {1: np.uint8, 2: np.uint16, 4: np.uint32}[self.size]
        found: NDArray[np.int64] = np.ascontiguousarray(raw).view(unit).astype(np.int64).reshape(-1)
        return found


def cells(places: NDArray[np.int64], mask: NDArray[np.bool_], nbytes: int, size: int) -> Cells:
    """The cells of `size` bytes under `nbytes` at byte `places` [rows, lanes] where `mask`."""
    mask = np.broadcast_to(mask, places.shape)
    row, lane = np.nonzero(mask)
    start = places[row, lane]
    first = start // size
    count = -(-nbytes // size)
    index = first[:, None] + np.arange(count)
    crooked = start % size != 0
    if crooked.any() and (start[crooked] % size + nbytes > count * size).any():
        index = np.concatenate([index, ((start + nbytes - 1) // size)[:, None]], axis=1)
        count += 1
    return Cells(index.reshape(-1), np.repeat(row, count), np.repeat(lane, count), size)
