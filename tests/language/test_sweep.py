"""Every op for every dtype on both chips, against the ops' meanings; machine code only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sweep import ATOMIC, FLOATS, INTEGERS, differences, expressions, inputs, source

from hkc.support.dtypes import DTYPES
from hkc.targets.chip import load, names

FAST = ("f16", "u16")
DTYPE = [pytest.param(d, marks=[] if d in FAST else [pytest.mark.long]) for d in (*FLOATS, *INTEGERS)]


@pytest.fixture(autouse=True)
def machine() -> str:
    """These tests name their chips themselves."""
    return ""


@pytest.mark.parametrize("arch", names())
@pytest.mark.parametrize("dtype", DTYPE)
def test_every_op(dtype: str, arch: str) -> None:
    arrays = inputs(dtype)
    outputs = {n: np.zeros_like(arrays["X"]) for n in expressions(dtype)}
    assert differences(source(dtype), arch, arrays | outputs) == {}


@pytest.mark.parametrize("arch", names())
@pytest.mark.parametrize("dtype", DTYPE)
def test_atomics(dtype: str, arch: str) -> None:
    chip = load(arch)
    assert dtype in chip.dtypes.atomic_add and dtype in chip.dtypes.atomic_extreme
    arrays: dict[str, Any] = {n: inputs(dtype)["Y"].copy() for n in "ABCD"}
    text = f"const T = {dtype}\n{ATOMIC}"
    assert differences(text, arch, {"X": inputs(dtype)["X"], **arrays}) == {}


@pytest.mark.parametrize("arch", names())
@pytest.mark.parametrize("turned", ["", ".T"])
def test_small_products_of_f64(turned: str, arch: str) -> None:
    """16x32 by a transposed operand: lanes hold k in an order of the instruction's own."""
    text = """kernel k(A: global[f64, M, N], B: global[f64, M, N], OUT: global[f64, M, N]):
    a = load(A, [0, 0], [16, 32])
    b = load(B, [0, 0], [{}])
    store(OUT, [0, 0], dot(a, b{}))
"""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-9, 9, (16, 32)).astype(np.float64) for _ in range(2))
    shape = "16, 32" if turned else "32, 16"
    assert differences(text.format(shape, turned), arch, {"A": a, "B": b, "OUT": np.zeros_like(a)}) == {}


def test_the_sweep_knows_all_dtypes() -> None:
    assert {*FLOATS, *INTEGERS, "bool"} == {n for n, d in DTYPES.items() if not d.is_narrow}
