"""The part of a tile lowering that works on single elements and on an op's record: what folds, scans, casts and atomics
need besides whole fragments. Worker process only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hkc.dialects import build
from hkc.dialects.load import create
from hkc.dialects.tile.functions import EXPANSIONS
from hkc.dialects.translate import element_name, plain
from hkc.dialects.wave.ids import LaneId
from hkc.dialects.wave.lanes import ExchangeLanes, FirstLane, GatherLanes, ShuffleXor
from hkc.dialects.wave.sync import HoldHere, TrapUnless
from hkc.layout.text import commas
from hkc.layout.within_wave import Step
from hkc.machine.abi import Print
from hkc.support.dtypes import DTYPES
from hkc.support.errors import HkcBug
from hkc.support.mlir import ir

BYTE = 8


class Scalars:
    """Elements one by one. A `TileLowering` is one."""

    build = build
    is_float = staticmethod(build.is_float)
    values: dict[Any, Any]
    once: Callable[[Any, Callable[[], Any]], Any]
    prints: list[Print]
    """The `print` statements of the module so far; the last argument of a kernel that has some is their buffer."""
    print_buffer: Any

    def elements(self, value: Any) -> list[list[Any]]:
        """The elements [fragment][register] of a tile, as scalars."""
        return [[build.extract(v, r) for r in range(v.type.shape[0])] for v in self.values[value]]

    def option(self, op: Any, name: str, default: Any) -> Any:
        """An optional attribute of an op as a plain value."""
        return plain(op.attributes[name]) if name in op.attributes else default

    def dtype_name(self, value: Any, unsigned: bool) -> str:
        """The dtype of a tile's elements."""
        name = element_name(value.type.element_type)
        return f"u{DTYPES[name].bits}" if unsigned else name

    # -- between lanes

    def shuffle_xor(self, vector: Any, mask: int) -> Any:
        """The vector of lane `lane ^ mask`."""
        moved = create(ShuffleXor, self.as_bytes(vector), mask=mask).result
        return self.from_bytes(moved, vector.type.element_type)

    def shuffle_scalar(self, value: Any, mask: int) -> Any:
        """The element of lane `lane ^ mask`."""
        return build.extract(self.shuffle_xor(build.pack([value]), mask), 0)

    def moved(self, vector: Any, step: Step) -> Any:
        """A fragment after one step of a conversion within the wave."""
        size, element = vector.type.shape[0], vector.type.element_type
        held = self.as_bytes(vector)
        if step.kind == "gather":
            gathered = create(GatherLanes, held, columns=commas(step.columns)).result
            return self.from_bytes(gathered, element)
        halves = [[r for r in range(size) if r >> step.register & 1 == half] for half in (0, 1)]
        parts = build.pick(held, halves[0] + halves[1])
        if step.kind == "swap":
            parts = create(ExchangeLanes, parts, bit=step.lane).result
        else:
            parts = build.select(self.lane_bit(step.lane), build.pick(held, halves[1] + halves[0]), parts)
        back = sorted(range(size), key=(halves[0] + halves[1]).__getitem__)
        return self.from_bytes(build.pick(parts, back), element)

    def uniform(self, value: Any) -> Any:
        """An element that all lanes agree on, as one that the compiler knows to be uniform."""
        vector = build.pack([value])
        first = create(FirstLane, self.as_bytes(vector)).result
        return build.extract(self.from_bytes(first, value.type), 0)

    def held_here(self, value: Any) -> Any:
        """A number from which nothing is computed before this place."""
        return build.extract(create(HoldHere, build.pack([value])).result, 0)

    def lane_bit(self, bit: int) -> Any:
        """An i1: this bit of the lane's number is set."""

        def make() -> Any:
            lane = create(LaneId).result
            return build.cmp("ne", build.binary("andi", lane, 1 << bit), 0)

        return self.once(("lane bit", bit), make)

    def as_bytes(self, vector: Any) -> Any:
        """A vector as it lies in memory: a bool is a byte."""
        element = vector.type.element_type
        if not _is_bool(element):
            return vector
        return build.op("arith.extui", [vector], [build.like(vector.type, build.int_type(BYTE))])

    def from_bytes(self, vector: Any, element: Any) -> Any:
        """The inverse of `as_bytes`."""
        return build.cmp("ne", vector, 0) if _is_bool(element) else vector

    # -- control

    def trap_unless(self, conditions: Sequence[Any], message: str) -> None:
        """Give up unless all these bools of a lane hold."""
        create(TrapUnless, build.both(*conditions), message=message)

    def function(self, op: Any) -> Callable[..., tuple[Any, ...]]:
        """The function that `op` names, to be built in place: scalars to scalars."""
        name = ir.FlatSymbolRefAttr(op.attributes["combine"]).value
        module = op.parent
        while module.operation.name != "builtin.module":
            module = module.parent
        named = {
            str(f.attributes["sym_name"].value): f
            for f in module.regions[0].blocks[0].operations
            if f.operation.name == "func.func"
        }
        if name not in named:
            raise HkcBug(f"there is no function @{name}")
        block = named[name].regions[0].blocks[0]
        return lambda *arguments: _build(block, arguments)


def _is_bool(element: Any) -> bool:
    return str(element) == "i1"


def _build(block: Any, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """The ops of a function's block again, on other values; returns what it returns."""
    values = dict(zip(block.arguments, arguments, strict=True))
    for op in block.operations:
        op = op.operation
        operands = [values[o] for o in op.operands]
        if op.name == "func.return":
            return tuple(operands)
        if len(op.regions):
            raise HkcBug(f"`{op.name}` in a combining function")
        values[op.results[0]] = elementwise(op, operands, op.results[0].type)
    raise HkcBug("a function without a return")


def elementwise(op: Any, operands: Sequence[Any], kind: Any) -> Any:
    """A builtin op again, on other operands: scalars, or vectors, of result type `kind`."""
    if op.name in EXPANSIONS:
        return EXPANSIONS[op.name](*operands)
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.name, results=[kind], operands=list(operands), attributes=attributes).result
