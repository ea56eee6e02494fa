"""LLVM IR text to a code object. These functions run in the worker process: LLVM's fatal errors end their process."""

from __future__ import annotations

from dataclasses import dataclass

from hkc.machine.codeobject import CodeObject, Kernel
from hkc.machine.lines import Line, line_table
from hkc.support import linker, llvm

CODE_OBJECT_VERSION = 5  # what every ROCm since 6 loads
_FLAGS = (("amdhsa_code_object_version", CODE_OBJECT_VERSION * 100),)


@dataclass(frozen=True)
class Generated:
    """A compiled module: hsaco, kernels with their resources, line table, assembly (if asked for), LLVM's remarks."""

    hsaco: bytes
    kernels: tuple[Kernel, ...]
    lines: tuple[Line, ...]
    assembly: str | None
    remarks: tuple[llvm.Remark, ...]


def generate(ir: str, arch: str, assembly: bool = False, debug: bool = False) -> Generated:
    """Compile and link an LLVM IR module for the chip `arch`. With `assembly` code is generated twice, which costs.

    The hsaco holds debug sections only with `debug`, so that a kernel's bytes don't depend on its file's name; the line
    table is read before they are left out.

    Raises `HkcUsageError` for a chip unknown to LLVM, `HkcError` for a missing tool, `HkcBug` for everything that the
    code generator or the linker objects to.
    """
    kinds: tuple[llvm.Kind, ...] = ("asm", "object") if assembly else ("object",)
    emitted = llvm.emit(ir, arch, kinds, llvm.Options(flags=_FLAGS))
    whole = linker.link(emitted.outputs["object"], debug=True)
    hsaco = whole if debug else linker.link(emitted.outputs["object"])
    text = emitted.outputs["asm"].decode() if assembly else None
    return Generated(hsaco, CodeObject.parse(hsaco).kernels, line_table(whole), text, emitted.remarks)
