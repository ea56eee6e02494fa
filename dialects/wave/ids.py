"""Who am I: ops that give the workgroup, the wave and the lane; and what was I told: the kernel's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import ANY, INDEX, INTEGER, operand, result, wave_op
from hkc.dialects.types import IndexType, ScalarType, Type
from hkc.dialects.wave.machine import Workgroup


@wave_op("workgroup_id")
class WorkgroupId:
    """The number of this workgroup in the launch, the same in all its lanes."""

    d = result(INDEX)
    examples = ('%w = "hkc_wave.workgroup_id"() : () -> index',)

    @staticmethod
    def infer() -> IndexType:
        return IndexType()

    @staticmethod
    def meaning(machine: Workgroup, *, workgroup: int = 0) -> int:
        return workgroup

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        return [b.to_index(b.op("rocdl.workgroup.id.x", results=[b.int_type(32)]))]


@wave_op("lane_id")
class LaneId:
    """The number of this lane in its wave."""

    d = result(INTEGER)
    examples = ('%l = "hkc_wave.lane_id"() : () -> i32',)

    @staticmethod
    def infer() -> ScalarType:
        return ScalarType("i32")

    @staticmethod
    def meaning(machine: Workgroup) -> Any:
        return np.tile(np.arange(machine.lanes, dtype=np.int32), (machine.waves, 1))

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        return [b.binary("andi", b.workitem(), b.chip.compute.wave - 1)]


@wave_op("wave_id")
class WaveId:
    """The number of this wave in its workgroup: the same in all lanes of a wave, and known to be."""

    d = result(INTEGER)
    examples = ('%w = "hkc_wave.wave_id"() : () -> i32',)

    @staticmethod
    def infer() -> ScalarType:
        return ScalarType("i32")

    @staticmethod
    def meaning(machine: Workgroup) -> Any:
        return np.tile(np.arange(machine.waves, dtype=np.int32)[:, None], (1, machine.lanes))

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        if b.waves == 1:
            return [b.i32(0)]
        wave = b.binary("shrui", b.workitem(), b.chip.compute.wave.bit_length() - 1)
        return [b.op("rocdl.readfirstlane", [wave], [wave.type])]


@wave_op("ids_again", pure=False)
class IdsAgain:
    """The numbers of this lane and of this wave once more: what is computed from them is computed after this place, and
    takes no registers until then. Addresses in LDS that follow start from them."""

    lane = result(INTEGER)
    wave = result(INTEGER)
    examples = ('%l, %w = "hkc_wave.ids_again"() : () -> (i32, i32)',)

    @staticmethod
    def infer() -> tuple[ScalarType, ScalarType]:
        return ScalarType("i32"), ScalarType("i32")

    @staticmethod
    def meaning(machine: Workgroup) -> tuple[Any, Any]:
        return LaneId.meaning(machine), WaveId.meaning(machine)

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        return list(b.ids_again(op))


@wave_op("argument_again", pure=False)
class ArgumentAgain:
    """A kernel argument, read from memory here once more, so that no register needs to hold it until then."""

    value = operand(ANY)
    d = result(ANY)
    examples = ('%q = "hkc_wave.argument_again"(%p) : (!llvm.ptr<1>) -> !llvm.ptr<1>',)

    @staticmethod
    def infer(value: Type) -> Type:
        return value

    @staticmethod
    def meaning(machine: Workgroup, value: Any) -> Any:
        return value

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        return [b.argument_again(op, operands[0])]
