"""A checked program as MLIR tile IR, one op for one op, each at its place in the source. Worker process only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hkc.dialects.define import TILE_DIALECT
from hkc.dialects.header import interface
from hkc.dialects.load import VERSION, load
from hkc.dialects.translate import element_type, mlir_type, to_attributes
from hkc.dialects.types import GlobalType, IndexType, ScalarType, TileType
from hkc.frontend.program import Block, Checked, Choice, Combine, Kernel, Loop, Op, Repeat, Step, Value
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
        with ir.InsertionPoint(module.body):
            for function in kernel.functions:
                with _location(function.span):
                    _function(function)
            with _location(kernel.span):
                _kernel(kernel, checked)
    return module


def _kernel(kernel: Kernel, checked: Checked) -> None:
    made = func.FuncOp(kernel.name, ([mlir_type(v.type) for v in kernel.arguments], []))
    made.attributes["hkc.kernel"] = ir.UnitAttr.get()
    for name, attribute in interface(checked.info(kernel)).items():
        made.attributes[name] = attribute
    made.attributes["hkc.hints"] = ir.DictAttr.get({name: _hint(value) for name, value in kernel.hints})
    made.arg_attrs = [_argument(p.name, v) for p, v in zip(kernel.params, kernel.arguments, strict=True)]
    locations = [_location(v.span) for v in kernel.arguments]
    block = made.add_entry_block(locations)
    with ir.InsertionPoint(block):
        _Body(dict(zip(kernel.arguments, block.arguments, strict=True))).ops(kernel.body)
        func.ReturnOp([])


def _hint(value: int | str) -> Any:
    return ir.StringAttr.get(value) if isinstance(value, str) else _i64(value)


def _function(function: Combine) -> None:
    arguments = [mlir_type(v.type) for v in function.arguments]
    made = func.FuncOp(function.name, (arguments, [mlir_type(v.type) for v in function.block.yields]))
    made.attributes["sym_visibility"] = ir.StringAttr.get("private")
    block = made.add_entry_block([_location(v.span) for v in function.arguments])
    with ir.InsertionPoint(block):
        body = _Body(dict(zip(function.arguments, block.arguments, strict=True)))
        body.ops(function.block.body)
        func.ReturnOp([body.values[v] for v in function.block.yields])


def _argument(name: str, value: Value) -> ir.DictAttr:
    attributes: dict[str, Any] = {"hkc.name": ir.StringAttr.get(name)}
    if isinstance(value.type, GlobalType):
        attributes["hkc.dims"] = _texts([str(d) for d in value.type.dims])
    return ir.DictAttr.get(attributes)


class _Body:
    """Writes ops at the insertion point; `values` maps what they compute to SSA values."""

    def __init__(self, values: dict[Value, Any]) -> None:
        self.values = values

    def ops(self, steps: Sequence[Step]) -> None:
        for step in steps:
            with _location(step.span):
                match step:
                    case Op():
                        self._op(step)
                    case Loop():
                        self._loop(step)
                    case Choice():
                        self._choice(step)
                    case Repeat():
                        self._repeat(step)

    def _op(self, op: Op) -> None:
        results = [mlir_type(v.type) for v in op.results]
        operands = [self.values[v] for v in op.operands]
        made = ir.Operation.create(op.name, results=results, operands=operands, attributes=_attributes(op))
        self.values |= dict(zip(op.results, made.results, strict=True))

    def _loop(self, loop: Loop) -> None:
        made = self._made("scf.for", (*loop.bounds, *loop.initial), loop.results)
        self._block(made.regions[0], [loop.variable, *loop.carried], loop.block)

    def _choice(self, choice: Choice) -> None:
        made = self._made("scf.if", (choice.condition,), choice.results, regions=2)
        self._block(made.regions[0], [], choice.then)
        if choice.otherwise.body or choice.results:
            self._block(made.regions[1], [], choice.otherwise)

    def _repeat(self, repeat: Repeat) -> None:
        made = self._made("scf.while", repeat.initial, repeat.results, regions=2)
        before = Block(repeat.before.body, (*repeat.before.yields, *repeat.tested))
        self._block(made.regions[0], repeat.tested, before, "scf.condition")
        self._block(made.regions[1], repeat.carried, repeat.block)

    def _made(self, name: str, operands: Sequence[Value], results: Sequence[Value], regions: int = 1) -> Any:
        kinds = [mlir_type(v.type) for v in results]
        made = ir.Operation.create(name, results=kinds, operands=[self.values[v] for v in operands], regions=regions)
        self.values |= dict(zip(results, made.results, strict=True))
        return made

    def _block(self, region: Any, arguments: Sequence[Value], block: Block, terminator: str = "scf.yield") -> None:
        kinds, places = [mlir_type(v.type) for v in arguments], [_location(v.span) for v in arguments]
        made = ir.Block.create_at_start(region, kinds, places)
        self.values |= dict(zip(arguments, made.arguments, strict=True))
        with ir.InsertionPoint(made):
            self.ops(block.body)
            ir.Operation.create(terminator, operands=[self.values[v] for v in block.yields])


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
