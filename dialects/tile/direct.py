"""Tiles that go straight from memory to LDS, as far as they lie inside their tensors. Worker process only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hkc.dialects import build
from hkc.dialects.define import TILE_DIALECT
from hkc.dialects.load import create
from hkc.dialects.tile.divisibility import has_zero_bits
from hkc.dialects.wave.lds import CopyToLds
from hkc.layout import LdsMap
from hkc.layout.direct import landing
from hkc.support.errors import HkcBug


def copy_to_lds(low: Any, source: Any, buffer: Any, lds: LdsMap, write: Callable[[], None]) -> None:
    """Bring the tile `source`, whose load was put off, into an LDS buffer: each wave copies its share of every fragment
    without registers. A tile at an edge is loaded after all, with its fill, and written by `write`."""
    chain = low.deferred[source]
    load = chain[0]
    tensor, fill, *offsets = load.operands
    window = low.window(tensor, load.results[0], offsets, load)

    def through_registers() -> None:
        for op in chain:
            TILE_DIALECT.ops[op.name.partition(".")[2]].cls.lower(low, op)  # type: ignore[attr-defined]
        write()

    if window.width() < window.layout.registers:
        through_registers()
        return
    near, unknown = window.unmasked(has_zero_bits(fill))

    def direct() -> None:
        _copy(low, source, chain, window, near, buffer, lds)

    if unknown:
        build.if_else(build.both(*unknown), [], direct, through_registers)
    else:
        direct()


def _copy(low: Any, source: Any, chain: list[Any], window: Any, offsets: list[Any], buffer: Any, lds: LdsMap) -> None:
    layout = low.layout(source)
    starts = landing(layout, lds)
    if starts is None:
        raise HkcBug(f"lanes that copy {layout} don't land side by side in {lds}")
    size = layout.registers * lds.itemsize
    first = dict(zip(layout.fragment_offsets(lds.shape), starts, strict=True))
    before = build.mul(low.identity("wave"), layout.lanes * size)
    own, uniform = window.apart(offsets)
    for run in window.runs(layout.registers):
        origin = window.origins[run.fragment]
        for op in chain[1:]:
            dims = list(op.attributes["permutation"]) if "permutation" in op.attributes else range(len(origin))
            origin = tuple(origin[d] for d in dims[-len(op.results[0].type.shape) :])
        base = build.add(before, first[origin])
        create(CopyToLds, window.tensor.buffer, window.reach(run, own), buffer, base, uniform, bytes=size)
