"""Whole small kernels whose results are known exactly: offsets, views, masks, odd phases, everything at once."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest
from interpret import interpret, result

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


VIEWS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "every second row": lambda x: x[::2],
    "every third column": lambda x: x[:, ::3],
    "backwards": lambda x: x[::-1],
    "expanded": lambda x: np.broadcast_to(x[:1], (24, 48)),
    "inner part": lambda x: x[3:20, 5:41],
    "permuted": lambda x: x.reshape(4, 6, 48).transpose(2, 0, 1).reshape(48, 24),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_as_good_as_copies(view: str) -> None:
    a = VIEWS[view](RNG.integers(-8, 8, (24, 48)).astype(np.float32))
    rows, columns = a.shape
    text = """
kernel k(A: global[f32, M, N], T: global[f32, N, M], C: global[f32, M, M]):
    i, j = tile_ids(cdiv(M, 16), cdiv(M, 16))
    acc = zeros[f32, 16, 16]
    for k in range(0, N, 16):
        a = load(A, [i*16, k], [16, 16])
        store(T, [k, i*16], a.T)
        acc += dot(a, load(A, [j*16, k], [16, 16]).T)
    store(C, [i*16, j*16], acc)
"""
    arrays = {"A": a, "T": np.zeros((columns, rows), np.float32), "C": np.zeros((rows, 2 * rows), np.float32)[:, ::2]}
    found = interpret(text, arrays)
    np.testing.assert_array_equal(found["T"], a.T)
    np.testing.assert_array_equal(found["C"], a @ a.T)


ATTENTION = """
const OFFSET = 0
kernel attention(Q: global[f32, M, D], K: global[f32, N, D], V: global[f32, N, D],
                 O: global[f32, M, D], L: global[f32, M]):
    i = tile_ids(cdiv(M, 16)) * 16
    q = load(Q, [i, 0], [16, 16])
    high = full[f32, 16, 1](-inf)
    total = zeros[f32, 16, 1]
    acc = zeros[f32, 16, 16]
    last = N - M if OFFSET == 1 else 0
    for j in range(0, N, 16):
        row = iota[16, 16](axis=0) + cast(i + last, i32)
        column = iota[16, 16](axis=1) + cast(j, i32)
        seen = (column <= row) & (column < cast(N, i32))
        s = where(seen, dot(q, load(K, [j, 0], [16, 16]).T), -inf)
        new = maximum(high, max(s, axis=1, keepdims=True))
        base = where(new == -inf, 0.0, new)
        p = exp(s - base)
        shrink = exp(high - base)
        total = total * shrink + sum(p, axis=1, keepdims=True)
        acc = acc * shrink + dot(p, load(V, [j, 0], [16, 16]))
        high = new
    some = total > 0.0
    store(O, [i, 0], where(some, acc / where(some, total, 1.0), 0.0))
    store(L, [i], where(some, high + log(where(some, total, 1.0)), -inf)[:, 0])
"""


@pytest.mark.parametrize(
    ("bottom_right", "queries", "keys"), [(True, 5, 3), (False, 5, 3), (True, 1, 64), (True, 64, 1)]
)
def test_rows_that_see_nothing(bottom_right: bool, queries: int, keys: int) -> None:
    shapes = {"Q": (queries, 16), "K": (keys, 16), "V": (keys, 16), "O": (queries, 16), "L": (queries,)}
    arrays = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    arrays["V"][:] = np.arange(1, keys + 1)[:, None]
    text = ATTENTION.replace("OFFSET = 0", f"OFFSET = {int(bottom_right)}")
    found = interpret(text, arrays)
    seen = np.clip(np.arange(queries) + 1 + (keys - queries if bottom_right else 0), 0, keys)
    wanted = np.where(seen > 0, (seen + 1) / 2, 0)
    np.testing.assert_allclose(found["O"], np.broadcast_to(wanted[:, None], (queries, 16)), rtol=1e-6)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(found["L"], np.log(seen), rtol=1e-6)


def test_a_fused_element_wise_kernel_with_flat_indices() -> None:
    """x * log(c + 1) over a flattened index with // and %, rows of x padded to 56."""
    x = RNG.normal(size=(64, 56)).astype(ml_dtypes.bfloat16)[:, :40]
    c = RNG.integers(10, 131768, (64, 40))
    text = """
kernel k(X: global[bf16, M, N], C: global[i64, M, N], O: global[bf16, MN]):
    b = tile_ids(cdiv(M * N, 128))
    at = cast(b, i32) * 128 + iota[128]
    row = at // cast(N, i32)
    column = at % cast(N, i32)
    x = zeros[bf16, 128]
    c = zeros[i64, 128]
    for j in range(N):
        here = column == cast(j, i32)
        x = where(here, gather(X, row[:, None], [j], shape=[128, 1])[:, 0], x)
        c = where(here, gather(C, row[:, None], [j], shape=[128, 1])[:, 0], c)
    store(O, [b * 128], cast(cast(x, f32) * log(cast(c, f32) + 1.0), bf16))
"""
    found = interpret(text, {"X": x, "C": c, "O": np.zeros(64 * 40, ml_dtypes.bfloat16)})["O"]
    wanted = (x.astype(np.float64) * np.log(c + 1.0)).ravel()
    assert not np.isnan(found.astype(np.float32)).any()
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=2**-8)


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


def test_phases_of_different_widths() -> None:
    body = """
a = full[f32, 16, 32](1.0)
b = full[f32, 16, 96](1.0)
store(OUT, [0], sum(a * a, axis=1))
store(OUT, [16], sum(b * b, axis=1))
"""
    np.testing.assert_array_equal(result(body, shape=(32,)), np.repeat([32, 96], 16))


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


def test_int8_products_and_nan_policy() -> None:
    a = RNG.integers(-128, 128, (16, 64)).astype(np.int8)
    body = "a = load(A, [0, 0], [16, 64])\nstore(OUT, [0, 0], dot(a, a.T))"
    np.testing.assert_array_equal(result(body, "i32", (16, 16), A=a), a.astype(np.int32) @ a.astype(np.int32).T)
    x = np.array([1, np.nan, 3, 0] * 4, np.float32)
    body = "x = load(X, [0], [32])\nstore(OUT, [0], full[f32, 16](max(x)))\nstore(OUT, [0], x[16:32])"
    found = result(body, shape=(16,), X=x)
    assert (found == 0).all()
    assert np.isnan(result("store(OUT, [0], full[f32, 16](max(load(X, [0], [32]))))", X=x)).all()


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
