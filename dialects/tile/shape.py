"""Ops that change the shape of a tile and move no element between lanes by themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hkc.dialects.define import INTS, TILE, Mismatch, attribute, operand, result, tile_op
from hkc.dialects.types import TileType, extents
from hkc.layout import DistributedLayout, LdsMap

LDS_MAP, LDS_OFFSET, LDS_TRANSPOSED = "hkc.lds_map", "hkc.lds_offset", "hkc.lds_transposed"
"""Attributes of an op that goes through LDS: the buffer's byte map, its offset in bytes, and whether lanes
transpose while they read."""

LDS_FILLED = "hkc.lds_filled"
"""Attribute of a conversion whose buffer another conversion of the same tile has filled before."""

DIRECT = "hkc.direct"
"""Attribute of a `load`, and of what stands between it and its conversion: the tile goes straight from memory to LDS
where it lies inside its tensor."""


def _with_unit_dims(layout: DistributedLayout, old: tuple[int, ...], new: tuple[int, ...]) -> DistributedLayout:
    """A layout of shape `old` for the shape `new`, which differs in dims of extent 1."""
    for dim in reversed(range(len(old))):
        if old[dim] == 1:
            layout = layout.drop(dim) if layout.rank > 1 else layout
    kept = [n for n in old if n != 1]
    for dim, extent in enumerate(new):
        if extent == 1 and (kept or dim):
            layout = layout.insert(dim)
    return layout


def _squeezed(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n != 1]


def _odd_part(shape: tuple[int, ...]) -> int | None:
    """The odd factor of the first dim; None where another dim has one too."""
    odd = [n // (n & -n) for n in shape]
    return odd[0] if math.prod(odd[1:]) == 1 else None


def keeps_bits(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """Whether bits of a place stay bits from one shape to the other, so that no element moves: extents that are no
    powers of two only differ in dims of extent 1, or in the first dim by a power of two."""
    return _squeezed(old) == _squeezed(new) or _odd_part(old) == _odd_part(new) is not None


def _regrouped(layout: DistributedLayout, old: tuple[int, ...], new: tuple[int, ...]) -> DistributedLayout:
    """A layout of shape `old` for the same elements, row by row, in shape `new`."""
    if _squeezed(old) == _squeezed(new):
        return _with_unit_dims(layout, old, new)
    odd = _odd_part(old) or 1
    block = (new[0] // odd, *new[1:])
    whole = layout.extend((old[0] // odd, *old[1:]))
    parts = (
        tuple(tuple(int(c) for c in np.unravel_index(whole.pack(basis), block)) for basis in bases)
        for bases in (whole.register, whole.lane, whole.wave)
    )
    return DistributedLayout(block, *parts)


@tile_op("transpose", spelling="tile.T")
class Transpose:
    """Reorder the dims of a tile: dim i of the result is dim `permutation[i]` of the operand."""

    x = operand(TILE)
    permutation = attribute(INTS)
    d = result(TILE)
    examples = (
        '%t = "hkc_tile.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<64x32xf16>) -> tensor<32x64xf16>',
    )

    @staticmethod
    def infer(x: TileType, *, permutation: tuple[int, ...]) -> TileType:
        if sorted(permutation) != list(range(len(x.shape))):
            raise Mismatch(
                f"{list(permutation)} is not a permutation of the {len(x.shape)} dims",
                ("x",),
                code="HK206",
                hint=f"each of 0 to {len(x.shape) - 1} once",
            )
        return TileType(tuple(x.shape[i] for i in permutation), x.dtype)

    @staticmethod
    def meaning(x: Any, *, permutation: tuple[int, ...]) -> Any:
        return np.transpose(x, permutation)

    @staticmethod
    def forward(
        layout: DistributedLayout, x: TileType, d: TileType, *, permutation: tuple[int, ...]
    ) -> DistributedLayout:
        """The dims of the layout reordered: no element moves."""
        return layout.transpose(permutation)

    @staticmethod
    def backward(
        layout: DistributedLayout, x: TileType, d: TileType, *, permutation: tuple[int, ...]
    ) -> DistributedLayout:
        """The inverse reordering."""
        return layout.transpose([permutation.index(i) for i in range(len(permutation))])

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        source = [0] * len(low.shape(op.operands[0]))
        for i, p in enumerate(op.attributes["permutation"]):
            source[p] = i
        low.values[op.results[0]] = low.rearrange(op.operands[0], op.results[0], lambda at: at[..., source])


@tile_op("reshape")
class Reshape:
    """The same elements in row-major order under other extents.

    No element moves where the bits of a place stay bits: extents that are no powers of two differ in dims of extent 1
    only, or in the first dim by a power of two. Otherwise the tile goes through LDS.
    """

    x = operand(TILE)
    d = result(TILE)
    whole_blocks = True
    examples = tuple(
        f'%t = "hkc_tile.reshape"(%x) : (tensor<{x}>) -> tensor<{d}>'
        for x, d in (
            ("64x1xf32", "64xf32"),
            ("64x32xf32", "2048xf32"),
            ("1024xbf16", "16x4x16xbf16"),
            ("48x32xi32", "96x16xi32"),
            ("80x16xf32", "16x80xf32"),
        )
    )

    @staticmethod
    def check(d: TileType, x: TileType) -> None:
        """As many elements."""
        if math.prod(d.shape) != math.prod(x.shape) or d.dtype != x.dtype:
            hint = f"it has {math.prod(x.shape)} of them, not {math.prod(d.shape)}"
            raise Mismatch(f"`reshape` keeps the elements: {x} can't become {d}", ("x",), code="HK202", hint=hint)

    @staticmethod
    def meaning(x: Any, *, shape: tuple[int, ...]) -> Any:
        return np.reshape(x, shape)

    @staticmethod
    def forward(layout: DistributedLayout, x: TileType, d: TileType) -> DistributedLayout:
        """The bits of a place regrouped: no element moves."""
        return _regrouped(layout, x.shape, d.shape)

    @staticmethod
    def backward(layout: DistributedLayout, x: TileType, d: TileType) -> DistributedLayout:
        """The same the other way round."""
        return _regrouped(layout, d.shape, x.shape)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        if LDS_OFFSET in op.attributes:
            from hkc.dialects.tile.through_lds import move

            move(low, op, op.attributes[LDS_OFFSET].value)
            return
        old, new = low.shape(op.operands[0]), low.shape(op.results[0])

        def project(at: Any) -> Any:
            flat = np.ravel_multi_index(tuple(np.moveaxis(at, -1, 0)), new)
            return np.stack(np.unravel_index(flat, old), axis=-1)

        low.values[op.results[0]] = low.rearrange(op.operands[0], op.results[0], project)


@tile_op("broadcast")
class Broadcast:
    """Repeat a tile along its dims of extent 1."""

    x = operand(TILE)
    d = result(TILE)
    examples = ('%t = "hkc_tile.broadcast"(%x) : (tensor<64x1xf32>) -> tensor<64x32xf32>',)

    @staticmethod
    def check(d: TileType, x: TileType) -> None:
        """Same rank, same dtype; every extent equal, or 1 in the operand."""
        fits = len(d.shape) == len(x.shape) and all(a in (1, b) for a, b in zip(x.shape, d.shape, strict=True))
        if not fits or d.dtype != x.dtype:
            raise Mismatch(
                f"{extents(x.shape)} doesn't broadcast to {extents(d.shape)}",
                ("x",),
                code="HK202",
                hint="from the right, extents are equal or 1",
            )

    @staticmethod
    def meaning(x: Any, *, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(x, shape)

    @staticmethod
    def backward(layout: DistributedLayout, x: TileType, d: TileType) -> DistributedLayout:
        """Copies along the repeated dims."""
        for dim, (small, large) in enumerate(zip(x.shape, d.shape, strict=True)):
            if small != large:
                layout = layout.reduce(dim)
        return layout

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        keep = np.array([n != 1 for n in low.shape(op.operands[0])])
        low.values[op.results[0]] = low.rearrange(op.operands[0], op.results[0], lambda at: at * keep)


@tile_op("convert_layout")
class ConvertLayout:
    """The same tile held in another layout.

    The attributes `hkc.lds_map` and `hkc.lds_offset` say through which LDS buffer it goes, once that is decided; a
    conversion without them moves nothing between waves.
    """

    x = operand(TILE)
    d = result(TILE)
    examples = ('%t = "hkc_tile.convert_layout"(%x) : (tensor<64x32xf16>) -> tensor<64x32xf16>',)

    @staticmethod
    def check(d: TileType, x: TileType) -> None:
        """Shape and dtype stay."""
        if (d.shape, d.dtype) != (x.shape, x.dtype):
            raise Mismatch(f"`convert_layout` keeps shape and dtype: {x} can't become {d}", ("x",))

    @staticmethod
    def meaning(x: Any) -> Any:
        return x

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        source, target = op.operands[0], op.results[0]
        if LDS_MAP not in op.attributes:
            low.values[target] = low.move_in_wave(source, target)
            return
        buffer = low.lds_buffer(op.attributes[LDS_MAP].value, op.attributes[LDS_OFFSET].value)

        extents = LdsMap.parse(op.attributes[LDS_MAP].value).shape

        def write() -> None:
            held = dict(zip(low.layout(source).fragment_offsets(low.shape(source)), low.fragments(source), strict=True))
            beyond = low.build.zero(low.fragment_type(source))
            for i, origin in enumerate(low.layout(source).fragment_offsets(extents)):
                low.lds_write(held.get(origin, beyond), buffer, low.layout(source), i)

        if LDS_FILLED in op.attributes:
            pass
        elif source in low.deferred:
            low.copy_to_lds(source, buffer, op.attributes[LDS_MAP].value, write)
        else:
            write()
        kind, layout = low.fragment_type(target), low.layout(target)
        read = low.lds_read_transposed if LDS_TRANSPOSED in op.attributes else low.lds_read
        places = {origin: i for i, origin in enumerate(layout.fragment_offsets(extents))}
        low.values[target] = [
            read(buffer, layout, places[at], kind) for at in layout.fragment_offsets(low.shape(target))
        ]
