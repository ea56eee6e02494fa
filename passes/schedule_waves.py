"""In which order the waves of a workgroup read, copy and multiply: clusters, priorities, and who runs ahead of whom."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, ClassVar

from hkc.dialects import build
from hkc.dialects.forms import ENTRY, kernels, walk
from hkc.dialects.load import create
from hkc.dialects.wave.ids import WaveId
from hkc.dialects.wave.sync import Barrier, BarrierIf, Priority, ScheduleFence, Wait
from hkc.passes.define import Pass
from hkc.passes.explain import Option, explain
from hkc.passes.interleave import interleave
from hkc.passes.locate import refuse
from hkc.passes.place_waits import READS
from hkc.passes.registers import ADDRESSES, budget, registers
from hkc.passes.requests import requested
from hkc.passes.schedule_choice import Choose, Mix, by_mix, clusters, mfma_clocks
from hkc.passes.select_layouts import WAVES
from hkc.passes.transcendentals import mix
from hkc.passes.trip_order import ARRIVE, FETCHES, MARK, MEETING, MFMA, PURE, WRITE, Order, Trip, slices, trips
from hkc.passes.trips import LOOPS
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

SHARING = {"pingpong": 2, "interleave": 1}
"""Schedules that put a loop in another order, and the waves of a workgroup that share a SIMD there."""


PLAIN = "schedule=plain, or no hint"
"""What to write instead of a schedule that a loop can't have."""


