"""Say which cuts, joins and regroupings of tiles go through LDS: those that lanes can't do with what they hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import STAGED, kernels, walk
from hkc.dialects.tile.shape import keeps_bits
from hkc.dialects.tile.through_lds import CONCAT, RESHAPE, SLICE
from hkc.dialects.translate import plain
from hkc.passes.define import Pass
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

CUTS = (SLICE, CONCAT)


@dataclass(frozen=True)
class StageCuts(Pass):
    """A cut at an odd place would leave copies of the tile to all lanes, a regrouping of extents that are no powers of
    two moves elements between lanes: both go through LDS.

    Before::

        #plain = strided<[?, ?]>
        %x = "hkc_tile.load"(%A, %f, %i, %i) : (memref<?x?xf32, #plain>, f32, index, index) -> tensor<48x32xf32>
        %r = "hkc_tile.reshape"(%x) : (tensor<48x32xf32>) -> tensor<32x48xf32>

    After::

        "hkc_tile.reshape"(%x) {hkc.staged}
    """

    name: ClassVar[str] = "stage_cuts"
    needs: ClassVar[frozenset[str]] = frozenset({"legal_tiles"})
    gives: ClassVar[frozenset[str]] = frozenset({"cuts_staged"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            for op in walk(function):
                if (op.name == RESHAPE and not keeps_bits(*_shapes(op))) or (op.name in CUTS and _odd(op, chip)):
                    op.attributes[STAGED] = ir.UnitAttr.get()


def _shapes(op: Any) -> list[tuple[int, ...]]:
    return [tuple(v.type.shape) for v in (*op.operands, *op.results)]


def _odd(op: Any, chip: Chip) -> bool:
    """Whether the blocks between which the cut falls are smaller than a wave, and the tile is larger."""
    shapes = _shapes(op)
    offsets = plain(op.attributes["offsets"]) if "offsets" in op.attributes else shapes[0]
    limits = [math.gcd(*extents) for extents in zip(offsets, *shapes, strict=True)]
    lanes = chip.compute.wave
    return math.prod(n & -n for n in limits) < lanes < max(map(math.prod, shapes))
