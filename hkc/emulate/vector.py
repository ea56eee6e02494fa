"""Vector instructions from plain functions: `@valu("f32 = f32 f32", "v_add_f32")` over a function of arrays.

The signature names the type of each result and source in the order of the assembly text; `dst` as a source means the
old value of the first result. Everything that encodings add (DPP, SDWA, op_sel, neg, abs, clamp, omod, denormal modes)
happens here, once.

Types: `u32 i32 f32 u64 i64 f64` whole registers; `u16 i16 f16` the half that op_sel selects, results zero the other
half; `half` a 16-bit result that keeps the other half; `mask` a lane mask, bool [waves, lanes].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.emulate import directed, lanes
from hkc.emulate.decode import Decoded, Operand
from hkc.emulate.faults import unsupported
from hkc.emulate.floats import clamp01, flush, settle_nan
from hkc.emulate.operands import Array, Reader, lanes_index, lanes_reader, pair_reader, split, word_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.waves import DX10_CLAMP, U32, Waves

KINDS: dict[str, Any] = {
    "u32": np.uint32, "i32": np.int32, "f32": np.float32,
    "u64": np.uint64, "i64": np.int64, "f64": np.float64,
    "u16": np.uint16, "i16": np.int16, "f16": np.float16, "half": np.uint16,
}  # fmt: skip
_SIGN: dict[str, Any] = {"f32": np.uint32(1 << 31), "u32": np.uint32(1 << 31), "f64": np.uint64(1 << 63),
                         "f16": np.uint16(1 << 15),
         "u16": np.uint16(1 << 15), "u64": np.uint64(1 << 63)}  # fmt: skip
_OMOD = {"mul:2": 2.0, "mul:4": 4.0, "div:2": 0.5}

Function = Callable[..., Any]
Writer = Callable[[Waves, Any, tuple[Array, ...]], None]


def valu(
    signature: str, *names: str, waves: bool = False, clamped: Function | None = None
) -> Callable[[Function], Function]:
    """Register a function of arrays as the semantics of `names`.

    `waves=True` passes the group of waves first (for mode bits); `clamped` replaces the function of an integer
    instruction under the clamp modifier.
    """
    results = signature.partition("=")[0].split()

    def register(function: Function) -> Function:
        @op(*names)
        def build(instruction: Decoded, context: Context) -> Step:
            chosen = function
            if instruction.flag("clamp") and results[0][0] != "f" and results[0] != "mask":
                if clamped is None:
                    raise unsupported(instruction, "clamp")
                chosen = clamped
            return step_of(instruction, context, chosen, signature, waves=waves)

        return function

    return register


def step_of(
    instruction: Decoded,
    context: Context,
    function: Function,
    signature: str,
    *,
    waves: bool = False,
) -> Step:
    """The step that applies `function` to one instruction's operands, typed by `signature`."""
    results, sources = (part.split() for part in signature.split("="))
    operands = instruction.operands
    plain = [s for s in sources if s != "dst"]
    if len(operands) != len(results) + len(plain):
        raise unsupported(instruction, f"{len(operands)} operands")
    permutation = lanes.dpp(instruction)
    given = iter(enumerate(operands[len(results) :]))
    readers = []
    for kind in sources:
        if kind == "dst":
            readers.append(source(instruction, context, operands[0], results[0], None, None))
        else:
            number, operand = next(given)
            readers.append(source(instruction, context, operand, kind, number, permutation))
    writers = [_writer(instruction, context, o, kind, permutation) for o, kind in zip(operands, results, strict=False)]
    if len(writers) == 1:
        write, rounded = writers[0], directed.rule(instruction, results[0], sources)

        def step(w: Waves) -> None:
            arguments = tuple([r(w) for r in readers])
            if rounded is not None and not w.nearest:
                write(w, rounded(w, *arguments), arguments)
                return
            write(w, function(w, *arguments) if waves else function(*arguments), arguments)

        return step

    def step_many(w: Waves) -> None:
        arguments = tuple([r(w) for r in readers])
        values = function(w, *arguments) if waves else function(*arguments)
        taint = w.taint
        for write, value in zip(writers, values, strict=True):
            w.taint = taint
            write(w, value, arguments)

    return step_many


def source(
    instruction: Decoded, context: Context, operand: Operand, kind: str, number: int | None, dpp: lanes.Dpp | None
) -> Reader:
    """A reader of one source as an array of `kind`. `number` is its place among the sources (None: old result)."""
    if kind == "mask":
        return lanes_reader(operand, instruction)
    if kind in ("u64", "i64", "f64"):
        return _wide(instruction, context, operand, kind)
    halves = kind in ("u16", "i16", "f16", "half")
    raw = word_reader(operand, instruction, context, 0, 16 if kind == "f16" else 32)
    if number is not None:
        raw = _rearranged(instruction, operand, number, raw, dpp if number == 0 else None)
    if not halves:
        return _typed(operand, kind, raw)
    high = number is not None and instruction.bits("op_sel", 4, 0)[number] and instruction.form != "sdwa"
    shift = np.uint32(16 if high else 0)
    return _typed(operand, kind, lambda w: (raw(w) >> shift).astype(np.uint16))