@dataclass(frozen=True)
class ScheduleWaves(Pass):
    """Ping-pong of two groups of waves, or reads and MFMAs interleaved, for pipelined loops that only multiply.

    In a ping-pong a trip is cut into clusters of MFMAs. Before each, a wave reads the cluster's operands and starts to
    bring in later tiles; a barrier before and one after each cluster, and one more that only the second group passes
    before the loop, let one group multiply at high priority while the other reads. So what a wave waited for before one
    barrier is there for all behind the next, and what it has read before one barrier is free for all behind the next.

    Loops that do more, such as those of attention, keep their order, but for exponentials and the like, which come
    between MFMAs: see `transcendentals.py`.

    Waves that have their SIMD to themselves interleave: see `interleave.py`. `choose` picks the schedule of a loop
    without a hint. Trips that are no loop's read what their MFMAs take slice by slice of K: they are rare, but the
    registers that they take count for the whole kernel.

    Before::

        func.func @k(%n: i32, %acc: vector<4xf32>, %rest: i1) attributes {hkc.kernel, hkc.entry = "aligned", hkc.waves = 8 : i64, hkc.hints = {schedule = "pingpong"}} {
          %b = "hkc_wave.lds_alloc"() {offset = 0 : i64} : () -> !hkc_wave.lds<"16x32:2 block 16x32 strides 1024,1024 order 1,0">
          %c0 = arith.constant 0 : i32
          %c1 = arith.constant 1 : i32
          %d = scf.for %k = %c0 to %n step %c1 iter_args(%s = %acc) -> (vector<4xf32>) : i32 {
            "hkc_wave.wait"() {vm = -1 : i64, lgkm = 0 : i64} : () -> ()
            "hkc_wave.barrier"() : () -> ()
            %x = "hkc_wave.lds_read"(%b) {layout = "16x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w(0,0 0,0 0,0)", fragment = 0 : i64} : (!hkc_wave.lds<"16x32:2 block 16x32 strides 1024,1024 order 1,0">) -> vector<4xf16>
            %y = "hkc_wave.lds_read"(%b) {layout = "16x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w(0,0 0,0 0,0)", fragment = 1 : i64} : (!hkc_wave.lds<"16x32:2 block 16x32 strides 1024,1024 order 1,0">) -> vector<4xf16>
            %p = "hkc_wave.mfma"(%x, %x, %s) {instruction = "v_mfma_f32_16x16x16_f16"} : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
            %q = "hkc_wave.mfma"(%y, %y, %p) {instruction = "v_mfma_f32_16x16x16_f16"} : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
            scf.yield %q : vector<4xf32>
          }
          %e = scf.if %rest -> (vector<4xf32>) {
            %u = "hkc_wave.lds_read"(%b) {layout = "16x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w(0,0 0,0 0,0)", fragment = 0 : i64} : (!hkc_wave.lds<"16x32:2 block 16x32 strides 1024,1024 order 1,0">) -> vector<4xf16>
            %v = "hkc_wave.lds_read"(%b) {layout = "16x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w(0,0 0,0 0,0)", fragment = 1 : i64} : (!hkc_wave.lds<"16x32:2 block 16x32 strides 1024,1024 order 1,0">) -> vector<4xf16>
            %f = "hkc_wave.mfma"(%u, %u, %d) {instruction = "v_mfma_f32_16x16x16_f16"} : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
            %g = "hkc_wave.mfma"(%v, %v, %f) {instruction = "v_mfma_f32_16x16x16_f16"} : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
            scf.yield %g : vector<4xf32>
          } else {
            scf.yield %d : vector<4xf32>
          }
          return
        }

    After::

        "hkc_wave.barrier"
        "hkc_wave.barrier_if"
        scf.for
        %x = "hkc_wave.lds_read"
        "hkc_wave.priority"() {level = 1 : i64}
        "hkc_wave.barrier"
        %p = "hkc_wave.mfma"(%x, %x
        "hkc_wave.barrier"
        "hkc_wave.priority"() {level = 0 : i64}
        %y = "hkc_wave.lds_read"
        "hkc_wave.mfma"(%y, %y, %p)
        "hkc_wave.barrier_if"
        scf.if
        %u = "hkc_wave.lds_read"
        %f = "hkc_wave.mfma"(%u, %u, %d)
        "hkc_wave.schedule_fence"
        %v = "hkc_wave.lds_read"
        %g = "hkc_wave.mfma"(%v, %v, %f)
        "hkc_wave.schedule_fence"
    """  # noqa: E501

    name: ClassVar[str] = "schedule_waves"
    needs: ClassVar[frozenset[str]] = frozenset({"waves", "entries", "pipelined"})
    choose: Choose = by_mix

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            rare = {"scf.if", *LOOPS}
            if ir.StringAttr(function.attributes[ENTRY]).value == "aligned":
                self._schedule(function, chip)
                rare = {"scf.if"}
            for op in (op for op in walk(function) if op.name in rare):
                for block in (block for region in op.regions for block in region.blocks):
                    _spread(block)

    def _schedule(self, function: Any, chip: Chip) -> None:
        wanted = requested(function, "schedule")
        waves = ir.IntegerAttr(function.attributes[WAVES]).value
        loops = [op for op in walk(function) if op.name == "scf.for" and any(o.name in MFMA for o in walk(op))]
        loops = [op for op in loops if not any(inner.name == "scf.for" for inner in walk(op))]
        if wanted is not None and not loops:
            raise _refused(function, wanted, "no loop of this kernel multiplies")
        taken = [(loop, *trips(loop)) for loop in loops]
        mixes = [_mix(loop, found[0] if found else None, waves, chip, obstacle) for loop, found, obstacle in taken]
        against = [_against(wanted, mix, chip) for mix in mixes] if wanted in SHARING else []
        if against and all(against):
            raise _refused(loops[0], wanted, against[0], _instead(wanted, mixes[0], chip))
        for i, (loop, found, obstacle) in enumerate(taken):
            # A loop has copies for rare workgroups: what is asked for holds where it can.
            schedule = "plain" if against and against[i] else wanted or self.choose(mixes[i], chip)
            text = f"schedule {schedule}"
            if schedule == "pingpong":
                count = clusters(mixes[i], chip) or 2
                _ping_pong(loop, found, mixes[i], count, waves)
                text += f", {count} clusters of {len(mixes[i].clocks) // count} MFMAs per trip"
            elif schedule == "interleave":
                interleave(loop, found, mixes[i])
            elif wanted is None and obstacle and mix(loop.regions[0].blocks[0]):
                text += ", transcendentals between MFMAs"
            explain(function, loop, "loop", Option(text + (f", since {obstacle}" if obstacle else "")))


