"""Refuse tiles that this chip, or this compiler so far, can't handle, before any choice is made for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import kernels, walk
from hkc.dialects.translate import plain, record_type
from hkc.dialects.types import ScalarType, TileType
from hkc.passes.define import Pass
from hkc.passes.locate import refuse
from hkc.passes.mfma_choice import candidates
from hkc.targets.chip import Chip

DOTS = ("hkc_tile.dot", "hkc_tile.dot_scaled")
MOVES = ("arith.select", "arith.constant")
"""Ops of the builtin dialects that compute nothing."""

TRANSCENDENTAL = frozenset(f"math.{name}" for name in ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf"))
"""Functions that need more than the arithmetic of the vector unit."""

ATOMICS = frozenset(f"hkc_tile.{name}" for name in ("atomic", "atomic_masked", "atomic_fetch", "scatter"))
FOLDS = frozenset(f"hkc_tile.{name}" for name in ("reduce", "scan", "arg_reduce"))


@dataclass(frozen=True)
class CheckTiles(Pass):
    """Every `dot` has a matrix instruction of the chip; every tile has the rank and size we handle.

    Before::

        %d = "hkc_tile.dot"(%a, %b, %c) : (tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>) -> tensor<64x64xf32>

    After::

        hkc_tile.dot
    """  # noqa: E501

    name: ClassVar[str] = "check_tiles"
    gives: ClassVar[frozenset[str]] = frozenset({"legal_tiles"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            for op in walk(function):
                _check(op, chip)


def _check(op: Any, chip: Chip) -> None:
    if op.name in DOTS:
        _check_dot(op, chip)
    elif op.name.startswith(("arith.", "math.")) and op.name not in MOVES:
        _check_arithmetic(op, chip)
    elif op.name in ATOMICS:
        _check_atomic(op, chip)
    elif op.name in FOLDS:
        _refuse_others(op, chip, chip.dtypes.arithmetic, "computes with")


def _dtypes(op: Any) -> list[str]:
    """The dtypes of an op's tiles and scalars (integers read as signed)."""
    kinds = (record_type(v.type) for v in (*op.operands, *op.results))
    return [k.dtype for k in kinds if isinstance(k, (TileType, ScalarType))]


def _refuse_others(op: Any, chip: Chip, allowed: tuple[str, ...], what: str) -> None:
    for dtype in _dtypes(op):
        if dtype not in allowed:
            hint = f"cast it, to one of {', '.join(d for d in allowed if d.startswith(('f', 'b')))}"
            raise refuse(op, "HK455", f"{chip.name} {what} no {dtype}", hint=hint)


def _check_arithmetic(op: Any, chip: Chip) -> None:
    _refuse_others(op, chip, chip.dtypes.arithmetic, "computes with")
    if op.name in TRANSCENDENTAL:
        name = op.name.partition(".")[2]
        _refuse_others(op, chip, chip.dtypes.transcendental, f"has `{name}` for")


def _check_atomic(op: Any, chip: Chip) -> None:
    kind = plain(op.attributes["kind"]) if "kind" in op.attributes else "store"
    value = record_type(op.operands[0].type)
    if kind == "store" or not isinstance(value, TileType):
        return
    allowed = chip.dtypes.atomic_add if kind == "add" else chip.dtypes.atomic_extreme
    if value.dtype not in allowed:
        raise refuse(op, "HK456", f"{chip.name} has no atomic `{kind}` for {value.dtype}", hint="use f32 or i32")


def _pairs(chip: Chip, scaled: bool) -> str:
    """What the chip can multiply instead."""
    pairs = {f.a if f.a == f.b else f"{f.a} x {f.b}" for f in chip.mfmas if f.scaled == scaled and f.has_layouts}
    return f"it multiplies {', '.join(sorted(pairs))}" if pairs else "scale the factors yourself, then dot"


def _check_dot(op: Any, chip: Chip) -> None:
    scaled = op.name == "hkc_tile.dot_scaled"
    a, b, acc = (record_type(op.operands[i].type) for i in ((0, 2, 4) if scaled else (0, 1, 2)))
    if not (isinstance(a, TileType) and isinstance(b, TileType) and isinstance(acc, TileType)):
        return
    known = chip.mfma_for(b.dtype, a.dtype, acc.dtype, scaled)
    if not known:
        what = "scaled matrix instruction" if scaled else "matrix instruction"
        why = f"{chip.name} has no {what} for {a.dtype} x {b.dtype} into {acc.dtype}"
        raise refuse(op, "HK451", why, hint=_pairs(chip, scaled))
    k = a.shape[1]
    if not candidates(chip, a.dtype, b.dtype, acc.dtype, (a.shape[0], b.shape[1], k), scaled):
        step = min(r.k for r in known)
        raise refuse(
            op,
            "HK452",
            f"a scaled dot of {k} along the inner dim is no multiple of any scaled matrix instruction of {chip.name}",
            hint=f"the nearest legal sizes are {' and '.join(str(n) for n in (k - k % step, k + -k % step) if n)}",
        )
