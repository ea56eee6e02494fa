"""Importing hkc is cheap: the worker process loads what compiling needs, the first launch what a GPU needs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

HEAVY = {"torch_mlir", "mlir", "hip", "rocm", "torch", "numba", "llvmlite", "lark", "elftools", "triton"}
REPORT = "import sys; print(' '.join(sorted({name.partition('.')[0] for name in sys.modules})))"


@pytest.mark.parametrize("statement", ["import hkc", "import hkc.cli"])
def test_import_loads_nothing_heavy(statement: str) -> None:
    module = statement.removeprefix("import ")
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"there is no {module} yet")
    ran = subprocess.run([sys.executable, "-c", f"{statement}; {REPORT}"], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "hkc" in loaded
    assert loaded & HEAVY == set()
