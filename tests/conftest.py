"""What all tests share: hypothesis draws the same examples on every run, and GPU tests say why they were skipped;
examples are compiled once."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import hypothesis
import pytest

import hkc
from hkc.api import CompiledKernel

EXAMPLES = Path(__file__).parents[1] / "examples"

hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@cache
def reason_without_gpu() -> str | None:
    """Why no kernel can be launched on a GPU here; None where one can."""
    if not Path("/dev/kfd").exists():
        return "no AMD GPU: /dev/kfd does not exist"
    try:
        from hip import hip
    except ImportError:
        return "hip-python is not installed (pip install 'hkc[hip]')"
    try:
        error, count = hip.hipGetDeviceCount()
    except (OSError, RuntimeError) as problem:
        return f"hip-python finds no HIP runtime: {problem}"
    return None if error == hip.hipError_t.hipSuccess and count else f"hip-python finds no device ({error})"


@pytest.fixture(scope="session")
def example() -> Callable[..., CompiledKernel]:
    """`example("gemm", chip, BM=64)`: a compiled example, each variant compiled once."""

    @cache
    def compiled(name: str, arch: str, **constants: object) -> CompiledKernel:
        return hkc.compile(EXAMPLES / f"{name}.hk", arch, **constants)

    return compiled


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("gpu") and (reason := reason_without_gpu()):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Some folders add themselves to the search path, which the compiler's process learns when it starts; it may have
    been started while other folders were still being read."""
    from hkc.support import worker

    worker.shutdown()
