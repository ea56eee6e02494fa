"""Scalar instructions from plain functions: `@salu("u32 scc = u32 u32", "s_add_u32")` over arrays [waves].

Types: `u32 i32 u64 i64`; `scc` the condition bit (implicit in the text); `k` and `ku` the 16-bit immediate, sign- and
zero-extended; `dst` the old value of the first result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from hkc.emulate.decode import Decoded, Operand
from hkc.emulate.faults import unsupported
from hkc.emulate.operands import Array, scalar_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.waves import Waves

_KINDS: dict[str, Any] = {"u32": np.uint32, "i32": np.int32, "u64": np.uint64, "i64": np.int64}

Function = Callable[..., Any]


def salu(signature: str, *names: str, bitwise: bool = False) -> Callable[[Function], Function]:
    """Register a function of arrays as the semantics of `names`; `bitwise`: bits of its first result depend on the
    bits at the same place alone."""
    left, _, right = signature.partition("=")
    results, sources = left.split(), right.split()

    def register(function: Function) -> Function:
        @op(*names)
        def build(instruction: Decoded, context: Context) -> Step:
            return _step(instruction, function, results, sources, bitwise)

        return function

    return register


def _step(instruction: Decoded, function: Function, results: list[str], sources: list[str], bitwise: bool) -> Step:
    explicit = [r for r in results if r != "scc"]
    operands = list(instruction.operands)
    given = iter(operands[len(explicit) :])
    readers = [_reader(instruction, kind, explicit, operands, given) for kind in sources]
    writers = [_writer(instruction, kind, operands[i]) for i, kind in enumerate(explicit)]
    condition = "scc" in results
    bits = 64 if sources[0].endswith("64") else 32
    first: Function = (lambda *a: function(*a)[0]) if len(results) > 1 else function

    def step(w: Waves) -> None:
        arguments = [r(w) for r in readers]
        values = function(*arguments)
        if len(results) == 1:
            values = (values,)
        unwritten = None
        if bitwise and w.scalar_taint is not None:
            unwritten = spread(w, first, arguments, [stale(w, o, bits) for o in operands[1:]])
        for write, value in zip(writers, values, strict=False):
            write(w, value, unwritten)
        if condition:
            w.scc = values[-1]

    return step


def spread(w: Waves, function: Function, arguments: Sequence[Array], stale: Sequence[Array]) -> Array:
    """The bits of a bitwise function's result that depend on the `stale` ones of its arguments, those that were never
    written; where there are none, the result counts as written."""
    first, found = function(*arguments), np.zeros(w.count, stale[0].dtype)
    for flips in product((False, True), repeat=len(arguments)):
        found |= first ^ function(*[a ^ s if f else a for a, s, f in zip(arguments, stale, flips, strict=True)])
    w.scalar_taint = found != 0
    if not w.scalar_taint.any():
        w.taint = w.scalar_taint = None
    return found


def stale(w: Waves, operand: Operand, bits: int) -> Array:
    """The bits of a scalar operand that were never written."""
    kind: Any = np.uint64 if bits == 64 else np.uint32
    return w.unwritten_bits(operand.index, bits).astype(kind) if operand.kind == "sgpr" else np.zeros(w.count, kind)


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


def _writer(instruction: Decoded, kind: str, operand: Operand) -> Callable[[Waves, Array, Array | None], None]:
    if operand.kind != "sgpr":
        raise unsupported(instruction, f"the result {operand}")
    index = operand.index
    if kind.endswith("64"):
        return lambda w, value, unwritten: w.set_scalar64(index, np.asarray(value).astype(np.uint64), unwritten)
    return lambda w, value, unwritten: w.set_scalar(index, np.asarray(value).astype(np.uint32), unwritten)
