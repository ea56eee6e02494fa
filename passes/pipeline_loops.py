"""Software pipelining: while one trip of a loop computes, the next trip's tiles are on their way into LDS."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from hkc.dialects import build
from hkc.dialects.forms import ENTRY, clone, kernels, walk
from hkc.dialects.load import create
from hkc.dialects.types import OpaqueType
from hkc.dialects.wave.lds import LdsAlloc, buffer_map
from hkc.dialects.wave.sync import AsyncMark, Barrier, Wait, WaitAsync
from hkc.passes.define import Pass
from hkc.passes.place_waits import COPY, READS
from hkc.passes.swizzle_lds import ALIGNMENT
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

FETCH = "hkc_wave.buffer_load"
WRITE = "hkc_wave.lds_write"
BUFFER = {COPY: 2, WRITE: 1}
"""Which operand of an op is the LDS buffer that it fills."""


@dataclass(frozen=True)
class PipelineLoops(Pass):
    """A loop that stages tiles through LDS brings them in one trip ahead.

    Where LDS has room for a second copy of the loop's buffers, trips alternate between the two, with one barrier per
    trip; two trips are unrolled, so that every LDS address stays a constant. Otherwise what was fetched waits in
    registers. The last trip fetches its own tiles again: nothing beyond them is touched.

    Before::

        #rows = #hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(0,8 0,16 0,32 1,0 2,0 4,0) w()">
        func.func @k(%r: !hkc_wave.descriptor, %n: i32, %o: i32) attributes {hkc.kernel, hkc.entry = "aligned"} {
          %b = "hkc_wave.lds_alloc"() {offset = 0 : i64}
            : () -> !hkc_wave.lds<"16x64:2 block 16x64 strides 2048,128 order 1,0">
          %c0 = arith.constant 0 : i32
          %c64 = arith.constant 64 : i32
          scf.for %k = %c0 to %n step %c64 : i32 {
            %a = arith.addi %k, %o : i32
            %v = "hkc_wave.buffer_load"(%r, %a) : (!hkc_wave.descriptor, i32) -> vector<16xf16>
            "hkc_wave.lds_write"(%v, %b)
              {layout = "16x64 r(0,1 0,2 0,4 8,0) l(0,8 0,16 0,32 1,0 2,0 4,0) w()", fragment = 0 : i64}
              : (vector<16xf16>, !hkc_wave.lds<"16x64:2 block 16x64 strides 2048,128 order 1,0">) -> ()
            %x = "hkc_wave.lds_read"(%b)
              {layout = "16x64 r(0,1 0,2 0,4 8,0) l(1,0 2,0 4,0 0,8 0,16 0,32) w()", fragment = 0 : i64}
              : (!hkc_wave.lds<"16x64:2 block 16x64 strides 2048,128 order 1,0">) -> vector<16xf16>
            "hkc_wave.buffer_store"(%x, %r, %a) : (vector<16xf16>, !hkc_wave.descriptor, i32) -> ()
          }
          return
        }

    After::

        %b = "hkc_wave.lds_alloc"() {offset = 0 : i64}
        %t = "hkc_wave.lds_alloc"() {offset = 2048 : i64}
        %v = "hkc_wave.buffer_load"
        "hkc_wave.lds_write"(%v, %b)
        scf.for
        "hkc_wave.barrier"
        "hkc_wave.lds_read"(%b)
        %w = "hkc_wave.buffer_load"
        "hkc_wave.lds_write"(%w, %t)
        "hkc_wave.barrier"
        "hkc_wave.lds_read"(%t)
    """

    name: ClassVar[str] = "pipeline_loops"
    needs: ClassVar[frozenset[str]] = frozenset({"waves", "entries"})
    gives: ClassVar[frozenset[str]] = frozenset({"pipelined"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            if ir.StringAttr(function.attributes[ENTRY]).value == "aligned":
                for op in walk(function):
                    if op.name == "scf.for":
                        parts = _split(op)
                        if parts is not None:
                            _pipeline(function, op, parts, chip)


@dataclass(frozen=True)
class _Parts:
    """A loop body taken apart: what brings tiles closer, what then fills LDS with them, and the rest.

    `ahead` holds fetches into registers and direct copies with the arithmetic that both need; `write` holds what takes
    fetched values to LDS. `first` is the first of `compute` that reads LDS: only behind it all waves are done with the
    other copy of the buffers.
    """

    ahead: tuple[Any, ...]
    write: tuple[Any, ...]
    compute: tuple[Any, ...]
    first: int

    @property
    def copies(self) -> bool:
        """Does anything go to LDS without registers?"""
        return any(op.name == COPY for op in self.ahead)

    @property
    def buffers(self) -> list[Any]:
        """The LDS buffers that are filled."""
        filling = [op for op in (*self.ahead, *self.write) if op.name in BUFFER]
        return list(dict.fromkeys(op.operands[BUFFER[op.name]] for op in filling))


def _split(loop: Any) -> _Parts | None:
    """None where a loop brings nothing into LDS, or does more than fetch, fill and compute."""
    block = loop.regions[0].blocks[0]
    *body, _ = (op.operation for op in block.operations)
    write = [op for op in body if op.name == WRITE]
    copies = [op for op in body if op.name == COPY]
    reads = [op for op in body if op.name in READS]
    if any(len(op.regions) for op in body) or not (write or copies) or not reads:
        return None
    needed = _slice([*write, *copies], body)
    ahead = [op for op in body if op in needed or op.name == COPY]
    carried = set(list(block.arguments)[1:])
    if any(o in carried for op in ahead for o in op.operands) or not all(map(_movable, ahead)):
        return None
    gone = {op for op in ahead if op.name in (FETCH, COPY)} | set(write)
    compute = [op for op in body if op not in gone]
    if any(_comes_from(o, gone) for op in compute for o in op.operands):
        return None
    return _Parts(tuple(ahead), tuple(write), tuple(compute), compute.index(reads[0]) + 1)


def _movable(op: Any) -> bool:
    return op.name in (FETCH, COPY) or op.name.startswith(("arith.", "vector."))


def _comes_from(value: Any, ops: set[Any]) -> bool:
    return isinstance(value, ir.OpResult) and value.owner.operation in ops


def _slice(roots: Iterable[Any], body: list[Any]) -> set[Any]:
    """The ops of a body that the operands of `roots` are computed by."""
    inside, wanted, work = set(body), set(), list(roots)
    while work:
        for operand in work.pop().operands:
            if _comes_from(operand, inside) and operand.owner.operation not in wanted:
                wanted.add(operand.owner.operation)
                work.append(operand.owner.operation)
    return wanted


def _pipeline(function: Any, loop: Any, parts: _Parts, chip: Chip) -> None:
    if _overlap(parts.buffers):
        return
    used = _lds_end(function)
    room = used + sum(map(_padded, parts.buffers)) <= chip.lds.bytes
    if not room and parts.copies:
        return
    twins = _twins(parts, used) if room else {}
    trips = _Trips(loop, parts)
    kinds = [r.type for r in loop.results]
    starts = list(loop.operands)[3:]
    with ir.InsertionPoint(loop), loop.location:
        any_trip = build.cmp("slt", loop.operands[0], loop.operands[1])
        emit = (lambda: _alternate(trips, twins)) if room else (lambda: _prefetch(trips))
        ends = build.if_else(any_trip, kinds, emit, (lambda: starts) if kinds else None)
    for before, after in zip(loop.results, ends, strict=True):
        before.replace_all_uses_with(after)
    loop.erase()


def _lds_end(function: Any) -> int:
    allocations = (op for op in walk(function) if op.name == "hkc_wave.lds_alloc")
    return max((op.attributes["offset"].value + _padded(op.results[0]) for op in allocations), default=0)


def _overlap(buffers: list[Any]) -> bool:
    """Do buffers share LDS, for want of room? Then each is free only while the others are not needed."""
    places = sorted((b.owner.attributes["offset"].value, _padded(b)) for b in buffers)
    return any(start + size > following for (start, size), (following, _) in pairwise(places))


def _padded(buffer: Any) -> int:
    size = buffer_map(OpaqueType(str(buffer.type))).bytes
    return size + -size % ALIGNMENT


def _twins(parts: _Parts, offset: int) -> dict[Any, Any]:
    """A second buffer for each, behind all others."""
    twins = {}
    for buffer in parts.buffers:
        with ir.InsertionPoint.after(buffer.owner), buffer.owner.location:
            twins[buffer] = create(LdsAlloc, results=[buffer.type], offset=offset).result
        offset += _padded(buffer)
    return twins


@dataclass
class _Trips:
    """Emits parts of trips of a loop at the insertion point."""

    loop: Any
    parts: _Parts

    def __post_init__(self) -> None:
        self.block = self.loop.regions[0].blocks[0]
        self.lower, self.upper, self.step = list(self.loop.operands)[:3]
        self.starts = list(self.loop.operands)[3:]

    def last(self) -> Any:
        """The loop's variable in its last trip."""
        through = build.sub(build.sub(self.upper, self.lower), 1)
        return build.add(self.lower, build.mul(build.binary("divsi", through, self.step), self.step))

    def ahead(self, at: Any, twins: dict[Any, Any]) -> dict[Any, Any]:
        """Start to bring in the tiles of the trip with variable `at`; what was fetched, by what it was in the loop."""
        values = {self.block.arguments[0]: at, **twins}
        clone(self.parts.ahead, values)
        return values

    def meet(self) -> None:
        """Let the waves meet: what came into LDS during the last trip is there for all, what it read is free. Said here
        once per trip, since found one by one the barriers would wait for copies that have just begun."""
        if self.parts.copies:
            create(AsyncMark)
            create(WaitAsync)
        create(Wait, lgkm=0)
        create(Barrier)

    def write(self, fetched: dict[Any, Any], twins: dict[Any, Any]) -> None:
        """Take what was fetched to LDS."""
        clone(self.parts.write, {**fetched, **twins})

    def trip(
        self, at: Any, carried: list[Any], here: dict[Any, Any], following: Any, there: dict[Any, Any]
    ) -> list[Any]:
        """Compute the trip `at` from the buffers `here` while the tiles of the trip `following` (None: of no trip) come
        into the buffers `there`; the values that it carries on."""
        values = {**dict(zip(self.block.arguments, [at, *carried], strict=True)), **here}
        clone(self.parts.compute[: self.parts.first], values)
        fetched = None if following is None else self.ahead(following, there)
        clone(self.parts.compute[self.parts.first :], values)
        if fetched is not None:
            self.write(fetched, there)
        return [values.get(o, o) for o in list(self.block.operations)[-1].operands]


