"""Software pipelining: while one trip of a loop computes, later trips' tiles are on their way into LDS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from hkc.dialects import build
from hkc.dialects.forms import ENTRY, kernels, walk
from hkc.dialects.load import create
from hkc.dialects.types import OpaqueType
from hkc.dialects.wave.lds import LdsAlloc, buffer_map
from hkc.passes.define import Pass
from hkc.passes.explain import Option, explain
from hkc.passes.locate import refuse
from hkc.passes.place_waits import COPY, READS
from hkc.passes.registers import ADDRESSES, Peak, budget, registers
from hkc.passes.requests import requested
from hkc.passes.schedule_choice import mfma_clocks
from hkc.passes.select_layouts import WAVES
from hkc.passes.swizzle_lds import ALIGNMENT
from hkc.passes.trip_order import MFMA
from hkc.passes.trips import Parts, Trips
from hkc.support.mlir import ir, run_passes
from hkc.targets.chip import Chip

FETCH = "hkc_wave.buffer_load"
WRITE = "hkc_wave.lds_write"
BRANCH = {FETCH, "scf.if", "scf.yield", "hkc_wave.hold_here"}
"""What, besides arithmetic, the branches hold by which a tile that may lie partly outside its tensor is fetched."""
BUFFER = {COPY: 2, WRITE: 1}
"""Which operand of an op is the LDS buffer that it fills."""

MEMORY = 1500
"""Clocks of a trip within which a copy that begins with it is likely to arrive: caches take some 700, HBM up to twice
as many."""

TIDY = "canonicalize,cse"


OUTER = "has a loop inside"
"""Why a loop around others doesn't go ahead."""


@dataclass(frozen=True)
class PipelineLoops(Pass):
    """A loop that stages tiles through LDS brings them in ahead of time: with `stages=N`, N - 1 trips; without, one, or
    two where trips are short.

    Where LDS has room for N copies of the loop's buffers, trips go round them, with one barrier per trip; N trips are
    unrolled, so that every LDS address stays a constant. Otherwise what was fetched waits in registers. Fetches beyond
    the last trip bring its own tiles again: nothing behind them is touched.

    Before::

        #rows = #hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(0,8 0,16 0,32 1,0 2,0 4,0) w()">
        func.func @k(%r: !hkc_wave.descriptor, %n: i32, %o: i32) attributes {hkc.kernel, hkc.entry = "aligned", hkc.waves = 1 : i64} {
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
    """  # noqa: E501

    name: ClassVar[str] = "pipeline_loops"
    needs: ClassVar[frozenset[str]] = frozenset({"waves", "entries"})
    gives: ClassVar[frozenset[str]] = frozenset({"pipelined"})

    def run(self, module: Any, chip: Chip) -> None:
        run_passes(module, TIDY)
        for function in kernels(module):
            if ir.StringAttr(function.attributes[ENTRY]).value == "aligned":
                _run(function, chip)


def _run(function: Any, chip: Chip) -> None:
    loops = [op for op in walk(function) if op.name == "scf.for"]
    split = [(op, _split(op)) for op in loops]
    found = [(op, parts) for op, parts in split if isinstance(parts, Parts)]
    if not found:
        stages = requested(function, "stages")
        why = "no loop of this kernel brings tiles through LDS in a way that can go ahead of its trips"
        kept = "its tiles come with their trips anyway" if stages == 1 else "its tiles can't come in ahead"
        refused = ((op, f"{kept}, since it {parts}") for op, parts in split if parts != OUTER)
        place, why = next(refused, (function, why))
        _refuse(place, stages, why, "leave it out")
    used = _lds_end(function)  # no loop needs its copies while another runs: all have them in the same place
    carried = Peak(function).carried
    for op, parts in found:
        _pipeline(function, op, parts, used, carried, chip)


def _split(loop: Any) -> Parts | str:
    """What its trips consist of; why not, where a loop brings nothing into LDS, or does more than fetch, fill and
    compute."""
    block = loop.regions[0].blocks[0]
    *body, _ = (op.operation for op in block.operations)
    write = [op for op in body if op.name == WRITE]
    copies = [op for op in body if op.name == COPY]
    reads = [op for op in body if op.name in READS]
    inner = [op for op in body if len(op.regions) and not _fetches(op)]
    if inner:
        return "has branches, such as those of a ragged edge" if all(op.name == "scf.if" for op in inner) else OUTER
    if not (write or copies) or not reads:
        return "brings no tile through LDS"
    needed = _slice([*write, *copies], body)
    packing = _users(filter(_fetches, needed), needed)
    filling = [op for op in body if op.name == WRITE or op in packing]
    ahead = [op for op in body if (op in needed and op not in packing) or op.name == COPY]
    carried = set(list(block.arguments)[1:])
    early = *ahead, *packing
    if any(o in carried for op in (*early, *filling) for o in _used(op)) or not all(map(_movable, early)):
        return "puts into LDS what it has computed, or kept from a trip before"
    gone = {op for op in ahead if op.name == COPY or _fetches(op)} | set(filling)
    compute = [op for op in body if op not in gone]
    if any(_comes_from(o, gone) for op in compute for o in _used(op)):
        return "computes with what it loads beside what LDS brings"
    return Parts(tuple(ahead), tuple(filling), tuple(compute), compute.index(reads[0]) + 1, bool(copies))


def _movable(op: Any) -> bool:
    return op.name == COPY or _fetches(op) or _computes(op)


