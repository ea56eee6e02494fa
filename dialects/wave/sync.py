"""Waiting, meeting and priorities: what a schedule is made of besides its order."""

from __future__ import annotations

from typing import Any

from hkc.dialects.define import INT, INTEGER, TEXT, VECTOR, Mismatch, attribute, operand, result, wave_op
from hkc.dialects.types import VectorType
from hkc.dialects.wave.machine import Workgroup

NO_LIMIT = -1
"""A counter that a `wait` leaves alone."""

GROUPS = (
    "alu",
    "valu",
    "salu",
    "mfma_wmma",
    "all_vmem",
    "vmem_read",
    "vmem_write",
    "all_ds",
    "ds_read",
    "ds_write",
    "transcendental",
)
"""Instruction classes of `schedule_group`, as ROCDL spells them."""


class _Order:
    """An op that changes no value: only the order of things."""

    @staticmethod
    def meaning(machine: Workgroup, *operands: Any, **attributes: Any) -> None:
        return None


@wave_op("wait", pure=False)
class Wait(_Order):
    """Wait until at most `vm` vector-memory and `lgkm` LDS operations of this wave are outstanding (-1: any number)."""

    vm = attribute(INT, default=NO_LIMIT)
    lgkm = attribute(INT, default=NO_LIMIT)
    examples = ('"hkc_wave.wait"() {vm = -1 : i64, lgkm = 0 : i64} : () -> ()',)

    @staticmethod
    def infer(*, vm: int = NO_LIMIT, lgkm: int = NO_LIMIT) -> tuple[()]:
        if not -1 <= vm <= 63 or not -1 <= lgkm <= 15:
            raise Mismatch(f"counters count to 63 (vm) and 15 (lgkm), not {vm} and {lgkm}")
        return ()

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        vm, lgkm = (op.attributes[n].value for n in ("vm", "lgkm"))
        vm, lgkm = (63 if vm < 0 else vm), (15 if lgkm < 0 else lgkm)
        # vmcnt in bits 3:0 and 15:14, expcnt in 6:4 (7: don't wait), lgkmcnt in 11:8 (CDNA3 ISA manual, section 4.4).
        b.op("rocdl.s.waitcnt", bitfield=b.int_attr(vm & 15 | (vm >> 4) << 14 | 7 << 4 | lgkm << 8, 32))
        return []


@wave_op("barrier", pure=False)
class Barrier(_Order):
    """All waves of the workgroup meet. LDS accesses before it happen before those after it (the wave's own must have
    been waited for)."""

    examples = ('"hkc_wave.barrier"() : () -> ()',)

    @staticmethod
    def infer() -> tuple[()]:
        return ()

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        b.lds_fence("release")
        b.op("rocdl.s.barrier")
        b.lds_fence("acquire")
        return []


@wave_op("barrier_if", pure=False)
class BarrierIf(_Order):
    """A barrier for the waves whose uniform `condition` holds: it sets one group of waves a phase behind another."""

    condition = operand(INTEGER)
    examples = ('"hkc_wave.barrier_if"(%c) : (i1) -> ()',)

    @staticmethod
    def infer(condition: Any) -> tuple[()]:
        return ()

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        b.if_else(operands[0], [], lambda: Barrier.lower(b, op), None)
        return []


@wave_op("priority", pure=False)
class Priority(_Order):
    """Set this wave's issue priority, 0 (lowest) to 3."""

    level = attribute(INT)
    examples = ('"hkc_wave.priority"() {level = 1 : i64} : () -> ()',)

    @staticmethod
    def infer(*, level: int) -> tuple[()]:
        if not 0 <= level <= 3:
            raise Mismatch(f"priorities go from 0 to 3, not {level}")
        return ()

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        b.op("rocdl.s.setprio", priority=b.int_attr(op.attributes["level"].value, 16))
        return []


