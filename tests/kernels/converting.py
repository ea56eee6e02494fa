"""Copies of a tile through layouts that a test names, instead of those that the compiler would choose. `compile_for` is
for the worker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hkc import decisions, pipeline
from hkc.dialects.forms import kernels, walk
from hkc.frontend.program import Checked
from hkc.handover import Binary
from hkc.layout import DistributedLayout, blocked, tile_waves
from hkc.passes.define import Pass
from hkc.targets.chip import Chip, load

WAVES = 4
SIDE = 64


def layouts(itemsize: int, chip: str) -> dict[str, DistributedLayout]:
    """Rows and columns held 4, 8 and 16 bytes at a time, and what matrix instructions hold on two by two waves."""
    found = {
        f"{name} of {width}": blocked((SIDE, SIDE), WAVES, width // itemsize, dim)
        for dim, name in ((1, "rows"), (0, "columns"))
        for width in (4, 8, 16)
    }
    for row in load(chip).mfma_for("bf16", "bf16", "f32")[:2]:
        found[f"sums of {row.m}"] = tile_waves(row.acc_layout(), (2, 2))
        found[f"turned sums of {row.m}"] = tile_waves(row.acc_layout().transpose((1, 0)), (2, 2))
        found[f"rows for {row.m}"] = tile_waves(row.a_layout(), (2, 2), (0, None))
        found[f"columns for {row.m}"] = tile_waves(row.b_layout(), (2, 2), (None, 1))
    return found


@dataclass(frozen=True)
class GiveLayouts(Pass):
    """Every load in the layout `source`, every store in the next one of `targets`."""

    source: str
    targets: tuple[str, ...]
    name: ClassVar[str] = "give_layouts"
    gives: ClassVar[frozenset[str]] = frozenset({"layouts"})

    def run(self, module: Any, chip: Chip) -> None:
        from hkc.dialects.load import create
        from hkc.dialects.tile.shape import ConvertLayout
        from hkc.dialects.translate import with_layout
        from hkc.passes import select_layouts
        from hkc.support.mlir import ir

        for function in kernels(module):
            function.attributes[select_layouts.WAVES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), WAVES)
            stores = [op for op in walk(function) if op.name == "hkc_tile.store"]
            for store, target in zip(stores, self.targets, strict=True):
                tile = store.operands[0]
                tile.set_type(with_layout(tile.type, self.source))
                with ir.InsertionPoint(store), store.location:
                    held = create(ConvertLayout, tile, results=[with_layout(tile.type, target)])
                store.operands[0] = held.result


def compile_for(checked: Checked, arch: str, source: str, targets: tuple[str, ...]) -> Binary:
    """The pipeline with `GiveLayouts` in place of the choice."""
    from hkc.passes.locate import quote
    from hkc.support.mlir import context, ir

    made: dict[str, Any] = {}
    with context(), ir.Location.unknown(), quote(checked.source):
        module = pipeline.emit(checked, load(arch))
        for passes in pipeline.stages().values():
            steps = [GiveLayouts(source, targets) if step.name == "select_layouts" else step for step in passes]
            module = pipeline.run(module, steps)
            made |= decisions.read(module)
        assembly = pipeline.translate(module)
    return replace(pipeline.generate(assembly, pipeline.interface(module)), **made)
