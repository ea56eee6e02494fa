"""A checked program as MLIR tile IR, one op for one op, each at its place in the source. Worker process only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hkc.dialects.define import TILE_DIALECT
from hkc.dialects.load import VERSION, load
from hkc.dialects.translate import element_type, mlir_type, to_attributes
from hkc.dialects.types import GlobalType, IndexType, ScalarType, TileType
from hkc.frontend.program import Checked, Kernel, Loop, Op, Value
from hkc.support.dtypes import DTYPES
from hkc.support.errors import Span
from hkc.support.mlir import context, func, ir


def text(checked: Checked, locations: bool = False) -> str:
    """The verified tile IR of all kernels of a file, as text."""
    with context(), ir.Location.unknown():
        load()
        module = build(checked)
        module.operation.verify()
        return str(module.operation.get_asm(enable_debug_info=locations))


def build(checked: Checked) -> ir.Module:
    """The tile IR of all kernels of a file, in the current context, into which the dialects must be loaded."""
    module = ir.Module.create(_location(Span(checked.source, 1, 1, 1, 1)))
    module.operation.attributes["hkc.dialect_version"] = _i64(VERSION)
    for kernel in checked.kernels:
        with ir.InsertionPoint(module.body), _location(kernel.span):
            _kernel(kernel)
    return module


def _kernel(kernel: Kernel) -> None:
    made = func.FuncOp(kernel.name, ([mlir_type(v.type) for v in kernel.arguments], []))
    made.attributes["hkc.kernel"] = ir.UnitAttr.get()
    made.attributes["hkc.grid"] = _texts(kernel.grid)
    made.attributes["hkc.hints"] = ir.DictAttr.get({name: _i64(value) for name, value in kernel.hints})
    made.arg_attrs = [_argument(p.name, v) for p, v in zip(kernel.params, kernel.arguments, strict=True)]
    locations = [_location(v.span) for v in kernel.arguments]
    block = made.add_entry_block(locations)
    with ir.InsertionPoint(block):
        _Body(dict(zip(kernel.arguments, block.arguments, strict=True))).ops(kernel.body)
        func.ReturnOp([])


def _argument(name: str, value: Value) -> ir.DictAttr:
    attributes: dict[str, Any] = {"hkc.name": ir.StringAttr.get(name)}
    if isinstance(value.type, GlobalType):
        attributes["hkc.dims"] = _texts([str(d) for d in value.type.dims])
    return ir.DictAttr.get(attributes)


class _Body:
    """Writes ops at the insertion point; `values` maps what they compute to SSA values."""

    def __init__(self, values: dict[Value, Any]) -> None:
        self.values = values

    def ops(self, ops: Sequence[Op | Loop]) -> None:
        for op in ops:
            with _location(op.span):
                if isinstance(op, Loop):
                    self._loop(op)
                else:
                    self._op(op)

    def _op(self, op: Op) -> None:
        results = [mlir_type(v.type) for v in op.results]
        operands = [self.values[v] for v in op.operands]
        made = ir.Operation.create(op.name, results=results, operands=operands, attributes=_attributes(op))
        self.values |= dict(zip(op.results, made.results, strict=True))

    def _loop(self, loop: Loop) -> None:
        operands = [self.values[v] for v in (*loop.bounds, *loop.initial)]
        kinds = [v.type for v in operands[3:]]
        made = ir.Operation.create("scf.for", results=kinds, operands=operands, regions=1)
        arguments = [loop.variable, *loop.carried]
        block = ir.Block.create_at_start(
            made.regions[0], [ir.IndexType.get(), *kinds], [_location(v.span) for v in arguments]
        )
        self.values |= dict(zip(arguments, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            self.ops(loop.body)
            ir.Operation.create("scf.yield", operands=[self.values[v] for v in loop.yields])
        self.values |= dict(zip(loop.results, made.results, strict=True))


def _attributes(op: Op) -> dict[str, Any]:
    dialect, _, name = op.name.partition(".")
    if dialect == TILE_DIALECT.dialect:
        return to_attributes(TILE_DIALECT.ops[name], op.attributes)
    if op.name == "arith.constant":
        return {"value": _constant(op.attributes["value"], op.results[0])}
    return {name: _i64(value) for name, value in op.attributes.items()}


def _constant(number: bool | int | float, value: Value) -> Any:
    kind = value.type
    if isinstance(kind, IndexType):
        return ir.IntegerAttr.get(ir.IndexType.get(), number)
    assert isinstance(kind, (ScalarType, TileType))
    element = element_type(kind.dtype)
    is_float = DTYPES[kind.dtype].is_float
    one = ir.FloatAttr.get(element, float(number)) if is_float else ir.IntegerAttr.get(element, int(number))
    return one if isinstance(kind, ScalarType) else ir.DenseElementsAttr.get_splat(mlir_type(kind), one)


def _i64(value: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _texts(texts: Sequence[str]) -> Any:
    return ir.ArrayAttr.get([ir.StringAttr.get(t) for t in texts])


def _location(span: Span) -> Any:
    return ir.Location.file(span.source.name, span.line, span.column)
