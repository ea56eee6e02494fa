"""Conversions of 8-bit floats by the chip's own instructions, for the formats that it knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import TEXT, VECTOR, Mismatch, attribute, operand, result, wave_op
from hkc.dialects.types import VectorType
from hkc.dialects.wave.machine import Workgroup
from hkc.support.dtypes import DTYPES

WORD = 4
"""Bytes of a register."""


def _checked(value: VectorType, wanted: str, format: str) -> None:
    if value.dtype != wanted or format not in ("fp8", "bf8"):
        raise Mismatch(f"the conversion with `{format}` takes {wanted} and a format, fp8 or bf8, not {value}")


@wave_op("encode_f8")
class EncodeF8:
    """Floats of 32 bits as codes of 8, rounded to nearest even; `fp8` (4 significant bits) and `bf8` (3) are OCP's or
    FNUZ, as the chip has it. What is too large becomes infinity, or NaN where the format has none."""

    value = operand(VECTOR)
    format = attribute(TEXT)
    d = result(VECTOR)
    examples = (
        '%r = "hkc_wave.encode_f8"(%v) {format = "fp8"} : (vector<8xf32>) -> vector<8xi8>',
        '%r = "hkc_wave.encode_f8"(%v) {format = "bf8"} : (vector<2xf32>) -> vector<2xi8>',
    )

    @staticmethod
    def infer(value: VectorType, *, format: str) -> VectorType:
        _checked(value, "f32", format)
        return VectorType(value.size, "i8")

    @staticmethod
    def meaning(machine: Workgroup, value: Any, *, format: str) -> Any:
        return value.astype(DTYPES[machine.chip.eight_bits[format]].numpy).view(np.int8)

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        size = op.results[0].type.shape[0]
        name = f"rocdl.cvt.pk.{op.attributes['format'].value}.f32"
        words = [b.i32(0)] * -(-size // WORD)
        for i in range(0, size, 2):
            word, upper = divmod(i, WORD)
            two = [b.extract(operands[0], j) for j in (i, min(i + 1, size - 1))]
            words[word] = b.op(name, [*two, words[word]], [b.int_type(32)], wordSel=b.int_attr(upper // 2, 1))
        return [b.from_words(words, op.results[0].type)]


@wave_op("decode_f8")
class DecodeF8:
    """Codes of 8 bits as floats of 32, exactly; the formats are those of `encode_f8`."""

    value = operand(VECTOR)
    format = attribute(TEXT)
    d = result(VECTOR)
    examples = (
        '%r = "hkc_wave.decode_f8"(%v) {format = "fp8"} : (vector<8xi8>) -> vector<8xf32>',
        '%r = "hkc_wave.decode_f8"(%v) {format = "bf8"} : (vector<2xi8>) -> vector<2xf32>',
    )

    @staticmethod
    def infer(value: VectorType, *, format: str) -> VectorType:
        _checked(value, "i8", format)
        return VectorType(value.size, "f32")

    @staticmethod
    def meaning(machine: Workgroup, value: Any, *, format: str) -> Any:
        return value.view(DTYPES[machine.chip.eight_bits[format]].numpy).astype(np.float32)

    @staticmethod
    def lower(b: Any, op: Any, *operands: Any) -> list[Any]:
        size = operands[0].type.shape[0]
        name, words = f"rocdl.cvt.pk.f32.{op.attributes['format'].value}", b.to_words(operands[0])
        found = []
        for i in range(0, size, 2):
            word, upper = divmod(i, WORD)
            two = b.op(name, [words[word]], [b.type("vector<2xf32>")], wordSel=b.int_attr(upper // 2, 1))
            found += [b.extract(two, 0), b.extract(two, 1)]
        return [b.pack(found[:size])]
