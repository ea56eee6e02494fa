"""Moving values between the lanes of a wave."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import INT, VECTOR, Mismatch, attribute, operand, result, wave_op
from hkc.dialects.types import VectorType
from hkc.dialects.wave.machine import Workgroup


@wave_op("shuffle_xor")
class ShuffleXor:
    """Every lane gets the vector of lane `lane ^ mask` of its wave."""

    value = operand(VECTOR)
    mask = attribute(INT)
    d = result(VECTOR, same="value")
    examples = ('%r = "hkc_wave.shuffle_xor"(%v) {mask = 16 : i64} : (vector<2xf32>) -> vector<2xf32>',)

    @staticmethod
    def infer(value: VectorType, *, mask: int) -> VectorType:
        if mask < 1:
            raise Mismatch(f"the lane mask must be positive, not {mask}")
        return value

    @staticmethod
    def meaning(machine: Workgroup, value: Any, *, mask: int) -> Any:
        return value[:, np.arange(machine.lanes) ^ mask]

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        lane = b.binary("andi", b.workitem(), b.chip.compute.wave - 1)
        address = b.mul(b.binary("xori", lane, op.attributes["mask"].value), 4)
        words = b.to_words(operands[0])
        moved = [b.op("rocdl.ds_bpermute", [address, w], [w.type]) for w in words]
        return [b.from_words(moved, op.results[0].type)]


@wave_op("first_lane")
class FirstLane:
    """Every lane gets the vector of lane 0 of its wave, and the compiler knows that it is the same in all."""

    value = operand(VECTOR)
    d = result(VECTOR, same="value")
    examples = (
        '%r = "hkc_wave.first_lane"(%v) : (vector<1xi32>) -> vector<1xi32>',
        '%r = "hkc_wave.first_lane"(%v) : (vector<4xf16>) -> vector<4xf16>',
    )

    @staticmethod
    def infer(value: VectorType) -> VectorType:
        return value

    @staticmethod
    def meaning(machine: Workgroup, value: Any) -> Any:
        return np.broadcast_to(value[:, :1], value.shape)

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        moved = [b.op("rocdl.readfirstlane", [w], [w.type]) for w in b.to_words(operands[0])]
        return [b.from_words(moved, op.results[0].type)]
