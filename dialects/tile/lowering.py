"""What the lowerings of tile ops work with: the map from tile values to per-lane fragments, and the kernel's arguments.

Worker process only. One `TileLowering` serves one kernel function. A tile becomes a list of per-lane vectors, one per
fragment of its layout; an index or scalar stays one value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hkc.dialects import build
from hkc.dialects.load import create
from hkc.dialects.tile import printing
from hkc.dialects.tile.alike import alike
from hkc.dialects.tile.divisibility import divisor, nonnegative
from hkc.dialects.tile.scalars import Scalars
from hkc.dialects.translate import layout_text
from hkc.dialects.types import OpaqueType
from hkc.dialects.wave.ids import LaneId, WaveId
from hkc.dialects.wave.lds import LdsAlloc, LdsRead, LdsReadTransposed, LdsWrite
from hkc.dialects.wave.memory import BUFFER, Buffer
from hkc.dialects.wave.mfma import Mfma, MfmaScaled
from hkc.layout import DistributedLayout, LdsMap
from hkc.layout.exchange import register_sources
from hkc.layout.within_wave import steps
from hkc.support.errors import HkcBug
from hkc.support.mlir import ir
from hkc.targets.chip import Chip
from hkc.targets.mfma import Mfma as Instruction

MFMA = "hkc.mfma"
"""Attribute of a `dot`: the mnemonic of the matrix instruction chosen for it."""


def _stored(element: Any) -> Any:
    """The type in memory of an element in a register: a bool is a byte."""
    return build.int_type(8) if element.width == 1 else element


@dataclass(frozen=True)
class Tensor:
    """A global argument: pointer, extents and strides (index values), element type, and its buffer descriptor."""

    pointer: Any
    extents: tuple[Any, ...]
    strides: tuple[Any, ...]
    element: Any
    buffer: Any | None

    @property
    def stored(self) -> Any:
        """The element type in memory."""
        return _stored(self.element)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return max(1, int(self.element.width) // 8)


@functools.lru_cache(maxsize=4096)
def parse_layout(text: str) -> DistributedLayout:
    """The layout of a text, parsed once."""
    return DistributedLayout.parse(text)


class TileLowering(Scalars):
    """State of lowering one kernel: `entry` is "aligned" (buffers, wide accesses) or "general" (any stride)."""

    def __init__(self, chip: Chip, waves: int, entry: str, prologue: Any) -> None:
        self.chip = chip
        self.waves = waves
        self.entry = entry
        self.values: dict[Any, Any] = {}
        self.tensors: dict[Any, Tensor] = {}
        self.deferred: dict[Any, list[Any]] = {}
        self._prologue = prologue
        self._once: dict[Any, Any] = {}

    # -- values

    def fragments(self, value: Any) -> list[Any]:
        """The per-lane vectors of a tile."""
        found: list[Any] = self.values[value]
        return found

    def scalar(self, value: Any) -> Any:
        """The lowered form of an index or scalar."""
        return self.values[value]

    def layout(self, value: Any) -> DistributedLayout:
        """The layout of a tile."""
        text = layout_text(value.type)
        if text is None:
            raise HkcBug(f"a tile without a layout reached the lowering: {value}")
        return parse_layout(text)

    def shape(self, value: Any) -> tuple[int, ...]:
        """The extents of a tile."""
        return tuple(value.type.shape)

    def fragment_type(self, value: Any) -> Any:
        """The per-lane vector type of a tile's fragments."""
        return build.vector_type(self.layout(value).registers, build.carrier(value.type.element_type))

    def record(self, prefix: str, values: Sequence[Any], more: bool, unsigned: bool) -> None:
        """Print tiles, numbers and indices."""
        printing.record(self, prefix, values, more, unsigned)

    # -- values made once, at the top of the kernel

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """The value that `make` builds at the kernel's top, the first time that `key` is asked for."""
        if key not in self._once:
            with self._prologue:
                self._once[key] = make()
        return self._once[key]

    @contextmanager
    def top(self, location: Any) -> Iterator[None]:
        """Build at the kernel's top."""
        with self._prologue, location:
            yield

    def identity(self, source: str) -> Any:
        """The lane or wave id, i32."""
        cls: type = LaneId if source == "lane" else WaveId
        return self.once(source, lambda: create(cls).result)

    def lane_coordinate(self, layout: DistributedLayout, dim: int) -> Any:
        """The lane's and wave's part of coordinate `dim`, i32."""
        return self.once(("coordinate", layout, dim), lambda: self._lane_coordinate(layout, dim))

    def _lane_coordinate(self, layout: DistributedLayout, dim: int) -> Any:
        total: Any = None
        for piece in layout.pieces(dim):
            source = self.identity(piece.source)
            bits = build.binary("shrui", source, piece.low_bit) if piece.low_bit else source
            part = build.mul(build.binary("andi", bits, (1 << piece.width) - 1), piece.scale)
            total = part if total is None else build.binary("xori", total, part)
        return build.i32(0) if total is None else total

    def coordinate(
        self, layout: DistributedLayout, dim: int, register: int, lane: Any | None = None
    ) -> tuple[Any, int]:
        """Coordinate `dim` of a register inside its block as (i32 value, constant): their sum. `lane` is that of
        register 0, if it is at hand."""
        inside = layout.register_offsets()[register][dim]
        value = self.lane_coordinate(layout, dim) if lane is None else lane
        if layout.is_separable(dim) or inside == 0:
            return value, inside
        if lane is not None:
            return build.binary("xori", value, inside), 0
        return self.once(("xor", layout, dim, inside), lambda: build.binary("xori", value, inside)), 0

    def coordinate_value(self, layout: DistributedLayout, dim: int, register: int, origin: int) -> Any:
        """Coordinate `dim` of a register of the fragment at `origin`, i32."""
        value, inside = self.coordinate(layout, dim, register)
        return build.add(value, inside + origin)

    def originals(self, layout: DistributedLayout) -> Any | None:
        """An i1: this lane and wave hold no mere copies in `layout`; None where none do."""
        masks = zip(("lane", "wave"), layout.replication(), strict=True)
        checks = [(source, mask) for source, mask in masks if mask]
        if not checks:
            return None

        def make() -> Any:
            return build.both(*(build.cmp("eq", build.binary("andi", self.identity(s), m), 0) for s, m in checks))

        return self.once(("originals", layout), make)

    # -- kernel arguments

    def bind_tensor(self, value: Any, pointer: Any, extents: Sequence[Any], strides: Sequence[Any]) -> None:
        """Make a memref argument known by its lowered parts. The aligned entry's last dim has neighbours in memory."""
        if self.entry == "aligned":
            strides = [*strides[:-1], build.index(1)]
        element = build.carrier(value.type.element_type)
        plain = Tensor(pointer, tuple(extents), tuple(strides), element, None)
        buffer = self._buffer(plain) if self.entry == "aligned" else None
        self.tensors[value] = Tensor(pointer, plain.extents, plain.strides, element, buffer)

    def _buffer(self, tensor: Tensor) -> Any:
        """A descriptor that ends where the tensor ends."""
        last = build.index(1)
        for extent, stride in zip(tensor.extents, tensor.strides, strict=True):
            last = build.add(last, build.mul(build.sub(extent, 1), stride))
        size = build.mul(last, tensor.itemsize)
        extents = [build.to_i32(extent) for extent in tensor.extents]
        while extents:
            # Two at a time: the least of three is a vector instruction, behind which no descriptor stays scalar.
            least = functools.reduce(lambda a, b: build.binary("minui", a, b), extents[-2:])
            size = build.select(build.cmp("eq", least, 0), build.index(0), size)
            extents = extents[:-2]
        kind = ir.Type.parse(OpaqueType(BUFFER).text)
        return create(Buffer, tensor.pointer, build.to_i64(size), results=[kind]).result

    def window(self, tensor: Any, tile: Any, offsets: Sequence[Any], op: Any) -> Any:
        """The part of a global argument that a tile covers in `op`; see `hkc.dialects.tile.access`."""
        from hkc.dialects.tile.access import INSIDE, VECTORS, Window

        at = [self.scalar(o) for o in offsets]
        assured = frozenset(int(d) for d in op.attributes.get(INSIDE, ()))
        narrow = self.entry == "aligned"
        behind = frozenset(d for d, o in enumerate(offsets) if narrow and nonnegative(o))
        return Window(
            self, self.tensors[tensor], self.layout(tile), self.shape(tile), at, divisor(offsets[-1]),
            assured, behind, VECTORS in op.attributes,
        )  # fmt: skip

    def places(
        self,
        tensor: Any,
        tile: Any,
        offsets: Sequence[Any],
        mask: Any = None,
        index: Any = None,
        axis: int | None = None,
    ) -> Any:
        """Where in a global argument the elements of a tile lie, under a mask or through an index tile along `axis`
        (which then has no offset); see `hkc.dialects.tile.places`."""
        from hkc.dialects.tile.places import Places

        at = [self.scalar(o) for o in offsets]
        shape = self.shape(tile)
        last = len(shape) - 1
        step = divisor(offsets[-1]) if axis != last else 1
        if axis is not None:
            at.insert(axis, build.index(0))
        chosen = [None if v is None else self.fragments(v) for v in (mask, index)]
        same = all(v is None or alike(v, last) for v in (mask, index))
        return Places(
            self, self.tensors[tensor], self.layout(tile), shape, at, step,
            masks=chosen[0], axis=axis, indices=chosen[1], alike=same,
        )  # fmt: skip

    # -- wave ops

    def mfma(self, dot: Any, a: Any, b: Any, acc: Any) -> Any:
        """One matrix instruction, the one chosen for the `dot`."""
        mnemonic = dot.attributes[MFMA].value
        names = {k: self.dtype_name(dot.operands[i], False) for k, i in (("a_dtype", 1), ("b_dtype", 0))}
        several = sum(r.mnemonic == mnemonic for r in self.chip.mfmas) > 1
        return create(Mfma, a, b, acc, instruction=mnemonic, **(names if several else {})).result

    def instruction(self, dot: Any) -> Instruction:
        """The matrix instruction chosen for a `dot`."""
        return self.chip.mfma(dot.attributes[MFMA].value)

    def mfma_parts(self, dot: Any, fragment: Any) -> list[Any]:
        """The operands of the matrix instruction chosen for a `dot` that lie one after another in a fragment."""
        size = self.instruction(dot).a_layout().registers
        return [build.slice_vector(fragment, at, size) for at in range(0, fragment.type.shape[0], size)]

    def mfma_scaled(self, dot: Any, a: Any, b: Any, acc: Any, a_scale: Any, b_scale: Any) -> Any:
        """One scaled matrix instruction, the one chosen for the `dot_scaled`, whose operands are exchanged."""
        names = {k: self.dtype_name(dot.operands[i], False) for k, i in (("a_dtype", 2), ("b_dtype", 0))}
        return create(MfmaScaled, a, b, acc, a_scale, b_scale, instruction=dot.attributes[MFMA].value, **names).result

    def lds_buffer(self, text: str, offset: int) -> Any:
        """The LDS buffer with this map at this offset."""
        kind = ir.Type.parse(f'!hkc_wave.lds<"{text}">')
        return self.once(("lds", text, offset), lambda: create(LdsAlloc, results=[kind], offset=offset).result)

    def lds_write(self, vector: Any, buffer: Any, layout: DistributedLayout, fragment: int) -> None:
        """Write one fragment of a tile held in `layout`."""
        create(LdsWrite, self.as_bytes(vector), buffer, layout=layout.text(), fragment=fragment)

    def lds_read(self, buffer: Any, layout: DistributedLayout, fragment: int, kind: Any) -> Any:
        """Read one fragment of a tile into `layout`."""
        return self._read(LdsRead, buffer, layout, fragment, kind)

    def lds_read_transposed(self, buffer: Any, layout: DistributedLayout, fragment: int, kind: Any) -> Any:
        """Read one fragment of a tile into `layout` by instructions that transpose."""
        return self._read(LdsReadTransposed, buffer, layout, fragment, kind)

    def _read(self, read: type, buffer: Any, layout: DistributedLayout, fragment: int, kind: Any) -> Any:
        held = build.vector_type(kind.shape[0], _stored(kind.element_type))
        found = create(read, buffer, results=[held], layout=layout.text(), fragment=fragment).result
        return self.from_bytes(found, kind.element_type)

    def defer(self, op: Any) -> None:
        """Put off a load, or what stands between it and its conversion, until the conversion."""
        self.deferred[op.results[0]] = [*self.deferred.get(op.operands[0], []), op]

    def copy_to_lds(self, source: Any, buffer: Any, text: str, write: Callable[[], None]) -> None:
        """Bring a tile that was put off into the LDS buffer with this map; see `hkc.dialects.tile.direct`."""
        from hkc.dialects.tile.direct import copy_to_lds

        copy_to_lds(self, source, buffer, LdsMap.parse(text), write)

    # -- moving elements that stay in their lane

    def within(self, value: Any, dim: int, fill: float) -> list[Any]:
        """The fragments of a tile, with `fill` for all that its layout holds beyond the tile along `dim`."""
        layout, shape = self.layout(value), self.shape(value)
        if dim not in layout.reaches_beyond(shape):
            return self.fragments(value)
        found = []
        for origin, vector in zip(layout.fragment_offsets(shape), self.fragments(value), strict=True):
            if origin[dim] + layout.block[dim] > shape[dim]:
                places = (self.coordinate_value(layout, dim, r, origin[dim]) for r in range(layout.registers))
                inside = build.pack([build.cmp("ult", at, shape[dim]) for at in places])
                vector = build.select(inside, vector, build.number(fill, vector.type))
            found.append(vector)
        return found

    def rearrange(self, source: Any, target: Any, project: Callable[[Any], Any]) -> list[Any]:
        """The fragments of `target` from those of `source`, where no element changes its lane.

        `project` takes target coordinates [..., dim] to source coordinates. Raises HK406 where an element would have
        to cross lanes.
        """
        held, wanted = ((self.layout(v), self.shape(v)) for v in (source, target))
        return renamed(self.fragments(source), *held, *wanted, project)

    def move_in_wave(self, source: Any, target: Any) -> list[Any]:
        """The fragments of `target`, the same tile in another layout, where no element changes its wave."""
        vectors, layout, shape = self.fragments(source), self.layout(source), self.shape(source)
        plan = steps(layout, self.layout(target))
        if plan is None:
            raise HkcBug(f"elements of {layout} change waves on the way to {self.layout(target)}")
        for step in plan:
            vectors = renamed(vectors, layout, shape, step.before, shape)
            vectors, layout = [self.moved(vector, step) for vector in vectors], step.after
        return renamed(vectors, layout, shape, self.layout(target), shape)


def renamed(
    vectors: list[Any],
    layout: DistributedLayout,
    shape: Sequence[int],
    wanted: DistributedLayout,
    wanted_shape: Sequence[int],
    project: Callable[[Any], Any] = lambda at: at,
) -> list[Any]:
    """Fragments of a tile in another layout, by renaming registers: see `register_sources`."""
    found = []
    for fragment in register_sources(layout, shape, wanted, wanted_shape, project).tolist():
        first, registers = fragment[0][0], [r for _, r in fragment]
        whole = all(f == first for f, _ in fragment) and registers == list(range(layout.registers))
        found.append(vectors[first] if whole else build.pack([build.extract(vectors[f], r) for f, r in fragment]))
    return found
