"""How `load` and `store` become per-lane accesses: wide buffer accesses in the aligned entry, else single elements.

Worker process only. Offsets of the aligned entry are 32 bits (its predicate bounds every tensor below 2 GiB), those of
the general entry 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hkc.dialects import build
from hkc.dialects.load import create
from hkc.dialects.tile.lowering import Tensor, TileLowering
from hkc.dialects.wave.memory import OUT_OF_RANGE, BufferLoad, BufferStore, GlobalLoad, GlobalStore
from hkc.layout import DistributedLayout

WIDEST = 16
"""Bytes per lane of the widest global access."""


@dataclass(frozen=True)
class Run:
    """Neighbouring registers of a fragment that one instruction moves: `count` from `register` of `fragment` on."""

    fragment: int
    register: int
    count: int


@dataclass
class Window:
    """Where a tile lies in a tensor.

    `divisor` divides the last offset. Per dim `counts` coordinates of the tile from `firsts` on lie inside the tensor
    (uniform i32); `inside` says that all do.
    """

    low: TileLowering
    tensor: Tensor
    layout: DistributedLayout
    shape: tuple[int, ...]
    offsets: list[Any]
    divisor: int

    def __post_init__(self) -> None:
        self.firsts, self.counts = [], []
        whole = []
        for offset, extent, size in zip(self.offsets, self.tensor.extents, self.shape, strict=True):
            first = build.to_i32(build.clamp(build.sub(0, offset), 0, size))
            last = build.to_i32(build.clamp(build.sub(extent, offset), 0, size))
            count = build.sub(build.binary("maxsi", last, first), first)
            self.firsts.append(first)
            self.counts.append(count)
            whole.append(build.cmp("eq", count, size))
        self.inside = build.both(*whole)
        self.origins = self.layout.fragment_offsets(self.shape)
        self._wide = self.low.entry == "aligned"

    def runs(self, width: int) -> Iterator[Run]:
        """All registers of all fragments, `width` at a time."""
        for fragment in range(len(self.origins)):
            for register in range(0, self.layout.registers, width):
                yield Run(fragment, register, width)

    def byte_offset(self, run: Run) -> Any:
        """Byte offset of a run from the tensor's base: i32 in the aligned entry, else i64."""
        cast = build.to_i32 if self._wide else build.to_i64
        total: Any = None
        for dim, (offset, stride) in enumerate(zip(self.offsets, self.tensor.strides, strict=True)):
            lane, inside = self.low.coordinate(self.layout, dim, run.register)
            constant = self.origins[run.fragment][dim] + inside
            step = build.mul(cast(stride), self.tensor.itemsize)
            origin = build.mul(build.add(cast(offset), constant), step)
            part = build.add(origin, build.mul(cast(lane), step))
            total = part if total is None else build.add(total, part)
        return total

    def valid(self, run: Run) -> Any:
        """An i1 per lane: the first element of a run lies inside the tensor."""
        checks = []
        for dim in range(len(self.shape)):
            lane, inside = self.low.coordinate(self.layout, dim, run.register)
            at = build.add(lane, self.origins[run.fragment][dim] + inside)
            checks.append(build.cmp("ult", build.sub(at, self.firsts[dim]), self.counts[dim]))
        return build.both(*checks)

    def width(self) -> int:
        """Elements per access: neighbours along the last dim, at most 16 bytes, and aligned to their size."""
        if not self._wide:
            return 1
        layout, last = self.layout, len(self.shape) - 1
        count = min(layout.contiguous(last), WIDEST // self.tensor.itemsize)
        while count > 1 and (self.divisor % count or any(basis[last] % count for basis in layout.lane + layout.wave)):
            count //= 2
        return count

    def load(self, fill: Any) -> list[Any]:
        """The fragments of the tile, read from global memory. A tile that lies inside the tensor needs no masks; at an
        edge every element is read by itself, so that nothing outside the tensor is ever touched."""
        kind = build.vector_type(self.layout.registers, self.tensor.element)
        if not self._wide:
            return self._assemble(1, lambda run: self._load_general(run, fill))
        return build.if_else(
            self.inside,
            [kind] * len(self.origins),
            lambda: self._assemble(self.width(), lambda run: self._load_buffer(run, self.byte_offset(run))),
            lambda: self._assemble(1, lambda run: self._load_masked(run, fill)),
        )

    def _assemble(self, count: int, load_run: Callable[[Run], Any]) -> list[Any]:
        per_fragment = self.layout.registers // count
        vectors = [load_run(run) for run in self.runs(count)]
        return [build.concat(vectors[i : i + per_fragment]) for i in range(0, len(vectors), per_fragment)]

    def _load_buffer(self, run: Run, offset: Any) -> Any:
        kind = build.vector_type(run.count, self.tensor.element)
        return create(BufferLoad, self.tensor.buffer, offset, results=[kind]).result

    def _load_masked(self, run: Run, fill: Any) -> Any:
        mask = self.valid(run)
        vector = self._load_buffer(run, build.select(mask, self.byte_offset(run), build.i32(OUT_OF_RANGE)))
        return build.pack([build.select(mask, build.extract(vector, 0), fill)])

    def _load_general(self, run: Run, fill: Any) -> Any:
        kind = build.vector_type(1, self.tensor.element)
        mask, size = self.valid(run), self.tensor.itemsize
        vector = create(GlobalLoad, self.tensor.pointer, self.byte_offset(run), mask, results=[kind], align=size).result
        return build.pack([build.select(mask, build.extract(vector, 0), fill)])

    def store(self, fragments: list[Any]) -> None:
        """Write the fragments of the tile to global memory; of replicated elements one copy."""
        if self._wide:
            build.if_else(self.inside, [], lambda: self._store_wide(fragments), lambda: self._store_masked(fragments))
        else:
            self._store_masked(fragments)

    def _store_wide(self, fragments: list[Any]) -> None:
        original = self.low.originals(self.layout)
        for run in self.runs(self.width()):
            part = build.slice_vector(fragments[run.fragment], run.register, run.count)
            offset = self.byte_offset(run)
            if original is not None:
                offset = build.select(original, offset, build.i32(OUT_OF_RANGE))
            create(BufferStore, part, self.tensor.buffer, offset)

    def _store_masked(self, fragments: list[Any]) -> None:
        original = self.low.originals(self.layout)
        for run in self.runs(1):
            value = build.slice_vector(fragments[run.fragment], run.register, 1)
            mask = self.valid(run)
            if original is not None:
                mask = build.both(mask, original)
            offset = self.byte_offset(run)
            if self._wide:
                offset = build.select(mask, offset, build.i32(OUT_OF_RANGE))
                create(BufferStore, value, self.tensor.buffer, offset)
            else:
                create(GlobalStore, value, self.tensor.pointer, offset, mask, align=self.tensor.itemsize)
