"""MLIR's Python bindings, and the one place that knows what their root package is called.

`from hkc.support.mlir import ir, arith, context` works with the wheel `torch-mlir` and with any other build of the
upstream bindings of the same vintage called `mlir`. Modules are imported when they are first asked for: the dialect
wrappers are big. To be used in the worker process only, since MLIR ends its process on some errors.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hkc.support.errors import error

if TYPE_CHECKING:
    from torch_mlir import ir, passmanager, rewrite
    from torch_mlir.dialects import arith, cf, ext, func, gpu, irdl, llvm, math, memref, rocdl, scf, tensor, vector

ROOTS = ("torch_mlir", "mlir")
UNNAMED = "-"
"""What MLIR calls a text that comes from no file."""

WHEEL = "torch-mlir==20261001"
_PARTS = ("ir", "passmanager", "rewrite")
__all__ = [
    "UNNAMED", "Message", "Place", "announce", "arith", "cf", "context", "ext", "func", "gpu", "ir", "irdl", "llvm",
    "math", "memref", "messages", "passmanager", "places", "rewrite", "rocdl", "root", "run_passes", "scf", "tensor",
    "vector",
]  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A position in a source: the file as the location names it, 1-based line and column."""

    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Message:
    """A diagnostic of MLIR: severity ("error", "warning", "note", "remark"), text, places in order, and its notes."""

    severity: str
    text: str
    places: tuple[Place, ...]
    notes: tuple[Message, ...]


@functools.cache
def root() -> str:
    """The bindings' root package. Raises `HkcError` HK654 where none is installed."""
    for name in ROOTS:
        spec = importlib.util.find_spec(name)
        if spec is not None and importlib.util.find_spec(f"{name}.ir") is not None:
            return name
    raise error("HK654", "MLIR's Python bindings are not installed", hint=f"run `pip install {WHEEL}`")


def context() -> ir.Context:
    """A context for one compilation: a single thread, unregistered operations refused, errors raised as `MLIRError`."""
    made = _import("ir").Context()
    made.enable_multithreading(False)
    return made


def run_passes(module: Any, names: str) -> None:
    """Run passes of MLIR, such as `"canonicalize,cse"`. What they leave is verified only with `HKC_DEBUG=1`: that takes
    as long as the passes, and the pipeline does it at the end of each stage."""
    manager = _import("passmanager").PassManager.parse(f"builtin.module({names})")
    manager.enable_verifier(os.environ.get("HKC_DEBUG") == "1")
    manager.run(module.operation)


def announce(dialect: str) -> None:
    """Tell the bindings that a dialect's classes are all registered; else they look for a module of it at every op."""
    sys.modules.setdefault(f"{root()}.dialects.{dialect}", ModuleType(dialect))


def messages(failure: ir.MLIRError) -> tuple[Message, ...]:
    """What an `MLIRError` has to say, as plain data."""
    return tuple(_message(d) for d in failure.error_diagnostics)


def places(location: ir.Location) -> tuple[Place, ...]:
    """The source positions that a location is made of: fused ones in order, of a call site the callee first."""
    return tuple(dict.fromkeys(_places(_import("ir"), location)))


def _message(diagnostic: Any) -> Message:
    severity = diagnostic.severity.name.lower()
    notes = tuple(_message(n) for n in diagnostic.notes)
    return Message(severity, diagnostic.message, places(diagnostic.location), notes)


def _places(module: Any, location: Any) -> Iterator[Place]:
    location = module.Location.from_attr(location.attr)  # diagnostics hand out the base class
    match location:
        case module.FileLineColLoc():
            yield Place(location.filename, location.start_line, location.start_col)
        case module.NameLoc():
            yield from _places(module, location.child_loc)
        case module.FusedLoc():
            for part in location.locations:
                yield from _places(module, part)
        case module.CallSiteLoc():
            yield from _places(module, location.callee)
            yield from _places(module, location.caller)


def _import(name: str) -> ModuleType:
    path = f"{root()}.{name}" if name in _PARTS else f"{root()}.dialects.{name}"
    try:
        return importlib.import_module(path)
    except ImportError as failure:
        message = f"the MLIR bindings `{root()}` lack {path} ({failure})"
        raise error("HK654", message, hint=f"run `pip install {WHEEL}`") from failure


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        globals()[name] = found = _import(name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
