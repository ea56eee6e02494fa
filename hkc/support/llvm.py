"""AMD's LLVM through its C API: LLVM IR text to assembly or object code, and instruction decoding.

The code generator must know the asynchronous direct-to-LDS marks (`llvm.amdgcn.asyncmark`, AMD's LLVM 23 and later):
an older one compiles the same kernels without complaint into other code. The wheel `rocm-bindings-compiler` comes
first, so that every machine generates the same code; an installed ROCm serves where the wheel is missing;
`HKC_LIBLLVM` overrides both.

LLVM ends the process on a fatal error, therefore these functions are called in the worker (`hkc.support.worker`) only.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hkc.support import elfstub
from hkc.support.errors import Diagnostic, HkcBug, HkcUsageError, error

TRIPLE = "amdgcn-amd-amdhsa"
PROBE = "llvm.amdgcn.asyncmark"
WHEEL = "rocm-bindings-compiler"
AGPR_FORM = b"-amdgpu-mfma-vgpr-form=false"
"""Lets each kernel say by its `amdgpu-agpr-alloc` whether MFMAs leave their results in AGPRs; by default all use VGPRs,
and LLVM moves to AGPRs and back what has no room there."""

Kind = Literal["object", "asm", "llvm"]
Severity = Literal["error", "warning", "remark", "note"]
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "remark", "note")  # LLVMDiagnosticSeverity

_HANDLER = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
_MESSAGE = POINTER(c_void_p)
_SIGNATURES: dict[str, tuple[Any, ...]] = {  # name: result, arguments...
    "ContextCreate": (c_void_p,),
    "ContextDispose": (None, c_void_p),
    "ContextSetDiagnosticHandler": (None, c_void_p, _HANDLER, c_void_p),
    "GetDiagInfoDescription": (c_void_p, c_void_p),
    "GetDiagInfoSeverity": (c_int, c_void_p),
    "DisposeMessage": (None, c_void_p),
    "CreateMemoryBufferWithMemoryRangeCopy": (c_void_p, c_char_p, c_size_t, c_char_p),
    "ParseIRInContext": (c_int, c_void_p, c_void_p, POINTER(c_void_p), _MESSAGE),
    "VerifyModule": (c_int, c_void_p, c_int, _MESSAGE),
    "CloneModule": (c_void_p, c_void_p),
    "DisposeModule": (None, c_void_p),
    "PrintModuleToString": (c_void_p, c_void_p),
    "GetModuleFlag": (c_void_p, c_void_p, c_char_p, c_size_t),
    "AddModuleFlag": (None, c_void_p, c_int, c_char_p, c_size_t, c_void_p),
    "Int32TypeInContext": (c_void_p, c_void_p),
    "ConstInt": (c_void_p, c_void_p, c_uint64, c_int),
    "ValueAsMetadata": (c_void_p, c_void_p),
    "SetTarget": (None, c_void_p, c_char_p),
    "SetModuleDataLayout": (None, c_void_p, c_void_p),
    "GetTargetFromTriple": (c_int, c_char_p, POINTER(c_void_p), _MESSAGE),
    "CreateTargetMachine": (c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_int, c_int),
    "DisposeTargetMachine": (None, c_void_p),
    "CreateTargetDataLayout": (c_void_p, c_void_p),
    "DisposeTargetData": (None, c_void_p),
    "CreatePassBuilderOptions": (c_void_p,),
    "DisposePassBuilderOptions": (None, c_void_p),
    "RunPasses": (c_void_p, c_void_p, c_char_p, c_void_p, c_void_p),
    "GetErrorMessage": (c_void_p, c_void_p),
    "DisposeErrorMessage": (None, c_void_p),
    "TargetMachineEmitToMemoryBuffer": (c_int, c_void_p, c_void_p, c_int, _MESSAGE, POINTER(c_void_p)),
    "GetBufferStart": (c_void_p, c_void_p),
    "GetBufferSize": (c_size_t, c_void_p),
    "DisposeMemoryBuffer": (None, c_void_p),
    "CreateDisasmCPU": (c_void_p, c_char_p, c_char_p, c_void_p, c_int, c_void_p, c_void_p),
    "DisasmInstruction": (c_size_t, c_void_p, c_void_p, c_uint64, c_uint64, c_void_p, c_size_t),
    "LookupIntrinsicID": (c_uint, c_char_p, c_size_t),
    "ParseCommandLineOptions": (None, c_int, POINTER(c_char_p), c_char_p),
    "GetVersion": (None, POINTER(c_uint), POINTER(c_uint), POINTER(c_uint)),
}


@dataclass(frozen=True)
class Remark:
    """What LLVM said while it worked: severity and text."""

    severity: Severity
    message: str


@dataclass(frozen=True)
class Emission:
    """The outputs asked for, by kind (assembly and LLVM IR as UTF-8 bytes), and LLVM's remarks and warnings."""

    outputs: Mapping[Kind, bytes]
    remarks: tuple[Remark, ...]


