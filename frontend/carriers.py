"""Tiles of several dtypes in one scan or reduction: they travel as integers of one width, since the op takes tiles of
one type, and the function that combines them sees their own dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hkc.dialects.types import ScalarType, TileType
from hkc.frontend import syntax
from hkc.frontend.casts import cast_scalar
from hkc.frontend.program import Value
from hkc.frontend.scope import Operand
from hkc.support.dtypes import DTYPES

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions


def carrier(dtypes: Sequence[str]) -> str | None:
    """The integer dtype as which tiles of these dtypes travel together; None where they need none."""
    kinds = [DTYPES[d] for d in dtypes]
    return None if len({k.mlir for k in kinds}) == 1 else f"i{max(8, *(k.bits for k in kinds))}"


def pack(c: Expressions, value: Value, name: str) -> Value:
    """A tile or scalar as its carrier."""
    old = DTYPES[dtype_of(value)]
    if old.is_float:
        value = c.b.op("arith.bitcast", [value], _like(value, f"i{old.bits}"), value.span)
    return _cast(c, value, name)


def unpack(c: Expressions, value: Value, name: str) -> Value:
    """A tile or scalar of dtype `name` from its carrier."""
    new = DTYPES[name]
    if not new.is_float:
        return _cast(c, value, name)
    value = _cast(c, value, f"i{new.bits}")
    return c.b.op("arith.bitcast", [value], _like(value, name), value.span)


def dtype_of(value: Value) -> str:
    """The dtype of a tile or scalar."""
    assert isinstance(value.type, (TileType, ScalarType))
    return value.type.dtype


def _like(value: Value, dtype: str) -> TileType | ScalarType:
    return TileType(value.type.shape, dtype) if isinstance(value.type, TileType) else ScalarType(dtype)


def _cast(c: Expressions, value: Value, name: str) -> Value:
    """Between integers and bools; what is widened is narrowed again before anyone reads it."""
    kind = _like(value, name)
    if kind == value.type:
        return value
    if isinstance(kind, ScalarType):
        return cast_scalar(c, Operand(value, syntax.Name(value.span, "")), DTYPES[name], value.span)
    unsigned = {f"{end}_unsigned": DTYPES[d].kind == "uint" for end, d in (("from", dtype_of(value)), ("to", name))}
    return c.b.tile_op("cast", [value], value.span, {}, kind, **unsigned)[0]
