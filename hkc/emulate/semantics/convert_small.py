"""Conversions to and from 8-bit floats; which encodings they are is a fact of the chip."""

from __future__ import annotations

import numpy as np

from hkc.emulate import lanes
from hkc.emulate.decode import Decoded
from hkc.emulate.narrow import FORMATS, Narrow, round_stochastic, round_to
from hkc.emulate.operands import Array, word_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.vector import step_of
from hkc.emulate.waves import Waves

FP16_OVERFLOW = 1 << 23
"""Mode bit: what is too large becomes the largest number."""


def form_of(name: str, context: Context) -> Narrow:
    """The format that `fp8` or `bf8` means on the chip."""
    ocp, fnuz = {"fp8": ("f8e4m3fn", "f8e4m3fnuz"), "bf8": ("f8e5m2", "f8e5m2fnuz")}[name]
    return FORMATS[fnuz if context.isa.fnuz else ocp]


@op("v_cvt_f32_fp8", "v_cvt_f32_bf8")
def _(instruction: Decoded, context: Context) -> Step:
    """One byte, chosen by SDWA or by op_sel, as f32."""
    values = form_of(instruction.base[-3:], context).values.astype(np.float32)
    low, high = instruction.bits("op_sel", 2, 0)[:2]
    shift = np.uint32(8 * (low << 1 | high) if instruction.form != "sdwa" else 0)
    return step_of(instruction, context, lambda a: values.take(a >> shift & np.uint32(255)), "f32 = u32")


@op("v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8")
def _(instruction: Decoded, context: Context) -> Step:
    """Two bytes as two f32."""
    values = form_of(instruction.base[-3:], context).values.astype(np.float32)
    target = context.vector(instruction.operands[0])
    raw = word_reader(instruction.operands[1], instruction, context)
    part = lanes.select(instruction, 0)
    high = part == (16, 16) or bool(instruction.bits("op_sel", 1, 0)[0])
    shift = np.uint32(16 if high else 0)

    def step(w: Waves) -> None:
        word = raw(w) >> shift
        taint = w.taint
        w.write(target, values.take(word & np.uint32(255)).view(np.uint32))
        w.taint = taint
        w.write(target + 1, values.take(word >> np.uint32(8) & np.uint32(255)).view(np.uint32))

    return step


@op("v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32")
def _(instruction: Decoded, context: Context) -> Step:
    """Two f32 as two bytes in the half that op_sel[2] chooses; the other half stays."""
    form = form_of(instruction.base.split("_")[3], context)
    shift = np.uint32(16 * instruction.bits("op_sel", 3, 0)[2])
    keep = ~(np.uint32(0xFFFF) << shift)

    def run(w: Waves, a: Array, b: Array, old: Array) -> Array:
        clamp = bool(w.mode & FP16_OVERFLOW)
        codes = [round_to(form, x.astype(np.float64), clamp).astype(np.uint32) for x in (a, b)]
        return (codes[0] | codes[1] << np.uint32(8)) << shift | old & keep

    return step_of(instruction, context, run, "u32 = f32 f32 dst", waves=True)


@op("v_cvt_sr_fp8_f32", "v_cvt_sr_bf8_f32")
def _(instruction: Decoded, context: Context) -> Step:
    """One f32 with random bits as one byte, in the byte that op_sel[3:2] chooses."""
    form = form_of(instruction.base.split("_")[3], context)
    chosen = instruction.bits("op_sel", 4, 0)
    shift = np.uint32(8 * (chosen[3] << 1 | chosen[2]))
    keep = ~(np.uint32(0xFF) << shift)

    def run(w: Waves, a: Array, seed: Array, old: Array) -> Array:
        code = round_stochastic(form, a, seed, bool(w.mode & FP16_OVERFLOW)).astype(np.uint32)
        return code << shift | old & keep

    return step_of(instruction, context, run, "u32 = f32 u32 dst", waves=True)
