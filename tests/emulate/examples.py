"""The example of every instruction, as the chips' lists have them."""

import tomllib
from functools import cache

from hkc.emulate.decode import Decoded, decode
from hkc.targets.chip import FOLDER


@cache
def examples(arch: str) -> dict[str, Decoded]:
    """Mnemonic without the suffix of its encoding → one example, ordinary encodings first."""
    listed = tomllib.loads((FOLDER / arch / "opcodes.toml").read_text(encoding="utf-8"))["instructions"]
    found: dict[str, Decoded] = {}
    for encoding in sorted((e for e in listed if e != "source"), key=lambda e: "sdwa" in e or "dpp" in e):
        for _, text, code in listed[encoding]:
            instruction = decode(0x100, bytes.fromhex(code), text)
            found.setdefault(instruction.base, instruction)
    return found


def varied(instruction: Decoded, modifiers: str) -> Decoded:
    """The same instruction with further modifiers in its text."""
    return decode(instruction.address, instruction.encoding, f"{instruction.text} {modifiers}")
