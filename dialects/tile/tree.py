"""How a tile is folded and scanned along an axis in the order of its elements: level b of a balanced tree joins runs of
2^b neighbours, in registers or between two lanes, whichever bit of the layout is bit b of the coordinate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hkc.layout import DistributedLayout
from hkc.support.errors import HkcBug

Parts = tuple[Any, ...]
Combine = Callable[[Parts, Parts], Parts]


def within_wave(layout: DistributedLayout, axis: int) -> DistributedLayout:
    """The layout with each wave holding the whole of `axis`: what waves had of it becomes registers."""
    moved = tuple(basis for basis in layout.wave if basis[axis])
    if not moved:
        return layout
    rest = tuple(basis if not basis[axis] else (0,) * layout.rank for basis in layout.wave)
    return DistributedLayout(layout.block, layout.register + moved, layout.lane, rest)


class _Runs:
    """The runs of elements along `axis` that a lane holds, by the coordinates along the other axes and their start.

    `totals` holds what each run is joined to; `prefixes`, if asked for, what each element is.
    """

    def __init__(self, low: Any, value: Any, axis: int, columns: Sequence[Any]) -> None:
        self.low = low
        layout, shape = low.layout(value), low.shape(value)
        self.extent = shape[axis]
        self.lane_bits = _lane_bits(layout, axis)
        self.totals: dict[Any, dict[int, Parts]] = {}
        self.places: list[list[tuple[Any, int]]] = []
        held = layout.coordinates(shape)[:, :, 0, 0]
        for f in range(held.shape[0]):
            self.places.append([split(held[f, r], axis) for r in range(held.shape[1])])
            for r, (row, start) in enumerate(self.places[-1]):
                self.totals.setdefault(row, {})[start] = tuple(column[f][r] for column in columns)
        self.prefixes = {row: dict(runs) for row, runs in self.totals.items()}

    def join(self, combine: Combine, *, prefixes: bool, reverse: bool = False) -> None:
        """Walk the tree from its leaves to its root."""
        step = 1
        while step < self.extent:
            for row, runs in self.totals.items():
                members = self.prefixes[row] if prefixes else {}
                if step in self.lane_bits:
                    self._across_lanes(runs, members, step, combine, reverse)
                else:
                    _in_registers(runs, members, step, combine, reverse)
            step *= 2

    def _across_lanes(
        self, runs: dict[int, Parts], members: dict[int, Parts], step: int, combine: Combine, reverse: bool
    ) -> None:
        build, bit = self.low.build, self.lane_bits[step]
        upper = self.low.lane_bit(bit)
        for start, own in list(runs.items()):
            other = tuple(self.low.shuffle_scalar(v, 1 << bit) for v in own)
            left = tuple(build.select(upper, o, v) for v, o in zip(own, other, strict=True))
            right = tuple(build.select(upper, v, o) for v, o in zip(own, other, strict=True))
            runs[start] = combine(left, right)
            for at in _inside(members, start, step):
                was = members[at]
                grown = combine(was, other) if reverse else combine(other, was)
                sides = (was, grown) if reverse else (grown, was)
                members[at] = tuple(build.select(upper, a, b) for a, b in zip(*sides, strict=True))


def _in_registers(
    runs: dict[int, Parts], members: dict[int, Parts], step: int, combine: Combine, reverse: bool
) -> None:
    for start in [s for s in runs if not s & step and s + step in runs]:
        left, right = runs[start], runs.pop(start + step)
        for at in list(_inside(members, start if reverse else start + step, step)):
            members[at] = combine(members[at], right) if reverse else combine(left, members[at])
        runs[start] = combine(left, right)


def _inside(members: dict[int, Parts], start: int, step: int) -> Iterator[int]:
    return (at for at in list(members) if at // step * step == start)


def split(at: Any, axis: int) -> tuple[tuple[int, ...], int]:
    """Coordinates as those along the other axes and the one along `axis`."""
    plain = tuple(int(c) for c in at)
    return plain[:axis] + plain[axis + 1 :], plain[axis]


def _lane_bits(layout: DistributedLayout, axis: int) -> dict[int, int]:
    """Which lane bit is which bit of the coordinate along `axis`."""
    along = [b for b in layout.register + layout.lane + layout.wave if b[axis]]
    values = [b[axis] for b in along]
    pure = all(sum(map(bool, b)) == 1 and b[axis] & (b[axis] - 1) == 0 for b in along)
    if not pure or len(set(values)) != len(values) or any(b[axis] for b in layout.wave):
        raise HkcBug(f"a fold along axis {axis} can't follow the layout {layout}")
    return {b[axis]: i for i, b in enumerate(layout.lane) if b[axis]}


def scan_tree(low: Any, op: Any, axis: int, combine: Combine, reverse: bool) -> None:
    """Lower a scan: the results are held like the operands."""
    runs = _Runs(low, op.operands[0], axis, [low.elements(x) for x in op.operands])
    runs.join(combine, prefixes=True, reverse=reverse)
    for i, result in enumerate(op.results):
        low.values[result] = [
            low.build.pack([runs.prefixes[row][start][i] for row, start in fragment]) for fragment in runs.places
        ]


def fold_tree(low: Any, op: Any, axis: int, columns: Sequence[Any], combine: Combine, keep: Sequence[int] = ()) -> None:
    """Lower a reduction of columns of elements; its results are the columns `keep` (default: all)."""
    runs = _Runs(low, op.operands[0], axis, columns)
    runs.join(combine, prefixes=False)
    for i, result in zip(keep or range(len(columns)), op.results, strict=True):
        held = low.layout(result).coordinates(low.shape(result))[:, :, 0, 0]
        low.values[result] = [
            low.build.pack([runs.totals[split(at, axis)[0]][0][i] for at in fragment]) for fragment in held
        ]
