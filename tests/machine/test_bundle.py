"""Offload bundles and host programs with bundles: the right code object comes out, and damage is an error."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from hkc.machine.bundle import MAGIC, code_object
from hkc.machine.codeobject import CodeObject
from hkc.support import worker
from hkc.support.errors import HkcError

CHIPS = ("gfx942", "gfx950")
HOST = ("host-x86_64-unknown-linux-gnu-", b"")


def kernel(name: str, arch: str) -> bytes:
    ir = f"define amdgpu_kernel void @{name}() {{ ret void }}"
    found: bytes = worker.call("hkc.backend.codegen:generate", ir, arch).hsaco
    return found


def bundle(*entries: tuple[str, bytes]) -> bytes:
    """As clang-offload-bundler lays it out, code objects on pages."""
    head = len(MAGIC) + 8 + sum(24 + len(name) for name, _ in entries)
    table, content = MAGIC + struct.pack("<Q", len(entries)), b""
    for name, code in entries:
        at = -(-(head + len(content)) // 4096) * 4096
        content = content.ljust(at - head, b"\0") + code
        table += struct.pack("<QQQ", at, len(code), len(name)) + name.encode()
    return table + content


def program(section: bytes, name: str = ".hip_fatbin") -> bytes:
    """A host's ELF file that consists of this section and its name."""
    names = b"\0" + name.encode() + b"\0.shstrtab\0"
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    at = 64 + len(section) + len(names)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at, 0, 64, 56, 0, 64, 3, 2)
    rows = [(0, 0, 0, 0), (1, 1, 64, len(section)), (len(name) + 2, 3, 64 + len(section), len(names))]
    table = b"".join(struct.pack("<IIQQQQIIQQ", n, kind, 2, 0, o, size, 0, 0, 8, 0) for n, kind, o, size in rows)
    return header + section + names + table


@pytest.fixture(scope="module")
def codes() -> dict[str, bytes]:
    return {arch: kernel("k", arch) for arch in CHIPS}


@pytest.fixture(scope="module")
def both(codes: dict[str, bytes]) -> bytes:
    return bundle(HOST, *((f"hipv4-amdgcn-amd-amdhsa--{arch}", code) for arch, code in codes.items()))


def test_the_entry_of_a_chip(codes: dict[str, bytes], both: bytes) -> None:
    for arch, code in codes.items():
        assert code_object(both, arch) == code == code_object(program(both), arch)
        assert code_object(code) == code == code_object(code, arch)
        assert code_object(bundle(HOST, (f"hip-amdgcn-amd-amdhsa-unknown-{arch}", code))) == code
    with pytest.raises(HkcError, match="no chip was named; the bundle holds code for gfx942, gfx950"):
        code_object(both)
    with pytest.raises(HkcError, match="no code object for gfx90a; the bundle holds code for gfx942, gfx950"):
        code_object(both, "gfx90a")
    with pytest.raises(HkcError, match="no chip was named; the bundle holds code for no AMD GPU"):
        code_object(bundle(HOST))


def test_features_and_translation_units() -> None:
    first, second = kernel("first", "gfx942"), kernel("second", "gfx942")
    settings = bundle(
        ("hipv4-amdgcn-amd-amdhsa--gfx942:xnack+", first), ("hipv4-amdgcn-amd-amdhsa--gfx942:xnack-", second)
    )
    assert code_object(settings, "gfx942:xnack-") == second
    with pytest.raises(
        HkcError, match=r"2 code objects fit gfx942; the bundle holds code for gfx942:xnack\+, gfx942:x"
    ):
        code_object(settings, "gfx942")
    units = program(
        b"".join(bundle(("hipv4-amdgcn-amd-amdhsa--gfx942", c)).ljust(8192, b"\0") for c in (first, second))
    )
    assert code_object(units, "gfx942", "second") == second
    with pytest.raises(HkcError, match=r"(?s)2 code objects fit gfx942.*or the kernel where"):
        code_object(units, "gfx942")


def test_what_holds_no_bundle(both: bytes) -> None:
    with pytest.raises(HkcError, match="compressed offload bundle") as caught:
        code_object(b"CCOB\2\0\1\0" + bytes(40))
    assert caught.value.diagnostics[0].code == "HK601"
    with pytest.raises(HkcError, match="compressed offload bundle"):
        code_object(program(b"CCOB" + bytes(40)))
    plain = program(both, ".text")
    assert code_object(plain) == plain
    for reading in (lambda: CodeObject.parse(plain), lambda: code_object(plain, "gfx942")):
        with pytest.raises(HkcError, match=r"HK602.*an ELF file for machine 62"):
            reading()
    assert Path("/proc/self/exe").read_bytes() == code_object(Path("/proc/self/exe").read_bytes())


def test_damage_is_an_error(both: bytes) -> None:
    source = random.Random(0)
    refused = 0
    for seed in range(400):
        content = bytearray((both, program(both))[seed % 2])
        if seed % 3:
            for _ in range(source.choice((1, 4, 16))):
                at = (
                    source.randrange(200)
                    if seed % 2 == 0
                    else source.choice((0, len(content) - 192)) + source.randrange(150)
                )
                content[at] = source.randrange(256)
        else:
            del content[source.randrange(len(content)) :]
        try:
            CodeObject.parse(code_object(bytes(content), "gfx942"))
        except HkcError as failure:
            refused += 1
            assert failure.diagnostics[0].code.startswith("HK60"), failure
    assert refused > 100
