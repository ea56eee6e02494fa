"""The matrix instruction."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import TEXT, VECTOR, attribute, operand, result, wave_op
from hkc.dialects.types import VectorType
from hkc.dialects.wave.machine import Workgroup


@wave_op("mfma")
class Mfma:
    """One MFMA per wave: `acc + a @ b`, operands and result laid out over the lanes as the chip's table says.

    `instruction` is its mnemonic; a holds MxK, b KxN, acc MxN.
    """

    a = operand(VECTOR)
    b = operand(VECTOR)
    acc = operand(VECTOR)
    instruction = attribute(TEXT)
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
    def infer(a: VectorType, b: VectorType, acc: VectorType, *, instruction: str) -> VectorType:
        return acc

    @staticmethod
    def meaning(machine: Workgroup, a: Any, b: Any, acc: Any, *, instruction: str) -> Any:
        row = machine.chip.mfma(instruction)
        left = _gather(a.astype(acc.dtype), row.a_layout())
        right = _gather(b.astype(acc.dtype), row.b_layout())
        total = _gather(acc, row.acc_layout()) + left @ right
        return _scatter(total, row.acc_layout())

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        row = b.chip.mfma(op.attributes["instruction"].value)
        left, right, acc = operands
        inputs = [b.as_operand(left, row.a_type), b.as_operand(right, row.b_type), acc]
        none, zero = b.attribute("#rocdl<mfma_perm_b none>"), b.int_attr(0, 32)
        return [b.op(row.rocdl, inputs, [acc.type], cbsz=zero, abid=zero, blgp=none)]


def _gather(value: Any, layout: Any) -> Any:
    """Per-lane elements [wave, lane, register] as matrices [wave, row, column]."""
    at = layout.coordinates(layout.block)[0, :, :, 0]
    matrix = np.zeros((value.shape[0], *layout.block), value.dtype)
    matrix[:, at[..., 0], at[..., 1]] = np.swapaxes(value, 1, 2)
    return matrix


def _scatter(matrix: Any, layout: Any) -> Any:
    at = layout.coordinates(layout.block)[0, :, :, 0]
    return np.swapaxes(matrix[:, at[..., 0], at[..., 1]], 1, 2)
