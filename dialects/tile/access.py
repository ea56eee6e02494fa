"""How `load` and `store` become per-lane accesses: wide buffer accesses in the aligned entry, else single elements.

Worker process only. Offsets of the aligned entry are 32 bits (its predicate bounds every tensor below 2 GiB), those of
the general entry 64 bits.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hkc.dialects import build
from hkc.dialects.load import create
from hkc.dialects.tile.lowering import Tensor, TileLowering
from hkc.dialects.wave.memory import OUT_OF_RANGE, BufferLoad, BufferStore, GlobalLoad, GlobalStore
from hkc.dialects.wave.sync import ScheduleFence
from hkc.layout import DistributedLayout
from hkc.machine.abi import tallest

WIDEST = 16
"""Bytes per lane of the widest global access."""


INSIDE = "hkc.inside"
"""Attribute of a `load`: the dims along which the tile is known to lie inside the tensor."""

VECTORS = "hkc.vectors"
"""Attribute of a `load`: no 16 bytes of its last dim that begin at a multiple of 16 lie half inside the tensor."""


@dataclass(frozen=True)
class Run:
    """Neighbouring registers of a fragment that one instruction moves: `count` from `register` of `fragment` on."""

    fragment: int
    register: int
    count: int


@dataclass
class Window:
    """Where a tile lies in a tensor.

    `divisor` divides the last offset; along the dims `assured` the tile lies inside, along those `behind` its offset is
    at least 0; with `vectors` an access is all inside or all outside along the last dim. Per dim `counts` coordinates
    of the tile from `firsts` on lie inside the tensor (uniform i32), and `whole` says that all do.
    """

    low: TileLowering
    tensor: Tensor
    layout: DistributedLayout
    shape: tuple[int, ...]
    offsets: list[Any]
    divisor: int
    assured: frozenset[int] = frozenset()
    behind: frozenset[int] = frozenset()
    vectors: bool = False

    def __post_init__(self) -> None:
        self.firsts, self.counts, self.whole = [], [], []
        self.clamped: list[int] = []
        self.lanes: dict[int, Any] = {}
        for dim, (offset, extent, size) in enumerate(zip(self.offsets, self.tensor.extents, self.shape, strict=True)):
            first, count = build.i32(0), build.to_i32(build.clamp(build.sub(extent, offset), 0, size))
            if dim not in self.behind:
                first = build.to_i32(build.clamp(build.sub(0, offset), 0, size))
                count = build.sub(build.binary("maxsi", count, first), first)
            self.firsts.append(first)
            self.counts.append(count)
            self.whole.append(build.cmp("eq", count, size))
        self.origins = self.layout.fragment_offsets(self.shape)
        self._wide = self.low.entry == "aligned"

    def runs(self, width: int) -> Iterator[Run]:
        """All registers of all fragments, `width` at a time."""
        for fragment in range(len(self.origins)):
            for register in range(0, self.layout.registers, width):
                yield Run(fragment, register, width)

    def byte_offset(self, run: Run, offsets: list[Any] | None = None) -> Any:
        """Byte offset of a run from the tensor's base: i32 in the aligned entry, else i64."""
        cast = build.to_i32 if self._wide else build.to_i64
        total: Any = None
        starts = offsets or self.offsets
        for dim in self.own_dims():
            offset, stride = starts[dim], self.tensor.strides[dim]
            lane, inside = self.low.coordinate(self.layout, dim, run.register, self.lanes.get(dim))
            constant = self.origins[run.fragment][dim] + inside
            step = build.mul(cast(stride), self.tensor.itemsize)
            if dim in self.lanes:  # nothing is kept for other fragments: what is the same in all lanes least of all
                lane, constant = build.add(lane, constant), 0
            origin = build.mul(build.add(cast(offset), constant), step)
            part = build.add(origin, build.mul(cast(lane), step))
            total = part if total is None else build.add(total, part)
        return cast(build.index(0)) if total is None else total

    def own_dims(self) -> list[int]:
        """The dims along which places are the tile's own coordinates: all."""
        return list(range(len(self.shape)))

    def valid(self, run: Run) -> Any:
        """An i1 per lane: the first element of a run lies inside the tensor."""
        return self._valid(run, self.own_dims())

    def _valid(self, run: Run, dims: Sequence[int]) -> Any:
        """The same along some dims alone."""
        checks = []
        for dim in dims:
            lane, inside = self.low.coordinate(self.layout, dim, run.register, self.lanes.get(dim))
            at = build.add(lane, self.origins[run.fragment][dim] + inside)
            checks.append(build.cmp("ult", build.sub(at, self.firsts[dim]), self.counts[dim]))
        return build.both(*checks)

    def width(self) -> int:
        """Elements per access: neighbours along the last dim, at most 16 bytes, aligned to their size, none beyond the
        tile."""
        if not self._wide:
            return 1
        layout, last = self.layout, len(self.shape) - 1
        count = min(layout.contiguous(last), WIDEST // self.tensor.itemsize)
        starts = [self.divisor, self.shape[last], *(basis[last] for basis in layout.lane + layout.wave)]
        while count > 1 and any(start % count for start in starts):
            count //= 2
        return count

    def load(self, fill: Any, zero: bool) -> list[Any]:
        """The fragments of the tile, read from global memory; `zero` says that `fill` is a plain 0.

        Where the tile surely or visibly lies inside the tensor no element is masked, nor where `unmasked` knows better.
        At other edges every element is read by itself, so that nothing outside the tensor is ever touched.
        """
        if not self._wide:
            return self._one_by_one(lambda here, run: here._load_general(run, fill))
        offsets, unknown = self.unmasked(zero)

        def plain() -> list[Any]:
            own, uniform = self.apart(offsets)
            return self._assemble(self.width(), lambda run: self._load_buffer(run, self.reach(run, own), *uniform))

        if not unknown:
            return plain()
        kind = build.vector_type(self.layout.registers, self.tensor.element)
        masked = lambda: self._masked(offsets, fill, zero)  # noqa: E731
        return build.if_else(build.both(*unknown), [kind] * len(self.origins), plain, masked)

    def _masked(self, offsets: list[Any], fill: Any, zero: bool) -> list[Any]:
        """The tile element by element. No mask is kept until its element is there where `fill` is what a buffer gives
        for those outside."""
        own, uniform = self.apart(offsets)

        def load(here: Window, run: Run) -> Any:
            if zero:
                return self._load_buffer(run, here.reach(run, own), *uniform)
            return here._load_masked(run, fill)

        clamped = copy.copy(self)
        clamped.clamped = [*self.clamped, len(self.shape) - 1]
        return clamped._one_by_one(load)

    def _one_by_one(self, load: Callable[[Window, Run], Any]) -> list[Any]:
        """The tile element by element. Which elements of a fragment lie inside is found out at its first: kept for
        others, or for all trips of a loop, it takes a pair of scalar registers for each."""
        here = copy.copy(self)

        def held(run: Run) -> Any:
            if run.register == 0:
                if not self._wide:
                    create(ScheduleFence)
                lanes = [self.low.lane_coordinate(self.layout, dim) for dim in self.own_dims()]
                here.lanes = dict(zip(self.own_dims(), map(self.low.held_here, lanes), strict=True))
            return load(here, run)

        return self._assemble(1, held)

    def unmasked(self, zero: bool) -> tuple[list[Any], list[Any]]:
        """How the tile is read without masks: at these offsets, where these conditions hold. None is needed where what
        is missing reads as 0: along the first dim it falls behind the buffer's end, along others `reach` is out of
        range; but along the last dim an access may be half inside."""
        last = len(self.shape) - 1
        open_ = [d for d in range(last + 1) if d not in self.assured]
        if not zero:
            return self.offsets, [self.whole[d] for d in open_]
        rows = last > 0 and self.shape[0] <= tallest(last + 1) and 0 in open_
        self.clamped = [d for d in open_ if (d or not rows) and (d < last or self.vectors)]
        unknown = [self.whole[last]] if last in open_ and not self.vectors else []
        return self._near_rows() if rows else self.offsets, unknown

    def reach(self, run: Run, offsets: list[Any]) -> Any:
        """The byte offset that a lane reads without a mask: out of range where its access lies outside, or beyond the
        tile. What decides that is the same in all trips of a loop that steps along `assured` dims."""
        outside = [self._valid(run, self.clamped)] if self.clamped else []
        return _where([*outside, *self._in_tile(run)], self.byte_offset(run, offsets))

    def _in_tile(self, run: Run) -> Iterator[Any]:
        """What says that a lane's run does not lie beyond the tile, an i1 for each dim along which it may."""
        origin = self.origins[run.fragment]
        for dim in self.layout.reaches_beyond(self.shape):
            if origin[dim] + self.layout.block[dim] > self.shape[dim]:
                at = self.low.coordinate_value(self.layout, dim, run.register, origin[dim])
                yield build.cmp("ult", at, self.shape[dim])

    def apart(self, offsets: list[Any]) -> tuple[list[Any], list[Any]]:
        """The offsets without those along `assured` dims, and what these come to in bytes (a list of at most one): less
        than the tensor's span, and the same in all lanes."""
        own, uniform = list(offsets), []
        for dim in sorted(self.assured):
            own[dim] = build.index(0)
            step = build.mul(build.to_i32(self.tensor.strides[dim]), self.tensor.itemsize)
            uniform.append(build.mul(build.to_i32(offsets[dim]), step))
        return own, [functools.reduce(build.add, uniform)] if uniform else []

    def _near_rows(self) -> list[Any]:
        """The offsets, the first held near the tensor: a tile far outside would wrap around 32 bits."""
        lowest = build.binary("maxsi", self.offsets[0], -self.shape[0])
        return [build.binary("minsi", lowest, self.tensor.extents[0]), *self.offsets[1:]]

    def _assemble(self, count: int, load_run: Callable[[Run], Any]) -> list[Any]:
        per_fragment = self.layout.registers // count
        vectors = [load_run(run) for run in self.runs(count)]
        return [build.concat(vectors[i : i + per_fragment]) for i in range(0, len(vectors), per_fragment)]

    def _load_buffer(self, run: Run, offset: Any, *uniform: Any) -> Any:
        kind = build.vector_type(run.count, self.tensor.stored)
        return self._from_memory(create(BufferLoad, self.tensor.buffer, offset, uniform, results=[kind]).result)

    def _load_masked(self, run: Run, fill: Any) -> Any:
        mask = self.valid(run)
        vector = self._load_buffer(run, build.select(mask, self.byte_offset(run), build.i32(OUT_OF_RANGE)))
        return build.select(mask, vector, build.splat(fill, run.count))

    def _load_general(self, run: Run, fill: Any) -> Any:
        kind = build.vector_type(1, self.tensor.stored)
        mask, size = self.valid(run), self.tensor.itemsize
        vector = create(GlobalLoad, self.tensor.pointer, self.byte_offset(run), mask, results=[kind], align=size).result
        return build.pack([build.select(mask, build.extract(self._from_memory(vector), 0), fill)])

    def _from_memory(self, vector: Any) -> Any:
        """Elements as they were stored, as tile elements: a byte that is not 0 is true."""
        if self.tensor.stored == self.tensor.element:
            return vector
        kind = build.vector_type(vector.type.shape[0], self.tensor.element)
        return build.op("arith.cmpi", [vector, build.zero(vector.type)], [kind], predicate=build.int_attr(1))

    def _to_memory(self, vector: Any) -> Any:
        """The inverse of `_from_memory`."""
        if self.tensor.stored == self.tensor.element:
            return vector
        return build.op("arith.extui", [vector], [build.vector_type(vector.type.shape[0], self.tensor.stored)])

    def store(self, fragments: list[Any]) -> None:
        """Write the fragments of the tile to global memory; of replicated elements one copy."""
        if self._wide:
            build.if_else(
                build.both(*self.whole), [], lambda: self._store_wide(fragments), lambda: self._store_masked(fragments)
            )
        else:
            self._store_masked(fragments)

    def _store_wide(self, fragments: list[Any]) -> None:
        original = self.low.originals(self.layout)
        for run in self.runs(self.width()):
            part = self._to_memory(build.slice_vector(fragments[run.fragment], run.register, run.count))
            offset = _where([*self._in_tile(run), *([] if original is None else [original])], self.byte_offset(run))
            create(BufferStore, part, self.tensor.buffer, offset)

    def _store_masked(self, fragments: list[Any], width: int = 1) -> None:
        original = self.low.originals(self.layout)
        for run in self.runs(width):
            value = self._to_memory(build.slice_vector(fragments[run.fragment], run.register, width))
            mask = self.valid(run)
            if original is not None:
                mask = build.both(mask, original)
            offset = self.byte_offset(run)
            if self._wide:
                offset = build.select(mask, offset, build.i32(OUT_OF_RANGE))
                create(BufferStore, value, self.tensor.buffer, offset)
            else:
                create(GlobalStore, value, self.tensor.pointer, offset, mask, align=self.tensor.itemsize)


def _where(conditions: Sequence[Any], offset: Any) -> Any:
    """An offset where all conditions hold, out of range elsewhere."""
    return build.select(build.both(*conditions), offset, build.i32(OUT_OF_RANGE)) if conditions else offset