def _rearranged(instruction: Decoded, operand: Operand, number: int, raw: Reader, dpp: lanes.Dpp | None) -> Reader:
    if dpp is not None:
        inner = raw
        moved = dpp

        def permuted(w: Waves) -> U32:
            return moved.move(w, inner(w))

        return permuted
    if instruction.form == "sdwa" and (part := lanes.select(instruction, number)) is not None:
        fixed, whole = part, raw
        return lambda w: lanes.extract(whole(w), fixed, operand.extended)
    return raw


def _typed(operand: Operand, kind: str, raw: Reader) -> Reader:
    """Bits → values: sign modifiers, then the view, then flushing of denormal inputs where the mode asks for it."""
    dtype = KINDS[kind]
    signed = raw
    if operand.negative or operand.absolute:
        sign = _SIGN[kind]

        def signed(w: Waves) -> Array:
            bits = raw(w)
            if operand.absolute:
                bits = bits & ~sign
            modified: Array = bits ^ sign if operand.negative else bits
            return modified

    if kind == "f32":

        def read32(w: Waves) -> Array:
            values: Array = signed(w).view(np.float32)
            return flush(values) if w.flush32 else values

        return read32
    if kind in ("f16", "f64"):

        def read64(w: Waves) -> Array:
            values: Array = signed(w).view(dtype)
            return flush(values) if w.flush64 else values

        return read64
    if kind in ("u32", "u16", "u64", "half"):
        return signed
    return lambda w: signed(w).view(dtype)


def _wide(instruction: Decoded, context: Context, operand: Operand, kind: str) -> Reader:
    if operand.kind in ("vgpr", "agpr", "sgpr", "int", "float", "special"):
        return _typed(operand, kind, pair_reader(operand, instruction, context, kind == "f64"))
    raise unsupported(instruction, f"the operand {operand}")


def _writer(instruction: Decoded, context: Context, operand: Operand, kind: str, dpp: lanes.Dpp | None) -> Writer:
    if kind == "mask":
        return _mask_writer(operand, instruction)
    if operand.kind not in ("vgpr", "agpr"):
        raise unsupported(instruction, f"the result {operand}")
    register = context.vector(operand)
    finish = _finisher(instruction, kind)
    if kind in ("u64", "i64", "f64"):

        def write_pair(w: Waves, value: Array, arguments: tuple[Array, ...]) -> None:
            low, high = split(finish(w, value, arguments).view(np.uint64))
            taint = w.taint
            w.write(register, low)
            w.taint = taint
            w.write(register + 1, high)

        return write_pair
    pack = _packer(instruction, register, kind)

    def write(w: Waves, value: Array, arguments: tuple[Array, ...]) -> None:
        word = pack(w, finish(w, value, arguments))
        w.write(register, word, None if dpp is None else dpp.written(w))

    return write


def _mask_writer(operand: Operand, instruction: Decoded) -> Writer:
    index = lanes_index(operand, instruction)
    exec_too = instruction.base.startswith("v_cmpx")

    def write_mask(w: Waves, value: Array, arguments: tuple[Array, ...]) -> None:
        w.set_lanes(index, value)
        if exec_too:
            w.exec = w.scalar64(index)

    return write_mask


def _finisher(instruction: Decoded, kind: str) -> Callable[[Waves, Array, tuple[Array, ...]], Array]:
    """What happens to a result before it is stored as bits."""
    dtype = KINDS[kind]
    if kind not in ("f32", "f64", "f16"):
        return lambda w, value, arguments: np.asarray(value, dtype)
    scale = next((f for m, f in _OMOD.items() if instruction.modifiers.get(m[:3]) == int(m[4:])), None)
    clamp = instruction.flag("clamp")

    def finish(w: Waves, value: Array, arguments: tuple[Array, ...]) -> Array:
        result = np.asarray(value, dtype)
        flushing = w.flush32 if kind == "f32" else w.flush64
        if np.isnan(result).any():
            result = settle_nan(result, arguments)
        if scale is not None and flushing:
            result = result * dtype(scale)
        if clamp:
            result = clamp01(result, bool(w.mode & DX10_CLAMP))
        return flush(result) if flushing else result

    return finish


def _packer(instruction: Decoded, register: int, kind: str) -> Callable[[Waves, Array], U32]:
    """Typed result → the 32-bit word to store."""
    if kind in ("u32", "i32", "f32"):
        if instruction.form == "sdwa" and "dst_sel" in instruction.modifiers:
            return lambda w, value: lanes.insert(instruction, lambda: w.read(register), value.view(np.uint32))
        return lambda w, value: value.view(np.uint32)
    if instruction.form == "sdwa" and instruction.modifiers.get("dst_sel", "DWORD") != "DWORD":
        return lambda w, value: lanes.insert(
            instruction, lambda: w.read(register), value.view(np.uint16).astype(np.uint32)
        )
    if kind != "half":
        return lambda w, value: value.view(np.uint16).astype(np.uint32)
    # the list names the sources, then the result
    high = instruction.bits("op_sel", len(instruction.operands), 0)[-1]

    def merge(w: Waves, value: Array) -> U32:
        old, word = w.read(register), value.view(np.uint16).astype(np.uint32)
        if high:
            return (old & np.uint32(0xFFFF)) | word << np.uint32(16)
        return (old & np.uint32(0xFFFF0000)) | word

    return merge
