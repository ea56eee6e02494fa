"""SDWA and DPP forms with whole registers and every lane in its place do what the plain forms do."""

import tomllib
from functools import cache

import numpy as np
import pytest
from emulated import CHIPS, Wave

from hkc.emulate.decode import VCC, Decoded, decode
from hkc.targets.chip import FOLDER

RNG = np.random.default_rng(55)
WORDS = RNG.integers(0, 1 << 32, (12, 64))
FLOATS = RNG.standard_normal((12, 64)).astype(np.float32)


@cache
def forms(arch: str) -> dict[str, dict[str, Decoded]]:
    """Mnemonic without suffix → encoding → example, of those that have several."""
    listed = tomllib.loads((FOLDER / arch / "opcodes.toml").read_text(encoding="utf-8"))["instructions"]
    found: dict[str, dict[str, Decoded]] = {}
    for encoding, rows in listed.items():
        for _, text, code in rows if encoding.startswith("VOP") else ():
            instruction = decode(0, bytes.fromhex(code), text)
            found.setdefault(instruction.base, {})[encoding] = instruction
    return {name: kinds for name, kinds in found.items() if any(" " in encoding for encoding in kinds)}


def outcome(arch: str, instruction: Decoded) -> list[list[int]]:
    """Registers 0 to 11 and VCC after the instruction."""
    wave = Wave(arch)
    for register in range(12):
        wave.vector(register, FLOATS[register] if "_f32" in instruction.base else WORDS[register])
    wave.pair(VCC, 0x0123456789ABCDEF)
    wave.step(instruction)
    exec_mask = wave.state.exec_mask[0].tolist()
    return [wave.v(register).tolist() for register in range(12)] + [[wave.s(VCC), wave.s(VCC + 1)], exec_mask]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("kind", ("sdwa", "dpp"))
def test_other_encodings_agree(arch: str, kind: str) -> None:
    compared = 0
    for name, kinds in forms(arch).items():
        other = next((i for encoding, i in kinds.items() if encoding.endswith(kind)), None)
        plain = next((i for encoding, i in kinds.items() if encoding in ("VOP1", "VOP2", "VOPC")), None)
        if other is None or plain is None or name in ("v_readfirstlane_b32", "v_screen_partition_4se_b32"):
            continue
        assert outcome(arch, plain) == outcome(arch, other), name
        compared += 1
    assert compared > 100
