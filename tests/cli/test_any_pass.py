"""`hkc opt` with every pass on modules of every stage: what is out of order is refused, all else gives a module that
reads back as it was printed and still leads to a kernel that computes the same."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import hkc
from hkc.api import CompiledKernel, build_module
from hkc.passes.builtin import COMMON
from hkc.pipeline import stages
from hkc.support.errors import HkcError, Source
from hkc.support.worker import call
from hkc.targets.chip import names

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.hk"))
FIELD = sorted((ROOT / "tests" / "language" / "field").glob("*.hk"))
CHIPS = names()
PASSES = [step.name for group in stages().values() for step in group]
SMALL = {"gemm": {"BM": 32, "BN": 32}, "attention": {"BM": 32, "BN": 32}}


def transformed(text: str, *passes: str) -> str:
    """As `hkc opt --verify` does it."""
    return str(call("hkc.pipeline:transform", Source("m.mlir", text), list(passes), None, True))


def modules(kernel: CompiledKernel) -> dict[str, str]:
    """The text of every stage."""
    text, found = kernel.texts["tile"], {}
    for stage, group in stages().items():
        text = found[stage] = transformed(text, *(step.name for step in group))
    return found


def made(text: str) -> list[str]:
    """What any pass makes of a module, if it may run there."""
    found = {text}
    for name in (*PASSES, *COMMON):
        try:
            found.add(transformed(text, name))
        except HkcError as refusal:
            assert [d.code for d in refusal.diagnostics] == ["HK475"], (name, refusal)
    return sorted(found)


def small(path: Path, chip: str) -> CompiledKernel:
    return hkc.compile(path, chip, keep=["tile"], **SMALL.get(path.stem, {}))


def inputs(kernel: CompiledKernel) -> list[np.ndarray]:
    """Small whole numbers, in extents that no tile divides."""
    rng = np.random.default_rng(1)
    extents = {"M": 40, "N": 50, "K": 100, "D": 64}
    shapes = [[d if isinstance(d, int) else extents[d] for d in p.dims] for p in kernel.info.params]
    kinds = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
    given = [p for p in kernel.info.params if p.name not in kernel.info.outputs]
    return [rng.integers(-3, 4, s).astype(kinds[p.dtype]) for p, s in zip(given, shapes, strict=False)]


STAGES = list(stages())
CASES = [
    pytest.param(p, CHIPS[(i + j) % 2], s, marks=[] if (i, j) == (len(EXAMPLES) - 1, 1) else [pytest.mark.long])
    for i, p in enumerate(EXAMPLES)
    for j, s in enumerate(STAGES)
]
"""Examples with stages, the chips in turn; the smallest one always runs."""


@pytest.mark.parametrize(("path", "chip", "stage"), CASES)
def test_any_pass_keeps_the_meaning(path: Path, chip: str, stage: str) -> None:
    kernel = small(path, chip)
    arrays = inputs(kernel)
    wanted = kernel(*arrays, device="emulator")
    for text in made(modules(kernel)[stage]):
        assert transformed(text) == text
        try:
            again = build_module(Source("m.mlir", text), chip)
        except HkcError as refusal:
            assert [d.code for d in refusal.diagnostics] == ["HK475"], refusal
            continue
        assert np.array_equal(again(*arrays, device="emulator"), wanted)


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "chip", "stage"), [(p, CHIPS[i % 2], STAGES[i // 2 % len(STAGES)]) for i, p in enumerate(FIELD)]
)
def test_any_pass_runs_on_kernels_of_the_field(path: Path, chip: str, stage: str) -> None:
    assert all(transformed(text) == text for text in made(modules(small(path, chip))[stage]))
