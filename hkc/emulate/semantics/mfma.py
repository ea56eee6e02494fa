"""Matrix instructions: which register holds which element comes from the chip's table, the sums from `matrix`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.emulate import matrix
from hkc.emulate.decode import Decoded, Operand
from hkc.emulate.faults import wrong_chip
from hkc.emulate.floats import widen_bf16
from hkc.emulate.narrow import FORMATS, unpack_bits
from hkc.emulate.operands import constant, word_reader
from hkc.emulate.registry import Context, Step, family
from hkc.emulate.waves import Waves
from hkc.support.errors import HkcError
from hkc.targets import chip as chips
from hkc.targets.mfma import BITS, Mfma

Array = NDArray[Any]
Index = tuple[NDArray[np.int64], NDArray[np.int64]]

_LEAST = {"f16": -14, "bf16": -126, "xf32": -126}
_LENGTH = {"f16": 8, "bf16": 8, "xf32": 4}
_NARROW_LENGTH = 16
_SCALE_BLOCK = 32


@cache
def _grids(form: Mfma) -> tuple[Index, Index, Index]:
    """(lane, element) of a [block, m, k], b [block, n, k] and the result [block, m, n]."""
    block = np.arange(form.blocks)[:, None, None]
    rows, columns = np.arange(form.m)[:, None], np.arange(form.n)
    k = np.arange(form.k)
    a = form.a_index(rows, k, block)
    b = form.b_index(k, columns[:, None], block)
    c = form.acc_index(rows, columns, block)
    return whole_index(a), whole_index(b), whole_index(c)


def whole_index(index: tuple[Any, Any]) -> Index:
    """(lane, element) arrays of one shape."""
    lane, element = np.broadcast_arrays(*index)
    return lane.astype(np.int64), element.astype(np.int64)


def _elements(words: NDArray[np.uint32], dtype: str) -> Array:
    """[waves, lanes, words] → [waves, lanes, elements] as values (f32, f64 or i8)."""
    raw = np.ascontiguousarray(words)
    if dtype in FORMATS:
        form = FORMATS[dtype]
        return form.values.astype(np.float32).take(unpack_bits(raw, form.bits))
    if dtype == "bf16":
        return widen_bf16(raw.view(np.uint16))
    if dtype == "f16":
        return raw.view(np.float16).astype(np.float32)
    if dtype == "xf32":
        return (raw & np.uint32(0xFFFF_E000)).view(np.float32)
    return raw.view({"f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32}[dtype])


def form_of(instruction: Decoded, context: Context) -> Mfma:
    """The chip's record of a matrix instruction. Raises HK703 where it has none."""
    chip = chips.load(context.isa.chip, context.isa.folder)
    mixed = "f8f6f4" in instruction.base
    codes = (instruction.number("cbsz"), instruction.number("blgp")) if mixed else (0, 0)
    try:
        return chip.mfma(instruction.base, *codes)
    except HkcError:
        raise wrong_chip(instruction, context.isa.chip) from None


@family("v_mfma_")
def _(instruction: Decoded, context: Context) -> Step:
    form = form_of(instruction, context)
    d, a, b, c = instruction.operands[:4]
    grids = _grids(form)
    take_a = operand_reader(context, a, form.a, grids[0], form.a_vgprs, _broadcast(instruction, form))
    take_b = operand_reader(context, b, form.b, grids[1], form.b_vgprs, _pattern(instruction, form))
    take_c = accumulator(context, c, form, grids[2])
    scales = _scales(instruction, context, form)
    compute = rule_of(instruction, form, scales)
    target = context.vector(d)

    def step(w: Waves) -> None:
        left, right = take_a(w), take_b(w)
        result = compute(w, left, right, take_c(w).reshape(-1, form.m, form.n))
        deliver(w, target, form, grids[2], result)

    return step


def operand_reader(
    context: Context,
    operand: Operand,
    dtype: str,
    grid: Index,
    words: int,
    lanes: NDArray[np.int64] | None,
) -> Callable[[Waves], Array]:
    """[waves · blocks, rows, k] of an operand."""
    first = context.vector(operand)
    lane, element = grid
    if lanes is not None:
        lane = lanes[lane] if lanes.ndim == 1 else lane
    per_lane = words * 32 // BITS[dtype]
    flat = lane * per_lane + element

    def read(w: Waves) -> Array:
        raw = np.stack([_all_lanes(w, first + i) for i in range(words)], axis=-1)
        values = _elements(raw, dtype).reshape(w.count, -1)
        return values.take(flat, axis=1).reshape(-1, *flat.shape[1:])

    return read


def _all_lanes(w: Waves, register: int) -> NDArray[np.uint32]:
    return w.read(register)


def accumulator(context: Context, operand: Operand, form: Mfma, grid: Index) -> Callable[[Waves], Array]:
    """The accumulator, from registers or an immediate: [waves · blocks, m, n]."""
    if operand.kind in ("vgpr", "agpr"):
        return operand_reader(context, operand, form.acc, grid, form.acc_vgprs, None)
    bits = BITS[form.acc]
    kinds: dict[str, tuple[Any, Any]] = {
        "f32": (np.uint32, np.float32), "f64": (np.uint64, np.float64), "i32": (np.uint32, np.int32),
    }  # fmt: skip
    raw, kind = kinds[form.acc]
    value = np.array(constant(operand, bits), raw).view(kind)
    return lambda w: np.full((w.count * form.blocks, form.m, form.n), value)


