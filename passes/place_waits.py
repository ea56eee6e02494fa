"""Barriers and waits between LDS accesses of different waves, derived from who writes and reads which buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import kernels
from hkc.dialects.load import create
from hkc.dialects.types import OpaqueType
from hkc.dialects.wave.lds import buffer_map
from hkc.dialects.wave.sync import Barrier, Wait
from hkc.passes.define import Pass
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

COPY = "hkc_wave.copy_to_lds"
WRITES = frozenset({"hkc_wave.lds_write", COPY})
READS = frozenset({"hkc_wave.lds_read", "hkc_wave.lds_read_transposed"})

Range = tuple[int, int]
Ranges = frozenset[Range]
Places = dict[Any, bool]
"""The ops that a barrier goes before, and whether copies from memory must be waited for there."""


@dataclass(frozen=True)
class PlaceWaits(Pass):
    """Before a read of what was written since the last barrier, and before a write to what was read since then, the
    wave waits for its own LDS accesses (and copies from memory) and meets the others. Loops are followed around their
    back edge.

    Before::

        %b = "hkc_wave.lds_alloc"() {offset = 0 : i64} : () -> !hkc_wave.lds<"16x64:2 block 16x64 strides 2048,128 order 1,0">
        "hkc_wave.lds_write"(%v, %b) {layout = "16x64 r(0,1 0,2 0,4 8,0) l(0,8 0,16 0,32 1,0 2,0 4,0) w()", fragment = 0 : i64} : (vector<16xf16>, !hkc_wave.lds<"16x64:2 block 16x64 strides 2048,128 order 1,0">) -> ()
        %r = "hkc_wave.lds_read"(%b) {layout = "16x64 r(0,1 0,2 0,4 8,0) l(1,0 2,0 4,0 0,8 0,16 0,32) w()", fragment = 0 : i64} : (!hkc_wave.lds<"16x64:2 block 16x64 strides 2048,128 order 1,0">) -> vector<16xf16>

    After::

        "hkc_wave.lds_write"
        "hkc_wave.wait"() {lgkm = 0 : i64, vm = -1 : i64}
        "hkc_wave.barrier"
        "hkc_wave.lds_read"
    """  # noqa: E501

    name: ClassVar[str] = "place_waits"
    needs: ClassVar[frozenset[str]] = frozenset({"waves"})
    gives: ClassVar[frozenset[str]] = frozenset({"synchronised"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            block = function.regions[0].blocks[0]
            places: Places = {}
            _flow(block, _State(), places)
            for op, copying in places.items():
                with ir.InsertionPoint(op), op.location:
                    # Not by marks: LLVM forgets the copies before a mark where another follows with none in between.
                    create(Wait, lgkm=0, vm=0 if copying else -1)
                    create(Barrier)


@dataclass(frozen=True)
class _State:
    """The byte ranges of LDS written and read since the last barrier, and whether copies may be under way."""

    written: Ranges = frozenset()
    read: Ranges = frozenset()
    copying: bool = False

    def join(self, other: _State) -> _State:
        return _State(self.written | other.written, self.read | other.read, self.copying or other.copying)


def _flow(block: Any, state: _State, places: Places) -> _State:
    """Follow a block; ops that need a barrier before them are added to `places`. Returns the state after it."""
    for op in block.operations:
        op = op.operation
        if op.name in ("scf.for", "scf.while"):
            state = _around(op, state, places)
        elif len(op.regions):
            ends = [_flow(region.blocks[0], state, places) for region in op.regions if len(region.blocks)]
            for end in ends:
                state = state.join(end)
        else:
            state = _step(op, state, places)
    return state


def _around(loop: Any, state: _State, places: Places) -> _State:
    """A loop's body starts in the state before the loop or in the one at its own end; a loop may also run 0 times."""
    start = state
    while True:
        end = start
        for region in loop.regions:
            end = _flow(region.blocks[0], end, places)
        joined = start.join(end)
        if joined == start:
            return joined
        start = joined


def _step(op: Any, state: _State, places: Places) -> _State:
    if op.name == "hkc_wave.barrier":
        return _State()
    if op.name not in WRITES and op.name not in READS:
        return state
    writes, used = op.name in WRITES, _range(op.operands[2 if op.name == COPY else len(op.operands) - 1].owner)
    if op in places or _meets(used, state.read if writes else state.written):
        places[op] = places.get(op, False) or state.copying
        state = _State()
    if writes:
        return state.join(_State(frozenset({used}), copying=op.name == COPY))
    return state.join(_State(read=frozenset({used})))


def _range(alloc: Any) -> Range:
    """The bytes of a buffer: buffers with a common byte are the same memory."""
    start = int(alloc.attributes["offset"].value)
    return start, start + buffer_map(OpaqueType(str(alloc.results[0].type))).bytes


def _meets(one: Range, others: Ranges) -> bool:
    return any(start < one[1] and one[0] < end for start, end in others)
