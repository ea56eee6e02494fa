"""How the elements of a register tile move to and from LDS: which instructions, and which bytes each lane touches.

One rule serves the search for a byte map, its proof and the code generator: a fragment is moved in runs of registers
that lie side by side in LDS on every lane, as long as the map's granule and the instruction allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hkc.layout.distributed import Bases, DistributedLayout
from hkc.layout.lds import LdsMap
from hkc.layout.linear import Ints
from hkc.support.errors import error

Kind = Literal["write", "read", "read_transposed"]

WIDEST = 16
"""Bytes per lane of the widest LDS instruction."""

TRANSPOSING_LANES = 16
"""Lanes that exchange elements in a transposed read, and the bytes that each of them points at."""
TRANSPOSED_BYTES = 8

SUFFIX = {
    "read": {1: "u8", 2: "u16", 4: "b32", 8: "b64", 16: "b128"},
    "write": {1: "b8", 2: "b16", 4: "b32", 8: "b64", 16: "b128"},
}


class Timing(Protocol):
    """How the LDS serves an instruction: `bytes` per lane, lanes served together, banks of 4 bytes."""

    @property
    def bytes(self) -> int:
        """Bytes per lane and part."""

    @property
    def banks(self) -> int:
        """Number of banks."""

    @property
    def phases(self) -> Sequence[Sequence[int]]:
        """Lanes served together."""


Timings = Callable[[str], Timing]
"""The timing of an instruction by its mnemonic."""


@dataclass(frozen=True)
class Use:
    """All fragments of a tile held in `layout` written to LDS or read from it, `weight` times, by instructions of at
    most `widest` bytes per lane. `op` is what a report calls it."""

    kind: Kind
    layout: DistributedLayout
    weight: int = 1
    op: str = ""
    widest: int = WIDEST

    @property
    def reach(self) -> int:
        """Bytes per lane that one instruction moves at most."""
        return TRANSPOSED_BYTES if self.kind == "read_transposed" else self.widest

    def mnemonic(self, width: int, itemsize: int) -> str:
        """The instruction that moves `width` bytes per lane of elements of `itemsize` bytes, as LLVM prints it."""
        if self.kind == "read_transposed":
            return f"ds_read_b64_tr_b{8 * itemsize}"
        return f"ds_{self.kind}_{SUFFIX[self.kind][width]}"

    def addressed(self, inner: int, itemsize: int) -> DistributedLayout | None:
        """The layout that says where each lane points in rows along dim `inner`: the tile's own, but for a transposed
        read; None where no transposed read gives the tile's layout."""
        return self.layout if self.kind != "read_transposed" else pointed_at(self.layout, inner, itemsize)


def pointed_at(layout: DistributedLayout, inner: int, itemsize: int) -> DistributedLayout | None:
    """Where lanes point for transposed reads into `layout` from rows along dim `inner`; None where it can't be done.

    Of 16 lanes, lane i points at 8 bytes, E elements along `inner`; afterwards lane l holds element l of E such rows.
    So the low lane bits of `layout` must walk `inner`, and E registers the rows. (ISA: ds_read_b64_tr_b16, _b8.)
    """
    elements = TRANSPOSED_BYTES // itemsize
    rows, walk = elements.bit_length() - 1, TRANSPOSING_LANES.bit_length() - 1
    wanted = _steps(layout.rank, inner, walk)
    held = layout.register[:rows]
    if elements < 4 or layout.lane[:walk] != wanted or len(held) < rows or any(b[inner] for b in held):
        return None
    register = (*wanted[:rows], *layout.register[rows:])
    return DistributedLayout(layout.block, register, (*wanted[rows:], *held, *layout.lane[walk:]), layout.wave)


def _steps(rank: int, dim: int, count: int) -> Bases:
    """Bases 1, 2, 4, … along one dim."""
    return tuple(tuple(1 << i if d == dim else 0 for d in range(rank)) for i in range(count))


