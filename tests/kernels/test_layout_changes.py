"""A tile from any layout into any other: by registers, between lanes or through LDS, and no element is lost."""

from __future__ import annotations

import numpy as np
import pytest
from converting import SIDE, layouts
from counted import check_counted
from matrix_products import CHIPS

from hkc import pipeline
from hkc.api import CompiledKernel
from hkc.emulate.bank_conflicts import BankObserver
from hkc.runtime.emulator import Emulator
from hkc.support import worker
from hkc.support.dtypes import dtype
from hkc.support.errors import Source
from hkc.targets.chip import load

SEEDS = 4
"""Orders in which waves run."""


def distinct(element: str, count: int) -> np.ndarray:
    """Tiles whose elements differ from their neighbours in both directions, and as far as there are enough numbers."""
    kind = dtype(element).numpy
    bits = np.arange(count * SIDE * SIDE, dtype=np.int64) * 31
    if element == "i8":
        return (bits % 251 - 125).astype(kind).reshape(count * SIDE, SIDE)
    if element in ("bool", "f4e2m1"):
        return (bits % 251 % (2 if element == "bool" else 16)).astype("u1").view(kind).reshape(count * SIDE, SIDE)
    return (bits % 0x7C00).astype(f"u{kind.itemsize}").view(kind).reshape(count * SIDE, SIDE)


def check(element: str, arch: str, name: str) -> set[str]:
    """Copies from one layout to all; returns the ways in which tiles changed layouts."""
    held = layouts(dtype(element).bytes, arch)
    starts = [i * SIDE for i in range(len(held))]
    copies = "\n".join(f"    store(C, [{at}, 0], load(A, [{at}, 0], [{SIDE}, {SIDE}]))" for at in starts)
    text = f"kernel copies(A: global[{element}, M, N], C: global[{element}, M, N]):\n{copies}\n"
    checked = pipeline.check(Source("copies.hk", text))
    targets = tuple(layout.text() for layout in held.values())
    binary = worker.call("converting:compile_for", checked, arch, held[name].text(), targets)
    kernel = CompiledKernel(binary, checked)
    tiles = distinct(element, len(held))
    for seed in range(SEEDS):
        arguments, observer = kernel.bind(tiles), BankObserver(load(arch))
        happened = kernel.launch(arguments, Emulator(seed, [observer]))
        found = arguments.results(kernel.info)[0]
        bits = f"u{tiles.itemsize}"
        assert np.array_equal(found.view(bits), tiles.view(bits)), name
        assert happened.findings == ()
        assert check_counted(kernel, observer) == set()
    return {conversion.way for conversion in binary.layouts.conversions}


@pytest.mark.parametrize(("element", "arch", "name"), [
    ("f32", "gfx942", "rows of 16"), ("f16", "gfx950", "sums of 32"), ("i8", "gfx942", "columns of 4"),
    ("bool", "gfx950", "rows of 16"), ("f4e2m1", "gfx950", "rows of 16"),
])  # fmt: skip
def test_some_layouts(element: str, arch: str, name: str) -> None:
    assert check(element, arch, name) >= {"lds"}


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("element", ["f32", "f16", "i8", "bool", "f4e2m1"])
def test_all_pairs_of_layouts(element: str, arch: str) -> None:
    for name in layouts(dtype(element).bytes, arch):
        check(element, arch, name)
