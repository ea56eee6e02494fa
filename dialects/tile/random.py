"""Random numbers that depend on a seed and an element's place in the whole, not on tiles, waves or order."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import INDEX, SCALAR, TILE, Mismatch, operand, result, tile_op
from hkc.dialects.types import IndexType, ScalarType, TileType

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
"""Philox4x32-10: rounds, multipliers and key increments (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
SC 2011)."""

WORDS = 4
"""Words of a counter, and of a block of random bits: neighbours along the last dim share a block."""


def philox(counter: Any, key: tuple[int, int]) -> Any:
    """The four random words (uint32) for arrays of four counter words and a key of two."""
    c0, c1, c2, c3 = (np.asarray(c).astype(np.uint64) for c in counter)
    low = np.uint64(0xFFFFFFFF)
    k0, k1 = key
    for _ in range(ROUNDS):
        p0, p1 = np.uint64(MULTIPLIERS[0]) * c0, np.uint64(MULTIPLIERS[1]) * c2
        c0, c1, c2, c3 = (
            p1 >> np.uint64(32) ^ c1 ^ np.uint64(k0),
            p1 & low,
            p0 >> np.uint64(32) ^ c3 ^ np.uint64(k1),
            p0 & low,
        )
        k0, k1 = (k0 + WEYL[0]) & 0xFFFFFFFF, (k1 + WEYL[1]) & 0xFFFFFFFF
    return tuple(c.astype(np.uint32) for c in (c0, c1, c2, c3))


@tile_op("random", spelling="random(seed, [offset, …], [extent, …])")
class Random:
    """A tile of random 32-bit words (i32), or of uniform numbers in [0, 1) (f32: the upper 24 bits of a word).

    The place of an element is (`offsets` before the tile's rank, then offset + coordinate), 1 to 4 numbers of 32 bits.
    With (c, r, h, b) the place from its last number on, zeros where there are fewer, its word is number c % 4 of Philox
    4x32-10 of the counter (c // 4, r, h, b) under the key (low word of `seed`, high word). So it depends on the seed
    and the place alone.
    """

    seed = operand(SCALAR)
    offsets = operand(INDEX, variadic=True)
    d = result(TILE)
    whole_blocks = True
    examples = tuple(
        f'%t = "hkc_tile.random"(%s, {at}) : (i64, {", ".join(["index"] * len(at.split(", ")))}) -> tensor<{d}>'
        for at, d in (("%i, %j", "16x64xi32"), ("%b, %h, %i, %j", "32x16xf32"), ("%i", "256xi32"))
    )

    @staticmethod
    def check(d: TileType, seed: ScalarType, offsets: tuple[IndexType, ...]) -> None:
        """The rule between the operands and the chosen result type."""
        if seed.dtype != "i64":
            raise Mismatch(f"the seed is {seed}, not i64", ("seed",), code="HK204", hint="cast(seed, i64)")
        if d.dtype not in ("i32", "u32", "f32"):
            raise Mismatch(f"`random` gives u32 or f32, not {d}", ("shape",), code="HK204")
        if not len(d.shape) <= len(offsets) <= WORDS:
            raise Mismatch(
                f"`random` needs {len(d.shape)} to {WORDS} offsets for a tile of {d}, not {len(offsets)}",
                ("offsets",),
                code="HK206",
                hint="an offset per dim; more in front tell apart what is drawn elsewhere",
            )

    @staticmethod
    def meaning(seed: Any, offsets: tuple[int, ...], *, shape: tuple[int, ...], dtype: Any) -> Any:
        steps = [0] * (len(offsets) - len(shape)) + list(np.indices(shape, dtype=np.int64))
        place = [np.broadcast_to(o + s, shape).astype(np.uint32) for o, s in zip(offsets, steps, strict=True)][::-1]
        place += [np.zeros(shape, np.uint32)] * (WORDS - len(place))
        number = int(np.asarray(seed)) & 0xFFFFFFFFFFFFFFFF
        block = philox((place[0] >> np.uint32(2), *place[1:]), (number & 0xFFFFFFFF, number >> 32))
        words = np.choose(place[0] & np.uint32(3), block)
        return (
            (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
            if dtype == np.float32
            else words.view(dtype)
        )

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        from hkc.dialects.tile.philox import lower

        lower(low, op)
