"""Refuse tiles that this chip, or this compiler so far, can't handle, before any choice is made for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import kernels, walk
from hkc.dialects.translate import record_type
from hkc.dialects.types import TileType
from hkc.passes.define import Pass
from hkc.passes.locate import refuse
from hkc.passes.mfma_choice import candidates
from hkc.targets.chip import Chip


@dataclass(frozen=True)
class CheckTiles(Pass):
    """Every `dot` has a matrix instruction of the chip that divides it; every tile has the rank and size we handle.

    Before::

        %d = "hkc_tile.dot"(%a, %b, %c) : (tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>) -> tensor<64x64xf32>

    After::

        hkc_tile.dot
    """

    name: ClassVar[str] = "check_tiles"
    gives: ClassVar[frozenset[str]] = frozenset({"legal_tiles"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            for op in walk(function):
                if op.name == "hkc_tile.dot":
                    _check_dot(op, chip)


def _check_dot(op: Any, chip: Chip) -> None:
    a, b, acc = (record_type(o.type) for o in op.operands)
    if not (isinstance(a, TileType) and isinstance(b, TileType) and isinstance(acc, TileType)):
        return
    if not chip.mfma_for(a.dtype, b.dtype, acc.dtype):
        raise refuse(op, "HK451", f"{chip.name} has no matrix instruction for {a.dtype} x {b.dtype} into {acc.dtype}")
    m, n, k = a.shape[0], b.shape[1], a.shape[1]
    if not candidates(chip, a.dtype, b.dtype, acc.dtype, (m, n, k)):
        smallest = min(chip.mfma_for(a.dtype, b.dtype, acc.dtype), key=lambda r: (r.m * r.n, r.k))
        raise refuse(
            op,
            "HK452",
            f"a dot of {m}x{k} by {k}x{n} {a.dtype} is not a multiple of any matrix instruction of {chip.name}",
            hint=f"make the tile a multiple of {smallest.m}x{smallest.n}, with {smallest.k} along the inner dim",
        )
