"""Matrix products of tiles: `dot` and, with scales per block, `dot_scaled`."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import TILE, Mismatch, operand, result, tile_op
from hkc.dialects.types import TileType, extents
from hkc.support.errors import HkcBug

EIGHT_BIT_FLOATS = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
"""Element types that `dot` multiplies in any pair."""

SUMS = {"f32": "f32", "f16": "f32", "bf16": "f32", "i8": "i32", "f64": "f64", **dict.fromkeys(EIGHT_BIT_FLOATS, "f32")}
"""Element types that `dot` multiplies, and that of their sums."""

SCALED = ("f8e4m3fn", "f8e5m2", "f6e2m3", "f6e3m2", "f4e2m1")
"""Element types that `dot_scaled` multiplies, in any pair."""

SCALE_GROUP = 32
"""Elements along the inner dim that share a scale."""


def _check_ranks(what: str, **tiles: TileType) -> None:
    for name, t in tiles.items():
        if len(t.shape) != 2:
            hint = "x[None, :] makes a row of a vector, x[:, None] a column"
            raise Mismatch(f"`{what}` takes tiles of rank 2, but `{name}` is {t}", (name,), code="HK206", hint=hint)


def _check_shapes(what: str, a: TileType, b: TileType, acc: TileType, total: str) -> None:
    if a.shape[1] != b.shape[0]:
        raise Mismatch(
            f"inner sizes differ: `a` is {extents(a.shape)} but `b` is {extents(b.shape)}",
            ("a", "b"),
            hint=f"{what} needs columns of `a` = rows of `b`; load {a.shape[1]} rows",
            code="HK203",
        )
    want = TileType((a.shape[0], b.shape[1]), total)
    if (acc.shape, acc.dtype) != (want.shape, want.dtype):
        hint = f"begin with zeros[{want.dtype}, {', '.join(map(str, want.shape))}]"
        raise Mismatch(f"the accumulator is {acc}, but this product is {want}", ("acc",), code="HK203", hint=hint)


def _check_held(low: Any, op: Any, *factors: int) -> None:
    """Whether the layouts of a, b and the accumulator belong to one instruction and one grid of waves: others would
    give wrong sums. Raises `HkcBug`."""
    a, b, acc = (low.layout(op.operands[i]) for i in factors)
    row = low.instruction(op)
    if row.scaled:
        kinds = (low.dtype_name(op.operands[i], False) for i in (factors[1], factors[0]))
        row = next(r for r in low.chip.mfma_for(*kinds, row.acc, scaled=True) if r.mnemonic == row.mnemonic)
    unit = row.acc_layout().transpose((1, 0))

    def walk(layout: Any, d: int) -> list[tuple[int, ...]]:
        return [tuple(basis[d] for basis in bases) for bases in (layout.register, layout.lane, layout.wave)]

    walks = [walk(layout, d) for layout, d in ((a, 1), (b, 0), (a, 0), (acc, 0), (b, 1), (acc, 1))]
    # Scales belong to neighbours along k, so scaled forms keep the instruction's own order, which depends on the dtype.
    own = [walk(row.b_layout(), 0)[:2], walk(row.a_layout(), 1)[:2]] if row.scaled else [walks[1][:2], walks[0][:2]]
    same_depth = [walks[0][:2], walks[1][:2]] == own and not any((*walks[0][2], *walks[1][2]))
    same_depth = same_depth and a.block[1] == b.block[0]
    same_waves = walks[2][2] == walks[3][2] and walks[4][2] == walks[5][2]
    same_blocks = (a.block[0], b.block[1]) == acc.block
    if not (same_depth and same_waves and same_blocks and (acc.register, acc.lane) == (unit.register, unit.lane)):
        raise HkcBug(f"{row.mnemonic} can't multiply {a} and {b} into {acc}")


@tile_op("dot", spelling="dot(a, b)")
class Dot:
    """`acc + a @ b`: a is MxK, b is KxN, acc and the result are MxN.

    f32, f16, bf16 and 8-bit floats (in any pair) sum in f32, i8 in i32, f64 in f64. Products are exact; 8-bit floats
    that the chip's matrix instructions don't know are multiplied as f16, which holds them all.
    """

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
            ("32x64xi8", "64x32xi8", "32x32xi32"),
            ("16x32xf8E4M3FN", "32x32xf8E4M3FN", "16x32xf32"),
            ("32x32xf8E5M2FNUZ", "32x16xf8E4M3FNUZ", "32x16xf32"),
            ("16x16xf64", "16x16xf64", "16x16xf64"),
        )
    )

    @staticmethod
    def infer(a: TileType, b: TileType, acc: TileType) -> TileType:
        _check_ranks("dot", a=a, b=b, acc=acc)
        eight = a.dtype in EIGHT_BIT_FLOATS and b.dtype in EIGHT_BIT_FLOATS
        if a.dtype not in SUMS or (a.dtype != b.dtype and not eight):
            known = ", ".join(SUMS)
            raise Mismatch(
                f"`dot` multiplies two tiles of one dtype ({known}), not {a.dtype} and {b.dtype}",
                ("a", "b"),
                hint=f"cast one operand: cast(…, {b.dtype if b.dtype in SUMS else 'f32'})",
                code="HK204",
            )
        _check_shapes("dot", a, b, acc, SUMS[a.dtype])
        return acc

    @staticmethod
    def meaning(a: Any, b: Any, acc: Any) -> Any:
        return acc + np.matmul(a.astype(acc.dtype), b.astype(acc.dtype))

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        # The instruction gets the operands exchanged, and so computes the transpose: a lane then holds neighbours along
        # a row of the result, which is what stores want.
        _check_held(low, op, 0, 1, 2)
        # A layout may reach beyond the tile: rows and columns there are nobody's, but along k they must add nothing.
        a, b, acc = low.within(op.operands[0], 1, 0), low.within(op.operands[1], 0, 0), low.fragments(op.operands[2])
        rows, depth = low.layout(op.operands[0]).grid(low.shape(op.operands[0]))
        columns = len(b) // depth
        total = list(acc)
        for k, i, j in np.ndindex(depth, rows, columns):
            at, pair = i * columns + j, (b[k * columns + j], a[i * depth + k])
            for left, right in zip(*(low.mfma_parts(op, fragment) for fragment in pair), strict=True):
                total[at] = low.mfma(op, left, right, total[at])
        low.values[op.results[0]] = total


def _spread(scale: Any, axis: int) -> Any:
    """Scales as f32, each repeated for the elements that share it."""
    scale = scale.astype(np.float32)
    shape = scale.shape
    groups = np.expand_dims(scale, axis + 1)
    wide = np.broadcast_to(groups, (*shape[: axis + 1], SCALE_GROUP, *shape[axis + 1 :]))
    return np.reshape(wide, (*shape[:axis], shape[axis] * SCALE_GROUP, *shape[axis + 1 :]))


@tile_op("dot_scaled", spelling="dot_scaled(a, a_scale, b, b_scale)")
class DotScaled:
    """`acc + (a * a_scale) @ (b * b_scale)`: 32 elements along the inner dim share a scale of e8m0, a power of two.

    a is MxK of f8e4m3fn, f8e5m2, f6e2m3, f6e3m2 or f4e2m1, a_scale Mx(K/32), b KxN, b_scale (K/32)xN, acc and the
    result are MxN of f32. Only on chips with scaled matrix instructions.
    """

    a = operand(TILE)
    a_scale = operand(TILE)
    b = operand(TILE)
    b_scale = operand(TILE)
    acc = operand(TILE)
    d = result(TILE, same="acc")
    feature = "scaled_mfma"
    examples = tuple(
        f'%d = "hkc_tile.dot_scaled"(%a, %sa, %b, %sb, %c) : (tensor<32x128x{a}>, tensor<32x4xf8E8M0FNU>,'
        f" tensor<128x32x{b}>, tensor<4x32xf8E8M0FNU>, tensor<32x32xf32>) -> tensor<32x32xf32>"
        for a, b in (("f8E4M3FN", "f8E4M3FN"), ("f4E2M1FN", "f4E2M1FN"), ("f6E2M3FN", "f8E5M2"))
    )

    @staticmethod
    def infer(a: TileType, a_scale: TileType, b: TileType, b_scale: TileType, acc: TileType) -> TileType:
        _check_ranks("dot_scaled", a=a, a_scale=a_scale, b=b, b_scale=b_scale, acc=acc)
        for name, t in (("a", a), ("b", b)):
            if t.dtype not in SCALED:
                raise Mismatch(
                    f"`dot_scaled` multiplies {', '.join(SCALED)}, not {t.dtype}",
                    (name,),
                    code="HK204",
                    hint="dot multiplies the others",
                )
        _check_shapes("dot_scaled", a, b, acc, "f32")
        if a.shape[1] % SCALE_GROUP:
            raise Mismatch(
                f"the inner size {a.shape[1]} is no multiple of {SCALE_GROUP}, the elements that share a scale",
                ("a", "b"),
                code="HK203",
                hint=f"a multiple of {SCALE_GROUP}",
            )
        groups = a.shape[1] // SCALE_GROUP
        for name, t, shape in (("a_scale", a_scale, (a.shape[0], groups)), ("b_scale", b_scale, (groups, b.shape[1]))):
            if t.shape != shape or t.dtype != "e8m0":
                hint = "one scale for each 32 elements along K; cast(…, e8m0) converts"
                raise Mismatch(f"`{name}` must be {extents(shape)} e8m0, not {t}", (name,), code="HK203", hint=hint)
        return acc

    @staticmethod
    def meaning(a: Any, a_scale: Any, b: Any, b_scale: Any, acc: Any) -> Any:
        left = a.astype(np.float32) * _spread(a_scale, 1)
        right = b.astype(np.float32) * _spread(b_scale, 0)
        return acc + np.matmul(left, right)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        _check_held(low, op, 0, 2, 4)
        # Operands are exchanged, as in `dot`. A scale has the rows and groups of its operand's fragment.
        a, a_scale, b, b_scale, acc = (low.fragments(v) for v in op.operands)
        rows, depth = low.layout(op.operands[0]).grid(low.shape(op.operands[0]))
        columns = len(b) // depth
        total = list(acc)
        for k, i, j in np.ndindex(depth, rows, columns):
            at, left, right = i * columns + j, i * depth + k, k * columns + j
            total[at] = low.mfma_scaled(op, b[right], a[left], total[at], b_scale[right], a_scale[left])
        low.values[op.results[0]] = total
