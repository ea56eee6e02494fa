"""The examples and some kernels of odd sizes, compiled for both chips and drawn, each once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

import hkc
from hkc.api import CompiledKernel
from hkc.figures.drawings import drawings
from hkc.figures.facts import Facts, facts
from hkc.figures.svg import Drawing
from hkc.targets.chip import Chip, load

EXAMPLES = Path(__file__).parents[2] / "examples"
CHIPS = ("gfx942", "gfx950")
VARIANTS: dict[str, dict[str, int | str]] = {
    "gemm of 80x48": {"BM": 80, "BN": 48, "BK": 96},
    "gemm of f32": {"T": "f32", "BM": 64, "BN": 64},
}
"""Other sizes and dtypes of examples, by the example's name and what is other."""

NAMES = (*sorted(path.stem for path in EXAMPLES.glob("*.hk")), *VARIANTS)


@functools.cache
def explained(name: str, arch: str) -> tuple[CompiledKernel, Facts, Chip]:
    kernel = hkc.compile(EXAMPLES / f"{name.split()[0]}.hk", arch, **VARIANTS.get(name, {}))
    chip = load(arch)
    return kernel, facts(kernel.binary, kernel.checked, chip), chip


@pytest.fixture(scope="session")
def kernel_facts() -> Callable[[str, str], tuple[CompiledKernel, Facts, Chip]]:
    return explained


@pytest.fixture(scope="session")
def drawn() -> Callable[[str, str], dict[str, Drawing]]:
    @functools.cache
    def draw(name: str, arch: str) -> dict[str, Drawing]:
        _, known, chip = explained(name, arch)
        return drawings(known, chip)

    return draw


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "arch" in metafunc.fixturenames:
        metafunc.parametrize("arch", CHIPS)
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", NAMES)