@wave_op("schedule_group", pure=False)
class ScheduleGroup(_Order):
    """The next `size` instructions of class `kind` come here in the instruction order, within order group `group`."""

    kind = attribute(TEXT)
    size = attribute(INT)
    group = attribute(INT, default=0)
    examples = ('"hkc_wave.schedule_group"() {kind = "mfma_wmma", size = 2 : i64, group = 0 : i64} : () -> ()',)

    @staticmethod
    def infer(*, kind: str, size: int, group: int = 0) -> tuple[()]:
        if kind not in GROUPS:
            raise Mismatch(f"unknown instruction class `{kind}`", hint=f"one of {', '.join(GROUPS)}")
        return ()

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        mask = b.attribute(f"#rocdl<sched_group_mask {op.attributes['kind'].value}>")
        size, group = (b.int_attr(op.attributes[n].value, 32) for n in ("size", "group"))
        b.op("rocdl.sched.group.barrier", mask=mask, size=size, groupId=group)
        return []


@wave_op("schedule_fence", pure=False)
class ScheduleFence(_Order):
    """No instruction is moved across this place. Costs none itself."""

    examples = ('"hkc_wave.schedule_fence"() : () -> ()',)

    @staticmethod
    def infer() -> tuple[()]:
        return ()

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        b.op("rocdl.sched.barrier", mask=b.attribute("#rocdl<sched_group_mask none>"))
        return []


@wave_op("async_mark", pure=False)
class AsyncMark(_Order):
    """Close the group of asynchronous copies issued since the last mark."""

    examples = ('"hkc_wave.async_mark"() : () -> ()',)

    @staticmethod
    def infer() -> tuple[()]:
        return ()

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        b.op("rocdl.asyncmark")
        return []


@wave_op("wait_async", pure=False)
class WaitAsync(_Order):
    """Wait until at most `pending` marked groups of this wave's asynchronous copies are outstanding."""

    pending = attribute(INT, default=0)
    examples = ('"hkc_wave.wait_async"() {pending = 1 : i64} : () -> ()',)

    @staticmethod
    def infer(*, pending: int = 0) -> tuple[()]:
        if pending < 0:
            raise Mismatch(f"the number of pending groups can't be {pending}")
        return ()

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        b.op("rocdl.wait.asyncmark", count=b.int_attr(op.attributes["pending"].value, 16))
        return []


ASSERTION = "hkc.assertion"
"""Attribute of an instruction that traps: what the assertion says."""


@wave_op("trap_unless", pure=False)
class TrapUnless(_Order):
    """Give up (a trap stops the whole launch) where the `condition` of any lane is false. The `message` is for who
    catches the trap."""

    condition = operand(INTEGER)
    message = attribute(TEXT)
    examples = ('"hkc_wave.trap_unless"(%c) {message = "negative"} : (i1) -> ()',)

    @staticmethod
    def infer(condition: Any, *, message: str) -> tuple[()]:
        return ()

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        # Not `llvm.trap`, after which nothing follows: a loop that has one would end for each lane by itself. The
        # comment keeps traps of different places apart, else LLVM makes one of them and forgets where it is. What the
        # wave has stored, such as what it printed, is there first.
        text = b.text(f"s_waitcnt vmcnt(0)\ns_trap 2 ; {b.place(op)}")
        effects = {
            "has_side_effects": b.unit(),
            "constraints": b.text("~{memory}"),
            ASSERTION: op.attributes["message"],
        }
        b.if_else(operands[0], [], list, lambda: b.op("llvm.inline_asm", asm_string=text, **effects))
        return []


@wave_op("hold_here", pure=False)
class HoldHere:
    """The same numbers, but what is computed from them is computed after this place: the code generator can't move it
    out of a loop, where it would take registers in all trips."""

    value = operand(VECTOR)
    d = result(VECTOR, same="value")
    examples = ('%r = "hkc_wave.hold_here"(%v) : (vector<1xi32>) -> vector<1xi32>',)

    @staticmethod
    def infer(value: VectorType) -> VectorType:
        return value

    @staticmethod
    def meaning(machine: Workgroup, value: Any) -> Any:
        return value

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        held = [b.hidden(word, "v", here=True) for word in b.to_words(operands[0])]
        return [b.from_words(held, op.results[0].type)]
