"""Which tile a workgroup computes: the order in which the numbers of workgroups walk a grid of tiles.

The maps are written with operators alone, so that one text serves plain integers, NumPy arrays of them, and the values
of a program that is being built: what is proved of the one holds for the others. All numbers are at least 0, all
extents at least 1, and no intermediate value exceeds the number of tiles by more than a factor that is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Chiplets:
    """How a chip with several chiplets hands out workgroups: number w goes to chiplet w % `count`.

    `at_once` is how many workgroups one chiplet runs at the same time (one per compute unit), `l2_bytes` the size of
    the L2 that they share.
    """

    count: int
    at_once: int
    l2_bytes: int

    def window(self, row_bytes: int, column_bytes: int, chunk: int) -> int:
        """Rows of tiles for which the `chunk` tiles that a chiplet computes at once read the least: r rows read
        r * row_bytes + chunk / r * column_bytes, least at r = sqrt(chunk * column_bytes / row_bytes).

        `row_bytes` is what a tile needs of the operand that all tiles of its row share, likewise `column_bytes`.
        """
        return max(1, min(chunk, round(math.sqrt(chunk * column_bytes / row_bytes))))

    def kept(self, row_bytes: int) -> int:
        """How many times `row_bytes` stay in half of the L2, while the rest streams through the other half."""
        return self.l2_bytes // 2 // row_bytes


def rows(number: Any, extents: Sequence[Any]) -> list[Any]:
    """The place of tile `number` in a grid: the last id runs fastest."""
    found = []
    for extent in reversed(extents[1:]):
        found.append(number % extent)
        number = number // extent
    return [number, *reversed(found)]


def shared_out(number: Any, total: Any, chiplets: int, chunk: Any, least: Callable[[Any, Any], Any] = min) -> Any:
    """A permutation of 0..total-1 that gives each chiplet `chunk` neighbouring tiles at a time.

    Workgroups come in blocks of `chiplets * chunk`, of which chiplet c gets the tiles from c * chunk on. The last block
    is shorter: each chiplet gets its share of that, and the first ones one tile more where it doesn't divide. `chunk`
    is at most total / chiplets, rounded up, so nothing exceeds total + chiplets.
    """
    block = chunk * chiplets
    start = number // block * block
    size = least(block, total - start)
    chiplet, turn = (number - start) % chiplets, (number - start) // chiplets
    return start + chiplet * (size // chiplets) + least(chiplet, size % chiplets) + turn


def windowed(number: Any, extents: Sequence[Any], window: Any, least: Callable[[Any, Any], Any] = min) -> list[Any]:
    """The place of tile `number` in a grid whose last two axes are walked in windows of `window` rows: down the column
    of a window, then to the next column, then to the next window. Other axes run slower. `window` is at most the
    number of rows, so nothing exceeds the number of tiles.
    """
    if len(extents) == 1:
        return [number]
    *outer, height, width = extents
    *before, inside = rows(number, [*outer, height * width]) if outer else [number]
    area = window * width
    first = inside // area * window
    tall = least(window, height - first)
    return [*before, first + inside % area % tall, inside % area // tall]


def chiplet(
    number: Any,
    extents: Sequence[Any],
    chiplets: int,
    chunk: Any,
    window: Any,
    least: Callable[[Any, Any], Any] = min,
) -> list[Any]:
    """The place of the tile that workgroup `number` computes: neighbours in windows of `window` rows, `chunk` of them
    on one chiplet. A permutation of the grid for every extent, chunk and window of at least 1."""
    total = extents[0]
    for extent in extents[1:]:
        total = total * extent
    share = least(chunk, (total + (chiplets - 1)) // chiplets)
    window = window if len(extents) == 1 else least(window, extents[-2])
    return windowed(shared_out(number, total, chiplets, share, least), extents, window, least)
