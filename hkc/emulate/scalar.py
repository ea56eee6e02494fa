"""Scalar instructions from plain functions: `@salu("u32 scc = u32 u32", "s_add_u32")` over arrays [waves].

Types: `u32 i32 u64 i64`; `scc` the condition bit (implicit in the text); `k` and `ku` the 16-bit immediate, sign- and
zero-extended; `dst` the old value of the first result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.emulate.decode import Decoded, Operand
from hkc.emulate.faults import unsupported
from hkc.emulate.operands import Array, scalar_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.waves import Waves

_KINDS: dict[str, Any] = {"u32": np.uint32, "i32": np.int32, "u64": np.uint64, "i64": np.int64}

Function = Callable[..., Any]


def salu(signature: str, *names: str) -> Callable[[Function], Function]:
    """Register a function of arrays as the semantics of `names`."""
    left, _, right = signature.partition("=")
    results, sources = left.split(), right.split()

    def register(function: Function) -> Function:
        @op(*names)
        def build(instruction: Decoded, context: Context) -> Step:
            return _step(instruction, function, results, sources)

        return function

    return register


def _step(instruction: Decoded, function: Function, results: list[str], sources: list[str]) -> Step:
    explicit = [r for r in results if r != "scc"]
    operands = list(instruction.operands)
    given = iter(operands[len(explicit) :])
    readers = [_reader(instruction, kind, explicit, operands, given) for kind in sources]
    writers = [_writer(instruction, kind, operands[i]) for i, kind in enumerate(explicit)]
    condition = "scc" in results

    def step(w: Waves) -> None:
        values = function(*[r(w) for r in readers])
        if len(results) == 1:
            values = (values,)
        for write, value in zip(writers, values, strict=False):
            write(w, value)
        if condition:
            w.scc = values[-1]

    return step


def _reader(
    instruction: Decoded, kind: str, explicit: list[str], operands: list[Operand], given: Any
) -> Callable[[Waves], Array]:
    if kind == "scc":
        return lambda w: w.scc
    if kind in ("k", "ku"):
        next(given, None)
        raw = instruction.simm16
        fixed = np.array([raw - (1 << 16) if kind == "k" and raw & 0x8000 else raw], np.int32)
        return lambda w: fixed
    operand, kind = (operands[0], explicit[0]) if kind == "dst" else (next(given), kind)
    dtype = _KINDS[kind]
    read = scalar_reader(operand, 64 if kind.endswith("64") else 32, instruction)
    return lambda w: read(w).view(dtype)


def _writer(instruction: Decoded, kind: str, operand: Operand) -> Callable[[Waves, Array], None]:
    if operand.kind != "sgpr":
        raise unsupported(instruction, f"the result {operand}")
    index = operand.index
    if kind.endswith("64"):
        return lambda w, value: w.set_scalar64(index, np.asarray(value).astype(np.uint64))
    return lambda w, value: w.set_scalar(index, np.asarray(value).astype(np.uint32))
