"""Scalar and vector arithmetic against vectors that bench/isa_vectors.py computes from AMD's pseudocode."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from emulated import CHIPS, Wave

from hkc.emulate.decode import VCC, Decoded, Operand, decode
from hkc.targets.chip import FOLDER

VECTORS = Path(__file__).parent / "vectors" / "pseudocode.txt"
Row = tuple[list[int], int, int, list[int]]
"""Operands and the condition; D0 and which of its bits are written; carry, VCC, SCC."""


@dataclass(frozen=True)
class Case:
    """One instruction and its rows."""

    code: bytes
    text: str
    operands: list[str]
    kind: str
    written: list[str]
    rows: list[Row]


def cases() -> Iterator[Case]:
    for line in VECTORS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if "|" in line:
            head, operands, results = (part.strip() for part in line.split("|"))
            code, _, text = head.partition(" ")
            kind, *written = results.split()
            case = Case(bytes.fromhex(code), text, operands.split(), kind, written, [])
            yield case
        else:
            left, right = (part.split() for part in line.split("="))
            result, mask, *flags = (int(x, 16) for x in right)
            case.rows.append(([int(x, 16) for x in left], result, mask, flags))


CASES = {case.text.split()[0]: case for case in cases()}


@cache
def known(arch: str) -> frozenset[str]:
    listed = tomllib.loads((FOLDER / arch / "opcodes.toml").read_text(encoding="utf-8"))["instructions"]
    return frozenset(row[1].split()[0] for rows in listed.values() if isinstance(rows, list) for row in rows)


def place(wave: Wave, operand: Operand, values: list[int]) -> None:
    """Row i of the values goes to lane i of a vector register, or to a scalar register of wave i."""
    for word in range(operand.count):
        part = np.array([v >> 32 * word & 0xFFFFFFFF for v in values], np.int64)
        if operand.kind == "sgpr":
            wave.scalar(operand.index + word, part)
        else:
            wave.vector(operand.index + word, np.resize(part, 64))


def found(wave: Wave, operand: Operand, rows: int) -> list[int]:
    registers = range(operand.index, operand.index + operand.count)
    if operand.kind == "sgpr":
        words = [wave.state.scalar[r][:rows] for r in registers]
    else:
        words = [wave.v(r)[:rows] for r in registers]
    return [sum(int(w[i]) << 32 * n for n, w in enumerate(words)) for i in range(rows)]


def is_nan(kind: str, bits: int) -> bool:
    layout = {"f16": (10, 16), "f32": (23, 32), "f64": (52, 64)}.get(kind)
    if layout is None:
        return False
    fraction, width = layout
    top = (1 << width - 1) - (1 << fraction)
    return bits & top == top and bits & (1 << fraction) - 1 != 0


def check_scalar(case: Case, instruction: Decoded, arch: str) -> None:
    rows = len(case.rows)
    wave = Wave(arch, waves=rows)
    results = [o for o in instruction.operands[:1] if "D0" in case.written]
    values = dict(zip(case.operands, zip(*[row[0] for row in case.rows], strict=True), strict=True))
    wave.state.scc[:] = values["C"]
    if "D0" in values:
        place(wave, instruction.operands[0], list(values["D0"]))
    sources = instruction.operands[len([n for n in case.operands if n == "D0"]) :]
    for number, operand in enumerate(sources):
        if operand.kind == "sgpr":
            place(wave, operand, list(values[f"S{number}"]))
    wave.step(instruction)
    for i, (_, result, mask, flags) in enumerate(case.rows):
        if results:
            assert found(wave, results[0], rows)[i] & mask == result, case.rows[i]
        if "SCC" in case.written:
            assert wave.state.scc[i] == flags[2], case.rows[i]


def with_constant(instruction: Decoded, value: int) -> Decoded:
    code = value.to_bytes(2, "little") + instruction.encoding[2:]
    return decode(0, code, instruction.text)


def check_vector(case: Case, instruction: Decoded, arch: str) -> None:
    rows = len(case.rows)
    wave = Wave(arch)
    values = dict(zip(case.operands, zip(*[row[0] for row in case.rows], strict=True), strict=True))
    carry = sum(int(c) << i for i, c in enumerate(values["C"]))
    target, *others = instruction.operands
    if target.kind == "vgpr":
        place(wave, target, list(values["D0"]))
    if others and others[0].kind == "sgpr" and {"D1", "VCC"} & set(case.written):
        extra = others.pop(0)
    sources = [o for o in others if o.kind == "vgpr"]
    for number, operand in enumerate(sources):
        place(wave, operand, list(values[f"S{number}"]))
    for register in (VCC, 16):
        wave.pair(register, carry)
    wave.step(instruction)
    for i, (_, result, mask, flags) in enumerate(case.rows):
        got = found(wave, target, rows)[i] if target.kind == "vgpr" else wave.s(target.index) >> i & 1
        both_nan = is_nan(case.kind, got) and is_nan(case.kind, result)
        assert got & mask == result or both_nan, (i, hex(got), case.rows[i])
        if {"D1", "VCC"} & set(case.written):
            assert wave.s(extra.index) >> i & 1 == flags[0 if "D1" in case.written else 1], case.rows[i]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", CASES)
def test_vectors(name: str, arch: str) -> None:
    case = CASES[name]
    if name not in known(arch):
        pytest.skip("not on this chip")
    instruction = decode(0, case.code, case.text)
    if any(o.kind == "int" for o in instruction.operands) and name.startswith("s_"):
        number = next(n for n in reversed(case.operands) if n.startswith("S"))
        for row in case.rows:
            constant = row[0][case.operands.index(number)]
            check_scalar(Case(case.code, case.text, case.operands, case.kind, case.written, [row]),
                         with_constant(instruction, constant), arch)  # fmt: skip
    elif name.startswith("s_"):
        check_scalar(case, instruction, arch)
    else:
        check_vector(case, instruction, arch)
