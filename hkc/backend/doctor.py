"""What this machine's toolchain consists of, and the proof that it compiles for each chip."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hkc.support import linker, llvm, mlir, worker
from hkc.support.errors import HkcBug, HkcError

_PACKAGES = ("lark", "ml_dtypes", "msgpack", "numpy")
_OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Check:
    """One piece: whether it is in order, its version, where it lies, and a note (what is wrong, or worth knowing).

    What isn't `required` may be missing: hkc then does without it.
    """

    name: str
    ok: bool
    version: str = ""
    where: str = ""
    note: str = ""
    required: bool = True


def diagnose() -> list[Check]:
    """Every piece of the toolchain, found as a compilation finds it. Never raises for a missing or broken piece."""
    return [
        _guarded("Python", _python),
        _guarded("MLIR bindings", _mlir),
        _guarded("LLVM", _llvm),
        _guarded("linker", _linker),
        *(_package(name, required=True) for name in _PACKAGES),
        _package("numba", required=False),
        _guarded("GPU", _gpu),
    ]


def prove(arch: str) -> Check:
    """Compile, link and disassemble a kernel with everything that hkc emits for the chip `arch`."""

    def proof() -> Check:
        total, missing = worker.call("hkc.backend.probe:prove", arch)
        note = f"not generated: {', '.join(missing)}" if missing else f"{total} operations compile to what they should"
        return Check(f"code for {arch}", not missing, note=note)

    return _guarded(f"code for {arch}", proof)


def mlir_root() -> tuple[str, str]:
    """Root package and folder of the MLIR bindings, after importing them. For the worker process."""
    found = mlir.ir.__file__
    return mlir.root(), str(Path(found).parent)


def llvm_library() -> tuple[str, str]:
    """Version and path of the LLVM in use. For the worker process."""
    found = llvm.library()
    return found.version, str(found.path)


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except HkcError as failure:
        diagnostic = failure.diagnostics[0]
        note = f"{diagnostic.message}; {diagnostic.hint}" if diagnostic.hint else diagnostic.message
        return Check(name, False, note=note)
    except HkcBug as bug:
        saved = f" (see {bug.reproducer})" if bug.reproducer else ""
        return Check(name, False, note=bug.message.splitlines()[0] + saved)


def _python() -> Check:
    note = "" if sys.version_info >= _OLDEST_PYTHON else "hkc needs Python 3.11 or newer"
    return Check("Python", not note, platform.python_version(), sys.executable, note)


def _mlir() -> Check:
    root, folder = worker.call("hkc.backend.doctor:mlir_root")
    return Check("MLIR bindings", True, _version(root), folder, f"package {root}")


def _llvm() -> Check:
    version, path = worker.call("hkc.backend.doctor:llvm_library")
    wheel = _version(llvm.WHEEL)
    from_wheel = wheel and Path(path).parts[-3:-1] == ("bindings", "llvm")
    return Check("LLVM", True, version, path, f"{llvm.WHEEL} {wheel}" if from_wheel else "installed")


def _linker() -> Check:
    found = next((c for c in linker.candidates() if c.version), None)
    if found is None:
        raise linker.none_runs()
    return Check("linker", True, found.version, " ".join(found.command), f"from {found.origin}")


def _package(name: str, *, required: bool) -> Check:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        note = f"run `pip install {name}`" if required else "not installed; hkc does without it"
        return Check(name, False, note=note, required=required)
    return Check(name, True, _version(name), str(Path(spec.origin).parent), required=required)


def _gpu() -> Check:
    """Without loading HIP: whether there is a device to talk to and something to talk with."""
    if not Path("/dev/kfd").exists():
        why = "no AMD GPU: /dev/kfd does not exist"
    elif importlib.util.find_spec("hip") is None:
        why = "hip-python is not installed"
    else:
        return Check("GPU", True, _version("hip-python"), "/dev/kfd", required=False)
    return Check("GPU", False, note=f"{why}; kernels run on the emulator", required=False)


def _version(package: str) -> str:
    """The version of the installed distribution `package` or of the one that provides the module of this name."""
    providers = importlib.metadata.packages_distributions().get(package, [package])
    try:
        return importlib.metadata.version(providers[0])
    except importlib.metadata.PackageNotFoundError:
        return ""
