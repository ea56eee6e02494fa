"""Stand-ins for two shared libraries that AMD's LLVM wheel links against but that no wheel ships.

`libLLVM.so` of `rocm-bindings-compiler` names `librocm_sysdeps_z.so.1` and `librocm_sysdeps_zstd.so.1`, which only an
installed ROCm has. LLVM calls them to compress debug sections, which hkc never asks for. A loaded library with the
right DT_SONAME satisfies the dynamic linker, so an ELF file is written here byte by byte: every function returns -2,
which zlib and zstd callers take for an error. It is loaded RTLD_LOCAL, so that nobody else's `crc32` resolves to it.
"""

from __future__ import annotations

import ctypes
import os
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path

VERSION = "AMDROCM_SYSDEPS_1.0"
SYSDEPS = {
    "librocm_sysdeps_z.so.1": ("compress2", "compressBound", "crc32", "uncompress"),
    "librocm_sysdeps_zstd.so.1": (
        "ZSTD_CCtx_setParameter", "ZSTD_compress2", "ZSTD_compressBound", "ZSTD_createCCtx",
        "ZSTD_decompress", "ZSTD_freeCCtx", "ZSTD_getErrorName", "ZSTD_isError",
    ),
}  # fmt: skip

_EM_X86_64 = 62
_CODE = b"\x48\xc7\xc0\xfe\xff\xff\xff\xc3"  # mov $-2, %rax; ret
_PAGE = 0x1000
_HEADERS = 64 + 4 * 56
_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK = 1, 2, 0x6474E551
_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = 4, 5, 6, 10, 11, 14
_DT_VERSYM, _DT_VERDEF, _DT_VERDEFNUM = 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD


def load() -> None:
    """Make both libraries loadable by name in this process: the installed ones if there are any, else the stand-ins.

    Raises `OSError` where no folder may hold an executable mapping and in-memory files are forbidden as well.
    """
    for name, functions in SYSDEPS.items():
        try:
            ctypes.CDLL(name, mode=os.RTLD_LOCAL | os.RTLD_NOW)
        except OSError:
            _load_bytes(name, shared_object(name, functions))


def shared_object(soname: str, functions: Sequence[str]) -> bytes:
    """An x86-64 shared object (as the wheel is) called `soname`; each of `functions` returns -2."""
    strings = _Strings()
    name, version = strings.add(soname), strings.add(VERSION)
    symbols = [strings.add(f) for f in functions]
    at: dict[str, int] = {}
    body = bytearray()

    def place(part: str, content: bytes) -> None:
        at[part] = _HEADERS + len(body)
        body.extend(content + bytes(-len(content) % 16))

    place("text", _CODE)
    place("symbols", bytes(24) + b"".join(_function(s, at["text"]) for s in symbols))
    place("hash", _one_bucket(len(symbols)))
    place("versym", struct.pack(f"<{len(symbols) + 1}H", 0, *[2] * len(symbols)))
    place("verdef", _verdef(1, 1, soname, name, last=False) + _verdef(0, 2, VERSION, version, last=True))
    place("strings", bytes(strings.content))
    end = _HEADERS + len(body)
    dynamic_address = end + _PAGE  # same offset within its page, next page: writable and apart from the code
    dynamic = b"".join(
        struct.pack("<qQ", tag, value)
        for tag, value in (
            (_DT_SONAME, name), (_DT_HASH, at["hash"]), (_DT_STRTAB, at["strings"]), (_DT_SYMTAB, at["symbols"]),
            (_DT_STRSZ, len(strings.content)), (_DT_SYMENT, 24), (_DT_VERSYM, at["versym"]),
            (_DT_VERDEF, at["verdef"]), (_DT_VERDEFNUM, 2), (0, 0),
        )
    )  # fmt: skip
    ident = b"\x7fELF\2\1\1" + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, _EM_X86_64, 1, 0, 64, 0, 0, 64, 56, 4, 64, 0, 0)
    segments = (
        _segment(_PT_LOAD, 5, 0, 0, end, _PAGE)
        + _segment(_PT_LOAD, 6, end, dynamic_address, len(dynamic), _PAGE)
        + _segment(_PT_DYNAMIC, 6, end, dynamic_address, len(dynamic), 8)
        + _segment(_PT_GNU_STACK, 6, 0, 0, 0, 16)  # without it the loader would want an executable stack
    )
    return header + segments + bytes(body) + dynamic


class _Strings:
    """A string table under construction."""

    def __init__(self) -> None:
        self.content = bytearray(1)

    def add(self, text: str) -> int:
        offset = len(self.content)
        self.content += text.encode() + b"\0"
        return offset


def _function(name: int, address: int) -> bytes:
    """A symbol table entry: a global function in section 1 (any but "undefined" will do)."""
    return struct.pack("<IBBHQQ", name, 0x12, 0, 1, address, len(_CODE))


def _one_bucket(count: int) -> bytes:
    """A SysV hash table that chains all `count` symbols in one bucket, so that no name needs hashing."""
    following = [*range(2, count + 1), 0]
    return struct.pack(f"<{4 + count}I", 1, count + 1, 1, 0, *following)


def _verdef(flags: int, index: int, text: str, offset: int, *, last: bool) -> bytes:
    return struct.pack("<HHHHIIIII", 1, flags, index, 1, _sysv_hash(text), 20, 0 if last else 28, offset, 0)


def _segment(kind: int, flags: int, offset: int, address: int, size: int, align: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, flags, offset, address, address, size, size, align)


def _sysv_hash(text: str) -> int:
    value = 0
    for byte in text.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def _load_bytes(name: str, content: bytes) -> None:
    for folder in (None, str(Path.home())):
        try:
            with tempfile.TemporaryDirectory(prefix="hkc-", dir=folder) as place:
                path = Path(place, name)
                path.write_bytes(content)
                ctypes.CDLL(str(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
                return
        except OSError:  # not writable, or mounted noexec
            continue
    # The descriptor stays open: glibc also knows a library by its path and would take a reused number for this one.
    descriptor = os.memfd_create(name)
    os.write(descriptor, content)
    ctypes.CDLL(f"/proc/self/fd/{descriptor}", mode=os.RTLD_LOCAL | os.RTLD_NOW)
