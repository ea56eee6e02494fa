"""The lists of instructions: what LLVM's disassembler says today, and what its assembler makes of it."""

import importlib.util
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hkc.emulate.decode import decode
from hkc.emulate.isa import load
from hkc.machine.disassemble import disassemble
from hkc.targets.chip import FOLDER, names

BENCH = Path(__file__).resolve().parents[2] / "bench" / "opcodes.py"


def rows(arch: str) -> list[tuple[str, bytes]]:
    listed: dict[str, Any] = tomllib.loads((FOLDER / arch / "opcodes.toml").read_text(encoding="utf-8"))["instructions"]
    del listed["source"]
    return [(text, bytes.fromhex(code)) for opcodes in listed.values() for _, text, code in opcodes]


@pytest.mark.parametrize("arch", names())
def test_examples_decode_to_what_is_listed(arch: str) -> None:
    listed = rows(arch)
    found = disassemble(b"".join(code for _, code in listed), arch)
    assert [(i.text, i.encoding) for i in found] == listed
    assert len(listed) > 1500


@pytest.mark.parametrize("arch", names())
@pytest.mark.skipif(shutil.which("llvm-mc-22") is None, reason="needs Debian's llvm-22")
def test_an_assembler_agrees(arch: str) -> None:
    """What Debian's LLVM makes of the texts that it takes means the same text to us."""
    texts = [text for text, _ in rows(arch)]
    command = ["llvm-mc-22", "-triple=amdgcn", f"-mcpu={arch}", "-show-encoding"]
    made = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, check=False)
    refused = {int(line.split(":")[1]) for line in made.stderr.splitlines() if ": error:" in line}
    encodings = [line.partition("encoding: [")[2].rstrip("]") for line in made.stdout.splitlines()]
    code = b"".join(bytes(int(byte, 16) for byte in e.split(",")) for e in encodings if e)
    assert [i.text for i in disassemble(code, arch)] == [t for n, t in enumerate(texts, 1) if n not in refused]
    assert {texts[n - 1].split()[0] for n in refused} <= {"v_writelane_b32"}  # reads two scalar registers


def test_what_a_chip_lacks_is_what_the_other_one_has_more() -> None:
    bases = {arch: {decode(0, code, text).base for text, code in rows(arch)} for arch in names()}
    for arch, others in (("gfx942", "gfx950"), ("gfx950", "gfx942")):
        lacking = {name for name in bases[others] - bases[arch] if not name.startswith(("v_mfma_", "v_smfmac_"))}
        assert load(arch).absent == lacking


@pytest.mark.long
@pytest.mark.parametrize("arch", names())
def test_nothing_is_missing(arch: str) -> None:
    assert opcodes().text(arch) == (FOLDER / arch / "opcodes.toml").read_text(encoding="utf-8")


def opcodes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("opcodes", BENCH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
