"""How tiles lie in LDS: which conversions of a tile share a buffer, its byte map, and how it is filled and read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hkc.dialects.tile.lowering import parse_layout
from hkc.dialects.tile.shape import Reshape
from hkc.dialects.translate import element_name, layout_text, record_type
from hkc.dialects.types import TileType
from hkc.layout import DistributedLayout
from hkc.layout.accesses import Kind, Use
from hkc.layout.conversion import extents_in_lds
from hkc.layout.direct import direct_layout
from hkc.layout.synthesis import Candidate, synthesise
from hkc.layout.text import by
from hkc.passes.explain import Option
from hkc.passes.layout_graph import chain_from_memory
from hkc.passes.locate import refuse
from hkc.passes.requests import requested
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError
from hkc.targets.chip import Chip

SHARING = 4
"""Conversions that share a buffer at most: each may be read in two ways, and all combinations are tried."""

DIRECT_BYTES = 16
"""Bytes per lane of a copy straight from memory to LDS."""


@dataclass(frozen=True)
class Plan:
    """One buffer for conversions of a tile, in program order: its map with the proof of every access, how each
    conversion reads it, which elements each lane fetches where the tile comes straight from memory, and what else could
    have been."""

    ops: tuple[Any, ...]
    chosen: Candidate
    kinds: tuple[Kind, ...]
    direct: DistributedLayout | None
    others: tuple[Option, ...]

    @property
    def cost(self) -> tuple[int, int]:
        """Clocks and instructions of one wave, its writes to LDS included."""
        return self.chosen.rank[0], self.chosen.rank[1]

    @property
    def option(self) -> Option:
        """What was chosen, in words."""
        return _option(self.chosen, self.direct is not None)


def plans(function: Any, ops: Sequence[Any], chip: Chip) -> list[Plan]:
    """Buffers for conversions of one tile in one block. Each conversion joins the buffer where it adds the least, if
    that is less than one of its own costs: a map must serve all accesses of its buffer, which can take more clocks than
    writing the tile twice."""
    made: list[Plan] = []
    for op in ops:
        alone = plan(function, (op,), chip)
        joined = {
            i: both
            for i, old in enumerate(made)
            if len(old.ops) < SHARING and (both := _together(function, old, op, chip)) is not None
        }
        added = {i: _more(both.cost, made[i].cost) for i, both in joined.items()}
        best = min(added, key=lambda i: (added[i], i), default=None)
        if best is None or added[best] > alone.cost:
            made.append(alone)
            continue
        apart = Option("a buffer of its own for each conversion", made[best].cost[0] + alone.cost[0])
        made[best] = replace(joined[best], others=(*joined[best].others, apart))
    return made


def _more(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] - other[0], one[1] - other[1]


def _together(function: Any, old: Plan, op: Any, chip: Chip) -> Plan | None:
    try:
        return plan(function, (*old.ops, op), chip)
    except HkcError:
        return None  # no map serves all of them


def plan(function: Any, ops: tuple[Any, ...], chip: Chip) -> Plan:
    """The best map for one write and the reads of all `ops`, whether each read is a transposed one, and whether the
    tile goes straight from memory to LDS: wherever reads cost no more clocks then, since that takes no registers and
    no instructions. Raises HK450 where a style was asked for that serves not all of them."""
    style = requested(function, "swizzle") or ""
    made = list(_candidates(ops, chip, style))
    if not made:
        why = f"no such map of the {by(_tile(ops)[0])} tile serves its accesses"
        raise not_honoured(ops[0], style, why)
    chosen, kinds = min(((c, k) for c, _, k in made), key=lambda each: each[0].rank)
    others = [_option(c, False) for best, runner_up, _ in made for c in (best, runner_up) if c is not None]
    direct = _direct(ops, kinds, chip, style)
    if direct is not None and sum(a.total for a in direct[0].accesses) <= sum(a.total for a in chosen.accesses[1:]):
        return Plan(ops, direct[0], kinds, direct[1], tuple(others))
    return Plan(ops, chosen, kinds, None, tuple(others))


def _candidates(
    ops: Sequence[Any], chip: Chip, style: str
) -> Iterator[tuple[Candidate, Candidate | None, tuple[Kind, ...]]]:
    """The best map and its runner-up for each way to read the tile: plain, or transposed where that can be."""
    shape, itemsize = _tile(ops)
    transposes = itemsize <= 2 and chip.has("lds_read_transposed")
    ways: tuple[Kind, ...] = ("read", "read_transposed") if transposes else ("read",)
    for kinds in itertools.product(ways, repeat=len(ops)):
        uses = Use("write", _layout(ops[0].operands[0])), *_reads(ops, kinds)
        try:
            found = synthesise(shape, itemsize, uses, chip.lds.access, style=style)
        except HkcError:
            if kinds == ("read",) and not style:
                raise
            continue  # no transposed read gives this layout, or no such map serves all
        yield found.chosen, found.runner_up, kinds


def _reads(ops: Iterable[Any], kinds: Iterable[Kind]) -> tuple[Use, ...]:
    return tuple(Use(kind, _layout(op.results[0])) for op, kind in zip(ops, kinds, strict=True))


def not_honoured(op: Any, asked: str, why: str) -> Exception:
    """The error for a request for a kind of maps."""
    hint = "leave it out, and the map that costs the fewest clocks is chosen"
    return refuse(op, "HK450", f"`swizzle={asked}` can't be honoured: {why}", hint=hint)


def _option(candidate: Candidate, direct: bool) -> Option:
    """A byte map and how the tile gets there, with what one wave's instructions cost."""
    costs = ", ".join(f"{a.instructions} {a.mnemonic} of {a.cycles}: {a.reason}" for a in candidate.accesses)
    way = "straight from memory" if direct else "through registers"
    return Option(f"{candidate.map}, {way} ({costs})", candidate.clocks)


