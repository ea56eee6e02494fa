"""Cuts, joins and regroupings in which elements change lanes: through an array in LDS, row after row, that one layout
writes by one index map and another reads by another. Worker process only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hkc.dialects.translate import element_name, plain
from hkc.layout import LdsMap
from hkc.support.dtypes import dtype

RESHAPE, SLICE, CONCAT = "hkc_tile.reshape", "hkc_tile.slice", "hkc_tile.concat"

Shape = Sequence[int]
Window = tuple[LdsMap, int]


def array_map(op: Any) -> LdsMap:
    """The whole array that the op goes through: its result where it joins, else its operand."""
    whole = op.results[0] if op.name == CONCAT else op.operands[0]
    return LdsMap.row_major(tuple(whole.type.shape), _itemsize(op))


def move(low: Any, op: Any, offset: int) -> None:
    """Lower the op through the array that starts at byte `offset` of LDS."""
    written, read = _windows(op)
    for value, (lds, start) in zip(op.operands, written, strict=True):
        buffer = low.lds_buffer(lds.text(), offset + start)
        for i, vector in enumerate(low.fragments(value)):
            low.lds_write(vector, buffer, low.layout(value), i)
    target, (lds, start) = op.results[0], read
    buffer, layout = low.lds_buffer(lds.text(), offset + start), low.layout(target)
    count = layout.fragments(low.shape(target))
    low.values[target] = [low.lds_read(buffer, layout, i, low.fragment_type(target)) for i in range(count)]


def _windows(op: Any) -> tuple[list[Window], Window]:
    """Where each operand is written, and where the result is read."""
    shapes = [tuple(v.type.shape) for v in (*op.operands, *op.results)]
    *operands, result = shapes
    size, origin = _itemsize(op), (0,) * len(result)
    if op.name == CONCAT:
        axis = op.attributes["axis"].value
        second = tuple(operands[0][axis] if d == axis else 0 for d in range(len(result)))
        starts = (origin, second)
        return [window(result, s, at, size) for s, at in zip(operands, starts, strict=True)], _whole(result, size)
    start = plain(op.attributes["offsets"]) if op.name == SLICE else origin
    array = operands[0] if op.name == SLICE else result
    return [_whole(operands[0], size)], window(array, result, start, size)


def window(array: Shape, shape: Shape, start: Shape, itemsize: int) -> Window:
    """The byte map of a window in an array that lies row after row, and the byte at which it starts."""
    steps = [math.prod(array[d + 1 :]) * itemsize for d in range(len(array))]
    together = math.gcd(array[-1], shape[-1], start[-1])
    block = (*(1 for _ in shape[1:]), together & -together)
    strides = (*steps[:-1], block[-1] * itemsize)
    order = tuple(reversed(range(len(shape))))
    lds = LdsMap(tuple(shape), itemsize, block, strides, order)
    return lds, sum(s * step for s, step in zip(start, steps, strict=True))


def _whole(shape: Shape, itemsize: int) -> Window:
    return window(shape, shape, (0,) * len(shape), itemsize)


def _itemsize(op: Any) -> int:
    return dtype(element_name(op.results[0].type.element_type)).bytes
