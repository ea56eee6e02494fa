"""Conversions between wide floats and scaled small ones, and stochastic rounding to 16 bits.

The exponent field of an f32 operand is the scale, as in OCP MX: small = wide / 2^(e - 127), wide = small * 2^(e - 127),
255 means NaN. Rules from AMD's pseudocode (CDNA4) and, for rounding and special values, from AMD's host model of these
instructions (`amd_hip_ocp_host.hpp` of ROCm/clr): one rounding; a NaN in a format without NaN is the largest number; a
random addend takes as many upper bits of the seed as the fraction loses; wide results too large are infinite. Inferred:
that the mode's overflow bit clamps 8-bit results as it does without scales.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import Decoded, Operand
from hkc.emulate.faults import unsupported
from hkc.emulate.floats import round_bf16, widen_bf16
from hkc.emulate.narrow import FORMATS, Narrow, round_stochastic, round_to
from hkc.emulate.operands import Array, word_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.semantics.convert_small import FP16_OVERFLOW, form_of
from hkc.emulate.semantics.valu_int import prng
from hkc.emulate.vector import source, step_of
from hkc.emulate.waves import U32, Waves

_NAME = re.compile(r"v_cvt_scalef32_(sr_)?(?:(2xpk16|pk32|pk)_)?([a-z]+\d+)_([a-z]+\d+)$")
_WIDE = ("f32", "f16", "bf16")
_FRACTIONS = {"f32": 23, "f16": 10, "bf16": 7}
_COUNTS = {"2xpk16": 32, "pk32": 32, "pk": 2, None: 1}
_MX = {"fp6": "f6e2m3", "bf6": "f6e3m2", "fp4": "f4e2m1"}

F64 = NDArray[np.float64]
Elements = Callable[[Waves], list[Array]]


def _form(name: str, context: Context) -> Narrow:
    return FORMATS[_MX[name]] if name in _MX else form_of(name, context)


def _selection(instruction: Decoded) -> int:
    """The four op_sel bits of the encoding; what they choose differs between these instructions."""
    return instruction.encoding[1] >> 3 & 15


def _words(instruction: Decoded, context: Context, operand: Operand) -> list[Callable[[Waves], U32]]:
    if operand.negative or operand.absolute:
        raise unsupported(instruction, "a sign modifier")
    return [word_reader(operand, instruction, context, i) for i in range(operand.count)]


def _wide_elements(instruction: Decoded, context: Context, operands: list[Operand], kind: str) -> Elements:
    """The elements of f32, f16 or bf16 sources in order; two f32 sources of many elements are interleaved."""
    if kind == "f32" and all(o.count == 1 for o in operands):
        readers = [source(instruction, context, o, "f32", None, None) for o in operands]
        return lambda w: [read(w) for read in readers]
    runs = [_words(instruction, context, o) for o in operands]
    words = [read for together in zip(*runs, strict=True) for read in together]
    if kind == "f32":
        return lambda w: [read(w).view(np.float32) for read in words]
    widen: Callable[[Array], Array] = widen_bf16 if kind == "bf16" else lambda a: a.view(np.float16)

    def halves(w: Waves) -> list[Array]:
        found = [read(w) for read in words]
        return [widen((word >> np.uint32(s)).astype(np.uint16)) for word in found for s in (0, 16)]

    return halves


def _exponents(instruction: Decoded, context: Context, operand: Operand) -> Callable[[Waves], Array]:
    """The power of two that the scale stands for; 128 marks NaN."""
    read = word_reader(operand, instruction, context)
    return lambda w: (read(w) >> np.uint32(23) & np.uint32(255)).astype(np.int32) - 127


def _scaled(values: Array, exponents: Array, sign: int) -> F64:
    moved: F64 = np.ldexp(values.astype(np.float64), sign * exponents)
    return np.where(exponents == 128, np.copysign(np.nan, moved), moved)


def _packed(codes: list[Array], bits: int) -> list[U32]:
    """Elements of `bits` bits, lowest first, as words (a last partial word is zero-filled)."""
    words = [np.zeros((), np.uint64) for _ in range(-(-len(codes) * bits // 32) + 1)]
    for i, code in enumerate(codes):
        at, shift = divmod(i * bits, 32)
        both = code.astype(np.uint64) << np.uint64(shift)
        words[at] = words[at] | both & np.uint64(0xFFFFFFFF)
        words[at + 1] = words[at + 1] | both >> np.uint64(32)
    return [word.astype(np.uint32) for word in words[:-1]]


def _narrowing(instruction: Decoded, context: Context, small: str, wide: str, count: int, stochastic: bool) -> Step:
    form, target = _form(small, context), context.vector(instruction.operands[0])
    *sources, scale = instruction.operands[1:]
    seeds = word_reader(sources.pop(), instruction, context) if stochastic else None
    elements = _wide_elements(instruction, context, sources, wide)
    exponents = _exponents(instruction, context, scale)
    width = count * form.bits
    place = np.uint32(width * (_selection(instruction) >> (3 if width == 16 else 2))) if width < 32 else np.uint32(0)

    def step(w: Waves) -> None:
        shift, clamp = exponents(w), bool(w.mode & FP16_OVERFLOW)
        chance = None if seeds is None else seeds(w)
        codes: list[Array] = []
        for values in elements(w)[:count]:
            scaled = _scaled(values, shift, -1)
            if chance is None:
                codes.append(round_to(form, scaled, clamp))
                continue
            codes.append(round_stochastic(form, scaled, chance, clamp, _FRACTIONS[wide]))
            chance = prng(chance)
        words = _packed(codes, form.bits)
        if width < 32:
            keep = np.uint32(~(((1 << width) - 1) << int(place)) & 0xFFFFFFFF)
            words = [words[0] << place | w.read(target) & keep]
        _write(w, target, words)

    return step


def _write(w: Waves, target: int, words: list[U32]) -> None:
    taint = w.taint
    for i, word in enumerate(words):
        w.taint = taint
        w.write(target + i, word)


def _small_codes(raw: list[U32], bits: int, count: int, place: int) -> list[Array]:
    """The elements of `bits` bits from bit `place` on."""
    found: list[Array] = []
    for i in range(count):
        at, shift = divmod(place + i * bits, 32)
        code = raw[at] >> np.uint32(shift)
        if shift + bits > 32:
            code = code | raw[at + 1] << np.uint32(32 - shift)
        found.append(code & np.uint32((1 << bits) - 1))
    return found


def _widening(instruction: Decoded, context: Context, wide: str, small: str, count: int) -> Step:
    form, target = _form(small, context), context.vector(instruction.operands[0])
    readers = _words(instruction, context, instruction.operands[1])
    exponents = _exponents(instruction, context, instruction.operands[2])
    chosen, width = _selection(instruction), count * form.bits
    place = 0 if width > 32 else 16 * (chosen & 1) if width == 16 else 8 * (chosen & 3)
    high = wide != "f32" and count == 1 and bool(chosen & 8)

    def step(w: Waves) -> None:
        scale, raw = exponents(w), [read(w) for read in readers]
        found = [_scaled(form.values.take(code), scale, 1) for code in _small_codes(raw, form.bits, count, place)]
        if wide == "f32":
            _write(w, target, [value.astype(np.float32).view(np.uint32) for value in found])
            return
        halves = [_half(value, wide).astype(np.uint32) for value in found]
        if count == 1:
            old = w.read(target)
            shift = np.uint32(16 if high else 0)
            _write(w, target, [halves[0] << shift | old & ~(np.uint32(0xFFFF) << shift)])
            return
        _write(w, target, [halves[i] | halves[i + 1] << np.uint32(16) for i in range(0, count, 2)])

    return step


def _half(value: F64, kind: str) -> Array:
    if kind == "f16":
        return value.astype(np.float16).view(np.uint16)
    return round_bf16(value.astype(np.float32))


def _names() -> list[str]:
    """All mnemonics of the family."""
    names = []
    for small in ("fp8", "bf8", "fp4", "fp6", "bf6"):
        many = small in ("fp6", "bf6")
        for wide in _WIDE:
            pack = "2xpk16" if many and wide == "f32" else "pk32" if many else "pk"
            names.append(f"{pack}_{small}_{wide}")
            names.append(f"sr_pk32_{small}_{wide}" if many else f"sr_{'pk_' if small == 'fp4' else ''}{small}_{wide}")
            names.append(f"{'pk32' if many else 'pk'}_{wide}_{small}")
            if small in ("fp8", "bf8") and wide != "bf16":
                names.append(f"{wide}_{small}")
    return [f"v_cvt_scalef32_{name}" for name in names]


@op(*_names())
def _(instruction: Decoded, context: Context) -> Step:
    found = _NAME.match(instruction.base)
    assert found is not None
    stochastic, pack, result, origin = found.groups()
    count = _COUNTS[pack]
    if result in _WIDE:
        return _widening(instruction, context, result, origin, count)
    return _narrowing(instruction, context, result, origin, count, bool(stochastic))


@op("v_cvt_sr_f16_f32", "v_cvt_sr_bf16_f32")
def _(instruction: Decoded, context: Context) -> Step:
    """One f32 with random bits as f16 or bf16, in the half that op_sel[3] chooses; the other half stays."""
    rule = _to_f16 if instruction.base == "v_cvt_sr_f16_f32" else _to_bf16
    shift = np.uint32(16 * (_selection(instruction) >> 3))
    keep = ~(np.uint32(0xFFFF) << shift)

    def run(w: Waves, a: Array, seed: Array, old: Array) -> Array:
        return rule(a, seed).astype(np.uint32) << shift | old & keep

    return step_of(instruction, context, run, "u32 = f32 u32 dst", waves=True)


def _truncated(a: Array, seed: Array, least: int, fraction: int) -> F64:
    """The value after the random addend, cut to `fraction` bits; `least` is the format's smallest normal exponent."""
    dropped = 23 - fraction
    size = np.abs(a.astype(np.float64))
    exponent = np.maximum(np.frexp(np.where(np.isfinite(size), size, 1.0))[1] - 1, least)
    unit = np.ldexp(1.0, exponent - fraction)
    chance = np.ldexp((seed >> np.uint32(32 - dropped)).astype(np.float64), -dropped)
    cut: F64 = np.copysign(np.floor(size / unit + chance) * unit, a)
    return cut


def _to_f16(a: Array, seed: Array) -> Array:
    return _truncated(a, seed, -14, 10).astype(np.float16).view(np.uint16)


def _to_bf16(a: Array, seed: Array) -> Array:
    return round_bf16(np.where(np.isnan(a), a, _truncated(a, seed, -126, 7)).astype(np.float32))
