"""Access to global memory element by element: under a mask, through an index tile, atomically. Worker process only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hkc.dialects import build
from hkc.dialects.load import create
from hkc.dialects.tile.access import Run, Window
from hkc.dialects.wave.atomic import GlobalAtomic, GlobalCompareAndSwap


@dataclass
class Places(Window):
    """The places of a tile's elements. `masks` are the fragments of a bool tile; along `axis`, if there is one, places
    come from the fragments `indices` of an integer tile instead of the tile's own coordinates."""

    masks: list[Any] | None = None
    axis: int | None = None
    indices: list[Any] | None = None

    def byte_offset(self, run: Run, offsets: list[Any] | None = None) -> Any:
        """Byte offset of an element from the tensor's base: i32 in the aligned entry, else i64."""
        total = super().byte_offset(run, offsets)
        if self.axis is None:
            return total
        cast = build.to_i32 if self._wide else build.to_i64
        step = build.mul(cast(self.tensor.strides[self.axis]), self.tensor.itemsize)
        return build.add(total, build.mul(cast(self._index(run)), step))

    def own_dims(self) -> list[int]:
        """The dims along which places are the tile's own coordinates."""
        return [d for d in super().own_dims() if d != self.axis]

    def valid(self, run: Run) -> Any:
        """An i1 per lane: the element counts, and lies inside the tensor."""
        checks = [super().valid(run)]
        if self.masks is not None:
            checks.append(build.extract(self.masks[run.fragment], run.register))
        if self.axis is not None:
            extent = build.to_i64(self.tensor.extents[self.axis])
            checks.append(build.cmp("ult", build.to_i64(self._index(run)), extent))
        return build.both(*checks)

    def _index(self, run: Run) -> Any:
        assert self.indices is not None
        return build.extract(self.indices[run.fragment], run.register)

    def load(self, fill: Any, zero: bool = False) -> list[Any]:
        """The elements that count; `fill` elsewhere."""
        one = self._load_masked if self._wide else self._load_general
        return self._assemble(1, lambda run: one(run, fill))

    def store(self, fragments: list[Any]) -> None:
        """Write the elements that count."""
        self._store_masked(fragments)

    def atomic(self, fragments: list[Any], kind: str, unsigned: bool) -> list[Any]:
        """Combine the elements that count with memory; gives what was there."""

        def update(run: Run) -> Any:
            value = build.slice_vector(fragments[run.fragment], run.register, 1)
            where = self._where(run)
            return create(GlobalAtomic, value, *where, kind=kind, unsigned=unsigned, align=self.tensor.itemsize).result

        return self._assemble(1, update)

    def swap(self, expected: list[Any], fragments: list[Any]) -> list[Any]:
        """Compare and swap the elements that count; gives what was there."""

        def update(run: Run) -> Any:
            pair = [build.slice_vector(f[run.fragment], run.register, 1) for f in (expected, fragments)]
            return create(GlobalCompareAndSwap, *pair, *self._where(run), align=self.tensor.itemsize).result

        return self._assemble(1, update)

    def _where(self, run: Run) -> tuple[Any, Any, Any]:
        """Pointer, offset and mask of an update: of copies only one counts."""
        original = self.low.originals(self.layout)
        mask = self.valid(run) if original is None else build.both(self.valid(run), original)
        return self.tensor.pointer, build.to_i64(self.byte_offset(run)), mask
