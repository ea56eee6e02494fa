"""What it takes to bring a register tile from one layout into another, proved by algebra rather than by comparing
elements: each claim is linear in the bits of register, lane and wave, so it holds for all once it holds for each bit.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

import numpy as np

from hkc.layout.distributed import DistributedLayout
from hkc.layout.linear import Echelon, Ints
from hkc.support.errors import error


class Exchange(enum.IntEnum):
    """How far data must travel, the cheapest first."""

    IDENTITY = 0
    """The layouts are equal."""
    REGISTERS = 1
    """Every lane holds what it needs, in registers that are the same in all lanes: renaming."""
    SELECT = 2
    """Every lane holds what it needs, in registers that depend on the lane or wave."""
    LANES = 3
    """Every wave holds what it needs, in other lanes."""
    WAVES = 4
    """Waves need what others hold."""


def exchange(source: DistributedLayout, target: DistributedLayout) -> Exchange:
    """How far data travels from `source` to `target`, for every tile that fits both.

    Raises HK403 unless both have the same rank, lanes and waves.
    """
    if source == target:
        return Exchange.IDENTITY
    held, needed = on_one_block(source, target)
    registers, lanes = Echelon(map(held.pack, held.register)), Echelon(map(held.pack, held.register + held.lane))
    moved = [_difference(a, b) for a, b in zip(held.lane + held.wave, needed.lane + needed.wave, strict=True)]
    if all(needed.pack(basis) in registers for basis in needed.register):
        if not any(map(any, moved)):
            return Exchange.REGISTERS
        if all(held.pack(difference) in registers for difference in moved):
            return Exchange.SELECT
    inside = (*needed.register, *needed.lane, *moved[len(held.lane) :])
    return Exchange.LANES if all(held.pack(basis) in lanes for basis in inside) else Exchange.WAVES


def same_data(one: DistributedLayout, other: DistributedLayout) -> bool:
    """Does every lane hold the same elements in both, whatever the registers?"""
    return max(exchange(one, other), exchange(other, one)) <= Exchange.SELECT


def register_sources(
    source: DistributedLayout,
    source_shape: Sequence[int],
    target: DistributedLayout,
    target_shape: Sequence[int],
    project: Callable[[Ints], Ints] = lambda at: at,
) -> Ints:
    """Where each register of `target` finds its value in its own lane: int64 [fragment, register, 2], the last axis
    being the source's fragment and register. `project` takes the target's coordinates [..., dim] to the source's.

    Proved on every element of the tile; what lies beyond it comes from anywhere. Raises HK406 where another lane or
    wave holds a value, or another register in some lanes.
    """
    at = target.coordinates(target_shape)
    real = np.all(at < np.array(target_shape), axis=-1)  # [fragment, register, lane, wave]
    wanted, held = project(at), source.coordinates(source_shape)
    table = np.zeros((*at.shape[:2], 2), np.int64)
    for f, r in zip(*np.nonzero(real.any(axis=(2, 3))), strict=True):
        lane, wave = np.argwhere(real[f, r])[0]
        found = np.argwhere(np.all(held[:, :, lane, wave] == wanted[f, r, lane, wave], axis=-1))
        if not len(found) or np.any((held[tuple(found[0])] != wanted[f, r]).any(axis=-1) & real[f, r]):
            raise error("HK406", f"`{target}` needs values that `{source}` holds in other lanes or registers of theirs")
        table[f, r] = found[0]
    return table


def on_one_block(a: DistributedLayout, b: DistributedLayout) -> tuple[DistributedLayout, DistributedLayout]:
    """Both layouts over the smallest block that holds both blocks. Raises HK403 unless rank, lanes and waves agree."""
    if (a.rank, a.lanes, a.waves) != (b.rank, b.lanes, b.waves):
        raise error("HK403", f"`{a}` and `{b}` differ in rank, lanes or waves")
    block = tuple(map(max, a.block, b.block))
    return a.extend(block), b.extend(block)


def _difference(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    return tuple(x ^ y for x, y in zip(a, b, strict=True))
