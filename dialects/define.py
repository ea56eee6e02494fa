"""How an op is defined: one decorated class holds its fields, type rule, NumPy meaning, lowering, docs and examples.

    @tile_op("transpose")
    class Transpose:
        \"\"\"Reorder the dims of a tile.\"\"\"

        x = operand(TILE)
        permutation = attribute(INTS)
        d = result(TILE)

        @staticmethod
        def infer(x, *, permutation): ...           # operand types -> result type, or raise Mismatch
        @staticmethod
        def meaning(x, *, permutation): ...         # arrays -> array

This module is plain data: it loads no MLIR, so the front end and the documentation read the same records as the
verifier. `hkc.dialects.load` makes the IRDL dialect from them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hkc.dialects.types import GlobalType, IndexType, ScalarType, TileType, Type, VectorType
from hkc.support.dtypes import DTYPES


@dataclass
class Mismatch(Exception):
    """Operands that an op can't take: one sentence, the operands it concerns (by field name), and a hint.

    The verifier and the front end's checker both get their message from here. `code` is the front end's error code.
    """

    message: str
    operands: tuple[str, ...] = ()
    hint: str | None = None
    code: str = "HK200"

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Constraint:
    """What a field may hold: the MLIR base type or attribute that IRDL checks (None: anything), and the class of its
    record or plain value."""

    name: str
    base: str | None
    record: type | None = None


TILE = Constraint("tile", "!builtin.tensor", TileType)
INDEX = Constraint("index", "!builtin.index", IndexType)
GLOBAL = Constraint("global", "!builtin.memref", GlobalType)
VECTOR = Constraint("vector", "!builtin.vector", VectorType)
INTEGER = Constraint("integer", "!builtin.integer", ScalarType)
SCALAR = Constraint("scalar", None, ScalarType)
ANY = Constraint("any", None)
INT = Constraint("int", "#builtin.integer", int)
BOOL = Constraint("bool", "#builtin.integer", bool)
TEXT = Constraint("text", "#builtin.string", str)
INTS = Constraint("ints", "#builtin.dense_array", tuple)
SYMBOL = Constraint("symbol", "#builtin.symbol_ref", str)


@dataclass(frozen=True)
class Field:
    """An operand, attribute or result of an op; `same` names the field whose type it must equal. An optional attribute
    is left out of the IR where it is the default, and IRDL does not know it."""

    role: str
    constraint: Constraint
    variadic: bool = False
    same: str | None = None
    default: Any = None
    name: str = ""
    optional: bool = False


def operand(constraint: Constraint, *, variadic: bool = False, same: str | None = None) -> Field:
    """An operand field; a variadic one takes the rest of the operands."""
    return Field("operand", constraint, variadic, same)


def attribute(constraint: Constraint, *, default: Any = None) -> Field:
    """An attribute field; it must be given unless it has a default."""
    return Field("attribute", constraint, default=default)


def option(constraint: Constraint, default: Any) -> Field:
    """An optional attribute field."""
    return Field("attribute", constraint, default=default, optional=True)


def result(constraint: Constraint, *, variadic: bool = False, same: str | None = None) -> Field:
    """A result field."""
    return Field("result", constraint, variadic, same)


@dataclass(frozen=True)
class OpRecord:
    """All that is known of an op. `cls` carries `infer`, `meaning` and `lower`."""

    dialect: str
    name: str
    cls: type
    fields: tuple[Field, ...]
    pure: bool
    doc: str
    spelling: str | None
    examples: tuple[str, ...]

    @property
    def full_name(self) -> str:
        """The op's name in MLIR: `hkc_tile.load`."""
        return f"{self.dialect}.{self.name}"

    def of(self, role: str) -> tuple[Field, ...]:
        """The fields of one role, in order."""
        return tuple(f for f in self.fields if f.role == role)

    def bind(self, operands: tuple[Any, ...] | list[Any]) -> tuple[Any, ...]:
        """Group flat operands by field: a variadic field gets a tuple. Raises `Mismatch` on wrong arity."""
        fields = self.of("operand")
        fixed = sum(not f.variadic for f in fields)
        many = len(operands) - fixed
        if many < 0 or (many and not any(f.variadic for f in fields)):
            raise Mismatch(f"`{self.full_name}` takes {fixed} operands, not {len(operands)}")
        rest = iter(operands)
        return tuple(tuple(next(rest) for _ in range(many)) if f.variadic else next(rest) for f in fields)

    def check_results(self, results: tuple[Type, ...]) -> None:
        """Raise `Mismatch` unless there are as many results as there should be, each of its kind."""
        fields = self.of("result")
        if not any(f.variadic for f in fields):
            if len(results) != len(fields):
                raise Mismatch(f"`{self.full_name}` has {len(fields)} results, not {len(results)}")
            self._check("result", results)

    def _check(self, role: str, given: Sequence[Any]) -> None:
        for f, found in zip(self.of(role), given, strict=True):
            for x in found if f.variadic else (found,):
                if f.constraint.record and not isinstance(x, f.constraint.record):
                    what = "missing" if x is None else f"{x}, not of kind `{f.constraint.name}`"
                    raise Mismatch(f"{role} `{f.name}` of `{self.full_name}` is {what}", (f.name,))

    def infer(self, operands: tuple[Any, ...] | list[Any], attributes: Mapping[str, Any]) -> tuple[Type, ...] | None:
        """Result types from operand types; None where the op leaves its result type to the builder.

        Raises `Mismatch` for operands that the op can't take.
        """
        bound = self.bind(operands)
        self._check("operand", bound)
        self._check("attribute", [attributes.get(f.name, f.default) for f in self.of("attribute")])
        rule: Callable[..., Any] | None = getattr(self.cls, "infer", None)
        if rule is None:
            return None
        got = rule(*bound, **attributes)
        return got if isinstance(got, tuple) or got is None else (got,)


