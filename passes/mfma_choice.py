"""Which matrix instruction a `dot` gets, how the workgroup's waves share it, and in which order it runs along k."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hkc.layout import DistributedLayout, tile_waves
from hkc.targets.chip import Chip
from hkc.targets.mfma import BITS, Mfma

Extents = tuple[int, int, int]

TOLERATED = 1.25
"""How many times the work of the best grid of waves another may do and still be tried."""

GROUP = 32
"""Neighbours along k that share a scale."""

WIDEST = 16
"""Bytes per lane of the widest LDS read: a lane's run along k that is worth having."""


def candidates(
    chip: Chip, a: str, b: str, acc: str, extents: Extents, scaled: bool = False, wanted: str | None = None
) -> tuple[Mfma, ...]:
    """Matrix instructions, scaled ones or the others, for a dot of (m, n, k), the best first: the rate at which they do
    the dot's own products, then the smaller result.

    Rows and columns beyond the dot are computed and dropped. Along k instructions divide the dot where any does;
    scaled ones must, since they can't leave scales out.
    `wanted` leaves the instructions of that shape or mnemonic. A lowered `dot` hands its operands over exchanged, so
    the instruction's rows are the dot's columns.
    """
    rows = [r for r in chip.mfma_for(b, a, acc, scaled) if wanted in (None, r.mnemonic, shape_text(r))]
    exact = [r for r in rows if extents[2] % r.k == 0]
    fitting = exact if exact or scaled else rows
    return tuple(sorted(fitting, key=lambda r: (-useful_rate(r, extents), r.m * r.n, r.mnemonic)))


def shape_text(row: Mfma) -> str:
    """How an instruction's shape is written: `16x16x32`."""
    return f"{row.m}x{row.n}x{row.k}"


def useful_rate(row: Mfma, extents: Extents) -> float:
    """Products per clock that belong to a dot of (m, n, k)."""
    return (
        row.rate
        * math.prod(extents)
        / math.prod(n + -n % step for n, step in zip(extents, (row.n, row.m, row.k), strict=True))
    )


@dataclass(frozen=True)
class DotLayouts:
    """The instruction of a dot and the layouts of its operands and accumulator.

    A fragment of an operand may hold several of the instruction's along k, one after another in its registers.
    `clocks` is what the matrix unit of a SIMD takes for one wave. `scales` are the layouts of the scales of a and b in
    a scaled dot.
    """

    instruction: Mfma
    a: DistributedLayout
    b: DistributedLayout
    acc: DistributedLayout
    clocks: int
    scales: tuple[DistributedLayout, ...] = ()