def _alternate(trips: _Trips, twins: dict[Any, Any]) -> list[Any]:
    """Two trips at a time, each reading one copy of the buffers while the other is filled."""
    last = trips.last()
    count = build.add(build.binary("divsi", build.sub(last, trips.lower), trips.step), 1)
    odd = build.binary("andi", count, 1)
    even = build.add(trips.lower, build.mul(build.sub(count, odd), trips.step))
    trips.write(trips.ahead(trips.lower, {}), {})
    kinds = [s.type for s in trips.starts]
    bounds = [trips.lower, even, build.mul(trips.step, 2)]
    made = ir.Operation.create("scf.for", results=kinds, operands=[*bounds, *trips.starts], regions=1)
    body = made.regions[0].blocks.append(trips.lower.type, *kinds)
    at, *carried = body.arguments
    with ir.InsertionPoint(body):
        second = build.add(at, trips.step)
        third = build.binary("minsi", build.add(second, trips.step), last)
        trips.meet()
        carried = trips.trip(at, carried, {}, second, twins)
        trips.meet()
        build.op("scf.yield", trips.trip(second, carried, twins, third, {}))
    ends = list(made.results)

    def rest() -> list[Any]:
        trips.meet()
        return trips.trip(last, ends, {}, None, {})

    return build.if_else(build.cmp("eq", odd, 1), kinds, rest, (lambda: ends) if kinds else None)


def _prefetch(trips: _Trips) -> list[Any]:
    """The next trip's tiles wait in registers until the buffers are free."""
    last = trips.last()
    first = trips.ahead(trips.lower, {})
    staged = list(dict.fromkeys(o for w in trips.parts.write for o in w.operands if o in first))
    starts = [*trips.starts, *(first[s] for s in staged)]
    kinds = [s.type for s in starts]
    bounds = [trips.lower, trips.upper, trips.step]
    made = ir.Operation.create("scf.for", results=kinds, operands=[*bounds, *starts], regions=1)
    body = made.regions[0].blocks.append(trips.lower.type, *kinds)
    at, *rest = body.arguments
    carried, waiting = rest[: len(trips.starts)], rest[len(trips.starts) :]
    with ir.InsertionPoint(body):
        trips.write(dict(zip(staged, waiting, strict=True)), {})
        fetched = trips.ahead(build.binary("minsi", build.add(at, trips.step), last), {})
        carried = trips.trip(at, carried, {}, None, {})
        build.op("scf.yield", [*carried, *(fetched[s] for s in staged)])
    return list(made.results)[: len(trips.starts)]
