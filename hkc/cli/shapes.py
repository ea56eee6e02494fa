"""Shapes that a kernel is checked with: every dim below, at and above the tile sizes, each at its own pace."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hkc.machine.abi import GlobalParam, KernelInfo, View
from hkc.support.dtypes import dtype
from hkc.support.extents import evaluate

if TYPE_CHECKING:
    from hkc.frontend.program import Checked

Names = dict[str, int | float | bool]

_LARGEST_TILE = 256
_DEFAULT_TILE = 64  # where a file names no tile size
_ELEMENTS = 1 << 21  # of one tensor, so that a run takes a second or so
_ROW = 16  # elements of 16 bytes at least: rows of whole ones are aligned, whatever their type
_MULTIPLES = (1, 2, 4, 8, 16, 32, 64, 128)


def shapes(checked: Checked, info: KernelInfo, known: Names, fixed: set[str]) -> list[Names]:
    """The values in `known`, then others for the dims that are not `fixed`: sizes around the smallest and the largest
    tile size, no two dims equal, in rows that are aligned and that are not; all of them whole tiles; one element; and
    each dim in turn empty.

    Sizes are rounded up where the kernel's parameters demand multiples, and down where a tensor would be too large.
    """
    dims = dict.fromkeys(d for p in info.params if isinstance(p, GlobalParam) for d in p.dims if isinstance(d, str))
    free = [dim for dim in dims if dim not in fixed]
    if not free:
        return [known]
    made = [known, *({**known, **sizes} for sizes in _sizes(free, _tiles(checked)))]
    bounded = [_bounded(info, shape, free, free[n % len(free)]) for n, shape in enumerate(made)]
    fitting = [_fitting(info, shape, free) for shape in bounded]
    return [shape for n, shape in enumerate(fitting) if shape not in fitting[:n]]


def _tiles(checked: Checked) -> tuple[int, int]:
    """The smallest and the largest whole number among the file's constants that can be a tile size."""
    found = [v for _, v in checked.constants if isinstance(v, int) and 4 <= v <= _LARGEST_TILE]
    return (min(found), max(found)) if found else (_DEFAULT_TILE, _DEFAULT_TILE)


def _sizes(free: list[str], tiles: tuple[int, int]) -> Iterator[dict[str, int]]:
    small, large = tiles
    yield dict.fromkeys(free, 2 * large)
    yield dict.fromkeys(free, 1)
    around = sorted({1, small - 1, small + 1, large - 1, large, large + 1, 2 * large + small // 2})
    pace = len(around) // len(free) + 1
    for step in range(len(around)):
        yield {dim: around[(step + pace * n) % len(around)] for n, dim in enumerate(free)}
    aligned = (3 * large + _ROW, large + 3 * _ROW, 2 * large + 2 * _ROW)
    for step in range(2):
        yield {dim: aligned[(step + n) % len(aligned)] for n, dim in enumerate(free)}
    for dim in free:
        yield {**dict.fromkeys(free, small + 1), dim: 0}


def _bounded(info: KernelInfo, shape: Names, free: list[str], kept: str) -> Names:
    """The shape, its largest free dims halved until every tensor is small enough, `kept` the last of them."""
    shape = dict(shape)
    while max((math.prod(view.extents) for view in _views(info, shape).values()), default=0) > _ELEMENTS:
        dim = max((d for d in free if d != kept), key=lambda d: shape[d], default=kept)
        dim = dim if int(shape[dim]) > 2 else kept
        if int(shape[dim]) <= 2:
            break
        shape[dim] = int(shape[dim]) // 2 + 1
    return shape


def _fitting(info: KernelInfo, shape: Names, free: list[str]) -> Names:
    """The shape, its free dims rounded up to the first power of two that the parameters' declarations admit."""
    for multiple in _MULTIPLES:
        rounded = {**shape, **{dim: -(-int(shape[dim]) // multiple) * multiple for dim in free}}
        views = _views(info, rounded)
        if all(condition.holds(views[condition.param]) for condition in info.requires):
            return rounded
    return shape


def _views(info: KernelInfo, shape: Names) -> dict[str, View]:
    """The tensors as contiguous ones at an aligned address."""
    found = {}
    whole = {name: value for name, value in shape.items() if isinstance(value, int)}
    for p in info.params:
        if isinstance(p, GlobalParam):
            extents = tuple(evaluate(dim, whole) for dim in p.dims)
            strides = tuple(math.prod(extents[n + 1 :]) for n in range(len(extents)))
            found[p.name] = View(0, extents, strides, dtype(p.dtype).bytes)
    return found
