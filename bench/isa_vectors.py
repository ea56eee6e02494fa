"""Test vectors for scalar and vector arithmetic, computed from the pseudocode of AMD's instruction set guides.

    PYTHONPATH=FOLDER_WITH_TINYGRAD:. python bench/isa_vectors.py

writes tests/emulate/vectors/pseudocode.txt. tinygrad (PyPI) carries the guides' pseudocode; it is no dependency of hkc.
Nothing here uses the emulator: the tests compare it with these vectors.
"""

from __future__ import annotations

import random
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from peers.pseudocode import Machine
from peers.pseudocode_places import Unsupported
from peers.pseudocode_values import Value, from_float

from hkc.emulate.decode import Decoded, Operand, decode
from hkc.targets.chip import FOLDER

OUTPUT = Path(__file__).parents[1] / "tests" / "emulate" / "vectors" / "pseudocode.txt"
ROWS = 12
ENCODINGS = ("SOP1", "SOP2", "SOPC", "SOPK", "VOP1", "VOP2", "VOP3", "VOP3P")

APART = re.compile(
    # between lanes or registers, program control, EXEC, modes
    "v_(read|write)|v_permlane|v_swap|v_mbcnt|s_(get|set|swap|call|rfe|cbranch|mov[rk]*el|trap)|_(save|wr)exec|"
    "s_set(reg|vskip)|s_getreg|"
    # approximations, and formats that have tests of their own
    "v_(exp|log|sin|cos|rsq|rcp|sqrt)_|fp8|bf8|fp6|bf6|fp4|v_cvt_off|v_cvt_sr|v_mfma|v_smfmac|"
    # the text leaves something out (see the tests of these instructions)
    "v_div_(scale|fmas)|v_trig|v_bitop3|v_fma_mix|v_pk_mov|v_frexp_exp|v_rndne|v_cvt_pkrtz|v_div_fixup_legacy|s_cbranch"
)
PROLOGUE = {
    "IEEE_MODE": 1, "ROUND_MODE": 0, "ROUND_NEAREST_EVEN": 0, "ROUND_TOWARD_ZERO": 3, "OPSEL": 0, "OPSEL_HI": 7,
    "laneId": 0, "UNDERFLOW_F32": 0, "UNDERFLOW_F64": 0,
}  # fmt: skip

FLOATS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 65504.0, float("inf"), float("-inf"), float("nan"))
INTEGERS = (0, 1, 2, 3, 7, 31, 32, 33, -1, -2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000,
            0xFFFFFFFF, 0x00FF00FF, 0x0004000C, 0x00200000)  # fmt: skip


def draw(chance: random.Random, kind: str, width: int) -> int:
    """One operand: a special value, an ordinary number or any bits."""
    choice = chance.random()
    if kind == "f":
        if choice < 0.4:
            return from_float(chance.choice(FLOATS), width).bits
        if choice < 0.8:
            return from_float(chance.gauss(0, 1) * 2.0 ** chance.randint(-4, 9), width).bits
        if choice < 0.9:
            return chance.getrandbits({16: 10, 32: 23, 64: 52}[width])  # denormal
    elif choice < 0.5:
        return chance.choice(INTEGERS) & (1 << width) - 1
    elif choice < 0.6:
        return chance.randint(0, 64)
    return chance.getrandbits(width)


def kinds(text: str, name: str, count: int) -> tuple[str, int]:
    """How the text reads an operand: as floats or as integers, and of which width."""
    found = re.findall(rf"\b{name}(?:\[[^]]*\])?\.(f|u|i|b|bf)(\d+)", text)
    if floats := [int(w) for k, w in found if k == "f"]:
        return "f", max(floats)
    return "u", 32 * count


def variables(text: str, operands: dict[str, int], condition: int, literal: int) -> dict[str, Any]:
    """What the machine starts with."""
    start = {name: Value("u", 32, value) for name, value in PROLOGUE.items()}
    start |= {"OVERFLOW_F32": from_float(float("inf"), 32), "OVERFLOW_F64": from_float(float("inf"), 64)}
    start |= {name: Value("b", 128 if bits >> 64 else 64, bits) for name, bits in operands.items()}
    start |= {
        "D0": start.get("D0", Value("b", 64, 0)),
        "VCC": Value("b", 64, condition),
        "SCC": Value("u", 1, condition),
    }
    return start | {
        "SIMM32": Value("b", 32, literal),
        "SIMM16": Value("b", 16, literal),
        "EXEC": Value("b", 64, (1 << 64) - 1),
    }


