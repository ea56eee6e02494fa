"""Packed arithmetic (VOP3P): two values per lane and operand, dot products, mixed-precision fma."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.emulate import directed
from hkc.emulate.decode import Decoded, Operand
from hkc.emulate.faults import unsupported
from hkc.emulate.floats import clamp01, flush, fma16, fma32, round_to_odd, settle_nan, two_sum, widen_bf16
from hkc.emulate.operands import Array, Reader, word_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.semantics.valu_float import maximum, minimum
from hkc.emulate.vector import valu
from hkc.emulate.waves import DX10_CLAMP, IEEE, Waves

_KINDS: dict[str, Any] = {"f16": np.float16, "i16": np.int16, "u16": np.uint16}
_15 = np.uint16(15)


def _half(instruction: Decoded, context: Context, operand: Operand, number: int, high: bool, kind: str) -> Reader:
    """The half of a source that op_sel (low result) or op_sel_hi (high result) chooses, with its sign modifier."""
    raw = word_reader(operand, instruction, context, 0, 16 if kind == "f16" else 32)
    which = instruction.bits("op_sel_hi" if high else "op_sel", 3, int(high))[number]
    negative = instruction.bits("neg_hi" if high else "neg_lo", 3, 0)[number]
    shift, flip = np.uint32(16 * which), np.uint16(0x8000 * negative)
    dtype = _KINDS[kind]

    def read(w: Waves) -> Array:
        half = (raw(w) >> shift).astype(np.uint16)
        value: Array = (half ^ flip if flip else half).view(dtype)
        return flush(value) if kind == "f16" and w.flush64 else value

    return read


def _packed(kind: str, count: int, function: Callable[..., Array], *names: str) -> None:
    @op(*names)
    def build(instruction: Decoded, context: Context) -> Step:
        target = context.vector(instruction.operands[0])
        sources = instruction.operands[1 : 1 + count]
        if instruction.base == "v_pk_fmac_f16":
            sources = (*sources, instruction.operands[0])
        readers = [
            [_half(instruction, context, o, n, high, kind) for n, o in enumerate(sources)] for high in (False, True)
        ]
        clamp = instruction.flag("clamp")

        def one(w: Waves, arguments: tuple[Array, ...]) -> Array:
            if kind != "f16":
                return _integer(function, arguments, clamp, _KINDS[kind]).view(np.uint16)
            directed.refuse(w, instruction)
            value = np.asarray(function(w, *arguments), np.float16)
            if np.isnan(value).any():
                value = settle_nan(value, arguments)
            value = flush(value) if w.flush64 else value
            return (clamp01(value, bool(w.mode & DX10_CLAMP)) if clamp else value).view(np.uint16)

        def step(w: Waves) -> None:
            low, high = (one(w, tuple([r(w) for r in side])).astype(np.uint32) for side in readers)
            w.write(target, low | high << np.uint32(16))

        return step


def _integer(function: Callable[..., Array], arguments: tuple[Array, ...], clamp: bool, kind: Any) -> Array:
    if not clamp:
        return np.asarray(function(*arguments)).astype(kind)
    info = np.iinfo(kind)
    return np.clip(function(*[a.astype(np.int64) for a in arguments]), info.min, info.max).astype(kind)


_packed("f16", 2, lambda w, a, b: a + b, "v_pk_add_f16")
_packed("f16", 2, lambda w, a, b: a * b, "v_pk_mul_f16")
_packed("f16", 2, lambda w, a, b: minimum(a, b, bool(w.mode & IEEE)), "v_pk_min_f16")
_packed("f16", 2, lambda w, a, b: maximum(a, b, bool(w.mode & IEEE)), "v_pk_max_f16")
_packed("f16", 3, lambda w, a, b, c: fma16(a, b, c), "v_pk_fma_f16")
_packed("f16", 2, lambda w, a, b, old: fma16(a, b, old), "v_pk_fmac_f16")
_packed("u16", 2, lambda a, b: a + b, "v_pk_add_u16")
_packed("u16", 2, lambda a, b: a - b, "v_pk_sub_u16")
_packed("i16", 2, lambda a, b: a + b, "v_pk_add_i16")
_packed("i16", 2, lambda a, b: a - b, "v_pk_sub_i16")
_packed("u16", 2, lambda a, b: a * b, "v_pk_mul_lo_u16")
_packed("u16", 3, lambda a, b, c: a * b + c, "v_pk_mad_u16")
_packed("i16", 3, lambda a, b, c: a * b + c, "v_pk_mad_i16")
_packed("u16", 2, np.minimum, "v_pk_min_u16")
_packed("u16", 2, np.maximum, "v_pk_max_u16")
_packed("i16", 2, np.minimum, "v_pk_min_i16")
_packed("i16", 2, np.maximum, "v_pk_max_i16")
_packed("u16", 2, lambda n, a: a << (n & _15), "v_pk_lshlrev_b16")
_packed("u16", 2, lambda n, a: a >> (n & _15), "v_pk_lshrrev_b16")
_packed("i16", 2, lambda n, a: a >> (n & np.int16(15)), "v_pk_ashrrev_i16")


def _propagating(function: Callable[[Array, Array, bool], Array]) -> Callable[..., Array]:
    def two(a: Array, b: Array) -> Array:
        return np.where(np.isnan(a) | np.isnan(b), np.nan, function(a, b, False)).astype(np.float16)

    return lambda w, a, b, c: two(two(a, b), c)


_packed("f16", 3, _propagating(minimum), "v_pk_minimum3_f16")
_packed("f16", 3, _propagating(maximum), "v_pk_maximum3_f16")

# two f32 in a register pair


def _chosen_word(instruction: Decoded, context: Context, operand: Operand, which: int) -> Reader:
    """A word of a register pair. An immediate has a lower word only: LLVM, too, takes it for both results with
    op_sel_hi:[…,0], and moves pairs such as (1.0, 0.0) to registers."""
    if which and operand.kind not in ("vgpr", "agpr", "sgpr"):
        raise unsupported(instruction, f"the upper word of the immediate {operand}")
    return word_reader(operand, instruction, context, which)


def _word(instruction: Decoded, context: Context, operand: Operand, number: int, high: bool) -> Reader:
    which = instruction.bits("op_sel_hi" if high else "op_sel", 3, int(high))[number]
    negative = instruction.bits("neg_hi" if high else "neg_lo", 3, 0)[number]
    raw = _chosen_word(instruction, context, operand, which)
    flip = np.uint32(0x8000_0000 * negative)

    def read(w: Waves) -> Array:
        bits = raw(w)
        return bits ^ flip if flip else bits

    return read


def _paired(count: int, function: Callable[..., Array], floating: bool, *names: str) -> None:
    @op(*names)
    def build(instruction: Decoded, context: Context) -> Step:
        target = context.vector(instruction.operands[0])
        sources = instruction.operands[1 : 1 + count]
        readers = [[_word(instruction, context, o, n, high) for n, o in enumerate(sources)] for high in (False, True)]
        clamp = instruction.flag("clamp")

        def one(w: Waves, words: list[Array]) -> Array:
            if not floating:
                return np.asarray(function(*words), np.uint32)
            directed.refuse(w, instruction)
            arguments = tuple([flush(x.view(np.float32)) if w.flush32 else x.view(np.float32) for x in words])
            value = np.asarray(function(*arguments), np.float32)
            if np.isnan(value).any():
                value = settle_nan(value, arguments)
            value = flush(value) if w.flush32 else value
            return (clamp01(value, bool(w.mode & DX10_CLAMP)) if clamp else value).view(np.uint32)

        def step(w: Waves) -> None:
            low, high = (one(w, [r(w) for r in side]) for side in readers)
            taint = w.taint
            w.write(target, low)
            w.taint = taint
            w.write(target + 1, high)

        return step


_paired(2, lambda a, b: a + b, True, "v_pk_add_f32")
_paired(2, lambda a, b: a * b, True, "v_pk_mul_f32")
_paired(3, fma32, True, "v_pk_fma_f32")


@op("v_pk_mov_b32")
def _(instruction: Decoded, context: Context) -> Step:
    """The low result comes from the first source, the high one from the second; op_sel chooses their words."""
    target, (one, two) = context.vector(instruction.operands[0]), instruction.operands[1:3]
    chosen = instruction.bits("op_sel", 2, 0)
    low = _chosen_word(instruction, context, one, chosen[0])
    high = _chosen_word(instruction, context, two, chosen[1])

    def step(w: Waves) -> None:
        a, b = np.array(low(w)), np.array(high(w))
        taint = w.taint
        w.write(target, a)
        w.taint = taint
        w.write(target + 1, b)

    return step


# mixed precision: each source is f32 or a half of an f16 pair


def _mixed(instruction: Decoded, context: Context, number: int) -> Reader:
    operand = instruction.operands[1 + number]
    half = instruction.bits("op_sel_hi", 3, 0)[number]
    high = instruction.bits("op_sel", 3, 0)[number]
    raw = word_reader(operand, instruction, context, 0, 16 if half and operand.kind == "float" else 32)

    def read(w: Waves) -> Array:
        word = raw(w)
        value: Array = word.view(np.float32)
        if half:
            value = (word >> np.uint32(16 * high)).astype(np.uint16).view(np.float16).astype(np.float32)
        if operand.absolute:
            value = np.abs(value)
        return -value if operand.negative else value

    return read


@op("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16")
def _(instruction: Decoded, context: Context) -> Step:
    target = context.vector(instruction.operands[0])
    readers = [_mixed(instruction, context, n) for n in range(3)]
    kind, clamp = instruction.base, instruction.flag("clamp")

    def step(w: Waves) -> None:
        directed.refuse(w, instruction)
        arguments = tuple([r(w) for r in readers])
        value = settle_nan(fma32(*arguments), arguments)
        if clamp:
            value = clamp01(value, bool(w.mode & DX10_CLAMP))
        if kind.endswith("mix_f32"):
            w.write(target, value.view(np.uint32))
            return
        half = value.astype(np.float16).view(np.uint16).astype(np.uint32)
        old = w.read(target)
        if "mixhi" in kind:
            w.write(target, old & np.uint32(0xFFFF) | half << np.uint32(16))
        else:
            w.write(target, old & np.uint32(0xFFFF0000) | half)

    return step


# dot products


def _halves(a: Array, kind: Any) -> tuple[Array, Array]:
    return (a & np.uint32(0xFFFF)).astype(np.uint16).view(kind), (a >> np.uint32(16)).astype(np.uint16).view(kind)


def _dot2(widen: Callable[[Array], tuple[Array, Array]]) -> Callable[[Array, Array, Array], Array]:
    """Products of the two halves and the addend, summed with one rounding."""

    def run(a: Array, b: Array, c: Array) -> Array:
        (a0, a1), (b0, b1) = widen(a), widen(b)
        total, low = two_sum(a0.astype(np.float64) * b0, a1.astype(np.float64) * b1)
        total, high = two_sum(total, np.asarray(c, np.float64) + np.zeros_like(total))
        exact = round_to_odd(*two_sum(total, low + high))
        return np.where(np.isfinite(total), exact, total).astype(np.float32)

    return run


def _f16_halves(a: Array) -> tuple[Array, Array]:
    low, high = _halves(a, np.float16)
    return low.astype(np.float32), high.astype(np.float32)


def _bf16_halves(a: Array) -> tuple[Array, Array]:
    low, high = _halves(a, np.uint16)
    return widen_bf16(low), widen_bf16(high)


for _name, _widen in (("f32_f16", _f16_halves), ("f32_bf16", _bf16_halves)):
    valu("f32 = u32 u32 f32", f"v_dot2_{_name}")(_dot2(_widen))
    valu("f32 = u32 u32 dst", f"v_dot2c_{_name}")(_dot2(_widen))


def _fields(a: Array, bits: int, signed: bool) -> list[Array]:
    found = []
    for i in range(32 // bits):
        field = (a >> np.uint32(bits * i) & np.uint32((1 << bits) - 1)).astype(np.int64)
        sign = 1 << bits - 1
        found.append((field ^ sign) - sign if signed else field)
    return found


def _integer_dot(bits: int, signed: bool) -> Callable[[Array, Array, Array], Array]:
    def run(a: Array, b: Array, c: Array) -> Array:
        parts = zip(_fields(a, bits, signed), _fields(b, bits, signed), strict=True)
        return sum((x * y for x, y in parts), c.astype(np.int64))

    return run


for _count, _bits in ((2, 16), (4, 8), (8, 4)):
    for _letter in "iu":
        _dot, _info = _integer_dot(_bits, _letter == "i"), np.iinfo(np.int32 if _letter == "i" else np.uint32)

        def _clamped(a: Array, b: Array, c: Array, dot: Any = _dot, info: Any = _info) -> Array:
            result: Array = np.clip(dot(a, b, c), info.min, info.max)
            return result

        _kind = f"{_letter}32"
        valu(f"{_kind} = u32 u32 {_kind}", f"v_dot{_count}_{_kind}_{_letter}{_bits}", clamped=_clamped)(_dot)
        if _letter == "i":
            valu(f"{_kind} = u32 u32 dst", f"v_dot{_count}c_{_kind}_{_letter}{_bits}", clamped=_clamped)(_dot)
