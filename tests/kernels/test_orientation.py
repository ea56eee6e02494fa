"""One row of B picked by every row of A: a misplaced fragment shows at once, since nothing is symmetric."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from matrix_products import CHIPS, FORMS, compiled, run

from hkc.passes.mfma_choice import shape_text
from hkc.support.dtypes import dtype
from hkc.targets.chip import load

EXACT = {"bf16": 256, "f16": 2048, "f32": 1 << 20, "i8": 128, "f8e4m3fn": 16, "f8e4m3fnuz": 16}
"""Whole numbers below these are exact."""


def check(form: str, element: str, arch: str, size: int, mfma: str = "") -> None:
    depth = 64
    sums = {"OUT": "i32", "SUM": "i32"} if element == "i8" else {}
    kernel = compiled(form, arch, f'mfma="{mfma}"' if mfma else "", T=element, BM=size, BN=size, BK=depth, **sums)
    rows = (5 * np.arange(size) + 3) % depth
    a = np.zeros((size, depth))
    a[np.arange(size), rows] = 1
    b = np.arange(depth * size).reshape(depth, size) % EXACT[element]
    stored = (x.T if letter == "T" else x for x, letter in zip((a, b), form, strict=True))
    found, happened, _ = run(kernel, *(np.ascontiguousarray(x).astype(dtype(element).numpy) for x in stored))
    assert np.array_equal(found, b[rows])
    assert happened.findings == ()


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("form", "size"), [("NN", 48), ("NT", 16), ("TN", 96), ("TT", 32)])
def test_rows_arrive_where_they_belong(form: str, size: int, arch: str) -> None:
    check(form, "bf16", arch, size)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("form", "element", "size"), [*product(FORMS, ("bf16", "f16", "f32"), (16, 48, 80, 112, 160))])
def test_rows_of_every_kind_and_size(form: str, element: str, size: int, arch: str) -> None:
    check(form, element, arch, size)


def offered(arch: str) -> list[tuple[str, str]]:
    """Every element type and shape of a matrix instruction that a dot may ask for."""
    chip = load(arch)
    sums = {element: "i32" if element == "i8" else "f32" for element in EXACT}
    return [(e, shape_text(row)) for e, acc in sums.items() for row in chip.mfma_for(e, e, acc)]


SHAPES = [(arch, element, shape) for arch in CHIPS for element, shape in offered(arch)]


@pytest.mark.parametrize(("arch", "element", "shape"), SHAPES[::5])
def test_rows_of_a_matrix_instruction_that_is_asked_for(arch: str, element: str, shape: str) -> None:
    check("TN", element, arch, 48, shape)


@pytest.mark.long
@pytest.mark.parametrize(("arch", "element", "shape"), SHAPES)
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_every_matrix_instruction(arch: str, element: str, shape: str, form: str) -> None:
    for size in (16, 32, 48, 64, 96):
        check(form, element, arch, size, shape)
