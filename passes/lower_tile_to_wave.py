"""From tiles to what each lane holds: every tile becomes its fragments, every tile op the wave ops that compute it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hkc.dialects import build
from hkc.dialects.builtin import BUILTINS
from hkc.dialects.define import TILE_DIALECT
from hkc.dialects.forms import ENTRY, kernels, walk
from hkc.dialects.header import set_prints
from hkc.dialects.tile.divisibility import fits_loop, nonnegative
from hkc.dialects.tile.functions import EXPANSIONS
from hkc.dialects.tile.lowering import TileLowering
from hkc.dialects.tile.scalars import elementwise
from hkc.dialects.tile.shape import DIRECT
from hkc.dialects.translate import element_name
from hkc.machine.abi import Print
from hkc.passes.define import Pass
from hkc.passes.select_layouts import WAVES
from hkc.support.dtypes import DTYPES
from hkc.support.errors import HkcBug
from hkc.support.mlir import ir
from hkc.targets.chip import Chip


@dataclass(frozen=True)
class LowerTileToWave(Pass):
    """Rewrites each kernel function; a global argument becomes pointer, extents and strides (the kernel ABI).

    Before::

        %x = "hkc_tile.load"(%A, %f, %i, %i) : (memref<?x?xf16, strided<[?, ?]>>, f16, index, index) -> tensor<16x64xf16, #hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(0,8 0,16 0,32 1,0 2,0 4,0) w()">>
        "hkc_tile.store"(%x, %A, %i, %i) : (tensor<16x64xf16, #hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(0,8 0,16 0,32 1,0 2,0 4,0) w()">>, memref<?x?xf16, strided<[?, ?]>>, index, index) -> ()

    After::

        "hkc_wave.buffer"
        "hkc_wave.buffer_load"
        "hkc_wave.buffer_store"
    """  # noqa: E501

    name: ClassVar[str] = "lower_tile_to_wave"
    needs: ClassVar[frozenset[str]] = frozenset({"entries", "lds_mapped", "numbered"})
    gives: ClassVar[frozenset[str]] = frozenset({"waves"})
    drops: ClassVar[frozenset[str]] = frozenset({"legal_tiles", "cuts_staged", "layouts", "staged", "lds_mapped"})

    def run(self, module: Any, chip: Chip) -> None:
        prints: list[Print] = []
        for function in kernels(module):
            _lower_kernel(function, chip, prints)
        set_prints(module, prints)
        for op in list(module.body.operations):
            if op.operation.name == "func.func" and "hkc.kernel" not in op.attributes:
                op.operation.erase()  # combining functions: they were built in place


def _lower_kernel(function: Any, chip: Chip, prints: list[Print]) -> None:
    """Build the lowered twin of a kernel after it, and remove the original; its `print` ops are added to `prints`."""
    block = function.regions[0].blocks[0]
    kinds = [k for a in block.arguments for k in _argument_types(a.type)]
    if any(op.name == "hkc_tile.print" for op in walk(function)):
        kinds.append(ir.Type.parse("!llvm.ptr<1>"))
    attributes = {name: a for name, a in _attributes(function).items() if name != "arg_attrs"}
    attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, []))
    with ir.InsertionPoint(function), function.location:
        made = ir.Operation.create("func.func", attributes=attributes, regions=1)
    entry = made.regions[0].blocks.append(*kinds)
    with ir.InsertionPoint(entry), function.location:
        marker = build.index(0).owner  # what is made once goes before it
    entry_kind = ir.StringAttr(function.attributes[ENTRY]).value
    waves = ir.IntegerAttr(function.attributes[WAVES]).value
    low = TileLowering(chip, waves, entry_kind, ir.InsertionPoint(marker))
    low.prints, low.print_buffer = prints, entry.arguments[-1] if kinds else None
    with low.top(function.location):
        _bind_arguments(low, block, entry)
    with ir.InsertionPoint(entry):
        _lower_block(low, block)
    function.erase()


def _argument_types(kind: Any) -> list[Any]:
    if isinstance(kind, ir.MemRefType):
        return [ir.Type.parse("!llvm.ptr<1>"), *([build.int_type(64)] * (2 * kind.rank))]
    return [build.int_type(64) if isinstance(kind, ir.IndexType) else build.carrier(kind)]


def _bind_arguments(low: TileLowering, old: Any, new: Any) -> None:
    rest = iter(new.arguments)
    for argument in old.arguments:
        kind = argument.type
        if isinstance(kind, ir.MemRefType):
            pointer = next(rest)
            numbers = [build.to_index(next(rest)) for _ in range(2 * kind.rank)]
            low.bind_tensor(argument, pointer, numbers[: kind.rank], numbers[kind.rank :])
        else:
            value = next(rest)
            low.values[argument] = build.to_index(value) if isinstance(kind, ir.IndexType) else value


def _lower_block(low: TileLowering, block: Any) -> None:
    for op in block.operations:
        with op.location:
            _lower_op(low, op.operation)


def _lower_op(low: TileLowering, op: Any) -> None:
    dialect, _, name = op.name.partition(".")
    if DIRECT in op.attributes and low.entry == "aligned":
        low.defer(op)
    elif dialect == TILE_DIALECT.dialect:
        TILE_DIALECT.ops[name].cls.lower(low, op)  # type: ignore[attr-defined]
    elif op.name in _SPECIAL:
        _SPECIAL[op.name](low, op)
    elif op.name not in BUILTINS or not BUILTINS[op.name].elementwise:
        raise HkcBug(f"no lowering for `{op.name}`")
    elif any(isinstance(v.type, ir.RankedTensorType) for v in op.results):
        _lower_elementwise(low, op)
    else:
        _copy(low, op)


def _attributes(op: Any) -> dict[str, Any]:
    return {name: op.attributes[name] for name in op.attributes}


def _copy(low: TileLowering, op: Any) -> None:
    """An op on scalars stays as it is."""
    operands = [low.scalar(o) for o in op.operands]
    kinds = [r.type for r in op.results]
    if op.name in EXPANSIONS:
        low.values[op.results[0]] = elementwise(op, operands, kinds[0])
        return
    if op.name == "arith.ceildivsi" and all(isinstance(k, ir.IndexType) for k in kinds) and nonnegative(op.results[0]):
        # Without a sign to look at: rounded up by what is added before.
        above = build.add(operands[0], build.sub(operands[1], 1))
        low.values[op.results[0]] = build.binary("divui", above, operands[1])
        return
    made = ir.Operation.create(op.name, results=kinds, operands=operands, attributes=_attributes(op))
    low.values.update(zip(op.results, made.results, strict=True))


def _lower_elementwise(low: TileLowering, op: Any) -> None:
    """The same op on each fragment; tiles have one layout, so fragments match."""
    result = op.results[0]
    kind = low.fragment_type(result)
    columns = [low.fragments(o) if isinstance(o.type, ir.RankedTensorType) else None for o in op.operands]
    count = low.layout(result).fragments(low.shape(result))
    low.values[result] = [
        elementwise(op, [low.scalar(o) if c is None else c[i] for o, c in zip(op.operands, columns, strict=True)], kind)
        for i in range(count)
    ]


def _lower_constant(low: TileLowering, op: Any) -> None:
    result, value = op.results[0], op.attributes["value"]
    tile = isinstance(result.type, ir.RankedTensorType)
    if tile:
        dense = ir.DenseElementsAttr(value)
        if not dense.is_splat:
            raise HkcBug(f"a tile constant that is no splat: {result.type}")
        value = dense.get_splat_value()
    element = result.type.element_type if tile else result.type
    held = element if isinstance(element, ir.IndexType) else build.carrier(element)
    if held != element:
        value = ir.IntegerAttr.get(held, _code(value, element))
    kind = low.fragment_type(result) if tile else held
    value = ir.DenseElementsAttr.get_splat(kind, value) if tile else value
    one = build.op("arith.constant", results=[kind], value=value)
    low.values[result] = [one] * low.layout(result).fragments(low.shape(result)) if tile else one


def _code(value: Any, element: Any) -> int:
    """The code of a constant of a narrow float, as a signed byte."""
    kind = DTYPES[element_name(element)].numpy
    return int(np.asarray(float(ir.FloatAttr(value).value)).astype(kind).view(np.int8))


def _lower_splat(low: TileLowering, op: Any) -> None:
    result = op.results[0]
    one = build.splat(low.scalar(op.operands[0]), low.layout(result).registers)
    low.values[result] = [one] * low.layout(result).fragments(low.shape(result))


def _lower_dim(low: TileLowering, op: Any) -> None:
    position = op.operands[1].owner.attributes["value"].value
    low.values[op.results[0]] = low.tensors[op.operands[0]].extents[position]


def _flat(low: TileLowering, values: Any) -> list[Any]:
    found: list[Any] = []
    for v in values:
        lowered = low.values[v]
        found += lowered if isinstance(lowered, list) else [lowered]
    return found


def _lower_for(low: TileLowering, op: Any) -> None:
    """A loop carries the fragments of its tiles. It counts in 32 bits where its bounds surely fit: comparing 64 bits
    takes a vector instruction. (A start beyond the end may become the end: there is no trip either way.)"""
    start, end, step = list(op.operands)[:3]
    narrow = low.entry == "aligned" and nonnegative(start) and fits_loop(end) and fits_loop(step)
    bounds = [low.scalar(o) for o in (start, end, step)]
    if narrow:
        first = bounds[0] if fits_loop(start) else build.binary("minsi", bounds[0], bounds[1])
        bounds = [build.to_i32(bound) for bound in (first, *bounds[1:])]
    starts = _flat(low, list(op.operands)[3:])
    kinds = [s.type for s in starts]
    loop = ir.Operation.create(
        "scf.for", results=kinds, operands=[*bounds, *starts], attributes=_attributes(op), regions=1
    )
    old = op.regions[0].blocks[0]
    body = loop.regions[0].blocks.append(bounds[0].type, *kinds)
    _hand_out(low, list(old.arguments)[1:], list(body.arguments)[1:])
    with ir.InsertionPoint(body):
        variable = body.arguments[0]
        low.values[old.arguments[0]] = build.to_index(variable) if narrow else variable
        _lower_block(low, old)
    _hand_out(low, op.results, loop.results)


def _lower_if(low: TileLowering, op: Any) -> None:
    """A branch gives the fragments of its tiles."""
    kinds = [k for r in op.results for k in _lowered_types(low, r)]
    branch = ir.Operation.create("scf.if", results=kinds, operands=[low.scalar(op.operands[0])], regions=2)
    for old, new in zip(op.regions, branch.regions, strict=True):
        if len(old.blocks):
            with ir.InsertionPoint(new.blocks.append()):
                _lower_block(low, old.blocks[0])
    _hand_out(low, op.results, branch.results)


def _lower_while(low: TileLowering, op: Any) -> None:
    """A loop under a condition carries the fragments of its tiles."""
    starts = _flat(low, op.operands)
    kinds = [k for r in op.results for k in _lowered_types(low, r)]
    loop = ir.Operation.create("scf.while", results=kinds, operands=starts, regions=2)
    for old, new, types in zip(op.regions, loop.regions, ([s.type for s in starts], kinds), strict=True):
        body = new.blocks.append(*types)
        _hand_out(low, old.blocks[0].arguments, body.arguments)
        with ir.InsertionPoint(body):
            _lower_block(low, old.blocks[0])
    _hand_out(low, op.results, loop.results)


def _lowered_types(low: TileLowering, value: Any) -> list[Any]:
    if not isinstance(value.type, ir.RankedTensorType):
        return [value.type]
    return [low.fragment_type(value)] * low.layout(value).fragments(low.shape(value))


def _hand_out(low: TileLowering, values: Any, flat: Any) -> None:
    """Hand flat values to the tiles and scalars that they belong to."""
    rest = iter(flat)
    for value in values:
        parts = [next(rest) for _ in _lowered_types(low, value)]
        low.values[value] = parts if isinstance(value.type, ir.RankedTensorType) else parts[0]


def _lower_terminator(low: TileLowering, op: Any) -> None:
    build.op(op.name, _flat(low, op.operands))


_SPECIAL: dict[str, Callable[[TileLowering, Any], None]] = {
    "arith.constant": _lower_constant,
    "tensor.splat": _lower_splat,
    "memref.dim": _lower_dim,
    "scf.for": _lower_for,
    "scf.if": _lower_if,
    "scf.while": _lower_while,
    "scf.condition": _lower_terminator,
    "scf.yield": _lower_terminator,
    "hkc_wave.workgroup_id": _copy,
    "func.return": lambda low, op: build.op("func.return"),
}