def listed() -> Iterator[tuple[str, Decoded]]:
    """Every instruction of interest once: encoding and example."""
    seen: set[str] = set()
    table = tomllib.loads((FOLDER / "gfx950" / "opcodes.toml").read_text(encoding="utf-8"))
    for encoding in sorted(ENCODINGS, key=lambda name: name != "VOP3"):
        for _, text, code in table["instructions"][encoding]:
            instruction = decode(0, bytes.fromhex(code), text)
            if instruction.base not in seen and not APART.search(instruction.base):
                seen.add(instruction.base)
                yield encoding, instruction


def roles(instruction: Decoded, text: str) -> tuple[list[Operand], list[Operand]]:
    """(results, sources) in the order of the assembly text."""
    compare = instruction.base.startswith(("s_cmp", "s_bitcmp"))
    results = 0 if compare else 1
    if "_co_" in instruction.base or "D1." in text:
        results = 2
    return list(instruction.operands[:results]), list(instruction.operands[results:])


def vectors(instruction: Decoded, text: str, table: dict[str, str], chance: random.Random) -> list[str]:
    """The header line of one instruction and its rows: source bits, then result bits."""
    results, sources = roles(instruction, text)
    sources = [o for o in sources if not (o.kind == "sgpr" and "VCC" in text and o.count == 2)]
    k = instruction.base.startswith(("s_movk", "s_cmovk", "s_cmpk", "s_addk", "s_mulk"))
    sources = [o for o in sources if o.kind != "int" or k]
    lines: list[str] = []
    for _ in range(ROWS):
        drawn = {f"S{i}": draw(chance, *kinds(text, f"S{i}", o.count)) for i, o in enumerate(sources)}
        if k:
            last = max(drawn)
            drawn[last] &= 0xFFFF
        if results:
            drawn["D0"] = draw(chance, "u", 32 * results[0].count)
        condition = chance.getrandbits(1)
        machine = Machine(table, variables(text, drawn, condition, 0x3C00))
        machine.run(text)
        lines.append(row(machine, drawn, condition))
        kind = machine.kind.get("D0", "u32")
    wrote = [name for name in ("D0", "D1", "VCC", "SCC") if name in machine.written and (name != "D0" or results)]
    head = f"{instruction.encoding.hex()} {instruction.text} | {' '.join(drawn)} C | {kind} {' '.join(wrote)}"
    return [head, *lines]


def row(machine: Machine, drawn: dict[str, int], condition: int) -> str:
    """Source bits and the condition, then bits and written mask of D0, carry, condition."""
    result = machine.variables["D0"].bits
    mask = machine.written.get("D0", 0)
    carry = machine.variables["D1"].bits & 1 if "D1" in machine.written else 0
    flags = (carry, machine.variables["VCC"].bits & 1, machine.variables["SCC"].bits & 1)
    left = " ".join(f"{v:x}" for v in [*drawn.values(), condition])
    return f"{left} = {result & mask:x} {mask:x} " + " ".join(str(f) for f in flags)


def main() -> int:
    """Write the vectors; says which instructions the interpreter could not follow."""
    from tinygrad.runtime.autogen.amd.cdna.str_pcode import PCODE

    texts = {str(key).split(".")[1].lower(): prepare(text) for key, text in PCODE.items()}
    table = {re.sub("_e(32|64)$", "", name): text for name, text in texts.items()}
    lines = [f"# Made by bench/isa_vectors.py from the CDNA pseudocode in tinygrad {version('tinygrad')}. A head line:",
             "# bytes, text | operands, C is VCC or SCC | type of D0, what is written; rows: operands = D0, its",
             "# written bits, carry, VCC, SCC."]  # fmt: skip
    skipped: list[str] = []
    for _, instruction in listed():
        try:
            lines += vectors(instruction, table[instruction.base], table, random.Random(instruction.base))
        except (Unsupported, KeyError, NotImplementedError, IndexError) as problem:
            skipped.append(f"{instruction.base} ({problem!r})")
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{sum('|' in line for line in lines)} instructions; left out: {', '.join(skipped)}")
    return 0


def prepare(text: str) -> str:
    """Spellings that the interpreter does not read."""
    text = text.replace("EXEC.u64[laneId] = D0", "D0").replace("WAVE_MODE.IEEE", "IEEE_MODE")
    return text.replace("D.b", "D0.b")


if __name__ == "__main__":
    sys.exit(main())
