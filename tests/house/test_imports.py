"""Importing hkc is cheap: the worker process loads what compiling needs, the first launch what a GPU needs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"torch_mlir", "mlir", "hip", "rocm", "torch", "numba", "llvmlite", "lark", "triton"}
REPORT = "import sys; print(' '.join(sorted({name.partition('.')[0] for name in sys.modules})))"
COMPILE = """
import sys
from pathlib import Path
from hkc import pipeline
from hkc.support import worker
from hkc.support.errors import Source
checked = pipeline.check(Source("gemm.hk", Path(sys.argv[1]).read_text()))
assert worker.call("hkc.pipeline:compile_kernel", checked, "gfx942").hsaco.startswith(b"\\x7fELF")
libraries = [line for line in Path("/proc/self/maps").read_text().splitlines() if "LLVM" in line or "MLIR" in line]
assert not libraries, libraries
"""


def _modules_after(code: str, *arguments: Path) -> set[str]:
    command = [sys.executable, "-c", code + "\n" + REPORT, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.split())


@pytest.mark.parametrize("module", ["hkc", "hkc.cli"])
def test_import_loads_nothing_heavy(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"there is no {module} yet")
    loaded = _modules_after(f"import {module}")
    assert "hkc" in loaded
    assert loaded & HEAVY == set()


def test_compiling_loads_neither_mlir_nor_llvm_here(root: Path) -> None:
    loaded = _modules_after(COMPILE, root / "examples/gemm.hk")
    assert loaded & (HEAVY - {"lark"}) == set()
