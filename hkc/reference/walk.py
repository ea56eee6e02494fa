"""Tile IR executed with the ops' NumPy meanings, workgroup after workgroup. Worker process only.

Nothing here knows what an op computes: constants, loops, branches and dims are walked, everything else is looked up in
the registries. The meanings work on arrays or on `Bounded` arrays alike, whichever the walk was started with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hkc.dialects.builtin import BUILTINS
from hkc.dialects.define import TILE_DIALECT, WAVE_DIALECT, OpRecord, evaluate
from hkc.dialects.forms import ENTRY, kernels
from hkc.dialects.translate import plain, plain_attributes, record_type
from hkc.dialects.types import IndexType, ScalarType, TileType
from hkc.passes.locate import refuse
from hkc.reference.bounded import Undecided
from hkc.support.dtypes import DTYPES
from hkc.support.errors import HkcBug
from hkc.support.extents import evaluate as extent
from hkc.support.mlir import ir


@dataclass(frozen=True)
class Domain:
    """What the walk computes with: how to make it from an array, and from an array of numbers written in the source."""

    lift: Callable[[Any], Any]
    literal: Callable[[Any], Any]


Say = Callable[[str, Sequence[Any], bool], None]
"""Hears what a `print` op writes: its text, its values, and whether the line goes on."""


def walk(
    module: Any,
    tensors: Mapping[str, Any],
    scalars: Mapping[str, Any],
    domain: Domain,
    say: Say = lambda *parts: None,
    entry: str = "aligned",
) -> None:
    """Run all kernels of a module in order; `tensors`, by parameter name, are changed in place, `say` hears what is
    printed. Of the entry points of one kernel only `entry` runs.

    The module is tile IR, as the front end makes it or after any pass that keeps tiles. Scalars are given by name.
    """
    functions = {str(ir.StringAttr(f.attributes["sym_name"]).value): f for f in module.body.operations}
    for function in kernels(module):
        if ENTRY in function.attributes and ir.StringAttr(function.attributes[ENTRY]).value != entry:
            continue
        block = function.regions[0].blocks[0]
        names = [str(ir.StringAttr(a["hkc.name"]).value) for a in function.attributes["arg_attrs"]]
        arguments = [
            _argument(n, a.type, tensors, scalars, domain) for n, a in zip(names, block.arguments, strict=True)
        ]
        known = _dims(function, names, tensors) | {n: int(v) for n, v in scalars.items() if float(v).is_integer()}
        grid = [extent(str(ir.StringAttr(axis).value), known) for axis in function.attributes["hkc.grid"]]
        for workgroup in range(math.prod(max(0, n) for n in grid)):
            _Walk(workgroup, domain, functions, say).block(block, arguments)


def _argument(name: str, kind: Any, tensors: Mapping[str, Any], scalars: Mapping[str, Any], domain: Domain) -> Any:
    wanted = record_type(kind)
    if isinstance(wanted, ScalarType):
        return domain.lift(np.asarray(scalars[name]).astype(DTYPES[wanted.dtype].numpy))
    return int(scalars[name]) if isinstance(wanted, IndexType) else tensors[name]


def _dims(function: Any, names: Sequence[str], tensors: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, attributes in zip(names, function.attributes["arg_attrs"], strict=True):
        if "hkc.dims" in attributes:
            texts = [str(ir.StringAttr(d).value) for d in attributes["hkc.dims"]]
            found |= dict(zip(texts, tensors[name].shape, strict=True))
    return found


class _Walk:
    """One workgroup: SSA values to arrays, and indices to ints."""

    def __init__(self, workgroup: int, domain: Domain, functions: Mapping[str, Any], say: Say) -> None:
        self.workgroup = workgroup
        self.domain = domain
        self.functions = functions
        self.say = say
        self.values: dict[Any, Any] = {}

    def block(self, block: Any, arguments: Sequence[Any]) -> list[Any]:
        """Run a block; returns what its terminator yields."""
        self.values.update(zip(block.arguments, arguments, strict=True))
        for op in block.operations:
            op = op.operation
            operands = [self.values[v] for v in op.operands]
            if op.name in _TERMINATORS:
                return operands
            try:
                results = _CONTROL[op.name](self, op, operands) if op.name in _CONTROL else self._evaluate(op, operands)
            except Undecided:
                hint = "compute it from whole numbers, or keep what decides well apart"
                raise refuse(op, "HK524", "here a decision depends on rounding errors", hint=hint) from None
            self.values.update(zip(op.results, results, strict=True))
        return []

    def loop(self, op: Any, operands: list[Any]) -> list[Any]:
        """`scf.for`."""
        carried = operands[3:]
        for i in range(*operands[:3]):
            carried = self.block(op.regions[0].blocks[0], [i, *carried])
        return carried

    def branch(self, op: Any, operands: list[Any]) -> list[Any]:
        """`scf.if`."""
        region = op.regions[0 if operands[0] else 1]
        return self.block(region.blocks[0], []) if len(region.blocks) else []

    def repeat(self, op: Any, operands: list[Any]) -> list[Any]:
        """`scf.while`."""
        before, after = (r.blocks[0] for r in op.regions)
        while True:
            goes_on, *operands = self.block(before, operands)
            if not goes_on:
                return operands
            operands = self.block(after, operands)

    def constant(self, op: Any, operands: list[Any]) -> list[Any]:
        """`arith.constant`."""
        value, kind = op.attributes["value"], record_type(op.results[0].type)
        if isinstance(kind, TileType):
            value = ir.DenseElementsAttr(value)
            if not value.is_splat:
                raise HkcBug(f"a tile constant that is no splat: {kind}")
            value = value.get_splat_value()
        number = float(value.value) if isinstance(value, ir.FloatAttr) else plain(value)
        if isinstance(kind, IndexType):
            return [number]
        assert isinstance(kind, (TileType, ScalarType))
        shape = kind.shape if isinstance(kind, TileType) else ()
        return [self.domain.literal(np.full(shape, number, DTYPES[kind.dtype].numpy))]

    def dim(self, op: Any, operands: list[Any]) -> list[Any]:
        """`memref.dim`."""
        return [int(operands[0].shape[operands[1]])]

    def _evaluate(self, op: Any, operands: list[Any]) -> list[Any]:
        meaning, operands, attributes = _meaning(op, operands)
        if "combine" in attributes:
            attributes["combine"] = self._function(attributes["combine"])
        kinds = [record_type(r.type) for r in op.results]
        offered = {"workgroup": self.workgroup, "say": self.say, **attributes}
        with np.errstate(all="ignore"):
            made = evaluate(meaning, *operands, result=kinds[0] if kinds else None, **offered)
        results = made if isinstance(made, tuple) else (made,)
        return [int(r) if isinstance(k, IndexType) else self._settled(r) for r, k in zip(results, kinds, strict=False)]

    def _function(self, symbol: str) -> Callable[..., tuple[Any, ...]]:
        """A function of the module, as one of arrays: what it does to scalars, it does to all elements."""
        block = self.functions[symbol].regions[0].blocks[0]
        walk = _Walk(self.workgroup, self.domain, self.functions, self.say)
        return lambda *arguments: tuple(walk.block(block, arguments))

    def _settled(self, value: Any) -> Any:
        """A result as what the walk computes with: meanings may make plain arrays (`iota`), or NumPy scalars."""
        return self.domain.lift(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value


_TERMINATORS = ("scf.yield", "scf.condition", "func.return")

_CONTROL: dict[str, Callable[[_Walk, Any, list[Any]], list[Any]]] = {
    "scf.for": _Walk.loop,
    "scf.if": _Walk.branch,
    "scf.while": _Walk.repeat,
    "arith.constant": _Walk.constant,
    "memref.dim": _Walk.dim,
}


def _meaning(op: Any, operands: list[Any]) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """The meaning of an op, with its operands grouped by field and its attributes as plain values."""
    if op.name in BUILTINS:
        given = {"predicate": plain(op.attributes["predicate"])} if "predicate" in op.attributes else {}
        return BUILTINS[op.name].meaning, operands, given
    dialect, _, name = op.name.partition(".")
    for registry in (TILE_DIALECT, WAVE_DIALECT):
        if dialect == registry.dialect and name in registry.ops:
            record: OpRecord = registry.ops[name]
            machine = [None] if registry is WAVE_DIALECT else []
            bound = [*machine, *record.bind(operands)]
            return record.cls.meaning, bound, plain_attributes(record, op.attributes)  # type: ignore[attr-defined]
    raise HkcBug(f"the reference knows no `{op.name}`")
