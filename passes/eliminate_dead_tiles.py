"""Remove what nobody uses and what is said twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.passes.define import Pass
from hkc.support.mlir import run_passes
from hkc.targets.chip import Chip


@dataclass(frozen=True)
class EliminateDeadTiles(Pass):
    """MLIR's own canonicaliser and common subexpression elimination: tiles are builtin tensors, so both know them.

    Before::

        %x = arith.addf %a, %a : tensor<64x32xf32>
        %y = arith.addf %a, %a : tensor<64x32xf32>
        %z = arith.mulf %x, %y : tensor<64x32xf32>

    After::

        %x = arith.addf %a, %a
        arith.mulf %x, %x
    """

    name: ClassVar[str] = "eliminate_dead_tiles"

    def run(self, module: Any, chip: Chip) -> None:
        run_passes(module, "canonicalize,cse")
