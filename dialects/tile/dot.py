"""The matrix product of tiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import TILE, Mismatch, operand, result, tile_op
from hkc.dialects.types import TileType, extents

OPERANDS = ("f32", "f16", "bf16")
"""Element types that `dot` multiplies."""


@tile_op("dot", spelling="dot(a, b)")
class Dot:
    """`acc + a @ b`: a is MxK, b is KxN, acc and the result are MxN of f32. Products are exact, sums are f32."""

    a = operand(TILE)
    b = operand(TILE)
    acc = operand(TILE)
    d = result(TILE, same="acc")
    examples = tuple(
        f'%d = "hkc_tile.dot"(%a, %b, %c) : (tensor<{a}>, tensor<{b}>, tensor<{d}>) -> tensor<{d}>'
        for a, b, d in (
            ("64x32xbf16", "32x64xbf16", "64x64xf32"),
            ("32x64xf16", "64x96xf16", "32x96xf32"),
            ("16x16xf32", "16x32xf32", "16x32xf32"),
        )
    )

    @staticmethod
    def infer(a: TileType, b: TileType, acc: TileType) -> TileType:
        for name, t in (("a", a), ("b", b), ("acc", acc)):
            if len(t.shape) != 2:
                raise Mismatch(f"`dot` takes tiles of rank 2, but `{name}` is {t}", (name,), code="HK206")
        if a.dtype != b.dtype or a.dtype not in OPERANDS:
            raise Mismatch(
                f"`dot` multiplies two tiles of one dtype ({', '.join(OPERANDS)}), not {a.dtype} and {b.dtype}",
                ("a", "b"),
                hint=f"cast one operand: cast(…, {b.dtype if b.dtype in OPERANDS else OPERANDS[0]})",
                code="HK204",
            )
        if a.shape[1] != b.shape[0]:
            raise Mismatch(
                f"inner sizes differ: `a` is {extents(a.shape)} but `b` is {extents(b.shape)}",
                ("a", "b"),
                hint=f"dot needs columns of `a` = rows of `b`; load {a.shape[1]} rows",
                code="HK203",
            )
        want = TileType((a.shape[0], b.shape[1]), "f32")
        if (acc.shape, acc.dtype) != (want.shape, want.dtype):
            raise Mismatch(f"the accumulator is {acc}, but this product is {want}", ("acc",), code="HK203")
        return acc

    @staticmethod
    def meaning(a: Any, b: Any, acc: Any) -> Any:
        return acc + np.matmul(a.astype(acc.dtype), b.astype(acc.dtype))

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        # The instruction gets the operands exchanged, and so computes the transpose: a lane then holds neighbours along
        # a row of the result, which is what stores want.
        a, b, acc = (low.fragments(v) for v in op.operands)
        rows, depth = low.layout(op.operands[0]).grid(low.shape(op.operands[0]))
        columns = len(b) // depth
        total = list(acc)
        for k, i, j in np.ndindex(depth, rows, columns):
            at = i * columns + j
            total[at] = low.mfma(op, b[k * columns + j], a[i * depth + k], total[at])
        low.values[op.results[0]] = total