def variants(
    chip: Chip,
    dtypes: tuple[str, str, str],
    extents: Extents,
    waves: int,
    chained: bool = False,
    scaled: bool = False,
    wanted: str | None = None,
) -> Iterator[DotLayouts]:
    """Ways to compute a dot whose legality was checked, the most usual first.

    Each instruction of the best rate, with each good grid of waves; waves that find no work hold copies. The order
    along k is free, as long as both operands have the same: by default each lane holds a run as long as the widest LDS
    read; with `chained` the order in which lanes hold an accumulator is offered too, so that one dot's result may be
    another's operand as it lies. With `wanted`, a shape or a mnemonic, only that instruction is taken. Operands must
    fit the LDS one by one, with what waves hold of them beyond the dot, if there is any grid with which they do.
    """
    rows = candidates(chip, *dtypes, extents, scaled, wanted)
    best = useful_rate(rows[0], extents)
    for row in (r for r in rows if useful_rate(r, extents) == best):
        bits = max(BITS[dtypes[0]], BITS[dtypes[1]])

        def fits(grid: tuple[int, int], row: Mfma = row, bits: int = bits) -> bool:
            sides = (n + -n % (step * share) for n, step, share in zip(extents, (row.n, row.m), grid, strict=False))
            return max(sides) * extents[2] * bits <= 8 * chip.lds.bytes

        for grid in wave_grids(-(-extents[0] // row.n), -(-extents[1] // row.m), waves, fits):
            orders = [_own_order(row) if scaled else _run_order(row, dtypes[0], extents[2])]
            if chained and not scaled and (order := _result_order(row)) is not None:
                orders.append(order)
            yield from (_layouts(row, extents, waves, grid, order) for order in dict.fromkeys(orders))


Order = tuple[tuple[int, ...], int]
"""The steps along k of the lane bits that walk it, and how many instructions a fragment holds."""


def _own_order(row: Mfma) -> Order:
    """The order of the instruction itself, which scaled forms keep: scales belong to neighbours along k."""
    return tuple(basis[1] for basis in row.a_layout().lane if basis[1]), 1


def _run_order(row: Mfma, dtype: str, depth: int) -> Order:
    unit = row.a_layout()
    held, bits = unit.registers, BITS[dtype]
    lanes = tuple(basis[1] for basis in unit.lane if basis[1])
    if lanes != tuple(held << i for i in range(len(lanes))):
        return lanes, 1  # the instruction's own order is not one run per lane
    count = 1
    while 2 * count * held * bits <= 8 * WIDEST and depth % (2 * count * row.k) == 0:
        count *= 2
    return tuple(step * count for step in lanes), count


def _result_order(row: Mfma) -> Order | None:
    """The order in which lanes hold the rows of the instruction's result; None where that is no order for operands."""
    steps = tuple(basis[0] for basis in row.acc_layout().lane if basis[0])
    wanted = [basis for basis in row.a_layout().lane if basis[1]]
    return (steps, 1) if len(steps) == len(wanted) and max(steps, default=0) < row.k else None


def _layouts(row: Mfma, extents: Extents, waves: int, grid: tuple[int, int], order: Order) -> DotLayouts:
    rows, columns = grid
    unit = (rows, columns, waves // (rows * columns))
    steps = (row.n * rows, row.m * columns, row.k)
    instructions = math.prod(-(-n // step) for n, step in zip(extents, steps, strict=True))
    a, b = row.b_layout().transpose((1, 0)), row.a_layout()
    if not row.scaled:
        a, b = _reordered(a, *order), _reordered(b, *order)
    return DotLayouts(
        row,
        tile_waves(a, unit, (0, None, None)),
        tile_waves(b.transpose((1, 0)), unit, (None, 1, None)),
        tile_waves(row.acc_layout().transpose((1, 0)), unit, (0, 1, None)),
        instructions * row.cycles,
        _scale_layouts(row, unit) if row.scaled else (),
    )


def _scale_layouts(row: Mfma, unit: tuple[int, int, int]) -> tuple[DistributedLayout, ...]:
    """Lanes walk the rows of an operand, then its groups along k; the instruction has the operands exchanged."""
    a, b = (_scale_layout(extent, row.k // GROUP) for extent in (row.n, row.m))
    return tile_waves(a, unit, (0, None, None)), tile_waves(b.transpose((1, 0)), unit, (None, 1, None))


def _scale_layout(rows: int, groups: int) -> DistributedLayout:
    lane = [(1 << i, 0) for i in range(rows.bit_length() - 1)] + [(0, 1 << i) for i in range(groups.bit_length() - 1)]
    return DistributedLayout((rows, groups), (), tuple(lane), ())


def _reordered(unit: DistributedLayout, steps: tuple[int, ...], count: int) -> DistributedLayout:
    """An operand's layout over (rows, k) with other steps along k for its lanes; registers take what is left."""
    depth, rest = unit.block[1] * count, iter(steps)
    lane = tuple((0, next(rest)) if basis[1] else basis for basis in unit.lane)
    register = tuple((0, 1 << i) for i in range(depth.bit_length() - 1) if 1 << i not in steps)
    return DistributedLayout((unit.block[0], depth), register, lane, ())


def wave_grids(
    row_tiles: int, column_tiles: int, waves: int, fits: Callable[[tuple[int, int]], bool] = lambda grid: True
) -> list[tuple[int, int]]:
    """Waves along the rows and columns of a result of so many instruction tiles, the best first, of those that fit if
    any does.

    What counts is the instruction tiles of the busiest wave; of a count that waves don't divide, some compute one more
    than there is. Grids that are a little worse are offered too, since the kernel's other tiles may ask for them. Of
    equals the first is the one in which a wave's part is the squarest, since that is what its operand reads cost.
    """
    powers = [1 << i for i in range(waves.bit_length())]
    parts = {
        (r, c): (-(-row_tiles // r), -(-column_tiles // c))
        for r in powers
        for c in powers
        if r * c <= waves and r < 2 * row_tiles and c < 2 * column_tiles
    }
    parts = {grid: part for grid, part in parts.items() if fits(grid)} or parts
    least = min(map(math.prod, parts.values()))
    good = [grid for grid, part in parts.items() if math.prod(part) <= TOLERATED * least]
    return sorted(good, key=lambda grid: (math.prod(parts[grid]), sum(parts[grid]), math.prod(grid), -grid[0]))
