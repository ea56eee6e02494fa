"""Whole small kernels whose results are known exactly: offsets, masks, functions of all numbers, divisions."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest
from interpret import result

from hkc.frontend.check import check
from hkc.frontend.parse import parse
from hkc.support.errors import HkcError, Source

RNG = np.random.default_rng(3)
COUNT = np.arange(64, dtype=np.float32)


def test_reversed_by_a_negative_stride() -> None:
    """out[i] = x[63 - i]: a view that runs backwards from its last element."""
    body = "i = tile_ids(4)\nstore(OUT, [i * 16], load(X, [i * 16], [16]))"
    np.testing.assert_array_equal(result(body, shape=(64,), X=COUNT[::-1]), COUNT[::-1])


def test_offsets_of_both_signs() -> None:
    body = """
i = iota[16, 16](axis=0)
j = iota[16, 16](axis=1)
store(OUT, [0, 0], gather(X, reshape((i - 3) * 16 + j + 48, [256]), fill=-1.0)[None])
"""
    flat = np.arange(256, dtype=np.float32)
    wanted = np.array([flat[k] if 0 <= k < 256 else -1 for k in range(256)])
    found = result(body, shape=(1, 256), X=flat)
    np.testing.assert_array_equal(found, wanted[None])


def test_a_loop_that_steps_backwards() -> None:
    body = """
n = 0
for at in range(X0 - 64, -1, -64):
    store(OUT, [n], load(X, [at], [64]))
    n += 64
"""
    x = np.arange(256, dtype=np.float32)
    np.testing.assert_array_equal(result(body, shape=(256,), X=x), x.reshape(4, 64)[::-1].ravel())


def test_a_window_of_neighbours_under_a_mask() -> None:
    body = """
t = zeros[f32, 64]
for d in range(-2, 3):
    t += load(X, [d], [64], mask=iota[64] % 2 == 0)
store(OUT, [0], t)
"""
    padded = np.pad(COUNT, 2)
    wanted = np.where(np.arange(64) % 2 == 0, sum(padded[d : d + 64] for d in range(5)), 0)
    np.testing.assert_array_equal(result(body, shape=(64,), X=COUNT), wanted)


@pytest.mark.parametrize("function", ["log", "exp", "rsqrt"])
def test_functions_of_all_bf16_numbers(function: str) -> None:
    x = np.arange(65536, dtype=np.uint32).astype(np.uint16).view(ml_dtypes.bfloat16)
    body = f"i = tile_ids(16)\nstore(OUT, [i * 4096], {function}(load(X, [i * 4096], [4096])))"
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        found = result(body, "bf16", (65536,), X=x).astype(np.float64)
        wide = x.astype(np.float64)
        wanted = {"log": np.log, "exp": np.exp, "rsqrt": lambda v: 1 / np.sqrt(v)}[function](wide)
        rounded = wanted.astype(ml_dtypes.bfloat16).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(rounded))
    finite = np.isfinite(found) & np.isfinite(rounded)
    np.testing.assert_allclose(found[finite], rounded[finite], rtol=2**-7)


@pytest.mark.parametrize(
    "body",
    [
        "if iota[64] < 32:\n        store(A, [0], zeros[f32, 64])",
        "while load(A, [0], [64]) > 0.0:\n        store(A, [0], zeros[f32, 64])",
        "x = 1 if load(A, [0], [64]) > 0.0 else 2",
        "x = not load(A, [0], [64]) > 0.0",
        "x = load(A, [0], [64]) > 0.0 and True",
    ],
)
def test_conditions_that_would_split_a_wave_are_refused(body: str) -> None:
    with pytest.raises(HkcError, match="HK215"):
        check(parse(Source("split.hk", f"kernel k(A: global[f32, M]):\n    {body}\n")))


@pytest.mark.parametrize("width", [1, 2, 3, 17, 64, 100, 255, 300])
def test_reductions_and_scans_of_any_width(width: int) -> None:
    x = RNG.integers(-20, 20, (4, width)).astype(np.int32)
    body = """
x = load(X, [0, 0], [4, 304])
inside = iota[304] < cast(X1, i32)
low = where(inside, x, -99)
store(OUT, [0, 0], cumsum(x, axis=1))
store(OUT, [4, 0], broadcast(max(low, axis=1, keepdims=True), [4, 304]))
store(OUT, [8, 0], broadcast(argmax(low, axis=1, keepdims=True), [4, 304]))
"""
    found = result(body, "i32", (12, width), X=x)
    np.testing.assert_array_equal(found[:4], np.cumsum(x, 1))
    np.testing.assert_array_equal(found[4:8, 0], x.max(1))
    np.testing.assert_array_equal(found[8:, 0], x.argmax(1))


def test_division_and_remainder_of_negative_numbers() -> None:
    x = np.arange(-40, 24, dtype=np.int32)
    for divisor in (-7, -3, 1, 5, 48):
        np.testing.assert_array_equal(
            result(f"x = load(X, [0], [64])\nstore(OUT, [0], x // {divisor})", "i32", (64,), X=x), x // divisor
        )
        np.testing.assert_array_equal(
            result("x = load(X, [0], [64])\nstore(OUT, [0], x % d)", "i32", (64,), X=x, d=divisor), x % divisor
        )
