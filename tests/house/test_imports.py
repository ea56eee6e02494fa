"""Importing hkc is cheap: the worker process loads what compiling needs, the first launch what a GPU needs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

HEAVY = {"torch_mlir", "mlir", "hip", "rocm", "torch", "numba", "llvmlite", "lark", "triton"}
REPORT = "import sys; print(' '.join(sorted({name.partition('.')[0] for name in sys.modules})))"


@pytest.mark.parametrize("module", ["hkc", "hkc.cli"])
def test_import_loads_nothing_heavy(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"there is no {module} yet")
    ran = subprocess.run(
        [sys.executable, "-c", f"import {module}; {REPORT}"], capture_output=True, text=True, check=True
    )
    loaded = set(ran.stdout.split())
    assert "hkc" in loaded
    assert loaded & HEAVY == set()
