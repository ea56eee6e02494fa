"""Access to global memory under a mask, through an index tile, atomically. Worker process only.

Atomic updates go element by element. Others are as wide as those of a whole window where the mask and the index are
equal for all elements of an access, as when a mask chooses rows, or a gather takes them by an index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hkc.dialects import build
from hkc.dialects.load import create
from hkc.dialects.tile.access import Run, Window
from hkc.dialects.wave.atomic import GlobalAtomic, GlobalCompareAndSwap


@dataclass
class Places(Window):
    """The places of a tile's elements. `masks` are the fragments of a bool tile; along `axis`, if there is one, places
    come from the fragments `indices` of an integer tile instead of the tile's own coordinates. Both are `alike` along
    the last dim, or may differ there."""

    masks: list[Any] | None = None
    axis: int | None = None
    indices: list[Any] | None = None
    alike: bool = False

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

    def width(self) -> int:
        """Elements per access: one where neighbours are not all chosen alike, or do not lie side by side."""
        return super().width() if self.alike and self.axis != len(self.shape) - 1 else 1

    def load(self, fill: Any, zero: bool = False) -> list[Any]:
        """The elements that count; `fill` elsewhere."""
        if not self._wide:
            return self._assemble(1, lambda run: self._load_general(run, fill))
        kind = build.vector_type(self.layout.registers, self.tensor.element)
        load = lambda width: self._assemble(width, lambda run: self._load_masked(run, fill))  # noqa: E731
        return self._in_vectors([kind] * len(self.origins), load)

    def store(self, fragments: list[Any]) -> None:
        """Write the elements that count."""
        self._in_vectors([], lambda width: self._store_masked(fragments, width))

    def _in_vectors(self, results: list[Any], access: Callable[[int], Any]) -> list[Any]:
        """`access` by as many elements as lie inside the tensor, or outside, all together; else one by one."""
        width, last = self.width(), len(self.shape) - 1
        if width == 1:
            return list(access(1) or [])
        even = build.cmp("eq", build.binary("remui", self.tensor.extents[last], width), 0)
        vectors = build.binary("ori", self.whole[last], even)
        return build.if_else(vectors, results, lambda: access(width), lambda: access(1))

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