def run_bits(layout: DistributedLayout, inner: int, limit: int) -> tuple[int, ...]:
    """The register bits that walk `inner` in steps of 1, 2, 4 …, at most `limit` elements, where every lane's and
    fragment's run is aligned to its length."""
    others = [b[inner] for b in layout.bases] + [layout.block[inner]]
    found: list[int] = []
    for step in _steps(layout.rank, inner, limit.bit_length() - 1):
        if step not in layout.register:
            break
        found.append(layout.register.index(step))
    # A basis with a low bit set besides those of the run would start a run off its boundary.
    while found and any(v % (1 << len(found)) for v in _without(others, 1 << len(found))):
        found.pop()
    return tuple(found)


def _without(values: list[int], run: int) -> list[int]:
    """The values but one of each power of two below `run`: those are the run itself."""
    rest = list(values)
    step = 1
    while step < run:
        rest.remove(step)
        step *= 2
    return rest


def runs(layout: DistributedLayout, lds: LdsMap, widest: int) -> tuple[tuple[int, ...], ...]:
    """The registers that each instruction of a fragment moves, in the order of their addresses."""
    inner = lds.order[0]
    bits = run_bits(layout, inner, max(1, min(widest, lds.granule) // lds.itemsize))
    rest = [i for i in range(len(layout.register)) if i not in bits]
    return tuple(
        tuple(_spread(first, rest) | _spread(i, bits) for i in range(1 << len(bits))) for first in range(1 << len(rest))
    )


def _spread(number: int, bits: Sequence[int]) -> int:
    """The bits of a number put at the positions `bits`."""
    return sum((number >> i & 1) << bit for i, bit in enumerate(bits))


@dataclass(frozen=True, eq=False)
class Moves:
    """The instructions of a use: byte addresses [instruction, wave, lane], bytes per lane, lanes that take part."""

    addresses: Ints
    width: int
    active: NDArray[np.bool_]


def moves(use: Use, lds: LdsMap) -> Moves:
    """The addresses of every instruction of a use, fragment by fragment, each in the order of `runs`.

    Raises HK413 where a run would be torn apart by the map, HK414 where a transposed read can't give the layout.
    """
    layout = use.addressed(lds.order[0], lds.itemsize)
    if layout is None:
        raise error("HK414", f"no transposed read from `{lds}` gives the layout {use.layout}")
    groups = np.array(runs(layout, lds, use.reach))
    at = lds.offset(layout.coordinates(lds.shape))  # [fragment, register, lane, wave]
    table = np.moveaxis(at, (1, 2, 3), (3, 2, 1))[..., groups]  # [fragment, wave, lane, instruction, element]
    width = groups.shape[1] * lds.itemsize
    if use.kind == "read_transposed" and width != TRANSPOSED_BYTES:
        raise error("HK413", f"a transposed read takes {TRANSPOSED_BYTES} bytes, but `{lds}` keeps {width} together")
    start = table[..., 0]
    if np.any(table != start[..., None] + np.arange(groups.shape[1]) * lds.itemsize) or np.any(start % width):
        raise error("HK413", f"the LDS map `{lds}` tears {width} bytes of the layout {layout} apart")
    addresses = np.moveaxis(start, 3, 1).reshape(-1, layout.waves, layout.lanes)
    return Moves(addresses, width, _active(use, layout))


def inactive(use: Use, layout: DistributedLayout) -> tuple[int, int]:
    """Masks of the bits of the lane and of the wave id that are clear where a lane takes part: of copies only one is
    written."""
    return layout.replication() if use.kind == "write" else (0, 0)


def _active(use: Use, layout: DistributedLayout) -> NDArray[np.bool_]:
    """Which lanes take part, [wave, lane]."""
    lane, wave = inactive(use, layout)
    taking: NDArray[np.bool_] = (np.arange(layout.waves)[:, None] & wave) + (np.arange(layout.lanes) & lane) == 0
    return taking


def lane_span(layout: DistributedLayout, dim: int) -> int:
    """How far the lanes and the run of one access reach along a dim: a power of two that divides the block's extent."""
    reach = 1
    for basis in (*layout.lane, *(r for r in layout.register if r in _steps(layout.rank, dim, 4))):
        reach = max(reach, 1 << basis[dim].bit_length())
    return reach
