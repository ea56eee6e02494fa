"""Division of integer tiles that rounds down, as Python's does; `arith` rounds towards zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc.dialects.define import BOOL, TILE, Mismatch, operand, option, result, tile_op
from hkc.dialects.tile.reduce import unsigned_view
from hkc.dialects.types import TileType
from hkc.support.dtypes import dtype


def _infer(symbol: str, a: TileType, b: TileType) -> TileType:
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        hint = "cast one to the other's dtype"
        raise Mismatch(f"`{symbol}` takes two tiles of one type, not {a} and {b}", ("a", "b"), code="HK202", hint=hint)
    if dtype(a.dtype).kind not in ("int", "uint"):
        raise Mismatch(f"`{symbol}` divides integers, not {a}", ("a", "b"), code="HK204", hint="`/` divides floats")
    return TileType(a.shape, a.dtype)


def _apply(function: Any, a: Any, b: Any, unsigned: bool) -> Any:
    made = function(unsigned_view(a, unsigned), unsigned_view(b, unsigned))
    return made.view(a.dtype) if unsigned else made


def _needs_step(low: Any, rest: Any, b: Any) -> Any:
    """Whether a quotient that was rounded towards zero is one too high: there is a rest, and its sign is not `b`'s."""
    build = low.build
    differs = build.cmp("slt", build.binary("xori", rest, b), build.zero(b.type))
    return build.both(build.cmp("ne", rest, build.zero(b.type)), differs)


def _pairs(low: Any, op: Any) -> list[tuple[Any, Any]]:
    return list(zip(*(low.fragments(x) for x in op.operands), strict=True))


_EXAMPLES = ("64x32xi32", "256xi64", "64x16xi16", "64x16xi8")


@tile_op("floordiv", spelling="a // b")
class FloorDiv:
    """`a // b` of integers, rounded down. A division by zero is not defined."""

    a = operand(TILE)
    b = operand(TILE, same="a")
    unsigned = option(BOOL, False)
    d = result(TILE, same="a")
    together = True
    examples = tuple(f'%q = "hkc_tile.floordiv"(%a, %b) : (tensor<{t}>, tensor<{t}>) -> tensor<{t}>' for t in _EXAMPLES)

    @staticmethod
    def infer(a: TileType, b: TileType, *, unsigned: bool = False) -> TileType:
        return _infer("//", a, b)

    @staticmethod
    def meaning(a: Any, b: Any, *, unsigned: bool = False) -> Any:
        return _apply(np.floor_divide, a, b, unsigned)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        build, made = low.build, []
        for a, b in _pairs(low, op):
            if low.option(op, "unsigned", False):
                made.append(build.binary("divui", a, b))
                continue
            quotient = build.binary("divsi", a, b)
            rest = build.sub(a, build.mul(quotient, b))
            step = build.op("arith.extsi", [_needs_step(low, rest, b)], [b.type])
            made.append(build.add(quotient, step))
        low.values[op.results[0]] = made


@tile_op("floormod", spelling="a % b")
class FloorMod:
    """`a % b` of integers, `a - a // b * b`: it has the sign of `b`. A division by zero is not defined."""

    a = operand(TILE)
    b = operand(TILE, same="a")
    unsigned = option(BOOL, False)
    d = result(TILE, same="a")
    together = True
    examples = tuple(f'%q = "hkc_tile.floormod"(%a, %b) : (tensor<{t}>, tensor<{t}>) -> tensor<{t}>' for t in _EXAMPLES)

    @staticmethod
    def infer(a: TileType, b: TileType, *, unsigned: bool = False) -> TileType:
        return _infer("%", a, b)

    @staticmethod
    def meaning(a: Any, b: Any, *, unsigned: bool = False) -> Any:
        return _apply(np.remainder, a, b, unsigned)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        build, made = low.build, []
        for a, b in _pairs(low, op):
            if low.option(op, "unsigned", False):
                made.append(build.binary("remui", a, b))
                continue
            rest = build.binary("remsi", a, b)
            made.append(build.add(rest, build.select(_needs_step(low, rest, b), b, build.zero(b.type))))
        low.values[op.results[0]] = made
