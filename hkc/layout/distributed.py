"""Where the elements of a register tile live: a GF(2)-linear map from (register, lane, wave) bits to coordinates.

The map covers one base block of power-of-two extents; the layout repeats over the grid of base blocks of a tile.
Repetition f holds fragment f: one vector of `registers` elements per lane. Where an extent is no multiple of the
block's, the last blocks reach beyond the tile: what they hold there is no element, and nobody may ask for it.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hkc.layout.linear import Echelon, Ints, LinearMap
from hkc.layout.text import BY, COMMAS, by, commas, numbers
from hkc.support.errors import error

Vector = tuple[int, ...]
Bases = tuple[Vector, ...]
MAX_RANK = 5


@dataclass(frozen=True)
class Piece:
    """A part of a coordinate: `((id >> low_bit) & (2**width - 1)) * scale`, where id is the lane or the wave id.

    The parts of one coordinate are combined by XOR.
    """

    source: str
    low_bit: int
    width: int
    scale: int


@dataclass(frozen=True, repr=False)
class DistributedLayout:
    """A register tile's layout: the coordinates of an element are the XOR of the bases of the set bits of its
    register, lane and wave number. A zero basis replicates.

    `block` holds the extents of the base block, one per dim; every basis has one entry per dim.
    Raises HK403 where an extent is no power of two, a basis leaves the block, or the map is not onto the block.
    """

    block: Vector
    register: Bases
    lane: Bases
    wave: Bases

    def __post_init__(self) -> None:
        if not 1 <= self.rank <= MAX_RANK:
            raise error("HK403", f"a layout has 1 to {MAX_RANK} dims, not {self.rank}")
        if any(extent < 1 or extent & (extent - 1) for extent in self.block):
            raise error("HK403", f"block extents must be powers of two, not {by(self.block)}")
        for basis in self.bases:
            if len(basis) != self.rank or any(not 0 <= b < extent for b, extent in zip(basis, self.block, strict=True)):
                raise error("HK403", f"basis {basis} lies outside the block {by(self.block)}")
        if len(Echelon(self.pack(basis) for basis in self.bases).rows) != self.linear_bits:
            raise error("HK403", f"the layout {self.text()} does not reach every element of its block")

    # -- sizes

    @property
    def rank(self) -> int:
        """Number of dims."""
        return len(self.block)

    @property
    def bases(self) -> Bases:
        """All bases: registers, then lanes, then waves, each from the lowest bit."""
        return self.register + self.lane + self.wave

    @property
    def registers(self) -> int:
        """Elements per lane in one fragment (element count, not 32-bit registers)."""
        return 1 << len(self.register)

    @property
    def lanes(self) -> int:
        """Lanes per wave."""
        return 1 << len(self.lane)

    @property
    def waves(self) -> int:
        """Waves that share the tile."""
        return 1 << len(self.wave)

    @property
    def linear_bits(self) -> int:
        """Bits of a packed coordinate inside the block."""
        return math.prod(self.block).bit_length() - 1

    def fits(self, shape: Sequence[int]) -> bool:
        """Is a tile of this shape a grid of whole base blocks (same rank, each extent a positive multiple)?"""
        return self.covers(shape) and not self.reaches_beyond(shape)

    def covers(self, shape: Sequence[int]) -> bool:
        """Can a tile of this shape have this layout at all: same rank, no empty dim?"""
        return len(shape) == self.rank and all(n > 0 for n in shape)

    def reaches_beyond(self, shape: Sequence[int]) -> Vector:
        """The dims along which the last blocks reach beyond a tile of this shape."""
        return tuple(d for d, (n, b) in enumerate(zip(shape, self.block, strict=True)) if n % b)

    def grid(self, shape: Sequence[int]) -> Vector:
        """Base blocks per dim, the last ones whole or not. Raises HK404 where the layout does not cover the shape."""
        if not self.covers(shape):
            raise error("HK404", f"a {by(shape)} tile is not covered by {by(self.block)} blocks")
        return tuple(-(-n // b) for n, b in zip(shape, self.block, strict=True))

    def covered(self, shape: Sequence[int]) -> Vector:
        """The extents of the grid of base blocks that covers a tile of this shape."""
        return tuple(n * b for n, b in zip(self.grid(shape), self.block, strict=True))

    def fragments(self, shape: Sequence[int]) -> int:
        """Number of fragments of a tile of this shape."""
        return math.prod(self.grid(shape))

    # -- the map

    def pack(self, coordinates: Sequence[int]) -> int:
        """Coordinates inside the block as one int: the row-major index."""
        packed = 0
        for c, extent in zip(coordinates, self.block, strict=True):
            packed = packed * extent + c
        return packed

    @functools.cached_property
    def linear(self) -> LinearMap:
        """The layout as a map from bits (register low, then lane, then wave) to packed coordinates."""
        return LinearMap(tuple(self.pack(basis) for basis in self.bases), self.linear_bits)

    def fragment_offsets(self, shape: Sequence[int]) -> tuple[Vector, ...]:
        """Per fragment the coordinates of its base block's origin, row-major over the grid."""
        return tuple(
            tuple(g * b for g, b in zip(index, self.block, strict=True)) for index in np.ndindex(*self.grid(shape))
        )

    def register_offsets(self) -> tuple[Vector, ...]:
        """Per register its part of the coordinates inside the block."""
        return tuple(map(tuple, _span(self.register, self.rank).tolist()))

    def coordinates(self, shape: Sequence[int]) -> Ints:
        """The coordinates of all that is held: int64 array [fragment, register, lane, wave, dim]."""
        register, lane, wave = (_span(bases, self.rank) for bases in (self.register, self.lane, self.wave))
        inside = register[:, None, None] ^ lane[None, :, None] ^ wave[None, None, :]
        origins = np.array(self.fragment_offsets(shape), np.int64)
        return origins[:, None, None, None] + inside

    def owners(self, coordinates: Ints, shape: Sequence[int]) -> Ints:
        """Who holds each element: [..., dim] -> [..., (fragment, register, lane, wave)], the first of any copies.

        Law: `layout.coordinates(shape)[tuple(owners)] == coordinates`.
        """
        block = np.array(self.block)
        grid = self.grid(shape)
        fragment = np.ravel_multi_index(tuple(np.moveaxis(coordinates // block, -1, 0)), grid)
        packed = np.ravel_multi_index(tuple(np.moveaxis(coordinates % block, -1, 0)), self.block)
        bits = self._inverse(packed.astype(np.int64))
        r, lanes = len(self.register), len(self.lane)
        parts = (fragment, bits & (self.registers - 1), (bits >> r) & (self.lanes - 1), bits >> (r + lanes))
        return np.stack(parts, axis=-1)

    @functools.cached_property
    def _inverse(self) -> LinearMap:
        return self.linear.right_inverse()

    # -- what a code generator asks

    def lane_terms(self, dim: int) -> tuple[tuple[str, int, int], ...]:
        """(source "lane" or "wave", bit of its id, contribution to coordinate `dim`), zero contributions left out."""
        named = (("lane", self.lane), ("wave", self.wave))
        return tuple((s, i, basis[dim]) for s, bases in named for i, basis in enumerate(bases) if basis[dim])

    def pieces(self, dim: int) -> tuple[Piece, ...]:
        """The lane's and the wave's part of coordinate `dim`, runs of bits merged: their XOR is that part."""
        merged: list[Piece] = []
        for source, bit, scale in self.lane_terms(dim):
            last = merged[-1] if merged else Piece("", 0, 0, 0)
            if (source, bit, scale) == (last.source, last.low_bit + last.width, last.scale << last.width):
                merged[-1] = Piece(source, last.low_bit, last.width + 1, last.scale)
            else:
                merged.append(Piece(source, bit, 1, scale))
        return tuple(merged)

    def is_separable(self, dim: int) -> bool:
        """Do registers and lanes/waves set disjoint bits of coordinate `dim`, so that their XOR is an addition?"""
        return not _union(b[dim] for b in self.register) & _union(b[dim] for b in self.lane + self.wave)

    def replication(self) -> tuple[int, int]:
        """Masks of the lane and of the wave bits that are zero bases: ids with any of these bits set hold copies.

        A store lets only ids with all of these bits clear write; that is one copy of each element where the other
        bases are independent (`copies_are_zero_bases`).
        """
        lane, wave = (_union(1 << i for i, b in enumerate(bases) if not any(b)) for bases in (self.lane, self.wave))
        return lane, wave

    @property
    def copies_are_zero_bases(self) -> bool:
        """Is every copy due to a zero basis (and none to dependent ones)?"""
        return sum(map(any, self.bases)) == self.linear_bits

    def contiguous(self, dim: int) -> int:
        """How many elements of a lane's fragment, from register 0 on, walk `dim` in steps of 1."""
        count = 1
        for basis in self.register:
            if basis != tuple(count if d == dim else 0 for d in range(self.rank)):
                break
            count *= 2
        return count

    # -- new layouts

    def transpose(self, permutation: Sequence[int]) -> DistributedLayout:
        """Dims reordered: dim i of the result is dim `permutation[i]` of self. Every lane keeps its elements."""
        if sorted(permutation) != list(range(self.rank)):
            raise error("HK403", f"{tuple(permutation)} is no permutation of {self.rank} dims")
        return self._map(lambda vector: tuple(vector[p] for p in permutation))

    def reduce(self, dim: int) -> DistributedLayout:
        """The layout of a reduction over `dim`, which stays with extent 1: bases along it become zero.

        Registers that then hold copies are dropped: a lane keeps one of each value.
        """
        block = _replaced(self.block, dim, 1)
        register, lane, wave = (
            tuple(_replaced(basis, dim, 0) for basis in bases) for bases in (self.register, self.lane, self.wave)
        )
        return DistributedLayout(block, tuple(basis for basis in register if any(basis)), lane, wave)

    def insert(self, dim: int) -> DistributedLayout:
        """The same elements with a new unit dim before `dim`."""
        block = (*self.block[:dim], 1, *self.block[dim:])
        return self._map(lambda vector: (*vector[:dim], 0, *vector[dim:]), block)

    def drop(self, dim: int) -> DistributedLayout:
        """The same elements without the unit dim `dim`. Raises HK403 where the block's extent there is not 1."""
        if self.block[dim] != 1:
            raise error("HK403", f"dim {dim} of {by(self.block)} is no unit dim")
        return self._map(lambda vector: (*vector[:dim], *vector[dim + 1 :]))

    def extend(self, block: Sequence[int]) -> DistributedLayout:
        """The same elements with a larger base block: the repetition becomes register bits, the last dim's lowest.

        Law: over a tile that fits both, each lane holds the same elements in both.
        """
        if any(new < old for new, old in zip(block, self.block, strict=True)):
            raise error("HK403", f"{by(block)} is not larger than the block {by(self.block)}")
        added = []
        for dim in reversed(range(self.rank)):
            step = self.block[dim]
            while step < block[dim]:
                added.append(_replaced((0,) * self.rank, dim, step))
                step *= 2
        return DistributedLayout(tuple(block), self.register + tuple(added), self.lane, self.wave)

    def equivalent(self, other: DistributedLayout) -> bool:
        """Equal up to the order of the register bits."""
        return (sorted(self.register), self.block, self.lane, self.wave) == (
            sorted(other.register), other.block, other.lane, other.wave)  # fmt: skip

    # -- text

    def text(self) -> str:
        """The stable text form: `16x16 r(1,0 2,0) l(0,1 0,2 0,4 0,8 4,0 8,0) w()`."""
        parts = (("r", self.register), ("l", self.lane), ("w", self.wave))
        return " ".join((by(self.block), *(f"{name}({' '.join(map(commas, bases))})" for name, bases in parts)))

    __repr__ = text

    @classmethod
    @functools.cache
    def parse(cls, text: str) -> DistributedLayout:
        """The layout that `text()` wrote. Raises HK405 for any other text."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise error("HK405", f"not a layout: `{text}`", hint="write `16x16 r(1,0 2,0) l(0,1 …) w()`")
        bases = (tuple(numbers(basis, ",") for basis in part.split()) for part in match.groups()[1:])
        return cls(numbers(match[1], "x"), *bases)

    def _map(self, move: Callable[[Vector], Vector], block: Vector | None = None) -> DistributedLayout:
        register, lane, wave = (tuple(map(move, bases)) for bases in (self.register, self.lane, self.wave))
        return DistributedLayout(block or move(self.block), register, lane, wave)


_BASES = rf"\(((?:{COMMAS}(?: {COMMAS})*)?)\)"
_TEXT = re.compile(rf"({BY}) r{_BASES} l{_BASES} w{_BASES}")


def _span(bases: Bases, rank: int) -> Ints:
    """XOR of the bases of the set bits, for every number: int64 array [2**len(bases), rank]."""
    span = np.zeros((1, rank), np.int64)
    for basis in bases:
        span = np.concatenate([span, span ^ np.array(basis)])
    return span


def _union(masks: Iterable[int]) -> int:
    return functools.reduce(operator.or_, masks, 0)


def _replaced(vector: Vector, dim: int, value: int) -> Vector:
    return (*vector[:dim], value, *vector[dim + 1 :])