def _direct(
    ops: Sequence[Any], kinds: tuple[Kind, ...], chip: Chip, style: str
) -> tuple[Candidate, DistributedLayout] | None:
    """The best map for a tile that goes straight from memory to LDS, and which elements each lane then fetches; None
    where it can't: the tile is no plain load used here alone, or lanes can't take 16 bytes. (Narrower copies would need
    four times as many instructions, each with a destination of its own: registers are cheaper.)"""
    chain = chain_from_memory(ops)
    if chain is None or DIRECT_BYTES not in chip.direct_to_lds_bytes:
        return None
    shape, itemsize = _tile(ops)
    try:
        chosen = synthesise(shape, itemsize, _reads(ops, kinds), chip.lds.access, DIRECT_BYTES, style).chosen
    except HkcError:
        return None  # no map keeps as many bytes together
    target = _layout(ops[0].results[0])
    layout = direct_layout(chosen.map, target.waves, target.lanes, DIRECT_BYTES)
    if layout is None or layout.covered(ops[0].results[0].type.shape) != shape:
        return None
    loaded = through(chain, layout)
    return (chosen, layout) if loaded.contiguous(loaded.rank - 1) * itemsize == DIRECT_BYTES else None


def through(chain: Sequence[Any], layout: DistributedLayout) -> DistributedLayout:
    """The layout of the loaded tile where that at the end of a chain is `layout`."""
    for made in reversed(chain[1:]):
        if made.name == "hkc_tile.reshape":
            layout = Reshape.backward(layout, *(_type(v) for v in (made.operands[0], made.results[0])))
        else:
            permutation = list(made.attributes["permutation"])
            layout = layout.transpose([permutation.index(i) for i in range(len(permutation))])
    return layout


def _type(value: Any) -> TileType:
    found = record_type(value.type)
    assert isinstance(found, TileType)
    return found


def _layout(value: Any) -> DistributedLayout:
    return parse_layout(layout_text(value.type) or "")


def _tile(ops: Sequence[Any]) -> tuple[tuple[int, ...], int]:
    """Extents in LDS and bytes per element of the tile that is converted: whole blocks of all layouts."""
    kind = ops[0].results[0].type
    held = [_layout(v) for v in (ops[0].operands[0], *(op.results[0] for op in ops))]
    return extents_in_lds(tuple(kind.shape), held), dtype(element_name(kind.element_type)).bytes
