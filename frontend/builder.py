"""Appends typed ops to a kernel's body: constants that adopt a dtype, broadcasts, ops of the tile dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import hkc.dialects.tile  # fills the registry
from hkc.dialects.define import TILE_DIALECT, Mismatch
from hkc.dialects.types import IndexType, ScalarType, TileType, Type, extents
from hkc.frontend.codes import KERNEL_OPS, TILE_ELEMENTS
from hkc.frontend.program import Combine, Op, Step, Value
from hkc.frontend.scope import Number, Operand
from hkc.support.dtypes import DTYPES, DType
from hkc.support.errors import Span, error

assert hkc.dialects.tile

_OVERFLOWS = {"f16": 65520.0, "bf16": 255.5 * 2.0**120, "f32": (2.0 - 2.0**-24) * 2.0**127}
"""The least magnitude that rounds to infinity."""


class Builder:
    """The ops of the block that is being built, and the functions that ops name."""

    def __init__(self) -> None:
        self.ops: list[Step] = []
        self.functions: list[Combine] = []
        self._made = 0

    @contextmanager
    def block(self, ops: list[Step] | None = None) -> Iterator[list[Step]]:
        """Within it, ops go to a list of their own (or at the end of `ops`)."""
        outer, self.ops = self.ops, [] if ops is None else ops
        try:
            yield self.ops
        finally:
            self.ops = outer

    def op(self, name: str, operands: Sequence[Value], result: Type, span: Span, **attributes: Any) -> Value:
        """Appends an op with one result."""
        if isinstance(result, TileType):
            _limit(result, span)
        value = Value(result, span)
        self._append(Op(name, tuple(operands), (value,), span, attributes))
        return value

    def _append(self, op: Op) -> None:
        self._made += 1
        if self._made > KERNEL_OPS:
            raise error("HK437", f"a kernel has at most {KERNEL_OPS:,} operations", op.span, hint="use a loop")
        self.ops.append(op)

    def tile_op(
        self,
        name: str,
        operands: Sequence[Value],
        span: Span,
        places: Mapping[str, Operand],
        result: TileType | None = None,
        **attributes: Any,
    ) -> tuple[Value, ...]:
        """Appends an op of the tile dialect, by its own rule; `places` are the expressions behind its operands.

        `result` is the type where the op leaves it to us. Raises `HkcError` with what the rule says.
        """
        record = TILE_DIALECT.ops[name]
        types = [v.type for v in operands]
        try:
            results = record.infer(types, attributes) if result is None else (result,)
            if result is not None and hasattr(record.cls, "check"):
                record.cls.check(result, *record.bind(types), **attributes)
        except Mismatch as problem:
            named = [places[n] for n in problem.operands if n in places]
            notes = tuple(dict.fromkeys(note for operand in named for note in operand.origin()))
            spans = [operand.span for operand in named] or [span]
            raise error(problem.code, problem.message, *spans, notes=notes, hint=problem.hint) from None
        assert results is not None
        for t in results:
            if isinstance(t, TileType):
                _limit(t, span)
        values = tuple(Value(t, span) for t in results)
        self._append(Op(record.full_name, tuple(operands), values, span, attributes))
        return values

    def constant(self, value: Number, kind: Type, span: Span) -> Value:
        """A number as an index, a scalar, or a tile filled with it. Raises `HkcError` where it doesn't fit."""
        if isinstance(kind, IndexType):
            fit(value, DTYPES["i64"], span)
        elif isinstance(kind, (ScalarType, TileType)):
            fit(value, DTYPES[kind.dtype], span)
        made = self.op("arith.constant", (), kind, span, value=value)
        made.extent = str(value) if isinstance(kind, IndexType) else None
        made.number = value
        return made

    def spread(self, value: Value, shape: tuple[int, ...], span: Span) -> Value:
        """A scalar or tile as a tile of this shape, to which it must broadcast."""
        if isinstance(value.type, ScalarType):
            if not shape:
                return value
            made = self.op("tensor.splat", [value], TileType(shape, value.type.dtype), span)
            made.number = value.number
            return made
        assert isinstance(value.type, TileType)
        missing = len(shape) - len(value.type.shape)
        if missing:
            value = self.reshape(value, (1,) * missing + value.type.shape, span)
        assert isinstance(value.type, TileType)
        if value.type.shape == shape:
            return value
        made = self.tile_op("broadcast", [value], span, {}, TileType(shape, value.type.dtype))[0]
        made.number = value.number
        return made

    def reshape(self, value: Value, shape: tuple[int, ...], span: Span) -> Value:
        """The same tile with dims of extent 1 added or removed."""
        assert isinstance(value.type, TileType)
        made = self.tile_op("reshape", [value], span, {}, TileType(shape, value.type.dtype))[0]
        made.number = value.number
        return made


def fit(value: Number, dtype: DType, span: Span) -> None:
    """Checks that a number can be an element of `dtype` (floats round). Raises `HkcError`."""
    problem, hint = None, "another number, or another dtype"
    if dtype.kind == "bool" or isinstance(value, bool):
        if not (dtype.kind == "bool" and isinstance(value, bool)):
            problem = f"{value} can't be a value of {dtype}"
            hint = "bools are True and False, and only they; cast(x, i32) makes numbers of them"
    elif dtype.is_float:
        if abs(value) >= _OVERFLOWS.get(dtype.name, float("inf")) and abs(value) != float("inf"):
            problem, hint = (
                f"{value} is beyond the range of {dtype}",
                hint if dtype.is_narrow else "inf is a number, too",
            )
    elif isinstance(value, float):
        problem = f"{value} is not a whole number, but {dtype} holds whole numbers"
        hint = "cast(…, f32) makes floats of what it meets"
    else:
        low, high = (
            (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1) if dtype.kind == "int" else (0, 2**dtype.bits - 1)
        )
        if not low <= value <= high:
            problem = f"{value} is beyond the range of {dtype}"
            hint = f"{dtype} holds {low} to {high}"
    if problem:
        raise error("HK210", problem, span, hint=hint)


def _limit(tile: TileType, span: Span) -> None:
    elements = 1
    for n in tile.shape:
        elements *= n
    if elements > TILE_ELEMENTS:
        raise error(
            "HK434",
            f"a tile of {extents(tile.shape)} has {elements:,} elements; at most {TILE_ELEMENTS:,} are allowed",
            span,
            hint="use smaller tiles and loop over them",
        )
