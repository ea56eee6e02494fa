"""Where the elements of an LDS tile live, in bytes: strides over a grid of blocks, an XOR inside a block, padding.

    offset = padded(sum of grid index x stride + swizzle(row-major byte offset inside the block))

One map covers plain rows, padded rows, swizzled subtiles and tiles whose extents are no powers of two.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.layout.linear import Ints, LinearMap
from hkc.layout.text import BY, COMMAS, by, commas, numbers
from hkc.support.errors import error

Vector = tuple[int, ...]
Exchanges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, repr=False)
class LdsMap:
    """The byte map of an LDS tile; a bijection from elements to disjoint byte ranges by construction.

    shape     logical extents, each a multiple of the block's
    itemsize  bytes per element, a power of two
    block     power-of-two extents of a block; inside it the offset is row-major in `order`
    strides   bytes from one block to the next, per dim
    order     the dims from the innermost (fastest inside a block) to the outermost
    xor       pairs (i, j), i < j: bit i of the offset inside a block is XORed with the offset's bit j
    interval, pad   after every `interval` bytes, `pad` bytes are left free (0, 0: none)

    The proof, checked at construction (HK411): the XOR map is unit triangular, hence invertible; the strides, sorted,
    form a mixed radix in which no block reaches into the next; padding is monotonic.
    """

    shape: Vector
    itemsize: int
    block: Vector
    strides: Vector
    order: Vector
    xor: Exchanges = ()
    interval: int = 0
    pad: int = 0

    def __post_init__(self) -> None:
        dims = len(self.shape)
        if sorted(self.order) != list(range(dims)) or len(self.block) != dims or len(self.strides) != dims:
            raise self._error("shape, block, strides and order must name the same dims")
        if any(n < 1 or n & (n - 1) for n in (self.itemsize, *self.block)):
            raise self._error("item size and block extents must be powers of two")
        if any(n < 1 or n % b for n, b in zip(self.shape, self.block, strict=True)):
            raise self._error("the extents are no multiples of the block's")
        if not all(0 <= i < j < self.block_bits for i, j in self.xor) or len(set(self.xor)) < len(self.xor):
            raise self._error(f"each XOR pair is a bit and a higher bit of {self.block_bits} bits, once")
        if (self.interval, self.pad) != (0, 0) and (self.interval < 1 or self.pad < 1):
            raise self._error("padding needs a positive interval and size")
        if self.interval % self.itemsize or self.pad % self.itemsize:
            raise self._error("padding must fall between whole elements")
        self._check_strides()

    def _check_strides(self) -> None:
        reach = self.block_bytes
        for stride, count in sorted((s, n) for s, n in zip(self.strides, self.grid, strict=True) if n > 1):
            if stride < reach or stride % self.itemsize:
                raise self._error(f"blocks {stride} bytes apart overlap: one reaches {reach} bytes")
            reach = stride * (count - 1) + reach

    # -- constructors

    @classmethod
    def row_major(
        cls, shape: Sequence[int], itemsize: int, *, order: Sequence[int] | None = None, pad: int = 0
    ) -> LdsMap:
        """Plain rows along the innermost dim of `order` (default: the last dim), each followed by `pad` bytes."""
        order = _row_major_order(shape) if order is None else tuple(order)
        block, strides = [1] * len(shape), [0] * len(shape)
        inner = order[0]
        block[inner] = shape[inner] & -shape[inner]
        strides[inner] = block[inner] * itemsize
        step = shape[inner] * itemsize + pad
        for dim in order[1:]:
            strides[dim] = step
            step *= shape[dim]
        return cls(tuple(shape), itemsize, tuple(block), tuple(strides), order)

    @classmethod
    def swizzled(
        cls, shape: Sequence[int], itemsize: int, block: Sequence[int], xor: Exchanges = (), *,
        order: Sequence[int] | None = None, interval: int = 0, pad: int = 0,
    ) -> LdsMap:  # fmt: skip
        """Blocks stored one after another (row-major in `order`), each XORed by `xor`."""
        order = _row_major_order(shape) if order is None else tuple(order)
        strides = [0] * len(shape)
        step = math.prod(block) * itemsize
        for dim in order:
            strides[dim] = step
            step *= shape[dim] // block[dim]
        return cls(tuple(shape), itemsize, tuple(block), tuple(strides), order, tuple(xor), interval, pad)

    # -- sizes

    @property
    def grid(self) -> Vector:
        """Blocks per dim."""
        return tuple(n // b for n, b in zip(self.shape, self.block, strict=True))

    @property
    def block_bytes(self) -> int:
        """Bytes of one block."""
        return math.prod(self.block) * self.itemsize

    @property
    def block_bits(self) -> int:
        """Bits of a byte offset inside a block."""
        return self.block_bytes.bit_length() - 1

    @functools.cached_property
    def bytes(self) -> int:
        """Size in bytes, padding between elements included: one more than the last byte used."""
        last = sum(s * (n - 1) for s, n in zip(self.strides, self.grid, strict=True)) + self.block_bytes - 1
        return int(self._padded(last)) + 1

    @functools.cached_property
    def granule(self) -> int:
        """Bytes of the largest power-of-two run along the innermost dim that stays together and aligned everywhere."""
        bits = self.block[self.order[0]] * self.itemsize
        steps = [s for s, n in zip(self.strides, self.grid, strict=True) if n > 1]
        steps += [1 << i for i, _ in self.xor]
        steps += [self.interval, self.pad] if self.pad else []
        return min([bits, *(step & -step for step in steps)])

    @functools.cached_property
    def swizzle(self) -> LinearMap:
        """The XOR map on the bits of the byte offset inside a block."""
        columns = [1 << j for j in range(self.block_bits)]
        for i, j in self.xor:
            columns[j] |= 1 << i
        return LinearMap(tuple(columns), self.block_bits)

    # -- the map

    def offset(self, coordinates: NDArray[Any] | Sequence[int]) -> Ints:
        """Byte offsets of elements: [..., dim] -> [...]. Coordinates must lie in the tile."""
        c = np.asarray(coordinates, np.int64)
        inside, unit = np.zeros(c.shape[:-1], np.int64), self.itemsize
        for dim in self.order:
            inside += c[..., dim] % self.block[dim] * unit
            unit *= self.block[dim]
        return np.asarray(self._padded(c // self.block @ np.array(self.strides, np.int64) + self.swizzle(inside)))

    def inverse(self, offset: NDArray[Any] | int) -> Ints:
        """Coordinates of the elements at byte offsets (their first bytes or any other): [...] -> [..., dim].

        Raises HK412 for a byte that belongs to no element.
        """
        rest = self._unpadded(np.asarray(offset, np.int64))
        c = np.zeros((*rest.shape, len(self.shape)), np.int64)
        by_stride = [d for d in range(len(self.shape)) if self.grid[d] > 1]
        for dim in sorted(by_stride, key=lambda d: self.strides[d], reverse=True):
            index = np.minimum(rest // self.strides[dim], self.grid[dim] - 1)
            c[..., dim], rest = index * self.block[dim], rest - index * self.strides[dim]
        if np.any((rest < 0) | (rest >= self.block_bytes)):
            raise error("HK412", f"a byte offset belongs to no element of {self.text()}")
        rest = self.swizzle.inverse()(rest) // self.itemsize
        for dim in self.order:
            c[..., dim] += rest % self.block[dim]
            rest = rest // self.block[dim]
        return c

    def check_access(self, coordinates: NDArray[Any] | Sequence[int], elements: int) -> None:
        """Refuse an access that the map would tear apart: every start [..., dim] followed by `elements` elements along
        the innermost dim must lie in consecutive bytes, aligned to the largest power of two that divides their size.

        Raises HK413 naming the first access that does not.
        """
        c = np.asarray(coordinates, np.int64)
        size, inner = elements * self.itemsize, self.order[0]
        if np.any(c[..., inner] + elements > self.shape[inner]):
            raise error("HK413", f"an access of {elements} elements leaves the {by(self.shape)} tile")
        run = np.zeros((elements, len(self.shape)), np.int64)
        run[:, inner] = np.arange(elements)
        offsets = self.offset(c[..., None, :] + run)
        torn = np.any(offsets != offsets[..., :1] + np.arange(elements) * self.itemsize, axis=-1)
        torn |= offsets[..., 0] % (size & -size) != 0
        if np.any(torn):
            start = c[torn][0].tolist()
            raise error(
                "HK413", f"the LDS map keeps {self.granule} bytes together, but an access at {start} takes {size}",
                hint=f"access at most {self.granule // self.itemsize} elements at once, or choose another map",
            )  # fmt: skip

    # -- text

    def text(self) -> str:
        """The stable text form: `64x32:2 block 16x32 strides 1024,1024 order 1,0 xor 5^9,4^10 pad 256+16`."""
        parts = [f"{by(self.shape)}:{self.itemsize} block {by(self.block)}"]
        parts += [f"strides {commas(self.strides)} order {commas(self.order)}"]
        parts += [f"xor {','.join(f'{i}^{j}' for i, j in self.xor)}"] if self.xor else []
        parts += [f"pad {self.interval}+{self.pad}"] if self.pad else []
        return " ".join(parts)

    __repr__ = text

    @classmethod
    @functools.cache
    def parse(cls, text: str) -> LdsMap:
        """The map that `text()` wrote. Raises HK405 for any other text."""
        m = _TEXT.fullmatch(text)
        if m is None:
            raise error("HK405", f"not an LDS map: `{text}`")
        shape, block = (numbers(m[i], "x") for i in (1, 3))
        strides, order = (numbers(m[i], ",") for i in (4, 5))
        xor = tuple((int(i), int(j)) for i, j in (pair.split("^") for pair in (m[6] or "").split(",") if pair))
        return cls(shape, int(m[2]), block, strides, order, xor, int(m[7] or 0), int(m[8] or 0))

    def _padded(self, offset: Any) -> Any:
        return offset + offset // self.interval * self.pad if self.pad else offset

    def _unpadded(self, offset: Ints) -> Ints:
        if not self.pad:
            return offset
        index, rest = np.divmod(offset, self.interval + self.pad)
        if np.any(rest >= self.interval):
            raise error("HK412", f"a byte offset lies in the padding of {self.text()}")
        return index * self.interval + rest

    def _error(self, why: str) -> Exception:
        return error("HK411", f"no LDS map `{self.text()}`: {why}")


_TEXT = re.compile(
    rf"({BY}):(\d+) block ({BY}) strides ({COMMAS}) order ({COMMAS})"
    r"(?: xor (\d+\^\d+(?:,\d+\^\d+)*))?(?: pad (\d+)\+(\d+))?"
)


def _row_major_order(shape: Sequence[int]) -> Vector:
    return tuple(reversed(range(len(shape))))