def _broadcast(instruction: Decoded, form: Mfma) -> NDArray[np.int64] | None:
    """cbsz and abid: one block of a serves 2^cbsz blocks. As the lane that each lane's data come from."""
    size, chosen = instruction.number("cbsz"), instruction.number("abid")
    if form.a_format or not size:
        return None
    lanes = np.arange(64)
    block = lanes // form.m % form.blocks
    source = (block >> size << size) + chosen
    return lanes + (source - block) * form.m


_PATTERNS: dict[int, Callable[[NDArray[np.int64]], NDArray[np.int64]]] = {
    1: lambda lane: lane % 32, 2: lambda lane: lane % 32 + 32, 3: lambda lane: (lane + 16) % 64,
    4: lambda lane: lane % 16, 5: lambda lane: lane % 16 + 16, 6: lambda lane: lane % 16 + 32,
    7: lambda lane: lane % 16 + 48,
}  # fmt: skip


def _pattern(instruction: Decoded, form: Mfma) -> NDArray[np.int64] | None:
    """blgp: how b's lanes are broadcast or rotated. In f64 forms the field means signs instead."""
    code = instruction.number("blgp")
    if form.a_format or not code or form.acc == "f64":
        return None
    return _PATTERNS[code](np.arange(64))


Scales = Callable[[Waves], tuple[Array, Array]] | None


def _scales(instruction: Decoded, context: Context, form: Mfma) -> Scales:
    """Factors [waves, rows, k / 32] of a and b in scaled forms."""
    if not form.scaled:
        return None
    operands = instruction.operands[4:6]
    low, high = instruction.bits("op_sel", 2, 0), instruction.bits("op_sel_hi", 2, 0)
    shifts = [np.uint32(8 * (low[i] | high[i] << 1)) for i in (0, 1)]
    readers = [word_reader(o, instruction, context) for o in operands]
    blocks = np.arange(form.k // _SCALE_BLOCK)

    def run(w: Waves) -> tuple[Array, Array]:
        found = []
        for read, shift, rows in zip(readers, shifts, (form.m, form.n), strict=True):
            lane = np.arange(rows)[:, None] + rows * blocks
            codes = (np.broadcast_to(read(w), w.mask.shape) >> shift & np.uint32(255))[:, lane]
            factor = np.ldexp(1.0, codes.astype(np.int32) - 127)
            found.append(np.where(codes == 255, np.nan, factor))
        return found[0], found[1]

    return run


def rule_of(instruction: Decoded, form: Mfma, scales: Scales) -> Callable[[Waves, Array, Array, Array], Array]:
    """The arithmetic: (waves, a, b, c) → result."""
    if form.acc == "i32":
        rule = matrix.integer_sums_clamped if instruction.flag("clamp") else matrix.integer_sums
        return lambda w, a, b, c: rule(a, b, c)
    if form.a in ("f32", "f64"):
        signs = _signs(instruction)
        return lambda w, a, b, c: matrix.fused_chain(a * signs[0], b * signs[1], c * signs[2])
    paired = form.a in FORMATS
    length = _NARROW_LENGTH if paired else _LENGTH[form.a]
    least = [FORMATS[x].least if x in FORMATS else _LEAST[x] for x in (form.a, form.b)]

    def run(w: Waves, a: Array, b: Array, c: Array) -> Array:
        sides = [matrix.Operand(x, matrix.powers_of(x, n)) for x, n in zip((a, b), least, strict=True)]
        if scales is not None:
            sides = [_scaled(x, factor) for x, factor in zip(sides, scales(w), strict=True)]
        return matrix.aligned_sums(sides[0], sides[1], c, length, paired)

    return run


def _signs(instruction: Decoded) -> list[Any]:
    """The neg modifiers of f64 forms, as factors."""
    asked = instruction.bits("neg", 3, 0)
    if not any(asked):
        return [1, 1, 1]
    return [np.float64(-1) if bit else np.float64(1) for bit in asked]


def _scaled(operand: matrix.Operand, factors: Array) -> matrix.Operand:
    wide = np.repeat(factors, _SCALE_BLOCK, axis=-1)
    values = operand.values.astype(np.float64) * wide
    return matrix.Operand(values, np.where(np.isnan(wide), 0.0, operand.powers * wide))


def deliver(w: Waves, target: int, form: Mfma, grid: Index, result: Array) -> None:
    """Write all lanes: matrix instructions pay no attention to EXEC."""
    lane, element = (x.reshape(-1) for x in grid)
    words = 2 if form.acc == "f64" else 1
    bits = np.ascontiguousarray(result).view(np.uint32).reshape(w.count, -1, words)
    if np.issubdtype(result.dtype, np.floating) and np.isnan(result).any():
        bits = _default_nan(result).view(np.uint32).reshape(w.count, -1, words)
    order = np.lexsort((lane, element))
    everywhere = np.ones((w.count, 64), np.bool_)
    taint = w.taint
    columns = bits[:, order].reshape(w.count, form.acc_vgprs // words, 64, words)
    for i in range(form.acc_vgprs):
        w.taint = taint
        w.write(target + i, columns[:, i // words, :, i % words], everywhere)


def _default_nan(result: Array) -> Array:
    return np.where(np.isnan(result), np.full((), np.nan, result.dtype), result)
