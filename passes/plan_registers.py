"""How many registers a wave will need, before code is generated for it: told, and refused where they can't do; and
whether its sums go into AGPRs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects import build
from hkc.dialects.forms import kernels, walk
from hkc.passes.define import Pass
from hkc.passes.explain import Option, explain
from hkc.passes.locate import refuse
from hkc.passes.registers import ADDRESSES, Peak, budget, registers, relief
from hkc.passes.requests import requested
from hkc.passes.select_layouts import WAVES
from hkc.passes.trip_order import MFMA
from hkc.passes.trips import LOOPS
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

AGPRS = "hkc.agprs"
"""Attribute of a kernel function: AGPRs of a lane that the results of MFMAs go into; 0 where VGPRs take them."""


@dataclass(frozen=True)
class PlanRegisters(Pass):
    """Predicts the vector registers of a lane from what is alive at once, and tells it beside the budget of a wave.

    Only what loops carry and what lives across them surely stays in registers; where that alone exceeds the budget, the
    kernel is refused. All else may be reordered or computed again by the code generator.

    Where all that is alive exceeds the VGPRs that an instruction can name, sums that loops carry and only MFMAs read
    are placed in AGPRs. There MFMAs take and leave them without a copy.

    Before::

        %x = "hkc_wave.buffer_load"(%r, %o) : (!hkc_wave.descriptor, i32) -> vector<16xf16>
        "hkc_wave.buffer_store"(%x, %r, %o) : (vector<16xf16>, !hkc_wave.descriptor, i32) -> ()

    After::

        subject = "registers", texts = ["32 of
    """

    name: ClassVar[str] = "plan_registers"
    needs: ClassVar[frozenset[str]] = frozenset({"waves", "pipelined"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            waves = ir.IntegerAttr(function.attributes[WAVES]).value
            occupancy = requested(function, "waves_per_eu")
            limit = budget(waves, chip, occupancy)
            peak = Peak(function)
            if peak.carried > limit:
                message = (
                    f"the loop carries {peak.carried} registers of every lane, but a wave has {limit} on {chip.name}, "
                    f"where a workgroup has {waves} waves"
                )
                raise refuse(peak.loop, "HK459", message, hint=relief(waves, chip, occupancy))
            placed = _sums(function) if peak.registers + ADDRESSES > chip.registers.vgprs < limit else 0
            placed = placed if placed <= chip.registers.agprs else 0
            function.attributes[AGPRS] = build.int_attr(placed)
            text = f"{peak.registers + ADDRESSES} of {limit} predicted, {peak.carried} of them carried by a loop"
            if placed:
                text += f", {placed} in AGPRs"
            if occupancy is not None:
                text += f", for {occupancy} waves per SIMD"
            explain(function, function, "registers", Option(text))


def _sums(function: Any) -> int:
    """Registers of the most sums that a loop carries; 0 where a loop reads a result of an MFMA in any other way."""
    loops = [op for op in walk(function) if op.name in LOOPS]
    results = [op.results[0] for loop in loops for op in walk(loop) if op.name in MFMA]
    if any(use.owner.name not in MFMA | {"scf.yield"} for value in results for use in value.uses):
        return 0
    carried = (set(list(loop.regions[-1].blocks[0].operations)[-1].operands) & set(results) for loop in loops)
    return max((sum(map(registers, some)) for some in carried), default=0)
