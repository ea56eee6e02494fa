"""Which tile a workgroup computes: tile ids from the workgroup's number in a flat launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects import build
from hkc.dialects.forms import kernels, walk
from hkc.dialects.load import create
from hkc.dialects.wave.ids import WorkgroupId
from hkc.passes.define import Pass
from hkc.support.mlir import ir
from hkc.targets.chip import Chip


@dataclass(frozen=True)
class MapWorkgroups(Pass):
    """`tile_id` becomes division and remainder of the workgroup's number; the last id runs fastest.

    Before::

        %m, %n = "hkc_tile.tile_id"(%i, %j) {order = "rows"} : (index, index) -> (index, index)

    After::

        %w = "hkc_wave.workgroup_id"()
        %n = arith.remui %w, %j
        arith.divui %w, %j
    """

    name: ClassVar[str] = "map_workgroups"
    gives: ClassVar[frozenset[str]] = frozenset({"numbered"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            for op in walk(function):
                if op.name == "hkc_tile.tile_id":
                    with ir.InsertionPoint(op), op.location:
                        _replace(op)
                    op.erase()


def _replace(op: Any) -> None:
    rest = create(WorkgroupId).result
    for extent, result in reversed(list(zip(op.operands, op.results, strict=True))[1:]):
        result.replace_all_uses_with(build.binary("remui", rest, extent))
        rest = build.binary("divui", rest, extent)
    op.results[0].replace_all_uses_with(rest)
