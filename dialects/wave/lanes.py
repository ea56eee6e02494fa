"""Moving values between the lanes of a wave."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import INT, TEXT, VECTOR, Mismatch, attribute, operand, result, wave_op
from hkc.dialects.types import VectorType
from hkc.dialects.wave.machine import Workgroup
from hkc.layout import LinearMap
from hkc.layout.text import numbers
from hkc.layout.within_wave import DPP, SWAPS


@wave_op("shuffle_xor")
class ShuffleXor:
    """Every lane gets the vector of lane `lane ^ mask` of its wave."""

    value = operand(VECTOR)
    mask = attribute(INT)
    d = result(VECTOR, same="value")
    examples = tuple(
        f'%r = "hkc_wave.shuffle_xor"(%v) {{mask = {mask} : i64}} : (vector<2xf32>) -> vector<2xf32>'
        for mask in (1, 2, 4, 8, 16, 32, 21)
    )

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
        mask = op.attributes["mask"].value
        moved = [_other_lane(b, w, mask) for w in b.to_words(operands[0])]
        return [b.from_words(moved, op.results[0].type)]


def _other_lane(b: Any, word: Any, mask: int) -> Any:
    """The word of lane `lane ^ mask`: by DPP or a swap of lanes where that can be, else through the LDS crossbar."""
    if mask in DPP:
        for control in DPP[mask]:
            word = _dpp(b, word, control)
        return word
    if mask in SWAPS and b.chip.has("permlane_swap"):
        low, high = _swap(b, mask, word, word)
        return b.select(_is_set(b, mask), low, high)
    return b.op("rocdl.ds_bpermute", [b.mul(b.binary("xori", _lane(b), mask), 4), word], [word.type])


def _dpp(b: Any, word: Any, control: int) -> Any:
    every = {"rowMask": b.int_attr(15, 32), "bankMask": b.int_attr(15, 32), "boundCtrl": b.attribute("true")}
    return b.op("rocdl.update.dpp", [word, word], [word.type], dppCtrl=b.int_attr(control, 32), **every)


def _swap(b: Any, mask: int, first: Any, second: Any) -> list[Any]:
    """Lanes of the second word whose bit is clear trade places with those of the first whose bit is set."""
    pair = b.op(
        f"rocdl.permlane{mask}.swap",
        [first, second],
        [b.type("!llvm.struct<(i32, i32)>")],
        fi=b.attribute("false"),
        boundControl=b.attribute("false"),
    )
    return [b.op("llvm.extractvalue", [pair], [first.type], position=b.positions([i])) for i in (0, 1)]


def _lane(b: Any) -> Any:
    return b.binary("andi", b.workitem(), b.chip.compute.wave - 1)


def _is_set(b: Any, mask: int) -> Any:
    return b.cmp("ne", b.binary("andi", _lane(b), mask), 0)


@wave_op("exchange_lanes")
class ExchangeLanes:
    """The halves of a vector and bit `bit` of the lane trade places: what lanes with the bit clear have in the second
    half goes to the first half of the lanes with the bit set, and the other way round."""

    value = operand(VECTOR)
    bit = attribute(INT)
    d = result(VECTOR, same="value")
    examples = tuple(
        f'%r = "hkc_wave.exchange_lanes"(%v) {{bit = {bit} : i64}} : (vector<{kind}>) -> vector<{kind}>'
        for bit, kind in ((0, "2xf32"), (1, "4xf16"), (2, "8xbf16"), (3, "2xi8"), (4, "4xf32"), (5, "16xi8"))
    )

    @staticmethod
    def infer(value: VectorType, *, bit: int) -> VectorType:
        if value.size % 2 or bit < 0:
            raise Mismatch(f"a vector with halves and a bit of the lane are needed, not {value} and bit {bit}")
        return value

    @staticmethod
    def meaning(machine: Workgroup, value: Any, *, bit: int) -> Any:
        lanes = np.arange(machine.lanes)
        upper = (lanes >> bit & 1)[:, None] == 1
        first, second = np.split(value, 2, axis=-1)
        other = lanes ^ 1 << bit
        halves = np.where(upper, second[:, other], first), np.where(upper, second, first[:, other])
        return np.concatenate(halves, axis=-1)

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        mask, whole = 1 << op.attributes["bit"].value, operands[0]
        half = whole.type.shape[0] // 2
        parts = [b.pack([b.extract(whole, i) for i in range(at, at + half)]) for at in (0, half)]
        pairs = [_trade(b, mask, *words) for words in zip(*map(b.to_words, parts), strict=True)]
        made = [b.from_words(list(words), parts[0].type) for words in zip(*pairs, strict=True)]
        return [b.pack([b.extract(part, i) for part in made for i in range(half)])]


def _trade(b: Any, mask: int, first: Any, second: Any) -> list[Any]:
    if mask in SWAPS and b.chip.has("permlane_swap"):
        return _swap(b, mask, first, second)
    upper = _is_set(b, mask)
    moved = _other_lane(b, b.select(upper, first, second), mask)
    return [b.select(upper, moved, first), b.select(upper, second, moved)]


@wave_op("gather_lanes")
class GatherLanes:
    """Lane l gets the vector of the lane that is the XOR of the `columns` (six numbers) of the set bits of l."""

    value = operand(VECTOR)
    columns = attribute(TEXT)
    d = result(VECTOR, same="value")
    examples = (
        '%r = "hkc_wave.gather_lanes"(%v) {columns = "8,16,32,1,2,4"} : (vector<2xf32>) -> vector<2xf32>',
        '%r = "hkc_wave.gather_lanes"(%v) {columns = "0,3,4,8,48,32"} : (vector<8xf16>) -> vector<8xf16>',
    )

    @staticmethod
    def infer(value: VectorType, *, columns: str) -> VectorType:
        if not all(column.isdigit() for column in columns.split(",")):
            raise Mismatch(f"columns are lanes with commas between them, not `{columns}`")
        return value

    @staticmethod
    def meaning(machine: Workgroup, value: Any, *, columns: str) -> Any:
        return value[:, LinearMap(numbers(columns, ","), 6)(np.arange(machine.lanes))]

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        lane, address = _lane(b), b.i32(0)
        for bit, column in enumerate(numbers(op.attributes["columns"].value, ",")):
            part = b.mul(b.binary("andi", b.binary("shrui", lane, bit), 1), 4 * column)
            address = b.binary("xori", address, part)
        moved = [b.op("rocdl.ds_bpermute", [address, w], [w.type]) for w in b.to_words(operands[0])]
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
