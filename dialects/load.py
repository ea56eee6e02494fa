"""From op records to loaded MLIR dialects: IRDL, verifiers, builders. Runs in the worker process only."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import hkc.dialects.tile
import hkc.dialects.wave  # noqa: F401  (importing the packages fills the registries)
from hkc.dialects.define import TILE_DIALECT, WAVE_DIALECT, Field, Mismatch, OpRecord, Registry
from hkc.dialects.translate import mlir_type, plain_attributes, record_type, to_attributes
from hkc.support.mlir import announce, ext, ir

VERSION = 1
"""Version of the dialects' text, kept in the module attribute `hkc.dialect_version`."""

_BASES: dict[str, Any] = {
    "!builtin.tensor": ir.RankedTensorType,
    "!builtin.index": ir.IndexType,
    "!builtin.memref": ir.MemRefType,
    "!builtin.vector": ir.VectorType,
    "!builtin.integer": ir.IntegerType,
    "#builtin.integer": ir.IntegerAttr,
    "#builtin.string": ir.StringAttr,
    "#builtin.symbol_ref": ir.FlatSymbolRefAttr,
}


def _hint(field: Field, variables: dict[str, TypeVar]) -> Any:
    """The annotation by which `ext` learns the IRDL constraint of a field."""
    base = _BASES.get(field.constraint.base or "", Any)
    if field.role == "attribute":
        return base
    key = field.same or field.name
    constraint: Any = base
    if key in variables:
        constraint = variables[key]
    kind: Any = ext.Operand if field.role == "operand" else ext.Result
    return Sequence[kind[constraint]] if field.variadic else kind[constraint]


def _verifier(record: OpRecord) -> Any:
    def verify_invariants(self: Any) -> bool:
        try:
            verify(record, self.operation)
        except Mismatch as m:
            self.location.emit_error(f"{record.full_name}: {m.message}")
            return False
        return True

    return verify_invariants


def verify(record: OpRecord, op: Any) -> None:
    """Check an operation against its record's type rule. Raises `Mismatch`."""
    operands = [record_type(o.type) for o in op.operands]
    results = tuple(record_type(r.type) for r in op.results)
    attributes = plain_attributes(record, op.attributes)
    record.check_results(results)
    expected = record.infer(operands, attributes)
    if expected is not None and not all(_same(a, b) for a, b in zip(expected, results, strict=True)):
        raise Mismatch(f"the result should be {', '.join(map(str, expected))}, not {', '.join(map(str, results))}")
    check = getattr(record.cls, "check", None)
    if check is not None:
        check(*results, *record.bind(operands), **attributes)


def _same(expected: Any, found: Any) -> bool:
    """Equal but for the layout, which an inference rule doesn't know."""
    layout = getattr(found, "layout", None)
    return bool(expected == found or (layout is not None and replace(expected, layout=layout) == found))


def _operation(dialect: Any, record: OpRecord) -> None:
    shared = {f.same for f in record.fields if f.same}
    bounds = {f.name: _BASES.get(f.constraint.base or "", Any) for f in record.fields if f.name in shared}
    variables = {n: TypeVar(n, bound=b) if b is not Any else TypeVar(n) for n, b in bounds.items()}
    body = _body(
        __annotations__={f.name: _hint(f, variables) for f in record.fields if not f.optional},
        verify_invariants=_verifier(record),
    )
    keywords = {"name": record.name, "traits": [ext.Pure] if record.pure else []}
    types.new_class(record.cls.__name__, (dialect.Operation,), keywords, body)


def _body(**members: Any) -> Callable[[dict[str, Any]], None]:
    """The body of a class that is made at run time."""
    return lambda namespace: namespace.update(members)


def _dialect(registry: Registry, attributes: Mapping[str, Any], opaque: Mapping[str, Any]) -> Any:
    dialect: Any = types.new_class(registry.dialect, (ext.Dialect,), {"name": registry.dialect})
    for name, params in attributes.items():
        types.new_class(name, (dialect.Attribute,), {"name": name}, _body(__annotations__=params))
    for name, params in opaque.items():
        types.new_class(name, (dialect.Type,), {"name": name}, _body(__annotations__=params))
    for record in registry.ops.values():
        _operation(dialect, record)
    return dialect


TILE = _dialect(TILE_DIALECT, {"layout": {"map": ir.StringAttr}}, {})
WAVE = _dialect(WAVE_DIALECT, {}, {"lds": {"map": ir.StringAttr}, "descriptor": {}})


def load() -> None:
    """Load both dialects into the current context."""
    for dialect in (TILE, WAVE):
        dialect.load()
        announce(dialect.DIALECT_NAMESPACE)


def tile_irdl() -> str:
    """The IRDL definition of the tile dialect, for `mlir-opt --irdl-file`."""
    with ir.Context(), ir.Location.unknown():
        return f"{TILE._emit_module()}\n"


def create(
    cls: type,
    *operands: Any,
    results: Sequence[Any] | None = None,
    loc: Any = None,
    ip: Any = None,
    **attributes: Any,
) -> Any:
    """Build the op that `cls` defines; result types come from its type rule unless given. Returns the operation.

    `operands` are SSA values, a sequence for a variadic field. Attributes are plain Python values. Raises `Mismatch`.
    """
    record: OpRecord = cls.record  # type: ignore[attr-defined]
    flat = [v for o in operands for v in (o if isinstance(o, (list, tuple)) else [o])]
    full = {f.name: attributes.pop(f.name, f.default) for f in record.of("attribute")}
    if attributes:
        raise TypeError(f"{record.full_name} has no attribute {', '.join(attributes)}")
    if not record.of("result"):
        results = []
    elif results is None:
        inferred = record.infer([record_type(v.type) for v in flat], full)
        if inferred is None:
            raise TypeError(f"{record.full_name} needs its result types")
        results = [mlir_type(t) for t in inferred]
    attrs = to_attributes(record, full)
    return ir.Operation.create(record.full_name, results=list(results), operands=flat, attributes=attrs, loc=loc, ip=ip)
