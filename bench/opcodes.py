"""Lists every instruction of every chip: `targets/CHIP/opcodes.toml`, made by walking all opcodes of all encodings.

For each value of an encoding's opcode field a few operand patterns go through LLVM's disassembler; the first pattern
that it accepts for this chip names the instruction and serves as its example. Run without arguments to rewrite the
lists, with `--check` to compare them (exit code 1 where they differ).
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from importlib.metadata import version

from hkc.machine.disassemble import disassemble
from hkc.support.llvm import WHEEL
from hkc.targets import chip
from hkc.targets.chip import FOLDER

_PAD = (0xBF800000).to_bytes(4, "little") * 4  # s_nop: whatever came before, decoding is in step again behind it
_V4, _V6, _V10, _S16 = 256 + 4, 256 + 6, 256 + 10, 16
_MASKED = (0x100, 0x11C, 0x11D, 0x11E)  # VOP3 opcodes whose third source is a lane mask: no assembler takes a VGPR

Pattern = tuple[str, int, bytes]


def _bytes(*words: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)


def _scalar() -> Iterator[Pattern]:
    """SOP2, SOPK, SOP1, SOPC, SOPP and SMEM."""
    for op in range(96):
        yield "SOP2", op, _bytes(2 << 30 | op << 23 | 16 << 16 | 8 << 8 | 4)
    for op in range(29):
        for simm in (1, 0x1801):
            yield "SOPK", op, _bytes(0xB << 28 | op << 23 | 16 << 16 | simm)
        yield "SOPK", op, _bytes(0xB << 28 | op << 23 | 0x1801, 0x10)
    for op in range(256):
        for target, source in ((16, 4), (16, 0), (0, 4)):
            yield "SOP1", op, _bytes(0x17D << 23 | target << 16 | op << 8 | source)
        for data, offset in ((16, 0x20), (0, 0x20), (16, 0), (0, 0)):
            yield "SMEM", op, _bytes(0x30 << 26 | op << 18 | 1 << 17 | data << 6 | 2, offset)
        yield "SMEM", op, _bytes(0x30 << 26 | op << 18, 0)
    for op in range(128):
        yield "SOPC", op, _bytes(0x17E << 23 | op << 16 | 8 << 8 | 4)
        for simm in (4, 1, 0):
            yield "SOPP", op, _bytes(0x17F << 23 | op << 16 | simm)


def _vector() -> Iterator[Pattern]:
    """VOP2, VOP1, VOPC with their SDWA and DPP forms, VOP3 and VOP3P."""
    dpp, sdwa = 4 | 0xE4 << 8 | 0xFF << 24, 4 | 6 << 8 | 6 << 16
    for op in range(62):
        head = op << 25 | 8 << 17 | 6 << 9
        yield "VOP2", op, _bytes(head | _V4)
        yield "VOP2", op, _bytes(head | _V4, 0x3C00)
        yield "VOP2 sdwa", op, _bytes(head | 249, sdwa | 6 << 24)
        yield "VOP2 dpp", op, _bytes(head | 250, dpp)
    for op in range(256):
        head = 0x3F << 25 | 8 << 17 | op << 9
        for target, source in itertools.product((8, 0), (_V4, 0)):
            yield "VOP1", op, _bytes(0x3F << 25 | target << 17 | op << 9 | source)
        yield "VOP1 sdwa", op, _bytes(head | 249, sdwa)
        yield "VOP1 dpp", op, _bytes(head | 250, dpp)
        head = 0x3E << 25 | op << 17 | 6 << 9
        yield "VOPC", op, _bytes(head | _V4)
        yield "VOPC sdwa", op, _bytes(head | 249, 4 | 6 << 16 | 6 << 24)
        yield "VOPC dpp", op, _bytes(head | 250, dpp)
    for op in range(0x380):
        third = (_S16,) if op in _MASKED else (_V10, _S16, 0)
        for target, b, c, a in itertools.product((8, 8 | 16 << 8, 16), (_V6, 0, 6), third, (_V4, 4)):
            yield "VOP3", op, _bytes(0x34 << 26 | op << 16 | target, a | b << 9 | c << 18)
        yield "VOP3", op, _bytes(0x34 << 26 | op << 16, 0)
    for op in range(128):
        head = 0x1A7 << 23 | op << 16
        operands = 256 + 4 | (256 + 8) << 9 | (256 + 64) << 18
        if op < 0x2C or 0x30 <= op < 0x35:  # packed: the high results come from the high halves (op_sel_hi)
            yield "VOP3P", op, _bytes(head | 1 << 14 | 128, operands | 3 << 27)
            yield "VOP3P", op, _bytes(head | 128, 256 + 4 | (256 + 8) << 9 | 3 << 27)
        yield "VOP3P", op, _bytes(head | 128, operands)
        scale = (0x1A7 << 23 | 0x2C << 16, 256 + 32 | (256 + 33) << 9)
        yield "VOP3PX", op, _bytes(*scale, head | 1 << 11 | 64, 256 | (256 + 16) << 9 | (256 + 64) << 18)
        yield "VOP3P", op, _bytes(head, 256 + 32 | (256 + 33) << 9)
        yield "VOP3P", op, _bytes(head | 8, 256 + 4)


def _memory() -> Iterator[Pattern]:
    """DS, FLAT, scratch, global, MUBUF and MTBUF."""
    for op in range(256):
        for target, second, first, address in itertools.product((8, 0), (6, 0), (4, 0), (2, 0)):
            yield "DS", op, _bytes(0x36 << 26 | op << 17, target << 24 | second << 16 | first << 8 | address)
        yield "DS", op, _bytes(0x36 << 26 | op << 17 | 1 << 16, 0)
    for op in range(128):
        for segment, name in enumerate(("FLAT", "SCRATCH", "GLOBAL")):
            for returns, target, data in itertools.product((1, 0), (8, 0), (6, 0)):
                head = 0x37 << 26 | op << 18 | segment << 14 | returns << 16
                yield name, op, _bytes(head, target << 24 | (0x7F << 16 if segment else 0) | data << 8 | 4)
        for target in (8, 0):
            yield "MUBUF", op, _bytes(0x38 << 26 | op << 18 | 1 << 12, 0x80 << 24 | 2 << 16 | target << 8 | 4)
        yield "MUBUF", op, _bytes(0x38 << 26 | op << 18, 0)
    for op in range(16):
        yield "MTBUF", op, _bytes(0x3A << 26 | op << 15 | 1 << 12 | 0x3D << 19, 0x80 << 24 | 2 << 16 | 8 << 8 | 4)


def walk(arch: str) -> dict[str, dict[int, tuple[str, str]]]:
    """Encoding → opcode → (example text, its bytes in hexadecimal) of one chip."""
    patterns = [*_scalar(), *_vector(), *_memory()]
    code = b"".join(pattern + _PAD for _, _, pattern in patterns)
    found = {i.address: i for i in disassemble(code, arch)}
    result: dict[str, dict[int, tuple[str, str]]] = {}
    at = 0
    for encoding, opcode, pattern in patterns:
        instruction = found[at]
        at += len(pattern) + len(_PAD)
        if instruction.size == len(pattern) and not instruction.text.startswith("."):
            result.setdefault(encoding, {}).setdefault(opcode, (instruction.text, pattern.hex()))
    return result


def text(arch: str) -> str:
    """The list of one chip as it stands in `opcodes.toml`."""
    lines = [
        "# Every instruction of the chip, by encoding: opcode, an example, its bytes. Made by bench/opcodes.py.",
        "",
        "[instructions]",
        f'source = "all opcodes of all encodings through the disassembler of LLVM, {WHEEL} {version(WHEEL)}"',
    ]
    for encoding, opcodes in walk(arch).items():
        lines.append(f'"{encoding}" = [')
        lines += [f'    [{op:#05x}, "{example}", "{code}"],' for op, (example, code) in sorted(opcodes.items())]
        lines.append("]")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the lists, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 where a list is out of date")
    check = parser.parse_args().check
    stale = 0
    for arch in chip.names():
        path, content = FOLDER / arch / "opcodes.toml", text(arch)
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            stale += 1
            print(f"{path}: {'out of date' if check else 'written'}")
            if not check:
                path.write_text(content, encoding="utf-8")
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main())
