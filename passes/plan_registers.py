"""How many registers a wave will need, before code is generated for it: told, and refused where they can't do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import kernels, walk
from hkc.passes.define import Pass
from hkc.passes.explain import Option, explain
from hkc.passes.locate import refuse
from hkc.passes.registers import ADDRESSES, budget, registers
from hkc.passes.requests import requested
from hkc.passes.select_layouts import WAVES
from hkc.passes.trips import LOOPS
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
            peak = _Peak()
            peak.block(function.regions[0].blocks[0], ())
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


class _Alive:
    """Values that are alive, and the registers that they take together."""

    def __init__(self, values: Iterable[Any]) -> None:
        self.values: dict[Any, int] = {}
        self.size = 0
        self.add(values)

    def add(self, values: Iterable[Any]) -> None:
        for value in values:
            if value not in self.values and not _free(value):
                self.values[value] = registers(value)
                self.size += self.values[value]

    def remove(self, values: Iterable[Any]) -> None:
        for value in values:
            self.size -= self.values.pop(value, 0)


class _Peak:
    """The most registers that are alive at once: at any place, and across loops."""

    def __init__(self) -> None:
        self.registers = self.carried = 0
        self.loop: Any = None

    def block(self, block: Any, after: Iterable[Any]) -> None:
        """Follow a block backwards; `after` is alive behind it."""
        alive = _Alive(after)
        for op in reversed([op.operation for op in block.operations]):
            self.registers = max(self.registers, alive.size)
            alive.remove(op.results)
            if op.regions:
                self._inside(op, alive)
            alive.add(op.operands)
        self.registers = max(self.registers, alive.size)

    def _inside(self, op: Any, alive: _Alive) -> None:
        used = _captured(op)
        if op.name == "scf.for":
            carried = _Alive([*alive.values, *op.regions[0].blocks[0].arguments]).size
            if carried > self.carried:
                self.carried, self.loop = carried, op
        # What a loop uses from outside is needed again in its next trip.
        behind = [*alive.values, *(used if op.name in LOOPS else ())]
        for region in op.regions:
            for inner in region:
                self.block(inner, behind)
        alive.add(used)


def _captured(op: Any) -> set[Any]:
    """What an op with regions uses in them from outside."""
    inner = walk(op)
    made = {v for i in inner for v in i.results} | {a for i in (op, *inner) for a in _arguments(i)}
    return {o for i in inner for o in i.operands if o not in made}


def _arguments(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region:
            yield from block.arguments


def _free(value: Any) -> bool:
    """Does a value take no register until it is used?"""
    return isinstance(value, ir.OpResult) and value.owner.name == "arith.constant"
