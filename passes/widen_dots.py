"""Give dots of 8-bit floats that the chip's matrix instructions don't know operands that they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import kernels, walk
from hkc.dialects.load import create
from hkc.dialects.tile.convert import Cast
from hkc.dialects.tile.dot import EIGHT_BIT_FLOATS
from hkc.dialects.translate import element_name
from hkc.passes.define import Pass
from hkc.passes.mfma_choice import candidates
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

WIDE = "f16"
"""Holds every number of every 8-bit format."""


@dataclass(frozen=True)
class WidenDots(Pass):
    """Operands of the other family of 8-bit floats, or of an extent that no instruction for them divides, become f16:
    products stay exact.

    Before::

        %d = "hkc_tile.dot"(%a, %b, %c) : (tensor<64x16xf8E4M3FN>, tensor<16x64xf8E4M3FNUZ>, tensor<64x64xf32>) -> tensor<64x64xf32>

    After::

        "hkc_tile.cast"(%a) : (tensor<64x16xf8E4M3FN>) -> tensor<64x16xf16>
        "hkc_tile.cast"(%b) : (tensor<16x64xf8E4M3FNUZ>) -> tensor<16x64xf16>
        "hkc_tile.dot"
    """  # noqa: E501

    name: ClassVar[str] = "widen_dots"

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            for op in walk(function):
                if op.name == "hkc_tile.dot" and not _fits(op, chip):
                    _widen(op)


def _fits(op: Any, chip: Chip) -> bool:
    a, b, acc = (element_name(o.type.element_type) for o in op.operands)
    if a not in EIGHT_BIT_FLOATS:
        return True
    extents = op.operands[0].type.shape[0], op.operands[1].type.shape[1], op.operands[0].type.shape[1]
    return bool(candidates(chip, a, b, acc, extents))


def _widen(op: Any) -> None:
    with ir.InsertionPoint(op), op.location:
        for i in (0, 1):
            kind = ir.RankedTensorType.get(op.operands[i].type.shape, ir.F16Type.get())
            op.operands[i] = create(Cast, op.operands[i], results=[kind]).result