def evaluate(meaning: Callable[..., Any], *operands: Any, result: Type | None, **offered: Any) -> Any:
    """What an op means for these operands and attributes.

    A meaning that depends on its result's type asks for parts of it by keyword: `shape`, `size`, `dtype` (NumPy's) or
    the type itself as `result`; these, and anything else in `offered`, are passed to those who ask.
    """
    offered |= {name: value for name, value in vars(result).items() if name != "layout"} if result else {}
    if isinstance(result, IndexType):
        offered["dtype"] = np.dtype(np.int64)
    elif "dtype" in offered:
        offered["dtype"] = DTYPES[offered["dtype"]].numpy
    offered["result"] = result
    return meaning(*operands, **{name: offered[name] for name in _keywords(meaning) if name in offered})


@functools.lru_cache(maxsize=1024)
def _keywords(meaning: Callable[..., Any]) -> tuple[str, ...]:
    if isinstance(meaning, np.ufunc) or meaning is np.where:
        return ()
    parameters = inspect.signature(meaning).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


@dataclass
class Registry:
    """All ops of one dialect, by name."""

    dialect: str
    ops: dict[str, OpRecord] = field(default_factory=dict)

    def op(self, name: str, *, pure: bool = True, spelling: str | None = None) -> Callable[[type], type]:
        """Class decorator: record the class as op `name`. `spelling` is how a kernel author writes it, if at all."""

        def register(cls: type) -> type:
            fields = tuple(replace(f, name=n) for n, f in vars(cls).items() if isinstance(f, Field))
            doc = inspect.cleandoc(cls.__doc__ or "")
            record = OpRecord(self.dialect, name, cls, fields, pure, doc, spelling, tuple(getattr(cls, "examples", ())))
            self.ops[name] = record
            cls.record = record  # type: ignore[attr-defined]
            return cls

        return register


TILE_DIALECT = Registry("hkc_tile")
WAVE_DIALECT = Registry("hkc_wave")
tile_op = TILE_DIALECT.op
wave_op = WAVE_DIALECT.op
