"""Atomic operations on global memory, one element per lane under a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import (
    ANY,
    BOOL,
    INT,
    INTEGER,
    TEXT,
    VECTOR,
    Mismatch,
    attribute,
    operand,
    option,
    result,
    wave_op,
)
from hkc.dialects.types import VectorType
from hkc.dialects.wave.machine import Bytes, Workgroup
from hkc.dialects.wave.swapping import MONOTONIC, SCOPE, has_instruction
from hkc.dialects.wave.swapping import update as update_by_swapping

KINDS = {"add": np.add, "max": np.fmax, "min": np.fmin}
"""The kinds of update and the NumPy ufunc of each."""

FLOATS = {"add": 11, "max": 13, "min": 14}
"""Numbers of LLVM's `atomicrmw` operations on floats: fadd, fmax, fmin."""

INTEGERS = {
    ("add", False): 1,
    ("max", False): 7,
    ("min", False): 8,
    ("add", True): 1,
    ("max", True): 9,
    ("min", True): 10,
}
"""Numbers of LLVM's `atomicrmw` operations on integers, by kind and whether they are unsigned."""


def _one(value: VectorType) -> VectorType:
    if value.size != 1:
        raise Mismatch(f"an atomic operation takes one element per lane, not {value}")
    return value


def _old(pointer: Bytes, offset: Any, mask: Any, value: Any, update: Any) -> Any:
    """Update memory lane after lane; what each place held before, 0 where masked off."""
    found = np.zeros_like(value)
    for at in np.argwhere(mask):
        wave, lane = (int(i) for i in at)
        place = np.asarray(offset[wave, lane])
        old = pointer.read(place, 1, value.dtype)
        found[wave, lane] = old
        with np.errstate(all="ignore"):
            pointer.write(place, np.asarray(update(old, (wave, lane)), value.dtype))
    return found


@wave_op("global_atomic", pure=False)
class GlobalAtomic:
    """Combine an element per lane with memory at pointer + byte offset (i64) where the mask is true: `kind` add, max or
    min. Gives what was there before; 0 where the mask is false."""

    value = operand(VECTOR)
    pointer = operand(ANY)
    offset = operand(INTEGER)
    mask = operand(INTEGER)
    kind = attribute(TEXT)
    align = attribute(INT)
    unsigned = option(BOOL, False)
    d = result(VECTOR, same="value")
    examples = tuple(
        f'%old = "hkc_wave.global_atomic"(%v, %p, %o, %m) {{align = {a} : i64, kind = "{kind}"}}'
        f" : (vector<1x{t}>, !llvm.ptr<1>, i64, i1) -> vector<1x{t}>"
        for kind, t, a in (("add", "i32", 4), ("max", "i32", 4), ("min", "i64", 8))
    )

    @staticmethod
    def infer(
        value: VectorType, pointer: Any, offset: Any, mask: Any, *, kind: str, align: int, unsigned: bool = False
    ) -> VectorType:
        if kind not in KINDS:
            raise Mismatch(f"unknown atomic `{kind}`", hint=f"one of {', '.join(KINDS)}")
        return _one(value)

    @staticmethod
    def meaning(
        machine: Workgroup,
        value: Any,
        pointer: Bytes,
        offset: Any,
        mask: Any,
        *,
        kind: str,
        align: int,
        unsigned: bool = False,
    ) -> Any:
        def update(old: Any, at: tuple[int, int]) -> Any:
            words = np.dtype(f"u{value.dtype.itemsize}") if unsigned else value.dtype
            return KINDS[kind](old.view(words), value[at].view(words)).view(value.dtype)

        return _old(pointer, offset, mask, value, update)

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        value, pointer, offset, mask = operands
        element, kind = value.type.element_type, op.attributes["kind"].value
        unsigned = "unsigned" in op.attributes
        number = FLOATS[kind] if b.is_float(element) else INTEGERS[kind, unsigned]

        def update() -> list[Any]:
            address, given = b.gep(pointer, offset), b.extract(value, 0)
            if not has_instruction(element, kind):
                return [b.pack([update_by_swapping(b, address, given, kind, unsigned)])]
            made = b.op(
                "llvm.atomicrmw",
                [address, given],
                [element],
                bin_op=b.int_attr(number),
                ordering=b.int_attr(MONOTONIC),
                syncscope=b.text(SCOPE),
                alignment=b.int_attr(op.attributes["align"].value),
                # Tensors are ordinary device memory; without a word on that, LLVM builds loops of compare-and-swap.
                **{"rocdl.no_fine_grained_memory": b.unit(), "rocdl.no_remote_memory": b.unit()},
            )
            return [b.pack([made])]

        return list(b.if_else(mask, [value.type], update, lambda: [b.zero(value.type)]))


@wave_op("global_compare_and_swap", pure=False)
class GlobalCompareAndSwap:
    """Where the mask is true and memory at pointer + byte offset (i64) equals `expected`, it becomes `value`. Gives
    what was there before; 0 where the mask is false."""

    expected = operand(VECTOR)
    value = operand(VECTOR, same="expected")
    pointer = operand(ANY)
    offset = operand(INTEGER)
    mask = operand(INTEGER)
    align = attribute(INT)
    d = result(VECTOR, same="expected")
    examples = tuple(
        f'%old = "hkc_wave.global_compare_and_swap"(%e, %v, %p, %o, %m) {{align = {a} : i64}}'
        f" : (vector<1x{t}>, vector<1x{t}>, !llvm.ptr<1>, i64, i1) -> vector<1x{t}>"
        for t, a in (("i32", 4), ("i64", 8))
    )

    @staticmethod
    def infer(
        expected: VectorType, value: VectorType, pointer: Any, offset: Any, mask: Any, *, align: int
    ) -> VectorType:
        return _one(value)

    @staticmethod
    def meaning(
        machine: Workgroup, expected: Any, value: Any, pointer: Bytes, offset: Any, mask: Any, *, align: int
    ) -> Any:
        return _old(pointer, offset, mask, value, lambda old, at: np.where(old == expected[at], value[at], old))

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        expected, value, pointer, offset, mask = operands
        element = value.type.element_type

        def swap() -> list[Any]:
            places = b.gep(pointer, offset), b.extract(expected, 0), b.extract(value, 0)
            made = b.compare_and_swap(*places, op.attributes["align"].value)
            return [b.pack([b.op("llvm.extractvalue", [made], [element], position=b.positions([0]))])]

        return list(b.if_else(mask, [value.type], swap, lambda: [b.zero(value.type)]))