def _mix(loop: Any, trip: Trip | None, waves: int, chip: Chip, obstacle: str) -> Mix:
    sharing = -(-waves // chip.compute.simds)
    if trip is None:
        return Mix(sharing, obstacle=obstacle)
    mfmas, reads = trip.named(MFMA), trip.reads()
    owned = budget(waves, chip) - ADDRESSES - sum(map(registers, loop.results))
    return Mix(
        sharing,
        tuple(mfma_clocks(op, chip) for op in mfmas),
        tuple(map(len, reads)),
        max((4 * registers(r.results[0]) for some in reads for r in some), default=0),
        sum(4 * registers(w.operands[0]) for w in trip.named({WRITE})),
        trip.reused,
        owned - sum(registers(f.results[0]) for f in trip.named(FETCHES) if f.results),
    )


def _against(wanted: str, mix: Mix, chip: Chip) -> str:
    """Why a loop can't be put in this order; "" where it can."""
    if mix.sharing != SHARING[wanted]:
        return f"it is for {SHARING[wanted]} wave(s) of a workgroup on each of {chip.compute.simds} SIMDs"
    if mix.obstacle:
        return mix.obstacle
    return "its MFMAs are not even in number" if len(mix.clocks) % 2 else ""


def _instead(wanted: str, mix: Mix, chip: Chip) -> str:
    """What to write where a loop can't be put in this order."""
    waves = SHARING[wanted] * chip.compute.simds
    return PLAIN if mix.sharing == SHARING[wanted] else f"with waves={waves}, or no `schedule`"


def _refused(op: Any, wanted: str, why: str, hint: str = PLAIN) -> Exception:
    return refuse(op, "HK450", f"`schedule={wanted}` can't be honoured: {why}", hint=hint)


def _ping_pong(loop: Any, found: list[Trip], mix: Mix, count: int, waves: int) -> None:
    """The waves meet once before the loop; then each trip's last phase waits for what the next one reads."""
    with ir.InsertionPoint(loop), loop.location:
        for op in found[0].meeting:
            op.clone()
        wave = create(WaveId).result
        create(BarrierIf, build.cmp("uge", wave, waves // 2))
    with ir.InsertionPoint.after(loop), loop.location:
        create(BarrierIf, build.cmp("ult", wave, waves // 2))
    *body, end = (op.operation for op in loop.regions[0].blocks[0].operations)
    order = Order(end)
    with ir.InsertionPoint(end), loop.location:
        for trip in found:
            _phases(trip, mix.phases(count), order)
    order.place(op for op in body if op.name not in MEETING)
    for trip in found:
        for op in trip.meetings:
            if op not in order.placed:
                op.erase()


def _phases(trip: Trip, shares: list[int], order: Order) -> None:
    """Reads, fetches and writes of each cluster, then its MFMAs. `shares` is how many reads each cluster is given;
    fetches fill the first half of the trip."""
    mfmas, fetches = trip.named(MFMA), trip.named(FETCHES)
    reads = [read for some in trip.reads() for read in some]
    count, size, early = len(shares), len(mfmas) // len(shares), max(1, len(shares) // 2)
    for number in range(count):
        now = [f for i, f in enumerate(fetches) if i * early // len(fetches) == number]
        start = sum(shares[:number])
        order.place(_mixed(reads[start : start + shares[number]], now))
        if number == early - 1:
            order.place(trip.named({MARK}))
        if number == count - 1:
            order.place(trip.named({WRITE}))
            order.place(op for op in trip.meetings if op.name == ARRIVE)
        create(Wait, lgkm=0)
        create(Priority, level=1)
        create(Barrier)
        create(ScheduleFence)
        order.place(mfmas[number * size : (number + 1) * size])
        create(ScheduleFence)
        create(Barrier)
        create(Priority, level=0)


def _mixed(reads: list[Any], fetches: list[Any]) -> list[Any]:
    """Fetches among the last reads: a read fills the slot between a direct copy and the scalar write that it needs."""
    start = max(0, len(reads) - len(fetches))
    pairs = zip_longest(reads[start:], fetches)
    return reads[:start] + [op for pair in pairs for op in pair if op is not None]


def _spread(block: Any) -> None:
    """Reads of a slice of K, then its MFMAs, and so on."""
    ops = [op.operation for op in block.operations]
    mfmas = [op for op in ops if op.name in MFMA]
    if not mfmas:
        return
    last = ops.index(mfmas[-1])
    others = [i for i, op in enumerate(ops[:last]) if op.name not in MFMA | READS and not op.name.startswith(PURE)]
    first = max(others, default=-1) + 1
    if first > ops.index(mfmas[0]):
        return
    order = Order(ops[last + 1], set(ops[:first]))
    with ir.InsertionPoint(order.end), mfmas[-1].location:
        for number, some in enumerate(slices(mfmas)):
            # Each second slice comes backwards: so the first result that must stay is the one that can only lie where
            # it is added to, and likewise the next ones. LLVM would else take other registers for most results.
            order.place(reversed(some) if number % 2 else some)
            create(ScheduleFence)
    order.place(ops[first:last])
