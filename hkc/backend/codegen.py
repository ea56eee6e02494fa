"""LLVM IR text to a code object. These functions run in the worker process: LLVM's fatal errors end their process."""

from __future__ import annotations

from dataclasses import dataclass

from hkc.machine.codeobject import CodeObject, Kernel
from hkc.support import linker, llvm

CODE_OBJECT_VERSION = 5  # what every ROCm since 6 loads
_FLAGS = (("amdhsa_code_object_version", CODE_OBJECT_VERSION * 100),)


@dataclass(frozen=True)
class Generated:
    """A compiled module: the hsaco, its kernels with their resources, assembly (where asked for), LLVM's remarks."""

    hsaco: bytes
    kernels: tuple[Kernel, ...]
    assembly: str | None
    remarks: tuple[llvm.Remark, ...]


def generate(ir: str, arch: str, assembly: bool = False) -> Generated:
    """Compile and link an LLVM IR module for the chip `arch`. With `assembly` code is generated twice, which costs.

    Raises `HkcUsageError` for a chip unknown to LLVM, `HkcError` for a missing tool, `HkcBug` for everything that the
    code generator or the linker objects to.
    """
    kinds: tuple[llvm.Kind, ...] = ("asm", "object") if assembly else ("object",)
    emitted = llvm.emit(ir, arch, kinds, llvm.Options(flags=_FLAGS))
    hsaco = linker.link(emitted.outputs["object"])
    text = emitted.outputs["asm"].decode() if assembly else None
    return Generated(hsaco, CodeObject.parse(hsaco).kernels, text, emitted.remarks)
