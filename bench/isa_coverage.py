"""The page docs/reference/isa.md: every instruction of every chip, whether the emulator executes it and tests check it.

    python bench/isa_coverage.py            # the page from the lists as they are
    python bench/isa_coverage.py --record   # first runs tests/emulate and lists what they execute on single waves

What is implemented is asked of the emulator: it has to bind the example of the chip's list.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from hkc.emulate.decode import Decoded, decode
from hkc.emulate.isa import load
from hkc.emulate.registry import Context, bind
from hkc.support.errors import HkcError
from hkc.targets.chip import FOLDER, names

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "isa.md"
TESTED = ROOT / "tests" / "emulate" / "tested.txt"
RECORD = "HKC_RECORD_INSTRUCTIONS"

INTRODUCTION = """\
# Instructions

Every instruction that LLVM's disassembler knows for a chip (`targets/*/opcodes.toml`, made by `bench/opcodes.py`), by
encoding. `yes`: the emulator executes it, and tests compare its results with bits derived by hand, computed from AMD's
pseudocode or by independent packages. `untested`: executed, without a test of its own. `no`: the emulator stops there
with HK701 (unknown) or HK702 (this form). `-`: the chip has no such instruction. Made by `bench/isa_coverage.py`.

Accuracy. Results are those of the instruction set guides, bit for bit, with these remarks. Reciprocals, roots,
exponentials, logarithms, sine and cosine are correctly rounded (hardware promises 1 ulp). Their f32 forms flush
denormal operands and results whatever the mode register says, as the guides have it ("denormals are flushed"), their
f16 forms keep them; all other arithmetic follows the mode register. What compilers make of `exp`, `log`, `sqrt` and
division scales around that and follows the mode as a whole. Sums of matrix instructions follow the rules that mmasim's
authors compared with the older chip; for the newer one, and for sparse forms, the same rules are assumed. Conversions
with a scale follow AMD's host model of them. NaN results of arithmetic are the first NaN operand, quieted, or the
default NaN. Packed f32 instructions take an immediate as the lower word of a pair; a use of the upper one is refused.
Typed buffers convert as Direct3D 11 has it where the guides are silent, and refuse what neither defines.

Waiting. Operations happen as late as `s_waitcnt` allows. Flat accesses count on both counters; lanes in LDS arrive by
lgkmcnt, all others by vmcnt, and what was issued before may be overtaken, so that only waits for 0 are sure.
"""
REASONS = {
    "s_rfe_b64": "only trap handlers may execute it", "s_rfe_restore_b64": "only trap handlers may execute it",
    "s_endpgm_saved": "only trap handlers may execute it", "s_endpgm_ordered_ps_done": "graphics: ordered pixels",
    "s_setkill": "graphics: kills pixels; what it does to a compute wave is not documented",
    "v_screen_partition_4se_b32": "graphics: of an older chip's screen; no guide of these chips has it",
    "v_mfma_ld_scale_b32": "executed as the first half of scaled matrix instructions; alone it has no effect to see",
}  # fmt: skip

Rows = dict[str, tuple[str, Decoded]]


def listed(chip: str) -> Rows:
    """Mnemonic without the suffix of its encoding → (encodings, example)."""
    table = tomllib.loads((FOLDER / chip / "opcodes.toml").read_text(encoding="utf-8"))["instructions"]
    found: Rows = {}
    for encoding, rows in table.items():
        for _, text, code in rows if encoding != "source" else ():
            instruction = decode(0, bytes.fromhex(code), text)
            encodings, example = found.get(instruction.base, ("", instruction))
            found[instruction.base] = (f"{encodings}, {encoding}".removeprefix(", "), example)
    return found


def implemented(chip: str, instruction: Decoded) -> bool:
    """Whether the emulator can bind it."""
    try:
        bind(instruction, Context(256, load(chip)))
    except HkcError:
        return False
    return True


def state(chip: str, rows: Rows, name: str, tested: set[str]) -> str:
    """The cell of the table."""
    if name not in rows:
        return "-"
    if not implemented(chip, rows[name][1]):
        return "no"
    return "yes" if f"{chip} {name}" in tested else "untested"


def reason(name: str) -> str:
    """Why an instruction is not executed."""
    if name not in REASONS:
        raise SystemExit(f"no reason given for {name}")
    return REASONS[name]


def page() -> str:
    """The whole page."""
    chips, tested = names(), set(TESTED.read_text(encoding="utf-8").splitlines())
    lists = {chip: listed(chip) for chip in chips}
    groups: dict[str, list[str]] = {}
    counts = {chip: {"yes": 0, "untested": 0, "no": 0} for chip in chips}
    for name in dict.fromkeys(n for chip in chips for n in lists[chip]):
        encodings = next(lists[chip][name][0] for chip in reversed(chips) if name in lists[chip])
        cells = [state(chip, lists[chip], name, tested) for chip in chips]
        for chip, cell in zip(chips, cells, strict=True):
            if cell != "-":
                counts[chip][cell] += 1
        note = reason(name) if "no" in cells else ""
        row = f"| `{name}` | {encodings} | {' | '.join(cells)} | {note} |"
        groups.setdefault(encodings.partition(",")[0].partition(" ")[0], []).append(row)
    lines = [INTRODUCTION, "| chip | instructions | executed | tested | not executed |", "|---|---|---|---|---|"]
    for chip, n in counts.items():
        lines.append(f"| {chip} | {sum(n.values())} | {n['yes'] + n['untested']} | {n['yes']} | {n['no']} |")
    for group, rows in groups.items():
        lines += ["", f"## {group}", "", f"| instruction | encodings | {' | '.join(chips)} | remark |"]
        lines += [f"|---|---|{'---|' * len(chips)}---|", *rows]
    return "\n".join(lines) + "\n"


def record() -> None:
    """Run the emulator's tests and write down what they executed."""
    environment = {**os.environ, RECORD: str(TESTED)}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "", "tests/emulate"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="run the tests to find out what they execute")
    if parser.parse_args().record:
        record()
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
