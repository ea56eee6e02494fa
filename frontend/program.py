"""A checked file: every name resolved, every value typed, implicit steps (broadcasts, constants) spelled out.

The body of a kernel is a list of ops in the vocabulary of tile IR, as plain data; `frontend/emit.py` writes it as MLIR
one to one. It pickles, so it travels to the worker process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hkc.dialects.define import TILE_DIALECT
from hkc.dialects.types import Type
from hkc.frontend.syntax import Binding, Constraint
from hkc.machine.abi import Condition, GlobalParam, KernelInfo, Param, ScalarParam
from hkc.support.dtypes import DType
from hkc.support.errors import Source, Span

SCATTER = "hkc_tile.scatter"
ATOMICS = tuple(f"hkc_tile.{name}" for name in ("atomic", "atomic_masked", "atomic_fetch", "compare_and_swap"))
"""The ops that read what they write to; a `scatter` of some kind does, too."""


@dataclass(eq=False, slots=True)
class Value:
    """What one op computes, or an argument. `span` is the expression that gives it its type.

    `extent` is the text of an index that depends only on dims, scalar arguments and constants (`cdiv(M, 128)`), or the
    name of an integer argument. `number` is what all its elements are, where that is written in the kernel.
    """

    type: Type
    span: Span
    extent: str | None = None
    number: int | float | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One op by its MLIR name; attributes are plain Python values."""

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    span: Span
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Ops in order, and the values that the block gives at its end."""

    body: tuple[Step, ...]
    yields: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Loop:
    """`for variable in range(lower, upper, step)`: `carried` start as `initial` and become what the block yields."""

    variable: Value
    bounds: tuple[Value, Value, Value]
    initial: tuple[Value, ...]
    carried: tuple[Value, ...]
    block: Block
    results: tuple[Value, ...]
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """`if condition`: the results are what one of the two blocks yields."""

    condition: Value
    then: Block
    otherwise: Block
    results: tuple[Value, ...]
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Repeat:
    """`while`: the block `before` computes the condition, all it yields, from `tested`; `block` goes on from `carried`.

    Both start with what `initial` or the last time round gave.
    """

    initial: tuple[Value, ...]
    tested: tuple[Value, ...]
    before: Block
    carried: tuple[Value, ...]
    block: Block
    results: tuple[Value, ...]
    span: Span


Step = Op | Loop | Choice | Repeat


@dataclass(frozen=True, eq=False, slots=True)
class Combine:
    """A function of scalars that ops name, such as the one that a scan combines with."""

    name: str
    arguments: tuple[Value, ...]
    block: Block
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """A checked kernel and all that a launch needs to know of it; `arguments` are its parameters' values in order,
    `conditions` what its parameters' declarations demand of the tensors."""

    name: str
    params: tuple[Param, ...]
    arguments: tuple[Value, ...]
    grid: tuple[str, ...]
    hints: tuple[tuple[str, int | str], ...]
    body: tuple[Step, ...]
    span: Span
    functions: tuple[Combine, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def dims(self) -> tuple[str, ...]:
        """The symbolic dims, in the order of their first appearance."""
        dims = (d for p in self.params if isinstance(p, GlobalParam) for d in p.dims)
        return tuple(dict.fromkeys(d for d in dims if isinstance(d, str)))

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the globals that the kernel writes to."""
        return self._names(set(_operands(self.body, "dst")))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the globals that the kernel reads, those of which it changes single elements included."""
        updates = [
            op for op in flat(self.body) if op.name in ATOMICS or (op.name == SCATTER and "kind" in op.attributes)
        ]
        changed = set(_operands(updates, "dst"))
        return self._names(set(_operands(self.body, "src")) | changed)

    @property
    def scalars(self) -> tuple[str, ...]:
        """The names of the scalar parameters."""
        return tuple(p.name for p in self.params if isinstance(p, ScalarParam))

    def _names(self, arguments: set[Value]) -> tuple[str, ...]:
        return tuple(p.name for p, a in zip(self.params, self.arguments, strict=True) if a in arguments)


@dataclass(frozen=True, eq=False, slots=True)
class Checked:
    """A checked file. `constants` holds the values that `const` and `tune` names have in it, overrides included;
    `candidates` those that a search tries for a tune parameter, `constraints` which of them go together."""

    source: Source
    constants: tuple[tuple[str, int | float | bool | DType], ...]
    candidates: tuple[tuple[str, tuple[int, ...]], ...]
    constraints: tuple[Constraint, ...]
    kernels: tuple[Kernel, ...]
    examples: tuple[tuple[str, int | float], ...]
    references: tuple[Binding, ...]

    def info(self, kernel: Kernel) -> KernelInfo:
        """What a launch needs to know of a kernel; chip, waves and entry points are the compiler's to fill in."""
        return KernelInfo(
            kernel.name,
            "",
            kernel.params,
            kernel.grid,
            1,
            (),
            kernel.outputs,
            tuple(sorted((name, str(value)) for name, value in self.constants)),  # a twin has them in its own order
            kernel.inputs,
            kernel.conditions,
        )


def flat(body: Iterable[Step]) -> Iterator[Op]:
    """All ops of a body, those of inner blocks included."""
    for step in body:
        match step:
            case Loop(block=block):
                yield from flat(block.body)
            case Choice(then=then, otherwise=otherwise):
                yield from flat((*then.body, *otherwise.body))
            case Repeat(before=before, block=block):
                yield from flat((*before.body, *block.body))
            case _:
                yield step


def read(block: Block) -> Iterator[Value]:
    """All values that a block's steps take and that it gives at its end, those of inner blocks included."""
    yield from block.yields
    for step in block.body:
        match step:
            case Loop(bounds=bounds, initial=initial, block=inner):
                yield from (*bounds, *initial, *read(inner))
            case Choice(condition=condition, then=then, otherwise=otherwise):
                yield from (condition, *read(then), *read(otherwise))
            case Repeat(initial=initial, before=before, block=inner):
                yield from (*initial, *read(before), *read(inner))
            case Op(operands=operands):
                yield from operands


def _operands(body: Iterable[Step], role: str) -> Iterator[Value]:
    """The tensors that ops of the tile dialect take under this field name."""
    for op in flat(body):
        dialect, _, name = op.name.partition(".")
        if dialect == TILE_DIALECT.dialect:
            fields = TILE_DIALECT.ops[name].of("operand")
            yield from (v for f, v in zip(fields, op.operands, strict=False) if f.name == role)