def _computes(op: Any) -> bool:
    return bool(op.name.startswith(("arith.", "vector.")))


def _fetches(op: Any) -> bool:
    """Does an op fetch into registers, by itself or in its branches?"""
    return op.name == FETCH or (op.name == "scf.if" and all(i.name in BRANCH or _computes(i) for i in walk(op)))


def _used(op: Any) -> Iterator[Any]:
    """The values that an op needs, inside as well."""
    for inner in (op, *walk(op)):
        yield from inner.operands


def _comes_from(value: Any, ops: set[Any]) -> bool:
    return isinstance(value, ir.OpResult) and value.owner.operation in ops


def _slice(roots: Iterable[Any], body: list[Any]) -> set[Any]:
    """The ops of a body that the operands of `roots` are computed by."""
    inside, wanted, work = set(body), set(), list(roots)
    while work:
        for operand in _used(work.pop()):
            if _comes_from(operand, inside) and operand.owner.operation not in wanted:
                wanted.add(operand.owner.operation)
                work.append(operand.owner.operation)
    return wanted


def _users(roots: Iterable[Any], within: set[Any]) -> set[Any]:
    """The ops of a set that compute with the results of `roots`, directly or not."""
    found: set[Any] = set()
    work = list(roots)
    while work:
        users = {use.owner.operation for result in work.pop().results for use in result.uses} & within - found
        found |= users
        work += users
    return found


def _buffers(parts: Parts) -> list[Any]:
    """The LDS buffers that a loop fills."""
    filling = [op for op in (*parts.ahead, *parts.write) if op.name in BUFFER]
    return list(dict.fromkeys(op.operands[BUFFER[op.name]] for op in filling))


def _pipeline(function: Any, loop: Any, parts: Parts, used: int, carried: int, chip: Chip) -> None:
    stages, buffers = requested(function, "stages"), _buffers(parts)
    if _overlap(buffers):
        _refuse(loop, stages, "buffers of its loop share bytes of LDS", "leave it out, or use smaller tiles")
        return
    size = sum(map(_padded, buffers))
    distance = _distance(function, parts, used + 2 * size, chip) if stages is None else stages - 1
    room = used + distance * size <= chip.lds.bytes
    if not room and parts.copies:
        needed = used + distance * size
        why = f"it needs {needed} bytes of LDS, and {chip.name} has {chip.lds.bytes}"
        _refuse(loop, stages, why, "fewer stages")
        return
    if stages is None and (reason := _too_many_registers(function, parts, carried, chip)):
        explain(function, loop, "loop", Option(f"tiles don't come in ahead: {reason}"))
        return
    if distance:
        where = f"{distance + 1} buffers of {size} bytes in LDS" if room else f"registers and {size} bytes of LDS"
        explain(function, loop, "loop", Option(f"tiles come in {distance} trip(s) ahead, through {where}"))
        copies = [_copied(buffers, used + i * size) for i in range(distance)] if room else []
        _replace(loop, Trips(loop, parts, [{}, *copies], distance))


def _distance(function: Any, parts: Parts, needed: int, chip: Chip) -> int:
    """How many trips ahead tiles come in without a request: two where copies would else arrive late, the workgroup has
    the compute unit to itself anyway, and LDS has room for it (`needed` bytes)."""
    waves = ir.IntegerAttr(function.attributes[WAVES]).value
    sharing = -(-waves // chip.compute.simds)
    clocks = sharing * sum(mfma_clocks(op, chip) for op in parts.compute if op.name in MFMA)
    return 2 if parts.copies and sharing > 1 and clocks < MEMORY and needed <= chip.lds.bytes else 1


def _too_many_registers(function: Any, parts: Parts, carried: int, chip: Chip) -> str | None:
    """Why a wave has no registers for tiles on their way, beside what its loops carry anyway (`carried`); None where it
    has. A tile may be there twice: as it is written, and as the next one comes. (Operands come and go as there is
    room.)"""
    waves = ir.IntegerAttr(function.attributes[WAVES]).value
    limit = budget(waves, chip, requested(function, "waves_per_eu"))
    fetched = sum(registers(result) for op in parts.ahead if _fetches(op) for result in op.results)
    needed = carried + ADDRESSES + 2 * fetched
    return f"they would take {2 * fetched} registers, {needed} with all others of {limit}" if needed > limit else None


def _refuse(place: Any, stages: int | None, why: str, hint: str) -> None:
    """What was asked for and can't be is an error; what was not asked for is left out."""
    if stages is not None:
        raise refuse(place, "HK450", f"`stages={stages}` can't be honoured: {why}", hint=hint)


def _replace(loop: Any, trips: Trips) -> None:
    kinds = [r.type for r in loop.results]
    starts = list(loop.operands)[3:]
    with ir.InsertionPoint(loop), loop.location:
        any_trip = build.cmp("slt", loop.operands[0], loop.operands[1])
        ends = build.if_else(any_trip, kinds, trips.emit, (lambda: starts) if kinds else None)
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


def _copied(buffers: list[Any], offset: int) -> dict[Any, Any]:
    """Another buffer for each, from a byte offset on."""
    copied = {}
    for buffer in buffers:
        with ir.InsertionPoint.after(buffer.owner), buffer.owner.location:
            copied[buffer] = create(LdsAlloc, results=[buffer.type], offset=offset).result
        offset += _padded(buffer)
    return copied
