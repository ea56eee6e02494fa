"""Kernels run by the meanings of their ops: against NumPy, and with bounds that fit the tolerances of the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hkc import pipeline
from hkc.frontend.program import Checked
from hkc.reference import compare
from hkc.support import worker
from hkc.support.errors import HkcError, Source

EXAMPLES = Path(__file__).parents[2] / "examples"
BF16 = ml_dtypes.bfloat16


def check(text: str, **constants: str) -> Checked:
    return pipeline.check(Source("test.hk", text), constants)


def example(name: str, **constants: str) -> Checked:
    return check((EXAMPLES / name).read_text(), **constants)


def run(checked: Checked, arrays: dict[str, Any], scalars: dict[str, Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = worker.call("hkc.reference:run", checked, arrays, scalars)
    return found


def bound(checked: Checked, arrays: dict[str, Any], scalars: dict[str, Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = worker.call("hkc.reference:bound", checked, arrays, scalars)
    return found


@pytest.mark.parametrize("extents", [(256, 256, 256), (65, 33, 100), (1, 1, 1), (7, 5, 0)])
@pytest.mark.parametrize("out", ["bf16", "f32"])
def test_the_bound_of_a_gemm_is_the_usual_tolerance_or_less(extents: tuple[int, int, int], out: str) -> None:
    m, n, k = extents
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((r, k)).astype(BF16) for r in (m, n))
    result = np.zeros((m, n), BF16 if out == "bf16" else np.float32)
    arrays = {"A": a, "B": b, "C": result}
    checked = example("gemm.hk", OUT=out)
    wide = [x.astype(np.float64) for x in (a, b)]
    oracle, magnitude = wide[0] @ wide[1].T, np.abs(wide[0]) @ np.abs(wide[1]).T
    value, error = bound(checked, arrays)["C"]
    np.testing.assert_allclose(value, oracle, rtol=1e-12, atol=1e-12)
    usual = 2 * (2.0**-8 if out == "bf16" else 2.0**-24) * np.abs(oracle) + k * 2.0**-24 * magnitude
    assert (error <= usual * 1.1).all()
    computed = run(checked, arrays)["C"]
    assert computed.dtype == result.dtype
    assert compare(computed, oracle, error).ok
    assert not result.any()  # inputs are left alone


def test_softmax_knows_how_exact_it_is() -> None:
    x = (np.random.default_rng(1).standard_normal((9, 1000)) * 3).astype(np.float32)
    arrays = {"X": x, "Y": np.zeros_like(x)}
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    oracle = e / e.sum(axis=1, keepdims=True)
    checked = example("softmax.hk")
    _, error = bound(checked, arrays)["Y"]
    assert (error / oracle).max() < 5e-5
    assert compare(run(checked, arrays)["Y"], oracle, error).ok
    assert not compare(oracle * (1 + 1e-4), oracle, error).ok


def test_views_of_any_strides_are_tensors() -> None:
    a = np.arange(4000, dtype=np.float32)[::2]
    b = np.arange(2000, dtype=np.float32)[::-1]
    out = run(example("vector_add.hk"), {"A": a, "B": b, "C": np.zeros(2000, np.float32)})["C"]
    np.testing.assert_array_equal(out, a + b)


SCALED = """
tune BLOCK = 64

kernel scaled(X: global[f32, N], factor: f32, shift: i32, Y: global[f32, N]):
    i = tile_ids(cdiv(N, BLOCK))
    x = load(X, [i*BLOCK + shift], [BLOCK], fill=-1)
    store(Y, [i*BLOCK], where(x > 0, x * factor, 0.1))
"""


def test_scalars_fills_and_written_numbers() -> None:
    x = np.linspace(-2, 2, 100, dtype=np.float32)
    arrays, scalars = {"X": x, "Y": np.zeros_like(x)}, {"factor": 0.3, "shift": -5}
    shifted = np.concatenate([np.full(5, -1, np.float32), x[:-5]])
    wanted = np.where(shifted > 0, shifted * np.float32(0.3), np.float32(0.1))
    checked = check(SCALED)
    np.testing.assert_array_equal(run(checked, arrays, scalars)["Y"], wanted)
    value, error = bound(checked, arrays, scalars)["Y"]
    assert compare(np.where(shifted > 0, shifted.astype(np.float64) * np.float32(0.3), 0.1), value, error).ok
    assert error.max() < 1e-7


def test_bounds_of_whole_numbers_are_exact() -> None:
    x = np.arange(100, dtype=np.float32)
    _, error = bound(example("vector_add.hk"), {"A": x, "B": x, "C": np.zeros_like(x)})["C"]
    assert not error.any()


def test_a_decision_that_rounding_errors_leave_open_is_told_with_its_place() -> None:
    text = """kernel k(X: global[f32, M], T: global[f32, N], Y: global[f32, M]):
    i = tile_ids(cdiv(M, 64)) * 64
    x = load(X, [i], [64]) / 3.0
    store(Y, [i], gather(T, cast(x * 3.0, i32), []))
"""
    arrays = {"X": np.full(64, 5, np.float32), "T": np.arange(9, dtype=np.float32), "Y": np.zeros(64, np.float32)}
    with pytest.raises(HkcError) as caught:
        bound(check(text), arrays)
    assert "test.hk:4:19: error[HK524]: here a decision depends on rounding errors" in str(caught.value)
    assert "gather(T" in str(caught.value) and "hint: " in str(caught.value)
