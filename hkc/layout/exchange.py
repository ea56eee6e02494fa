"""What it takes to bring a register tile from one layout into another, proved by algebra rather than by comparing
elements: each claim is linear in the bits of register, lane and wave, so it holds for all once it holds for each bit.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

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
    held, needed = _on_one_block(source, target)
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
    source: DistributedLayout, target: DistributedLayout, shape: Sequence[int], unit: Sequence[int] = ()
) -> Ints:
    """Where each register of `target` finds its value in its own lane: int64 [fragment, register, 2], the last axis
    being the source's fragment and register.

    `shape` is the target's tile; along the dims in `unit` the source has extent 1 (it is broadcast, or it is the result
    of a reduction of the target). Raises HK406 where another lane or wave holds the value.
    """
    held_shape = [1 if dim in unit else extent for dim, extent in enumerate(shape)]
    flat = target
    for dim in unit:
        flat = flat.reduce(dim)
    if exchange(source, flat) > Exchange.REGISTERS:
        raise error("HK406", f"`{flat}` needs values that `{source}` holds in other lanes or lane-dependent registers")
    needed = target.coordinates(shape)[:, :, 0, 0]
    needed[..., list(unit)] = 0
    return source.owners(needed, held_shape)[..., :2]


def _on_one_block(a: DistributedLayout, b: DistributedLayout) -> tuple[DistributedLayout, DistributedLayout]:
    if (a.rank, a.lanes, a.waves) != (b.rank, b.lanes, b.waves):
        raise error("HK403", f"`{a}` and `{b}` differ in rank, lanes or waves")
    block = tuple(map(max, a.block, b.block))
    return a.extend(block), b.extend(block)


def _difference(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    return tuple(x ^ y for x, y in zip(a, b, strict=True))
