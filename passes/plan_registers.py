"""How many registers a wave will need, before code is generated for it: told, and refused where they can't do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import kernels
from hkc.passes.define import Pass
from hkc.passes.explain import Option, explain
from hkc.passes.locate import refuse
from hkc.passes.registers import ADDRESSES, Peak, budget
from hkc.passes.requests import requested
from hkc.passes.select_layouts import WAVES
from hkc.support.mlir import ir
from hkc.targets.chip import Chip


@dataclass(frozen=True)
class PlanRegisters(Pass):
    """Predicts the vector registers of a lane from what is alive at once, and tells it beside the budget of a wave.

    Only what loops carry and what lives across them surely stays in registers; where that alone exceeds the budget, the
    kernel is refused. All else may be reordered or computed again by the code generator.

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
                raise refuse(peak.loop, "HK459", message, hint="use smaller tiles, or more waves: `with waves=8`")
            text = f"{peak.registers + ADDRESSES} of {limit} predicted, {peak.carried} of them carried by a loop"
            if occupancy is not None:
                text += f", for {occupancy} waves per SIMD"
            explain(function, function, "registers", Option(text))
