"""Distributed layouts made to order: coalesced ones for global memory, and one-wave layouts repeated over waves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hkc.layout.distributed import Bases, DistributedLayout, Vector
from hkc.support.errors import error


def blocked(shape: Sequence[int], waves: int, vector: int, dim: int, lanes: int = 64) -> DistributedLayout:
    """A layout for coalesced access along `dim`: each lane holds `vector` consecutive elements of it, lanes continue
    along `dim`, then over the other dims from the last to the first; waves take the other dims first, then `dim`.

    A tile with fewer elements than lanes replicates. Extents that are no powers of two repeat their largest
    power-of-two factor. Raises HK403 unless `waves`, `vector` and `lanes` are powers of two.
    """
    others = [d for d in reversed(range(len(shape))) if d != dim]
    walk = _Walk(shape)
    register = walk.take(vector, [dim], replicate=False)
    lane = walk.take(lanes, [dim, *others])
    wave = walk.take(waves, [*others, dim])
    return DistributedLayout(tuple(walk.block), register, lane, wave)


def tile_waves(
    unit: DistributedLayout, waves: Sequence[int], dims: Sequence[int | None] | None = None
) -> DistributedLayout:
    """A one-wave layout repeated over a grid of waves; wave ids are row-major, the last axis of `waves` lowest.

    `dims[i]` is the dim of `unit` that axis i of the grid walks, None where its waves hold copies (default: 0, 1, …).
    With waves = (2, 4): accumulators of a dot use dims (0, 1), its A operand (0, None), its B operand (None, 1).
    """
    if unit.wave:
        raise error("HK403", f"{unit} is not the layout of one wave")
    block, bases = list(unit.block), []
    for axis in reversed(range(len(waves))):
        dim = axis if dims is None else dims[axis]
        for _ in range(_log2(waves[axis])):
            bases.append(_basis(unit.rank, dim, 0 if dim is None else block[dim]))
            if dim is not None:
                block[dim] *= 2
    return DistributedLayout(tuple(block), unit.register, unit.lane, tuple(bases))


def with_runs(layout: DistributedLayout, dim: int, count: int) -> DistributedLayout:
    """The layout with `count` neighbours along `dim` in each lane's registers, traded for what else these held, so that
    no element changes its wave; the layout itself where they lie neither in registers nor in lanes."""
    steps = [_basis(layout.rank, dim, 1 << i) for i in range(_log2(count))]
    register, lane = list(layout.register), list(layout.lane)
    for step in (s for s in steps if s not in register):
        others = [basis for basis in register if basis not in steps]
        if step not in lane or not others:
            return layout
        lane[lane.index(step)] = others[-1]
        register[register.index(others[-1])] = step
    rest = [basis for basis in register if basis not in steps]
    return DistributedLayout(layout.block, (*steps, *rest), tuple(lane), layout.wave)


class _Walk:
    """Hands out basis vectors in the order of a walk over a tile and remembers the block covered so far."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.limit = [extent & -extent for extent in shape]
        self.block = [1] * len(shape)

    def take(self, count: int, dims: Sequence[int], *, replicate: bool = True) -> Bases:
        """log2(count) bases along `dims` in turn; zero bases (or none) once those are used up."""
        steps = self._steps(dims)
        rank = len(self.block)
        found = [next(steps, None) for _ in range(_log2(count))]
        return tuple(basis or (0,) * rank for basis in found if basis or replicate)

    def _steps(self, dims: Sequence[int]) -> Iterator[Vector]:
        for dim in dims:
            while self.block[dim] < self.limit[dim]:
                self.block[dim] *= 2
                yield _basis(len(self.block), dim, self.block[dim] // 2)


def _basis(rank: int, dim: int | None, value: int) -> Vector:
    return tuple(value if d == dim else 0 for d in range(rank))


def _log2(n: int) -> int:
    if n < 1 or n & (n - 1):
        raise error("HK403", f"counts of waves, lanes and vector elements must be powers of two, not {n}")
    return n.bit_length() - 1
