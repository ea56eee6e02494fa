"""Byte-addressed spaces with validity shadows: global memory, LDS, scratch.

The operating system's page tables are ours: every allocation is an anonymous mapping without reserved swap, so that
pages that are never touched cost nothing, tensors beyond 4 GiB included. The shadow has one byte per byte.
"""

from __future__ import annotations

import bisect
import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.faults import memory_fault
from hkc.support.errors import error

if TYPE_CHECKING:
    from hkc.emulate.decode import Decoded

Words = NDArray[np.uint32]
"""Lane data: uint32 [..., words]; a sub-dword access has one word, zero-extended."""
Mask = NDArray[np.bool_]
Offsets = NDArray[np.int64]

POISON = np.uint32(0x7FC0DEAD)
"""What never-written registers and memory read as: a NaN in f32, and easy to recognise."""

_UNITS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
_NO_RESERVE = 0x4000  # Linux MAP_NORESERVE, which the module `mmap` names only from Python 3.13 on
_FIRST_BASE = 0x7E00_0000_0000
_GUARD = 1 << 16
_FIRST_IMAGE, _IMAGE_SIZE = 1 << 44, 1 << 40


def anonymous(size: int) -> NDArray[np.uint8]:
    """Zeroed bytes that cost memory only where they are touched."""
    room = (size + 31) // 16 * 16
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    try:
        return np.frombuffer(mmap.mmap(-1, room, flags=flags), np.uint8)
    except (OSError, OverflowError) as problem:
        raise error("HK715", f"the emulator can't get {room} bytes of address space: {problem}") from None


