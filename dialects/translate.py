"""Between MLIR's types and attributes and the plain records of `hkc.dialects.types`. Worker process only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hkc.dialects.define import Field, Mismatch, OpRecord
from hkc.dialects.types import GlobalType, IndexType, OpaqueType, ScalarType, TileType, Type, VectorType
from hkc.support.dtypes import DTYPES
from hkc.support.mlir import ir

_FROM_MLIR = {d.mlir: d.name for d in DTYPES.values() if d.kind != "uint"}


def element_name(element: Any) -> str:
    """The dtype name of an MLIR element type (signless integers read as signed). Raises `Mismatch` if it has none."""
    name = _FROM_MLIR.get(str(element))
    if name is None:
        raise Mismatch(f"{element} is not an element type of the language")
    return name


def record_type(t: Any) -> Type:
    """The record of an MLIR type."""
    if isinstance(t, ir.RankedTensorType):
        return TileType(tuple(t.shape), element_name(t.element_type), layout_text(t))
    if isinstance(t, ir.VectorType):
        return VectorType(t.shape[0], element_name(t.element_type))
    if isinstance(t, ir.MemRefType):
        dynamic = ir.ShapedType.get_dynamic_size()
        return GlobalType(tuple(None if d == dynamic else d for d in t.shape), element_name(t.element_type))
    if isinstance(t, ir.IndexType):
        return IndexType()
    text = str(t)
    return ScalarType(_FROM_MLIR[text]) if text in _FROM_MLIR else OpaqueType(text)


def layout_text(t: Any) -> str | None:
    """The layout text in a tensor type's encoding, or None."""
    encoding = t.encoding
    return None if encoding is None else str(ir.StringAttr(encoding.params[0]).value)


def element_type(name: str) -> Any:
    """The MLIR element type of a dtype name."""
    return ir.Type.parse(DTYPES[name].mlir)


def with_layout(t: Any, layout: str | None) -> Any:
    """A tensor type like `t` but with this layout text in its encoding."""
    encoding = None if layout is None else ir.Attribute.parse(f'#hkc_tile.layout<"{layout}">')
    return ir.RankedTensorType.get(t.shape, t.element_type, encoding)


def mlir_type(t: Type) -> Any:
    """The MLIR type of a record."""
    match t:
        case TileType(shape, dtype, layout):
            return with_layout(ir.RankedTensorType.get(shape, element_type(dtype)), layout)
        case VectorType(size, dtype):
            return ir.VectorType.get([size], element_type(dtype))
        case ScalarType(dtype):
            return element_type(dtype)
        case IndexType():
            return ir.IndexType.get()
        case OpaqueType(text):
            return ir.Type.parse(text)
        case GlobalType(dims, dtype):
            sizes = "x".join("?" if not isinstance(d, int) else str(d) for d in dims)
            strides = ", ".join("?" for _ in dims)
            return ir.Type.parse(f"memref<{sizes}x{DTYPES[dtype].mlir}, strided<[{strides}]>>")


def to_attribute(field: Field, value: Any) -> Any:
    """A plain Python value as the MLIR attribute of a field."""
    match field.constraint.name:
        case "int":
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
        case "bool":
            return ir.BoolAttr.get(value)
        case "text":
            return ir.StringAttr.get(value)
        case "symbol":
            return ir.FlatSymbolRefAttr.get(value)
        case "ints":
            return ir.DenseI64ArrayAttr.get(list(value))
    raise TypeError(f"attribute `{field.name}` has no plain form")


def to_attributes(record: OpRecord, values: Mapping[str, Any]) -> dict[str, Any]:
    """The MLIR attributes of an op from plain values: those not given are their defaults, optional defaults are left
    out."""
    given = {f: values.get(f.name, f.default) for f in record.of("attribute")}
    return {f.name: to_attribute(f, v) for f, v in given.items() if not (f.optional and v == f.default)}


def plain(attribute: Any) -> Any:
    """An MLIR attribute as a plain Python value."""
    if isinstance(attribute, ir.BoolAttr):
        return bool(attribute.value)
    if isinstance(attribute, ir.IntegerAttr):
        return int(attribute.value)
    if isinstance(attribute, ir.StringAttr):
        return str(attribute.value)
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return str(attribute.value)
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return tuple(int(v) for v in attribute)
    raise TypeError(f"no plain form for {attribute}")


def plain_attributes(record: OpRecord, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that an op's record names, as plain Python values."""
    return {f.name: plain(attributes[f.name]) for f in record.of("attribute") if f.name in attributes}
