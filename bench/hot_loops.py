"""The hot loop of a matrix product in hkc's machine code, beside those of other compilers.

    python bench/hot_loops.py [--json]

hkc's rows are counted in code that is compiled now; the others' are figures on record (`bench/peers/hot_loops.csv`,
with their source). The hot loop is the block of the aligned entry that jumps back to itself and holds most MFMAs.
Nothing is measured here: fewer instructions are a necessary part of speed, not a sufficient one.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from pathlib import Path

import hkc
from hkc.machine.codeobject import CodeObject
from hkc.machine.disassemble import Instruction, disassemble

HERE = Path(__file__).parent
COLUMNS = (
    "peer", "kernel", "arch", "vgpr", "spills", "lds", "instructions", "mfma",
    "lds_reads", "lds_writes", "direct", "loads", "waits", "barriers", "valu",
)  # fmt: skip
KERNEL = """
kernel gemm(A: global[bf16, M, K], B: global[bf16, N, K], C: global[f32, M, N]) with waves=8:
    m, n = tile_ids(cdiv(M, 256), cdiv(N, 256))
    acc = zeros[f32, 256, 256]
    for k in range(0, K, 64):
        acc += dot(load(A, [m*256, k], [256, 64]), load(B, [n*256, k], [256, 64]).T)
    store(C, [m*256, n*256], acc)
"""


def hot_loop(code: CodeObject, name: str) -> list[Instruction]:
    """The instructions of the innermost loop with most MFMAs: from the target of a backward branch to the branch."""
    kernel = code.kernel(name)
    found = list(disassemble(code.code(kernel), code.arch, kernel.entry))
    place = {instruction.address: i for i, instruction in enumerate(found)}
    best: list[Instruction] = []
    for i, instruction in enumerate(found):
        if not instruction.mnemonic.startswith("s_cbranch"):
            continue
        # The operand counts words from the next instruction, as a 16-bit number.
        words = int(instruction.operands[0], 0)
        target = instruction.address + 4 + 4 * (words - 0x10000 if words & 0x8000 else words)
        loop = found[place[target] : i + 1] if target in place and target <= instruction.address else []
        if count(loop, r"v_mfma") > count(best, r"v_mfma"):
            best = loop
    return best


def count(loop: list[Instruction], pattern: str, text: str = "") -> int:
    """How many instructions of a loop have such a mnemonic (and such a text)."""
    return sum(bool(re.match(pattern, i.mnemonic)) and text in i.text for i in loop)


def row(arch: str) -> dict[str, object]:
    """The counts of hkc's own loop on one chip."""
    kernel = hkc.compile(KERNEL, arch=arch)
    loop = hot_loop(CodeObject.parse(kernel.hsaco), "gemm")
    taken = kernel.resources["gemm"]
    loads, direct = count(loop, r"(buffer|global)_load"), count(loop, r"buffer_load", " lds")
    return {
        "peer": f"hkc {hkc.__version__}", "kernel": "gemm_bf16_256x256x64_w8", "arch": arch, "vgpr": taken.vgpr,
        "spills": taken.vgpr_spills, "lds": taken.lds_bytes, "instructions": len(loop), "mfma": count(loop, r"v_mfma"),
        "lds_reads": count(loop, r"ds_read"), "lds_writes": count(loop, r"ds_write"), "direct": direct,
        "loads": loads - direct, "waits": count(loop, r"s_waitcnt"), "barriers": count(loop, r"s_barrier"),
        "valu": count(loop, r"v_(?!mfma)"),
    }  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    lines = (HERE / "peers/hot_loops.csv").read_text().splitlines()
    rows: list[dict[str, object]] = [dict(r) for r in csv.DictReader(x for x in lines if not x.startswith("#"))]
    rows += [row(arch) for arch in ("gfx942", "gfx950")]
    if parser.parse_args().json:
        print(json.dumps(rows, indent=1))
        return
    for arch in ("gfx942", "gfx950"):
        shown = [COLUMNS, *([str(r[c]) for c in COLUMNS] for r in rows if r["arch"] == arch)]
        widths = [max(len(r[i]) for r in shown) for i in range(len(COLUMNS))]
        for r in shown:
            print("  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)).rstrip())
        print()


if __name__ == "__main__":
    main()