class Space:
    """`size` bytes and their shadow. Offsets must be in range: callers check. The tail is padded to 16 bytes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.data = anonymous(size)
        self.valid = anonymous(size)
        self.complete = size == 0
        """All bytes are known to be valid, so reads need not look at the shadow."""
        self.gaps: Mask | None = None
        """Bytes that belong to nobody, such as those between the elements of a view."""

    def fill(self, offset: int, content: NDArray[np.uint8]) -> None:
        """Write bytes from outside the program."""
        self.data[offset : offset + content.size] = content
        if not self.complete:
            self.valid[offset : offset + content.size] = 1
            self.complete = offset == 0 and content.size == self.size

    def forget(self, offset: int, nbytes: int) -> None:
        """These bytes, as far as they are inside, count as never written."""
        self._doubt()
        self.valid[max(offset, 0) : max(min(offset + nbytes, self.size), 0)] = 0

    def spoil(self, offsets: Offsets, words: Mask, nbytes: int) -> None:
        """Those `words` [n, k] at `offsets` [n] count as never written, the others as written."""
        self._doubt()
        _scatter(self.valid, offsets, np.where(words, np.uint32(0), np.uint32(0x01010101)), nbytes)

    def _doubt(self) -> None:
        """From now on the shadow says which bytes are valid."""
        if self.complete:
            self.valid[: self.size] = 1
            self.complete = False

    def gather(self, offsets: Offsets, nbytes: int) -> tuple[Words, Mask | None]:
        """Words at each offset, and which of them have bytes that were never written (None: none)."""
        words = _gather(self.data, offsets, nbytes)
        if self.complete:
            return words, None
        shadow = _gather(self.valid, offsets, nbytes)
        whole = np.uint32(int.from_bytes(b"\1" * min(nbytes, 4), "little"))
        invalid: Mask = shadow != whole
        if not invalid.any():
            return words, None
        words[invalid] = POISON & np.uint32((1 << 8 * min(nbytes, 4)) - 1)
        return words, invalid

    def scatter(self, offsets: Offsets, words: Words, nbytes: int) -> None:
        """Write `words` [n, k] at `offsets` [n]; of equal offsets the last wins."""
        _scatter(self.data, offsets, words, nbytes)
        if not self.complete:
            ones = np.full(words.shape, 0x01010101, np.uint32)
            _scatter(self.valid, offsets, ones, nbytes)


def _gather(array: NDArray[np.uint8], offsets: Offsets, nbytes: int) -> Words:
    unit = nbytes if nbytes in _UNITS else 4
    if np.bitwise_and(offsets, unit - 1).any():
        return _gather_bytes(array, offsets, nbytes)
    view = array[: array.size // unit * unit].view(_UNITS[unit])
    index = offsets >> (unit.bit_length() - 1)
    if unit != nbytes:
        index = index[..., None] + np.arange(nbytes // unit)
        parts: Words = view.take(index)
        return parts
    found = view.take(index)
    if unit < 4:
        short: Words = found.astype(np.uint32)[..., None]
        return short
    words: Words = found.view(np.uint32).reshape(*offsets.shape, nbytes // 4)
    return words


def _gather_bytes(array: NDArray[np.uint8], offsets: Offsets, nbytes: int) -> Words:
    found = array.take(offsets[..., None] + np.arange(nbytes))
    if nbytes < 4:
        wide = np.zeros((*offsets.shape, 4), np.uint8)
        wide[..., :nbytes] = found
        found = wide
    return found.view(np.uint32)


def _scatter(array: NDArray[np.uint8], offsets: Offsets, words: Words, nbytes: int) -> None:
    unit = nbytes if nbytes in _UNITS else 4
    if np.bitwise_and(offsets, unit - 1).any():
        content = np.ascontiguousarray(words).view(np.uint8)[:, :nbytes]
        array[offsets[:, None] + np.arange(nbytes)] = content
        return
    view = array[: array.size // unit * unit].view(_UNITS[unit])
    index = offsets >> (unit.bit_length() - 1)
    if unit != nbytes:
        view[index[:, None] + np.arange(nbytes // unit)] = words
    elif unit < 4:
        view[index] = words[:, 0].astype(_UNITS[unit])
    else:
        view[index] = np.ascontiguousarray(words).view(_UNITS[unit])[:, 0]


@dataclass
class Allocation:
    """A named stretch of the address space."""

    base: int
    size: int
    name: str
    space: Space = field(repr=False)

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.base + self.size


_NULL = 1 << 20
"""So far from 0 an offset from a null pointer is still recognised as such; nothing is allocated there."""


class Memory:
    """The GPU's global memory: named allocations with unmapped gaps between them."""

    def __init__(self) -> None:
        self._next = _FIRST_BASE
        self._images: list[object] = []
        self._bases: list[int] = []
        self.allocations: list[Allocation] = []

    def allocate(self, nbytes: int, name: str = "", align: int = 256, skew: int = 0) -> int:
        """Reserve `nbytes` never-written bytes; returns their address, `skew` bytes past a multiple of `align`."""
        if nbytes < 0 or align < 1 or not 0 <= skew < align:
            raise error("HK705", f"can't allocate {nbytes} bytes {skew} past a multiple of {align}")
        base = -(-self._next // align) * align + skew
        self._next = base + nbytes + _GUARD
        self._bases.append(base)
        self.allocations.append(Allocation(base, nbytes, name or f"allocation {len(self._bases)}", Space(nbytes)))
        return base

    def image(self, owner: object) -> tuple[int, bool]:
        """Where the code object `owner` is, or is to be placed, and whether it is new here."""
        for i, known in enumerate(self._images):
            if known is owner:
                return _FIRST_IMAGE + i * _IMAGE_SIZE, False
        self._images.append(owner)
        return _FIRST_IMAGE + (len(self._images) - 1) * _IMAGE_SIZE, True

    def place(self, address: int, content: bytes, size: int, name: str) -> None:
        """Put `content`, followed by zeros up to `size` bytes, at a fixed address."""
        at = bisect.bisect_left(self._bases, address)
        space = Space(size)
        space.data[: len(content)] = np.frombuffer(content, np.uint8)
        space.complete = True
        self._bases.insert(at, address)
        self.allocations.insert(at, Allocation(address, size, name, space))

    def write(self, address: int, content: bytes | NDArray[Any]) -> None:
        """Copy bytes (or an array's bytes, in C order) to `address`; they must lie in one allocation."""
        raw = content if isinstance(content, bytes) else np.ascontiguousarray(content).tobytes()
        found = self._host(address, len(raw))
        found.space.fill(address - found.base, np.frombuffer(raw, np.uint8))

    def read(self, address: int, nbytes: int) -> bytes:
        """The bytes at `address`; never-written ones read as 0."""
        found = self._host(address, nbytes)
        start = address - found.base
        return found.space.data[start : start + nbytes].tobytes()

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether these bytes lie in one allocation."""
        found = self.find(address)
        return found is not None and address + nbytes <= found.end

    def forget(self, address: int, nbytes: int) -> None:
        """Whatever allocations have there counts as never written."""
        for allocation in self.allocations:
            if allocation.base < address + nbytes and address < allocation.end:
                allocation.space.forget(address - allocation.base, nbytes)

    def find(self, address: int) -> Allocation | None:
        """The allocation that starts last at or before `address`."""
        i = bisect.bisect_right(self._bases, address)
        return self.allocations[i - 1] if i else None

    def outside(self, addresses: NDArray[np.uint64], mask: Mask, nbytes: int) -> Mask | None:
        """The lanes of `mask` whose bytes are not all in one allocation, or in gaps there; None for nobody."""
        chosen = addresses[mask]
        low, high = int(chosen.min()), int(chosen.max())
        first = self.find(low)
        if first is not None and high + nbytes <= first.end and first.space.gaps is None:
            return None
        bases = np.array(self._bases, np.uint64)
        ends = np.array([a.end for a in self.allocations], np.uint64)
        index = np.searchsorted(bases, addresses, side="right").astype(np.int64) - 1
        safe = np.maximum(index, 0)
        bad = mask & ((index < 0) | _beyond(addresses, nbytes, ends[safe]))
        for i in np.unique(index[mask & ~bad]).tolist():
            part = self.allocations[i]
            if part.space.gaps is not None:
                here = mask & ~bad & (index == i)
                offsets = (addresses[here] - np.uint64(part.base)).astype(np.int64)
                bad[here] = part.space.gaps[offsets[:, None] + np.arange(nbytes)].any(axis=1)
        return bad if bad.any() else None

    def _host(self, address: int, nbytes: int) -> Allocation:
        if not self.holds(address, nbytes):
            raise error("HK705", f"{nbytes} bytes at {address:#x} are not inside one allocation: {self.near(address)}")
        return self.allocations[bisect.bisect_right(self._bases, address) - 1]

    def near(self, address: int) -> str:
        """One phrase that places `address` relative to the nearest allocation."""
        if not self.allocations:
            return "no memory is allocated"
        if address < _NULL:
            return "close to address 0: a null pointer?"
        best = min(self.allocations, key=lambda a: max(a.base - address, address - a.end + 1, 0))
        if address < best.base:
            return f"{best.base - address} bytes before `{best.name}` ({best.size} bytes at {best.base:#x})"
        return f"{address - best.base} bytes into `{best.name}` ({best.size} bytes at {best.base:#x})"

    def load(self, addresses: NDArray[np.uint64], mask: Mask, nbytes: int, by: Decoded) -> tuple[Words, Mask | None]:
        """Gather `nbytes` per lane where `mask`; other lanes read 0. Second result: see `Space.gather`."""
        parts = list(self._split(addresses, mask, nbytes, by))
        if len(parts) == 1 and parts[0][1] is None:
            part, _, offsets = parts[0]
            return part.space.gather(offsets, nbytes)
        words = np.zeros((*addresses.shape, max(nbytes // 4, 1)), np.uint32)
        stale = np.zeros(words.shape, np.bool_)
        for part, selected, offsets in parts:
            where = mask if selected is None else selected
            found, invalid = part.space.gather(offsets[where], nbytes)
            words[where] = found
            if invalid is not None:
                stale[where] = invalid
        return words, stale if stale.any() else None

    def store(self, addresses: NDArray[np.uint64], mask: Mask, words: Words, nbytes: int, by: Decoded) -> None:
        """Scatter `words` [..., k] where `mask`; of lanes with equal addresses the highest wins."""
        for part, selected, offsets in self._split(addresses, mask, nbytes, by):
            where = mask if selected is None else selected
            part.space.scatter(offsets[where], words[where], nbytes)

    def spaces(
        self, addresses: NDArray[np.uint64], mask: Mask, nbytes: int, by: Decoded
    ) -> Iterator[tuple[Space, Mask, Offsets]]:
        """Per allocation: its space, the lanes that fall into it, and everybody's offsets."""
        for part, lanes, offsets in self.parts(addresses, mask, nbytes, by):
            yield part.space, lanes, offsets

    def parts(
        self, addresses: NDArray[np.uint64], mask: Mask, nbytes: int, by: Decoded
    ) -> Iterator[tuple[Allocation, Mask, Offsets]]:
        """The same with whole allocations."""
        for part, selected, offsets in self._split(addresses, mask, nbytes, by):
            yield part, mask if selected is None else selected, offsets

    def _split(
        self, addresses: NDArray[np.uint64], mask: Mask, nbytes: int, by: Decoded
    ) -> Iterator[tuple[Allocation, Mask | None, Offsets]]:
        """(allocation, lanes or None for all lanes of the mask, offsets); offsets of other lanes are 0 or harmless."""
        full = bool(mask.all())
        chosen = addresses if full else addresses[mask]
        if chosen.size == 0:
            return
        low, high = int(chosen.min()), int(chosen.max())
        first = self.find(low)
        if first is not None and high + nbytes <= first.end:
            offsets = (addresses - np.uint64(first.base)).astype(np.int64)
            yield first, None if full else mask, offsets if full else np.where(mask, offsets, 0)
            return
        yield from self._scattered(addresses, mask, nbytes, by)

    def _scattered(
        self, addresses: NDArray[np.uint64], mask: Mask, nbytes: int, by: Decoded
    ) -> Iterator[tuple[Allocation, Mask | None, Offsets]]:
        bases = np.array(self._bases, np.uint64)
        ends = np.array([a.end for a in self.allocations], np.uint64)
        index = np.searchsorted(bases, addresses, side="right").astype(np.int64) - 1
        safe = np.maximum(index, 0)
        outside = mask & ((index < 0) | _beyond(addresses, nbytes, ends[safe])) if len(bases) else mask
        if outside.any():
            first = tuple(int(i[0]) for i in np.nonzero(outside))
            address = int(addresses[first])
            what = f"{nbytes}-byte access to {address:#x} (lane {first[-1]}), outside every allocation,"
            raise memory_fault(by, what, self.near(address), first[0] if first[1:] else 0, first[-1])
        for i in np.unique(index[mask]):
            part = self.allocations[int(i)]
            selected = mask & (index == i)
            offsets = (addresses - np.uint64(part.base)).astype(np.int64)
            yield part, selected, np.where(selected, offsets, 0)


def _beyond(addresses: NDArray[np.uint64], nbytes: int, ends: NDArray[np.uint64]) -> Mask:
    """Which accesses end after `ends`, those among them whose end is beyond the last address of all."""
    found: Mask = (addresses + np.uint64(nbytes) > ends) | (addresses > ~np.uint64(nbytes))
    return found
