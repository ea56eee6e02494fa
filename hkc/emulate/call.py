"""`run`: a kernel of any code object on NumPy arrays, its arguments packed by what the code object says of them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.launch import INSTRUCTION_LIMIT, Extents, Progress, Result, launch
from hkc.emulate.memory import Memory
from hkc.emulate.observe import Observer
from hkc.emulate.program import Program
from hkc.machine.codeobject import Argument, Kernel
from hkc.machine.lines import beside
from hkc.support.errors import Diagnostic, HkcUsageError, error

_FLOATS = {2: "<e", 4: "<f", 8: "<d"}
_VALUES = frozenset({"by_value"})
_POINTERS = frozenset({"global_buffer"})
_LDS_POINTER = "dynamic_shared_pointer"


@dataclass(frozen=True)
class Output:
    """An array whose contents the kernel must not read: its memory starts as never written, so that such a read shows.

    Bytes that the kernel doesn't write keep what the array holds.
    """

    array: NDArray[Any]


Value = NDArray[Any] | Output | np.generic | int | float | bytes | None
"""An argument. A buffer: an array (read, and updated in place), an `Output`, None for a null pointer, or an int that
is an address. A number: int or float, converted to the size of the argument, or a NumPy scalar of exactly that size.
A struct: its bytes."""


def run(
    code: Program | bytes | Path | str,
    *arguments: Value,
    kernel: str | None = None,
    grid: int | Sequence[int] = 1,
    block: int | Sequence[int] | None = None,
    dynamic_lds: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
    observers: Sequence[Observer] = (),
    limit: int = INSTRUCTION_LIMIT,
) -> Result:
    """Run a kernel of a code object (a file, its bytes, or a loaded `Program`) and update the arrays in place.

    `grid` counts workgroups, `block` threads of one (both up to three extents; default block: as many as the kernel
    takes). Hidden arguments are filled in. `dynamic_lds` is in bytes; `seed`, `observers` and `limit` mean what they do
    in `launch`.

    Raises `HkcUsageError` HK606 for an unknown kernel, HK712 for arguments that don't fit; `HkcError` HK6xx for a
    broken code object, HK713 for an unreadable file, other HK7xx for what the kernel does wrong.
    """
    program = code if isinstance(code, Program) else Program.load(code) if isinstance(code, bytes) else opened(code)
    found = program.kernel(kernel)
    memory = Memory()
    kernarg, buffers = _pack(found, arguments, memory, dynamic_lds)
    result = launch(
        program,
        found.name,
        workgroups=extents(grid),
        threads=extents(found.metadata.max_threads if block is None else block),
        kernarg=kernarg,
        memory=memory,
        seed=seed,
        dynamic_lds=dynamic_lds,
        progress=progress,
        observers=observers,
        limit=limit,
    )
    for address, array in buffers:
        if array.flags.writeable:
            _fetch(memory, address, array)
    return result


def opened(path: Path | str, arch: str | None = None, kernel: str | None = None) -> Program:
    """The code object of a file, with the line table beside it. Raises like `Program.load` and `read`."""
    code = read(path)
    return Program.load(code, lines=beside(Path(path), code), arch=arch, kernel=kernel)


def read(path: Path | str) -> bytes:
    """The bytes of a file. Raises HK713 where it can't be read."""
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise error("HK713", f"can't read `{path}`: {problem.strerror or problem}", hint="check the path") from None


def explicit(kernel: Kernel) -> tuple[Argument, ...]:
    """The arguments that a caller gives, in order."""
    return tuple(a for a in kernel.metadata.args if not a.kind.startswith("hidden_"))


def extents(given: int | Sequence[int]) -> Extents:
    """One to three extents as three."""
    x, y, z = (*((given,) if isinstance(given, int) else given), 1, 1)[:3]
    return x, y, z


def _pack(
    kernel: Kernel, values: Sequence[Value], memory: Memory, dynamic_lds: int
) -> tuple[bytes, list[tuple[int, NDArray[Any]]]]:
    """The argument segment, and the arrays by address."""
    wanted = explicit(kernel)
    if len(values) != len(wanted):
        text = f"`{kernel.name}` takes {len(wanted)} arguments, not {len(values)}"
        hint = "; ".join(f"{i}: {describe(a)}" for i, a in enumerate(wanted)) or None
        raise HkcUsageError(Diagnostic("HK712", text, hint=hint))
    segment = bytearray(max((a.offset + a.size for a in wanted), default=0))
    buffers: dict[int, tuple[int, NDArray[Any]]] = {}
    for number, (argument, value) in enumerate(zip(wanted, values, strict=True)):
        array = value.array if isinstance(value, Output) else value
        if isinstance(array, np.ndarray) and array.ndim and argument.kind != _LDS_POINTER:
            if id(array) not in buffers:
                buffers[id(array)] = _allocate(kernel, number, value, array, memory), array
            array = buffers[id(array)][0]
        content = _encode(kernel, number, argument, array)
        segment[argument.offset : argument.offset + argument.size] = content
    return bytes(segment), list(buffers.values())


def describe(argument: Argument) -> str:
    """`x: buffer` or `4 bytes`, for messages and lists."""
    what = "buffer" if argument.kind in _POINTERS else f"{argument.size} bytes"
    what = what if argument.kind in _POINTERS | _VALUES else argument.kind
    return f"{argument.name}: {what}" if argument.name else what


def _allocate(kernel: Kernel, number: int, value: Value, array: NDArray[Any], memory: Memory) -> int:
    if not array.flags.c_contiguous:
        raise _misfit(kernel, number, "an array that isn't contiguous; numpy.ascontiguousarray makes one that is")
    address = memory.allocate(array.nbytes, f"argument {number}")
    if not isinstance(value, Output):
        memory.write(address, array)
    return address


def _fetch(memory: Memory, address: int, array: NDArray[Any]) -> None:
    """Copy what was written back into the array."""
    allocation = memory.find(address)
    assert allocation is not None
    space, target = allocation.space, array.reshape(-1).view(np.uint8)
    written = True if space.complete else space.valid[: target.size].view(np.bool_)
    np.copyto(target, space.data[: target.size], where=written)


def _encode(kernel: Kernel, number: int, argument: Argument, value: Any) -> bytes:
    """The bytes of one argument; buffers are addresses by now."""
    if argument.kind not in _POINTERS | _VALUES | {_LDS_POINTER}:
        raise error(
            "HK714", f"`{kernel.name}` takes an argument of kind {argument.kind}, which the emulator can't make"
        )
    size = argument.size
    if value is None and argument.kind not in _VALUES:
        value = 0
    if isinstance(value, np.generic | np.ndarray):
        value = value.tobytes()
    if isinstance(value, bytes) and len(value) == size:
        return value
    if isinstance(value, float) and size in _FLOATS and argument.kind in _VALUES:
        return struct.pack(_FLOATS[size], value)
    if size and isinstance(value, int) and -(1 << 8 * size - 1) <= value < 1 << 8 * size:
        return (value % (1 << 8 * size)).to_bytes(size, "little")
    shown = f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)
    raise _misfit(kernel, number, f"{shown}, which doesn't fit ({describe(argument)})")


def _misfit(kernel: Kernel, number: int, what: str) -> HkcUsageError:
    return HkcUsageError(Diagnostic("HK712", f"`{kernel.name}`: argument {number} is {what}"))
