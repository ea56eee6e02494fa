"""Every op of the tile dialect, by its examples: machine code on both chips and both entries does what the op means."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from contract import CHIPS, sample, split_types
from program import Program

import hkc.dialects.tile  # noqa: F401
from hkc.dialects.define import TILE_DIALECT, OpRecord
from hkc.support.dtypes import DTYPES
from hkc.targets.chip import load

ELEMENTS = {d.mlir: d.numpy for d in DTYPES.values() if d.kind != "uint"}
ELSEWHERE = {"load", "store", "tile_id", "print", "convert_layout"}
"""Tested by whole kernels, or not compiled at all."""

AFFINE = """func.func private @affine(%a: f32, %b: f32, %c: f32, %d: f32) -> (f32, f32) {
  %m = arith.mulf %a, %c : f32
  %n = arith.mulf %b, %c : f32
  %o = arith.addf %n, %d : f32
  return %m, %o : f32, f32
}
"""
"""x -> a x + b, then x -> c x + d: a function that does not commute."""

EXAMPLES = [
    pytest.param(record, example, id=f"{name}-{i}")
    for name, record in TILE_DIALECT.ops.items()
    if name not in ELSEWHERE
    for i, example in enumerate(record.examples)
]


def shape_of(kind: str) -> tuple[int, ...]:
    return tuple(int(n) for n in kind[7:-1].split("x")[:-1])


def values(record: OpRecord, name: str, kind: str, seed: int) -> Any:
    """What an operand holds: numbers that suit the op."""
    element = ELEMENTS[kind[7:-1].split("x")[-1]]
    shape = shape_of(kind)
    if name == "%n" and record.name in ("gather", "scatter"):  # an index tile; the places of a scatter are distinct
        places = np.random.default_rng(1).permutation(4 * shape[0])[: shape[0]] - shape[0]
        return np.broadcast_to(places.reshape(-1, *[1] * (len(shape) - 1)), shape).astype(element).copy()
    if element == DTYPES["e8m0"].numpy:
        return np.exp2(np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)).astype(element)
    found = sample(element, shape, seed)
    if record.name == "assert":
        return np.ones(shape, bool)
    if record.name in ("floordiv", "floormod") and name == "%b":
        found[found == 0] = 7
    return found


def build(record: OpRecord, example: str) -> Program:
    program = Program(functions=AFFINE if "@affine" in example else "")
    match = re.fullmatch(r"(?:(%[\w, %]+) = )?\"[\w.]+\"\(([^)]*)\)(?: \{[^}]*\})? : \((.*?)\) -> (.*)", example)
    assert match, example
    results, operands, types, kinds = match.groups()
    names = [o.strip() for o in operands.split(",") if o.strip()]
    rank_shape: tuple[int, ...] = ()
    pairs = list(zip(names, split_types(types), strict=True))
    for _, kind in [*pairs, ("", kinds)]:
        if kind.startswith("tensor") and not rank_shape:
            rank_shape = shape_of(kind)
    for i, (name, kind) in enumerate(pairs):
        if name in program.arrays or any(f"{name} = " in line for line in program.lines):
            continue
        if kind.startswith("tensor"):
            program.load(name, values(record, name, kind, i))
        elif kind.startswith("memref"):
            element = kind[len("memref<") :].split(",")[0].split("x")[-1]
            program.tensor(name, sample(ELEMENTS[element], tuple(n + 5 for n in rank_shape), 40 + i))
        elif kind == "index":
            program.index(name, 3 * i - 4)
        else:
            number = str(5_000_000_019 + i) if kind == "i64" else f"{i}.0" if "f" in kind else str(i)
            program.constant(name, number, kind)
    program.lines.append(example)
    for name, kind in zip((results or "").replace(" ", "").split(","), split_types(kinds.strip("()")), strict=False):
        if kind.startswith("tensor"):
            program.store(name, shape_of(kind), ELEMENTS[kind[7:-1].split("x")[-1]])
        elif name:
            program.lines.append(f"{name}_tile = tensor.splat {name} : tensor<16x{kind}>")
            program.store(f"{name}_tile", (16,), ELEMENTS[kind])
    return program


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("record", "example"), EXAMPLES)
def test_machine_code_does_what_the_op_means(record: OpRecord, example: str, arch: str) -> None:
    feature = getattr(record.cls, "feature", None)
    if feature and not load(arch).has(feature):
        pytest.skip(f"{arch} has no {feature}")
    build(record, example).check(arch)