def candidates() -> Iterator[Path]:
    """Where an AMD LLVM may lie, in the order of preference; `HKC_LIBLLVM` alone where it is set."""
    if chosen := os.environ.get("HKC_LIBLLVM"):
        yield Path(chosen)
        return
    spec = importlib.util.find_spec("rocm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(folder, "bindings", "llvm", "libLLVM.so")
    for root in (os.environ.get("ROCM_PATH"), os.environ.get("ROCM_HOME"), "/opt/rocm"):
        if root:
            yield from sorted(Path(root, "lib", "llvm", "lib").glob("libLLVM.so*"))


@functools.cache
def library() -> Library:
    """The AMD LLVM of this process. Raises `HkcError` HK651 that tells what was tried where none will do."""
    elfstub.load()
    tried: list[str] = []
    for path in candidates():
        try:
            found = Library(path)
        except OSError as failure:
            tried.append(str(failure) if str(path) in str(failure) else f"{path}: {failure}")
            continue
        if found.knows(PROBE):
            return found
        tried.append(f"{path}: LLVM {found.version} doesn't know {PROBE}")
    listing = "; ".join(tried) or "nothing is installed"
    raise error("HK651", f"no AMD LLVM that can compile kernels: {listing}", hint=f"run `pip install {WHEEL}`")


@dataclass(frozen=True)
class Options:
    """What to do with a module: LLVM's pass pipeline, target features that refine the chip ("+xnack,-sramecc"), and
    module flags to set where the IR doesn't.
    """

    passes: str = "default<O3>"
    features: str = ""
    flags: tuple[tuple[str, int], ...] = ()


def emit(ir: str, arch: str, kinds: Sequence[Kind] = ("object",), options: Options | None = None) -> Emission:
    """Optimise LLVM IR text once and emit it in every kind asked for, for the chip `arch`.

    Raises `HkcUsageError` HK652 for a chip that LLVM doesn't know and `HkcBug` with LLVM's words for invalid IR and for
    errors of the code generator.
    """
    return library().emit(ir, arch, kinds, options or Options())


class Library:
    """A loaded libLLVM. Raises `OSError` for a file that is none, or one without the AMDGPU target."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = ctypes.CDLL(str(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
        for part in ("TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser", "Disassembler"):
            try:
                getattr(self._handle, f"LLVMInitializeAMDGPU{part}")()
            except AttributeError:
                raise OSError("this LLVM has no AMDGPU target") from None
        for name, (result, *arguments) in _SIGNATURES.items():
            function = getattr(self._handle, f"LLVM{name}")
            function.restype, function.argtypes = result, arguments
        self._known: set[str] = set()
        options = (c_char_p * 2)(b"hkc", AGPR_FORM)
        self.call("ParseCommandLineOptions", len(options), options, None)

    def call(self, name: str, *arguments: Any) -> Any:
        """The C function `LLVM<name>`."""
        return getattr(self._handle, f"LLVM{name}")(*arguments)

    def knows(self, intrinsic: str) -> bool:
        """Whether the intrinsic of this name exists."""
        return bool(self.call("LookupIntrinsicID", intrinsic.encode(), len(intrinsic)))

    @property
    def version(self) -> str:
        """For instance "23.0.0"."""
        numbers = [c_uint() for _ in range(3)]
        self.call("GetVersion", *map(byref, numbers))
        return ".".join(str(n.value) for n in numbers)

    def text(self, pointer: int | None, dispose: str = "DisposeMessage") -> str:
        """The C string at `pointer`, which is then given back to LLVM."""
        if not pointer:
            return ""
        content = ctypes.string_at(pointer).decode(errors="replace")
        self.call(dispose, pointer)
        return content

    def emit(self, ir: str, arch: str, kinds: Sequence[Kind], options: Options) -> Emission:
        """See the function of this name."""
        self._check_arch(arch)
        with _Session(self, arch, options.features) as session:
            session.parse(ir)
            session.set_flags(options.flags)
            session.optimise(options.passes)
            outputs = {kind: session.emit(kind) for kind in kinds}
            return Emission(outputs, tuple(dict.fromkeys(session.remarks)))

    def decoder(self, arch: str) -> Callable[[int, int, int], tuple[int, str]]:
        """A function from the address of bytes in memory, their number and the program counter to the size and text of
        the instruction there; size 0 where there is none.
        """
        self._check_arch(arch)
        disassembler = self.call("CreateDisasmCPU", TRIPLE.encode(), arch.encode(), None, 0, None, None)
        step, text = self._handle.LLVMDisasmInstruction, ctypes.create_string_buffer(256)

        def decode(memory: int, count: int, counter: int) -> tuple[int, str]:
            size = step(disassembler, memory, count, counter, text, 256)
            return size, text.value.decode().strip() if size else ""

        return decode

    def _check_arch(self, arch: str) -> None:
        """Refuse a chip unknown to LLVM, which would only print a warning and go on for a featureless one.

        The machine number in the ELF header of an empty module tells: it is 0 for that one.
        """
        if arch in self._known:
            return
        with _Session(self, arch, "") as session:
            session.parse("")
            flags = int.from_bytes(session.emit("object")[48:52], "little")
        if flags & 0xFF == 0:
            raise HkcUsageError(Diagnostic("HK652", f"LLVM {self.version} can't generate code for `{arch}`"))
        self._known.add(arch)


class _Session:
    """One module on its way through LLVM, with everything LLVM allocates for it."""

    def __init__(self, library: Library, arch: str, features: str) -> None:
        self._llvm = library
        self.remarks: list[Remark] = []
        self._context = library.call("ContextCreate")
        self._handler = _HANDLER(self._note)  # kept: LLVM holds only its address
        library.call("ContextSetDiagnosticHandler", self._context, self._handler, None)
        self._module = c_void_p()
        target, message = c_void_p(), c_void_p()
        if library.call("GetTargetFromTriple", TRIPLE.encode(), byref(target), byref(message)):
            raise HkcBug(f"LLVM: {library.text(message.value)}")
        aggressive, pic, default_code_model = 3, 2, 0
        self._machine = library.call(
            "CreateTargetMachine", target, TRIPLE.encode(), arch.encode(), features.encode(),
            aggressive, pic, default_code_model,
        )  # fmt: skip

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *_: object) -> None:
        if self._module:
            self._llvm.call("DisposeModule", self._module)
        self._llvm.call("DisposeTargetMachine", self._machine)
        self._llvm.call("ContextDispose", self._context)

    def parse(self, ir: str) -> None:
        text, message = ir.encode(), c_void_p()
        buffer = self._llvm.call("CreateMemoryBufferWithMemoryRangeCopy", text, len(text), b"kernel.ll")
        if self._llvm.call("ParseIRInContext", self._context, buffer, byref(self._module), byref(message)):
            raise HkcBug(f"LLVM can't read its IR: {self._llvm.text(message.value)}")
        self._llvm.call("SetTarget", self._module, TRIPLE.encode())
        layout = self._llvm.call("CreateTargetDataLayout", self._machine)
        self._llvm.call("SetModuleDataLayout", self._module, layout)
        self._llvm.call("DisposeTargetData", layout)
        return_status = 2
        if self._llvm.call("VerifyModule", self._module, return_status, byref(message)):
            raise HkcBug(f"LLVM rejects its IR: {self._llvm.text(message.value)}")
        self._llvm.call("DisposeMessage", message)

    def set_flags(self, flags: Sequence[tuple[str, int]]) -> None:
        warn_of_another_value = 1
        integer = self._llvm.call("Int32TypeInContext", self._context)
        for name, value in flags:
            key = name.encode()
            if not self._llvm.call("GetModuleFlag", self._module, key, len(key)):
                node = self._llvm.call("ValueAsMetadata", self._llvm.call("ConstInt", integer, value, 0))
                self._llvm.call("AddModuleFlag", self._module, warn_of_another_value, key, len(key), node)

    def optimise(self, passes: str) -> None:
        options = self._llvm.call("CreatePassBuilderOptions")
        failure = self._llvm.call("RunPasses", self._module, passes.encode(), self._machine, options)
        self._llvm.call("DisposePassBuilderOptions", options)
        if failure:
            message = self._llvm.call("GetErrorMessage", failure)
            raise HkcBug(f"LLVM can't optimise: {self._llvm.text(message, 'DisposeErrorMessage')}")
        self._raise_errors()

    def emit(self, kind: Kind) -> bytes:
        if kind == "llvm":
            return self._llvm.text(self._llvm.call("PrintModuleToString", self._module)).encode()
        copy = self._llvm.call("CloneModule", self._module)  # the code generator changes what it is given
        buffer, message = c_void_p(), c_void_p()
        file_type = {"asm": 0, "object": 1}[kind]
        failed = self._llvm.call(
            "TargetMachineEmitToMemoryBuffer", self._machine, copy, file_type, byref(message), byref(buffer)
        )
        self._llvm.call("DisposeModule", copy)
        if failed:
            raise HkcBug(f"LLVM can't generate code: {self._llvm.text(message.value)}")
        content = ctypes.string_at(self._llvm.call("GetBufferStart", buffer), self._llvm.call("GetBufferSize", buffer))
        self._llvm.call("DisposeMemoryBuffer", buffer)
        self._raise_errors()
        return content

    def _note(self, info: int, _: object) -> None:
        severity = _SEVERITIES[self._llvm.call("GetDiagInfoSeverity", info)]
        self.remarks.append(Remark(severity, self._llvm.text(self._llvm.call("GetDiagInfoDescription", info))))

    def _raise_errors(self) -> None:
        if errors := [r.message for r in self.remarks if r.severity == "error"]:
            raise HkcBug(f"LLVM can't generate code: {errors[0]}", details="\n".join(errors))
