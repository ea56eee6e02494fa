"""The matrix instruction."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import TEXT, VECTOR, attribute, operand, option, result, wave_op
from hkc.dialects.types import VectorType
from hkc.dialects.wave.machine import Workgroup
from hkc.support.dtypes import DTYPES, dtype


@wave_op("mfma")
class Mfma:
    """One MFMA per wave: `acc + a @ b`, operands and result laid out over the lanes as the chip's table says.

    `instruction` is its mnemonic; a holds MxK, b KxN, acc MxN. Elements of narrow floats come as their codes, a byte
    each; of an instruction that takes several formats, `a_dtype` and `b_dtype` are those meant.
    """

    a = operand(VECTOR)
    b = operand(VECTOR)
    acc = operand(VECTOR)
    instruction = attribute(TEXT)
    a_dtype = option(TEXT, "")
    b_dtype = option(TEXT, "")
    d = result(VECTOR, same="acc")
    examples = (
        '%d = "hkc_wave.mfma"(%a, %b, %c) {instruction = "v_mfma_f32_16x16x16_bf16"}'
        " : (vector<4xbf16>, vector<4xbf16>, vector<4xf32>) -> vector<4xf32>",
        '%d = "hkc_wave.mfma"(%a, %b, %c) {instruction = "v_mfma_f32_16x16x16_f16"}'
        " : (vector<4xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>",
        '%d = "hkc_wave.mfma"(%a, %b, %c) {instruction = "v_mfma_f32_16x16x4_f32"}'
        " : (vector<1xf32>, vector<1xf32>, vector<4xf32>) -> vector<4xf32>",
    )

    @staticmethod
    def infer(
        a: VectorType, b: VectorType, acc: VectorType, *, instruction: str, a_dtype: str = "", b_dtype: str = ""
    ) -> VectorType:
        return acc

    @staticmethod
    def meaning(
        machine: Workgroup, a: Any, b: Any, acc: Any, *, instruction: str, a_dtype: str = "", b_dtype: str = ""
    ) -> Any:
        row = _row(machine.chip, instruction, a_dtype, b_dtype)
        left = _gather(_values(a, row.a, acc.dtype), row.a_layout())
        right = _gather(_values(b, row.b, acc.dtype), row.b_layout())
        total = _gather(acc, row.acc_layout()) + left @ right
        return _scatter(total, row.acc_layout())

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        row = _row_of(b, op)
        left, right, acc = operands
        if row.a_format:
            return [_formatted(b, row, left, right, acc, [b.i32(0), b.i32(0)])]
        inputs = [b.as_operand(left, row.a_type), b.as_operand(right, row.b_type), acc]
        none = b.attribute("#rocdl<mfma_neg_modifier none>" if row.acc == "f64" else "#rocdl<mfma_perm_b none>")
        zero = b.int_attr(0, 32)
        return [b.op(row.rocdl, inputs, [acc.type], cbsz=zero, abid=zero, blgp=none)]


@wave_op("mfma_scaled")
class MfmaScaled:
    """One scaled MFMA per wave: `acc + (a * a_scale) @ (b * b_scale)`. Elements of a and b are codes, a byte each, of
    the formats `a_dtype` and `b_dtype`; a lane gives the e8m0 scale of its row of a, and its column of b, in the group
    of 32 along k that is its number divided by m or n."""

    a = operand(VECTOR)
    b = operand(VECTOR)
    acc = operand(VECTOR)
    a_scale = operand(VECTOR)
    b_scale = operand(VECTOR)
    instruction = attribute(TEXT)
    a_dtype = attribute(TEXT)
    b_dtype = attribute(TEXT)
    d = result(VECTOR, same="acc")
    feature = "scaled_mfma"
    examples = tuple(
        '%d = "hkc_wave.mfma_scaled"(%a, %b, %c, %s, %t) {'
        f'instruction = "v_mfma_scale_f32_16x16x128_f8f6f4", a_dtype = "{a}", b_dtype = "{b}"}}'
        " : (vector<32xi8>, vector<32xi8>, vector<4xf32>, vector<1xi8>, vector<1xi8>) -> vector<4xf32>"
        for a, b in (("f4e2m1", "f4e2m1"), ("f6e2m3", "f4e2m1"), ("f6e3m2", "f6e2m3"))
    )

    @staticmethod
    def infer(
        a: VectorType, b: VectorType, acc: VectorType, a_scale: VectorType, b_scale: VectorType, **_: str
    ) -> VectorType:
        return acc

    @staticmethod
    def meaning(
        machine: Workgroup,
        a: Any,
        b: Any,
        acc: Any,
        a_scale: Any,
        b_scale: Any,
        *,
        instruction: str,
        a_dtype: str,
        b_dtype: str,
    ) -> Any:
        row = _row(machine.chip, instruction, a_dtype, b_dtype)
        left = _gather(_values(a, row.a, acc.dtype), row.a_layout())
        right = _gather(_values(b, row.b, acc.dtype), row.b_layout())
        left = left * _groups(_values(a_scale, "e8m0", acc.dtype), row.m)
        right = right * np.swapaxes(_groups(_values(b_scale, "e8m0", acc.dtype), row.n), 1, 2)
        return _scatter(_gather(acc, row.acc_layout()) + left @ right, row.acc_layout())

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        left, right, acc, *scales = operands
        words = [b.op("arith.extui", [b.extract(s, 0)], [b.int_type(32)]) for s in scales]
        return [_formatted(b, _row_of(b, op), left, right, acc, words)]


def _row(chip: Any, instruction: str, a: str, b: str) -> Any:
    """The row of the chip's table; the formats of the operands tell the forms of one instruction apart."""
    if not a:
        return chip.mfma(instruction)
    return next(r for r in chip.mfmas if (r.mnemonic, r.a, r.b) == (instruction, a, b))


