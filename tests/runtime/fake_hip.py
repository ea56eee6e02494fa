"""A HIP library made of Python functions, so that the launch path runs without a GPU, a compiler or ROCm.

`install` writes a shared object called libamdhip64.so whose functions jump through a table, fills the table with ctypes
callbacks, and loads it; hip-python then finds it under its name. `Device` is a GPU whose memory is the process's own:
a launch is recorded, with the arguments as the chip would get them.
"""

from __future__ import annotations

import ctypes
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

P = ctypes.c_void_p
U = ctypes.c_uint
INT = ctypes.POINTER(ctypes.c_int)
OUT = ctypes.POINTER(P)

HEADERS = 64 + 4 * 56
PAGE = 0x1000
ARCH_NAME = 1160
"""Where `gcnArchName` lies in hipDeviceProp_tR0600."""


@dataclass
class Launch:
    function: tuple[int, str]
    device: int
    workgroups: int
    threads: int
    stream: int | None
    segment: bytes


@dataclass
class Device:
    arch: str = "gfx942"
    count: int = 2
    current: int = 0
    memory: dict[int, Any] = field(default_factory=dict)
    modules: list[bytes] = field(default_factory=list)
    functions: list[tuple[int, str]] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    copies: list[tuple[int, int]] = field(default_factory=list)
    waits: int = 0
    forgotten: int = 0
    kernel: Callable[[Launch], None] = lambda launch: None
    status: dict[str, int] = field(default_factory=dict)
    """Error codes that functions are to report."""

    def table(self) -> dict[str, tuple[Any, ...]]:
        """Every function of HIP that there is: its implementation and argument types."""
        return {
            "hipGetDeviceCount": (lambda n: self._set(n, self.count), INT),
            "hipGetDevice": (lambda n: self._set(n, self.current), INT),
            "hipSetDevice": (self._set_device, ctypes.c_int),
            "hipGetDevicePropertiesR0600": (self._properties, P, ctypes.c_int),
            "hipMalloc": (self._malloc, OUT, ctypes.c_size_t),
            "hipFree": (self._free, P),
            "hipMemcpy": (self._memcpy, P, P, ctypes.c_size_t, ctypes.c_int),
            "hipModuleLoadData": (self._load, OUT, P),
            "hipModuleGetFunction": (self._function, OUT, P, ctypes.c_char_p),
            "hipModuleLaunchKernel": (self._launch, P, U, U, U, U, U, U, U, P, P, P),
            "hipGetLastError": (self._forget,),
            "hipStreamSynchronize": (self._synchronize, P),
        }

    @staticmethod
    def _set(target: Any, value: int) -> int:
        target[0] = value
        return 0

    def _set_device(self, device: int) -> int:
        self.current = device
        return 0

    def _properties(self, target: int, device: int) -> int:
        ctypes.memmove(target + ARCH_NAME, f"{self.arch}:sramecc+:xnack-\0".encode(), len(self.arch) + 17)
        return 0

    def _malloc(self, target: Any, size: int) -> int:
        if code := self.status.get("hipMalloc"):
            return code
        buffer = ctypes.create_string_buffer(size + PAGE)  # HIP's are page-aligned
        address = ctypes.addressof(buffer) + -ctypes.addressof(buffer) % PAGE
        self.memory[address] = buffer
        target[0] = address
        return 0

    def _free(self, address: int) -> int:
        del self.memory[address]
        return 0

    def _memcpy(self, target: int, source: int, size: int, kind: int) -> int:
        self.copies.append((size, kind))
        ctypes.memmove(target, source, size)
        return 0

    def _load(self, target: Any, image: int) -> int:
        self.modules.append(ctypes.string_at(image, 4))
        target[0] = len(self.modules)
        return 0

    def _function(self, target: Any, module: int, name: bytes) -> int:
        self.functions.append((module, name.decode()))
        target[0] = len(self.functions)
        return 0

    def _launch(self, function: int, *rest: Any) -> int:
        gx, gy, gz, bx, by, bz, lds, stream, params, extra = rest
        marks = ctypes.cast(extra, ctypes.POINTER(P))
        assert (gy, gz, by, bz, lds, params) == (1, 1, 1, 1, 0, None)
        assert (marks[0], marks[2], marks[4]) == (1, 2, 3)
        size = ctypes.cast(marks[3], ctypes.POINTER(ctypes.c_size_t))[0]
        segment = ctypes.string_at(marks[1], size)
        self.launches.append(Launch(self.functions[function - 1], self.current, gx, bx, stream, segment))
        self.kernel(self.launches[-1])
        return self.status.get("hipModuleLaunchKernel", 0)

    def _forget(self) -> int:
        self.forgotten += 1
        return 0

    def _synchronize(self, stream: int | None) -> int:
        self.waits += 1
        return 0


_kept: list[Any] = []


def install(device: Device) -> None:
    """Load the library. Once per process, before hip-python's first call."""
    table = device.table()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "libamdhip64.so")
        path.write_bytes(shared_object(path.name, list(table)))
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    slots = (P * len(table)).in_dll(library, "slots")
    for number, (function, *types) in enumerate(table.values()):
        callback = ctypes.CFUNCTYPE(ctypes.c_int, *types)(function)
        slots[number] = ctypes.cast(callback, P).value
        _kept.append((library, callback))


def shared_object(soname: str, functions: list[str]) -> bytes:
    """An x86-64 ELF file: each function is `jmp *slots[i]`, `slots` a writable table."""
    count = len(functions)
    strings = "\0".join(["", soname, "slots", *functions, ""]).encode()
    symbols_at = HEADERS + 8 * count
    hash_at = symbols_at + 24 * (count + 2)
    strings_at = hash_at + 4 * (count + 5)
    end = strings_at + len(strings) + -(strings_at + len(strings)) % 16
    data_at = end + PAGE  # the same offset within its page, one page on: writable, apart from the code
    dynamic = b"".join(
        struct.pack("<qQ", tag, value)
        for tag, value in (
            (14, strings.index(soname.encode())), (4, hash_at), (5, strings_at), (6, symbols_at),
            (10, len(strings)), (11, 24), (0, 0),
        )
    )  # fmt: skip
    slots_at = data_at + len(dynamic)
    # jmp *disp32(%rip), padded to 8 bytes; the displacement counts from the end of the instruction.
    jumps = [(HEADERS + 8 * i, slots_at + 8 * i) for i in range(count)]
    code = b"".join(b"\xff\x25" + struct.pack("<i", slot - (at + 6)) + b"\xcc\xcc" for at, slot in jumps)
    entries = [(name, 0x12, at, 8) for name, (at, _) in zip(functions, jumps, strict=True)]
    entries.append(("slots", 0x11, slots_at, 8 * count))
    symbols = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", strings.index(b"\0" + name.encode() + b"\0") + 1, kind, 0, 1, at, size)
        for name, kind, at, size in entries
    )
    chain = struct.pack(f"<{count + 5}I", 1, count + 2, 1, 0, *range(2, count + 2), 0)  # one bucket holds all
    body = (code + symbols + chain + strings).ljust(end - HEADERS, b"\0")
    data = dynamic + bytes(8 * count)
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 4, 64, 0, 0)
    segments = [
        (1, 5, 0, 0, end, PAGE),
        (1, 6, end, data_at, len(data), PAGE),
        (2, 6, end, data_at, len(dynamic), 8),
        (0x6474E551, 6, 0, 0, 0, 16),
    ]
    table = b"".join(struct.pack("<IIQQQQQQ", k, f, o, a, a, s, s, align) for k, f, o, a, s, align in segments)
    return header + table + body + data
