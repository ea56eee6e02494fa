"""Which matrix instruction a `dot` gets, and how the workgroup's waves share it."""

from __future__ import annotations

from dataclasses import dataclass

from hkc.layout import DistributedLayout, tile_waves
from hkc.targets.chip import Chip
from hkc.targets.mfma import Mfma

Extents = tuple[int, int, int]


def candidates(chip: Chip, a: str, b: str, acc: str, extents: Extents) -> tuple[Mfma, ...]:
    """Matrix instructions that divide a dot of (m, n, k), the best first: rate, then the smaller result.

    A lowered `dot` hands its operands over exchanged, so the instruction's rows are the dot's columns.
    """
    m, n, k = extents
    rows = (
        r for r in chip.mfma_for(b, a, acc) if r.has_layouts and r.blocks == 1 and not (m % r.n or n % r.m or k % r.k)
    )
    return tuple(sorted(rows, key=lambda r: (-r.rate, r.m * r.n, r.mnemonic)))


@dataclass(frozen=True)
class DotLayouts:
    """The instruction of a dot and the layouts of its operands and accumulator."""

    instruction: Mfma
    a: DistributedLayout
    b: DistributedLayout
    acc: DistributedLayout


def choose(chip: Chip, dtypes: tuple[str, str, str], extents: Extents, waves: int) -> DotLayouts:
    """Instruction and layouts for a dot whose legality was checked. Waves that find no work hold copies."""
    row = candidates(chip, *dtypes, extents)[0]
    grid = wave_grid(extents[0] // row.n, extents[1] // row.m, waves)
    rows, columns = grid
    spare = waves // (rows * columns)
    unit = (rows, columns, spare)
    return DotLayouts(
        row,
        tile_waves(row.b_layout().transpose((1, 0)), unit, (0, None, None)),
        tile_waves(row.a_layout().transpose((1, 0)), unit, (None, 1, None)),
        tile_waves(row.acc_layout().transpose((1, 0)), unit, (0, 1, None)),
    )


def wave_grid(row_tiles: int, column_tiles: int, waves: int) -> tuple[int, int]:
    """Waves along the rows and columns of a result of so many instruction tiles: all of them where that divides, and
    each wave's part as square as can be, since that is what its operand reads cost."""
    powers = [1 << i for i in range(waves.bit_length())]
    splits = [(r, c) for r in powers for c in powers if r * c <= waves and not (row_tiles % r or column_tiles % c)]
    return max(splits, key=lambda s: (s[0] * s[1], -(row_tiles // s[0] + column_tiles // s[1]), s[0]))