def _row_of(b: Any, op: Any) -> Any:
    names = ("instruction", "a_dtype", "b_dtype")
    return _row(b.chip, *(op.attributes[n].value if n in op.attributes else "" for n in names))


def _formatted(b: Any, row: Any, left: Any, right: Any, acc: Any, scales: list[Any]) -> Any:
    """An instruction that is told the formats of its operands; scales of 0 are none."""
    inputs = [b.as_operand(v, t, dtype(n).bits) for v, t, n in ((left, row.a_type, row.a), (right, row.b_type, row.b))]
    zero = b.int_attr(0, 32)
    formats = {
        n: b.attribute(f"#rocdl<matrix_format {f}>") for n, f in (("cbsz", row.a_format), ("blgp", row.b_format))
    }
    return b.op(row.rocdl, [*inputs, acc, *scales], [acc.type], opselA=zero, opselB=zero, **formats)


def _groups(scale: Any, rows: int) -> Any:
    """Per-lane scales [wave, lane, 1] as [wave, row, k], each for 32 elements."""
    by_group = scale[..., 0].reshape(scale.shape[0], -1, rows)
    return np.repeat(np.swapaxes(by_group, 1, 2), 32, axis=2)


def _values(codes: Any, name: str, wanted: Any) -> Any:
    """Per-lane elements as numbers: those of narrow floats come as their codes."""
    kind = dtype(name) if name in DTYPES else None
    narrow = kind is not None and kind.is_narrow
    return (codes.view(kind.numpy) if narrow and kind else codes).astype(wanted)


def _gather(value: Any, layout: Any) -> Any:
    """Per-lane elements [wave, lane, register] as matrices [wave, row, column]."""
    at = layout.coordinates(layout.block)[0, :, :, 0]
    matrix = np.zeros((value.shape[0], *layout.block), value.dtype)
    matrix[:, at[..., 0], at[..., 1]] = np.swapaxes(value, 1, 2)
    return matrix


def _scatter(matrix: Any, layout: Any) -> Any:
    at = layout.coordinates(layout.block)[0, :, :, 0]
    return np.swapaxes(matrix[:, at[..., 0], at[..., 1]], 1, 2)
