"""More kernels of this field against NumPy in float64: fused norms, sorting, scans with a state, packed weights, pages
of keys, an optimiser."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from interpret import field, interpret, near

RNG = np.random.default_rng(17)
BF16 = ml_dtypes.bfloat16


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("shape", [(3, 1), (2, 255), (4, 769)])
def test_a_norm_of_what_is_added(shape: tuple[int, int]) -> None:
    x, r = (RNG.integers(-16, 17, shape) / 8 for _ in range(2))
    w = RNG.integers(1, 9, shape[1]) / 4
    total = x + r
    y = total / np.sqrt((total * total).mean(1, keepdims=True) + 1e-6) * w
    given = {"X": x.astype(BF16), "R": r.astype(BF16), "W": w.astype(BF16)}
    near(field("add_rms_norm"), given, {"X": total, "Y": y})


def test_the_largest_of_a_row() -> None:
    x = RNG.integers(-50, 50, (6, 100)).astype(np.float32)
    outs = {"V": np.zeros((6, 5), np.float32), "I": np.zeros((6, 5), np.int32)}
    found = interpret(field("top_k"), {"X": x, **outs})
    places = np.argsort(-x, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(found["I"], places)
    np.testing.assert_array_equal(found["V"], np.take_along_axis(x, places, 1))


@pytest.mark.parametrize("n", [1, 256, 700])
def test_sums_that_start_anew(n: int) -> None:
    x, starts = RNG.integers(-9, 10, n).astype(np.float32), RNG.random(n) < 0.02
    found = interpret(field("segmented_scan"), {"X": x, "F": starts, "Y": np.zeros_like(x)})["Y"]
    wanted, total = np.zeros(n), 0.0
    for i in range(n):
        total = x[i] if starts[i] else total + x[i]
        wanted[i] = total
    np.testing.assert_array_equal(found, wanted)


def test_gradients_of_cross_entropy() -> None:
    x = (RNG.standard_normal((5, 150)) * 10).astype(np.float32)
    labels, g = np.array([0, 149, 17, -1, 64], np.int32), RNG.standard_normal(5).astype(np.float32)
    hot = labels[:, None] == np.arange(150)
    near(field("cross_entropy_gradient"), {"X": x, "T": labels, "G": g}, {"DX": (softmax(wide(x)) - hot) * g[:, None]})


@pytest.mark.parametrize("kind", ["f16", "f32", "i8"])
def test_batches_of_transposes(kind: str) -> None:
    a = RNG.integers(-99, 99, (3, 70, 65)).astype({"f16": np.float16, "f32": np.float32, "i8": np.int8}[kind])
    near(field("batched_transpose"), {"A": a}, {"B": a.swapaxes(1, 2)}, T=kind)


def test_rows_that_see_what_comes_before() -> None:
    x = RNG.standard_normal((2, 50, 50)).astype(np.float32)
    seen = np.where(np.tri(50, dtype=bool), wide(x), -np.inf)
    near(field("causal_softmax"), {"X": x}, {"Y": softmax(seen)})


def test_weights_of_four_bits() -> None:
    x = RNG.integers(-4, 5, (33, 96)) / 4
    codes, zeros = RNG.integers(0, 16, (40, 96)), RNG.integers(0, 16, (40, 3))
    scales = 2.0 ** RNG.integers(-3, 2, (40, 3))
    w = (codes - np.repeat(zeros, 32, 1)) * np.repeat(scales, 32, 1)
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
    given = {"X": x.astype(np.float16), "W": packed, "S": scales.astype(np.float16), "Z": zeros.astype(np.uint8)}
    near(field("four_bit_product"), given, {"Y": x @ w.T})


@pytest.mark.parametrize("n", [1, 64, 200])
def test_mean_and_variance_in_one_pass(n: int) -> None:
    x = (1000 + RNG.standard_normal((9, n))).astype(np.float32)
    near(field("moments"), {"X": x}, {"MEAN": wide(x).mean(1), "VAR": wide(x).var(1)})


def test_a_state_goes_from_block_to_block() -> None:
    a, b = RNG.uniform(0.5, 1, (20, 150)).astype(np.float32), RNG.standard_normal((20, 150)).astype(np.float32)
    start = RNG.standard_normal(20).astype(np.float32)
    h, states = wide(start), np.zeros((20, 150))
    for t in range(150):
        h = states[:, t] = wide(a)[:, t] * h + b[:, t]
    near(field("selective_scan"), {"A": a, "B": b, "H0": start}, {"H": states, "LAST": h})


def test_sorted_rows() -> None:
    x = RNG.integers(-50, 50, (5, 64)).astype(np.float32)
    np.testing.assert_array_equal(interpret(field("bitonic_sort"), {"X": x, "Y": 0 * x})["Y"], np.sort(x, axis=1))


def test_a_step_of_adam_rounds_without_bias() -> None:
    """A step of a fifth of the distance between neighbours is taken a fifth of the time."""
    n, rate, b1, b2 = 5000, 2.0**-7 / 10, 0.5, 0.25
    p, g = np.ones(n, BF16), np.ones(n, BF16)
    given = {"P": p, "G": g, "M": np.zeros(n, np.float32), "V": np.zeros(n, np.float32)}
    scalars = {"rate": rate, "b1": b1, "b2": b2, "eps": 0.0, "step": 1, "seed": 3}
    found = interpret(field("adam"), given, scalars)
    np.testing.assert_array_equal(found["M"], np.full(n, 0.5))
    np.testing.assert_array_equal(found["V"], np.full(n, 0.75))
    lost = (1 - wide(found["P"])) / 2.0**-8
    assert set(lost) == {0, 1} and abs(lost.mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / n)


def test_keys_in_pages() -> None:
    lengths, table = np.array([5, 40, 16], np.int32), np.array([[4, 0, 0], [2, 6, 1], [5, 0, 0]], np.int32)
    q = (RNG.integers(-8, 9, (3, 7, 64)) / 8).astype(BF16)
    k, v = ((RNG.integers(-8, 9, (7, 16, 64)) / 8).astype(BF16) for _ in range(2))
    wanted = np.zeros((3, 7, 64))
    for b, n in enumerate(lengths):
        keys, values = (wide(x[table[b]].reshape(-1, 64)[:n]) for x in (k, v))
        wanted[b] = softmax(wide(q[b]) @ keys.T * 0.125) @ values
    near(field("paged_decode"), {"Q": q, "K": k, "V": v, "TABLE": table, "LENGTH": lengths}, {"O": wanted})


def test_a_product_with_a_gate() -> None:
    x, w = RNG.integers(-8, 9, (70, 96)) / 8, RNG.integers(-8, 9, (96, 2 * 80)) / 32
    g, u = x @ w[:, :80], x @ w[:, 80:]
    near(field("gated_product"), {"X": x.astype(BF16), "W": w.astype(BF16)}, {"Y": g / (1 + np.exp(-g)) * u})


def test_the_largest_of_all() -> None:
    x = RNG.standard_normal((100, 130)).astype(BF16)
    x[3, 7], x[99, 129], x[50, 0] = np.inf, -np.inf, np.nan
    given = {"X": x, "TOP": np.zeros(1, np.float32), "BAD": np.zeros(1, np.int32)}
    found = interpret(field("largest"), given)
    assert found["TOP"][0] == np.abs(wide(x)[np.isfinite(wide(x))]).max() and found["BAD"][0] == 3


def test_sums_that_end_early_have_bounds() -> None:
    """Tiles of two dtypes in one scan travel as bits: what a run is compared with has bounds all the same."""
    text = """
def later(a, ends, b, beyond):
    return where(ends, a, a + b), ends | beyond

kernel k(X: global[f32, M, N], F: global[bool, M, N], Y: global[f32, M, N]):
    i = tile_ids(cdiv(M, 4)) * 4
    s, f = scan(later, load(X, [i, 0], [4, 128]) * 0.1, load(F, [i, 0], [4, 128]), axis=1, reverse=True)
    store(Y, [i, 0], s)
"""
    x, ends = RNG.integers(1, 10, (6, 100)).astype(np.float32), RNG.random((6, 100)) < 0.1
    wanted = np.zeros((6, 101))
    for j in reversed(range(100)):
        wanted[:, j] = x[:, j] * 0.1 + np.where(ends[:, j], 0, wanted[:, j + 1])
    near(text, {"X": x, "F": ends}, {"Y": wanted[:, :100]})
