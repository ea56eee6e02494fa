"""hkc, a tile compiler for AMD GPUs, and an emulator that executes what it makes.

::

    import hkc

    gemm = hkc.compile("gemm.hk", arch=…)   # a CompiledKernel: bytes, symbol, arguments, registers, LDS
    c = gemm(a, b)                          # on a GPU of that chip if there is one, else on the emulator

`import hkc` loads none of it: each name below is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hkc import emulate
    from hkc.api import CompiledKernel, PythonKernel, compile, kernel
    from hkc.runtime.device import LaunchResult
    from hkc.support.errors import HkcBug, HkcError, HkcUsageError

__version__ = "0.1.0"

__all__ = [
    "CompiledKernel",
    "HkcBug",
    "HkcError",
    "HkcUsageError",
    "LaunchResult",
    "PythonKernel",
    "__version__",
    "compile",
    "emulate",
    "kernel",
]

_HOMES = {
    "CompiledKernel": "hkc.api",
    "HkcBug": "hkc.support.errors",
    "HkcError": "hkc.support.errors",
    "HkcUsageError": "hkc.support.errors",
    "LaunchResult": "hkc.runtime.device",
    "PythonKernel": "hkc.api",
    "compile": "hkc.api",
    "kernel": "hkc.api",
}


def __getattr__(name: str) -> Any:
    if name == "emulate":
        return import_module("hkc.emulate")
    if name not in _HOMES:
        raise AttributeError(f"module 'hkc' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
