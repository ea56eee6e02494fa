"""Machine code to text through LLVM. To be called in the worker process.

Anybody's code may hold bytes that are no instruction, and LLVM crashes on some of those (LLVM 22 and 23 on illegal
register numbers of matrix instructions, for instance). Therefore a fork of the worker decodes, and passes on each
instruction as soon as it has it: after a crash the bytes in question count as data and another fork goes on behind.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import os
from collections.abc import Callable

from hkc.support import llvm

Decoder = Callable[[int, int, int], tuple[int, str]]

_COMPLAINT = "/*"  # `s[0:5]/*Invalid register, …*/`: an encoding that no assembler makes


def disassemble(code: bytes, arch: str, base: int = 0) -> list[tuple[int, int, str]]:
    """Address, size in bytes and text of each instruction of `code`, which lies at `base`.

    Bytes that are no instruction come out four at a time as `.long 0x…` (a shorter rest as `.byte`). Raises
    `HkcUsageError` HK652 for a chip that LLVM doesn't know.
    """
    decode = _decoder(arch)
    found: list[tuple[int, int, str]] = []
    at = 0
    while at < len(code):
        for size, text in [*_until_crash(decode, code, at, base), (4, "")]:
            rest = code[at : at + size]
            if rest:
                found.append((base + at, len(rest), text or _data(rest)))
            at += len(rest)
    return found


@functools.cache
def _decoder(arch: str) -> Decoder:
    return llvm.library().decoder(arch)


def _until_crash(decode: Decoder, code: bytes, start: int, base: int) -> list[tuple[int, str]]:
    """Size and text of the instructions from offset `start` on, up to the end or to the one on which LLVM crashes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        try:
            _decode_all(decode, code, start, base, writer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as channel:
        lines = channel.read().decode().splitlines()
    os.waitpid(child, 0)
    return [(int(size), text) for size, _, text in (line.partition(" ") for line in lines)]


def _decode_all(decode: Decoder, code: bytes, at: int, base: int, writer: int) -> None:
    buffer = ctypes.create_string_buffer(code, len(code))
    memory = ctypes.addressof(buffer)
    while at < len(code):
        size, text = decode(memory + at, len(code) - at, base + at)
        if not size or _COMPLAINT in text:
            size, text = min(4, len(code) - at), ""
        os.write(writer, f"{size} {text}\n".encode())  # short enough to arrive whole or not at all
        at += size


def _data(rest: bytes) -> str:
    if len(rest) == 4:
        return f".long 0x{int.from_bytes(rest, 'little'):08x}"
    return ".byte " + ", ".join(f"0x{b:02x}" for b in rest)
