"""A checked file: every name resolved, every value typed, implicit steps (broadcasts, constants) spelled out.

The body of a kernel is a list of ops in the vocabulary of tile IR, as plain data; `frontend/emit.py` writes it as MLIR
one to one. It pickles, so it travels to the worker process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hkc.dialects.types import Type
from hkc.frontend.syntax import Binding
from hkc.machine.abi import GlobalParam, Param, ScalarParam
from hkc.support.dtypes import DType
from hkc.support.errors import Source, Span


@dataclass(eq=False, slots=True)
class Value:
    """What one op computes, or an argument. `span` is the expression that gives it its type.

    `extent` is the text of an index that depends only on dims, scalar arguments and constants (`cdiv(M, 128)`), or the
    name of an integer argument.
    """

    type: Type
    span: Span
    extent: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One op by its MLIR name; attributes are plain Python values."""

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    span: Span
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class Loop:
    """`for variable in range(lower, upper, step)`: `carried` start as `initial` and become `yields` each time round."""

    variable: Value
    bounds: tuple[Value, Value, Value]
    initial: tuple[Value, ...]
    carried: tuple[Value, ...]
    body: tuple[Op | Loop, ...]
    yields: tuple[Value, ...]
    results: tuple[Value, ...]
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """A checked kernel and all that a launch needs to know of it; `arguments` are its parameters' values in order."""

    name: str
    params: tuple[Param, ...]
    arguments: tuple[Value, ...]
    grid: tuple[str, ...]
    hints: tuple[tuple[str, int], ...]
    body: tuple[Op | Loop, ...]
    span: Span

    @property
    def dims(self) -> tuple[str, ...]:
        """The symbolic dims, in the order of their first appearance."""
        dims = (d for p in self.params if isinstance(p, GlobalParam) for d in p.dims)
        return tuple(dict.fromkeys(d for d in dims if isinstance(d, str)))

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the globals that the kernel stores to."""
        return self._names({op.operands[1] for op in _flat(self.body) if op.name == "hkc_tile.store"})

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the globals that the kernel loads from."""
        return self._names({op.operands[0] for op in _flat(self.body) if op.name == "hkc_tile.load"})

    @property
    def scalars(self) -> tuple[str, ...]:
        """The names of the scalar parameters."""
        return tuple(p.name for p in self.params if isinstance(p, ScalarParam))

    def _names(self, arguments: set[Value]) -> tuple[str, ...]:
        return tuple(p.name for p, a in zip(self.params, self.arguments, strict=True) if a in arguments)


@dataclass(frozen=True, eq=False, slots=True)
class Checked:
    """A checked file. `constants` holds the values that `const` and `tune` names have in it, overrides included."""

    source: Source
    constants: tuple[tuple[str, int | float | bool | DType], ...]
    kernels: tuple[Kernel, ...]
    examples: tuple[tuple[str, int | float], ...]
    references: tuple[Binding, ...]

    @property
    def constant_texts(self) -> tuple[tuple[str, str], ...]:
        """The constants as `KernelInfo` records them."""
        return tuple((name, str(value)) for name, value in self.constants)


def _flat(body: tuple[Op | Loop, ...]) -> Iterator[Op]:
    for step in body:
        if isinstance(step, Loop):
            yield from _flat(step.body)
        else:
            yield step
