"""Tiny kernels around single ops: compiled in the worker, run on the emulator, and run by their NumPy meanings.

The functions above the line are for the worker process, those below call them.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hkc.emulate import Memory, Program, launch
from hkc.support import worker

CHIPS = ("gfx942", "gfx950")


@dataclass(frozen=True)
class Code:
    """What a text became: the code object, its assembly and its waves per workgroup."""

    hsaco: bytes
    assembly: str
    waves: int


def compile_text(text: str, arch: str, dialect: str, assembly: bool = False) -> Code:
    """A module of tile or wave IR through the passes that are left."""
    from hkc import pipeline
    from hkc.backend.codegen import generate
    from hkc.dialects.forms import kernels
    from hkc.dialects.load import load
    from hkc.handover import Module
    from hkc.passes.select_layouts import WAVES
    from hkc.support.mlir import context, ir
    from hkc.targets.chip import load as load_chip

    with context(), ir.Location.unknown():
        load()
        held = frozenset({"waves", "synchronised", "entries", "numbered"}) if dialect == "wave" else frozenset()
        module = Module(ir.Module.parse(text), load_chip(arch), held)
        for stage, passes in pipeline.stages().items():
            if dialect == "tile" or stage == "rocdl":
                module = pipeline.run(module, passes)
        waves = int(kernels(module.ir)[0].attributes[WAVES].value)
        made = generate(pipeline.translate(module).llvm_ir, arch, assembly)
    return Code(made.hsaco, made.assembly or "", waves)


def round_trip(text: str) -> tuple[str, str]:
    """A module's text after parsing once and twice."""
    from hkc.dialects.load import load
    from hkc.support.mlir import context, ir

    with context(), ir.Location.unknown():
        load()
        once = str(ir.Module.parse(text))
        return once, str(ir.Module.parse(once))


def complaint(text: str) -> str | None:
    """What parsing and verifying a module objects to, or None."""
    from hkc.dialects.load import load
    from hkc.support.mlir import context, ir, messages

    with context(), ir.Location.unknown():
        load()
        try:
            ir.Module.parse(text)
        except ir.MLIRError as failure:
            return "\n".join(m.text for m in messages(failure))
    return None


def run_tiles(text: str, tensors: Mapping[str, Any], bounded: bool) -> dict[str, Any]:
    """The tensors after the kernels of a module: arrays, or pairs of float64 values and bounds."""
    from hkc.dialects.load import load
    from hkc.reference.bounded import Bounded
    from hkc.reference.walk import Domain, walk
    from hkc.support.mlir import context, ir

    domain = Domain(Bounded.exact, Bounded.literal) if bounded else Domain(np.asarray, np.asarray)
    held = {name: domain.lift(array.copy()) for name, array in tensors.items()}
    with context(), ir.Location.unknown():
        load()
        walk(ir.Module.parse(text), held, {}, domain)
    return {n: (x.value, np.array(x.errors)) if bounded else x for n, x in held.items()}


# ---


@functools.cache
def compiled(text: str, arch: str, dialect: str, assembly: bool = False) -> Code:
    code: Code = worker.call("contract:compile_text", text, arch, dialect, assembly, replay={"module.mlir": text})
    return code


def emulate(
    code: Code,
    symbol: str,
    buffers: Sequence[Any],
    arguments: Sequence[Sequence[int]] = (),
    seed: int = 0,
    workgroups: int = 1,
) -> list[Any]:
    """Launch workgroups with copies of `buffers`, each followed by its i64 `arguments`; what they hold then."""
    memory = Memory()
    segment = b""
    places = []
    for i, buffer in enumerate(buffers):
        at = memory.allocate(max(1, buffer.nbytes), f"argument {i}")
        memory.write(at, np.ascontiguousarray(buffer).tobytes())
        places.append(at)
        numbers = arguments[i] if arguments else ()
        segment += struct.pack(f"<Q{len(numbers)}q", at, *numbers)
    launch(
        Program.load(code.hsaco), symbol, workgroups=(workgroups, 1, 1), threads=(64 * code.waves, 1, 1),
        kernarg=segment, memory=memory, seed=seed,
    )  # fmt: skip
    return [
        np.frombuffer(memory.read(at, b.nbytes), b.dtype).reshape(b.shape)
        for at, b in zip(places, buffers, strict=True)
    ]


def sample(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> Any:
    """Numbers of a dtype that tell elements apart; whole ones are not 0."""
    rng = np.random.default_rng(seed)
    if dtype.kind in "iu":
        values = rng.integers(-100, 100, shape).astype(dtype)
        return np.where(values == 0, dtype.type(1), values)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def verdict(text: str) -> str | None:
    """`complaint` of a text; a text that does not even parse is a bug of the test."""
    found: str | None = worker.call("contract:complaint", text)
    return found


def as_module(body: str) -> str:
    """A function around IR whose undefined values become arguments, their types read from the generic ops that use
    them."""
    defined = set(re.findall(r"(%\w+)(?=[^()]*=\s*\")", body))
    arguments: dict[str, str] = {}
    for operands, types in re.findall(r"\"\(([^)]*)\)(?: \{[^}]*\})? : \((.*)\) ->", body):
        names = [o.strip() for o in operands.split(",") if o.strip()]
        for name, kind in zip(names, split_types(types), strict=True):
            if name not in defined:
                arguments.setdefault(name, kind)
    head = ", ".join(f"{n}: {t}" for n, t in arguments.items())
    return f"func.func @f({head}) {{\n{body}\nreturn\n}}\n"


def split_types(text: str) -> list[str]:
    """Types of a list, split at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    quoted = False
    for i, c in enumerate(text):
        quoted ^= c == '"'
        if quoted:
            continue
        depth += c in "<([{"
        depth -= c in ">)]}"
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


__all__ = ["CHIPS", "as_module", "compiled", "emulate", "sample", "verdict"]
