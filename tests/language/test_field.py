"""Kernels as authors of this field write them, against NumPy in float64: rotary, dropout, norms with gradients, losses,
quantisation, embeddings, histograms, experts, convolutions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from interpret import interpret, result

from hkc.support.errors import HkcError

RNG = np.random.default_rng(11)

ROTARY = """
const HALF = 10, PAIRS = False
kernel rotary(X: global[f32, M, D], P: global[i32, M], F: global[f32, H], Y: global[f32, M, D]):
    i = tile_ids(cdiv(M, 16)) * 16
    column = iota[128]
    x = load(X, [i, 0], [16, 128])
    partner = (column ^ 1) if PAIRS else where(column < HALF, column + HALF, column - HALF)
    turn = column // 2 if PAIRS else column % HALF
    second = column % 2 == 1 if PAIRS else column >= HALF
    rows = broadcast(iota[16, 1](axis=0) + cast(i, i32), [16, 128])
    other = zeros[f32, 16, 128]
    for k in range(2 * HALF):
        other = where(partner == cast(k, i32), load(X, [i, k], [16, 1]), other)
    angle = cast(load(P, [i], [16]), f32)[:, None] * gather(F, turn, [])[None, :]
    turned = x * cos(angle) + where(second, other, -other) * sin(angle)
    store(Y, [i, 0], where(column[None, :] < 2 * HALF, turned, x))
"""


@pytest.mark.parametrize("pairs", [False, True])
def test_rotary(pairs: bool) -> None:
    """80 columns of which 20 turn: the others, and the row at position 0, stay bit for bit."""
    x, places = RNG.standard_normal((4, 80)).astype(np.float32), np.array([0, 1, 7, 2047], np.int32)
    rates = (10000.0 ** (-np.arange(10) / 10)).astype(np.float32)
    text = ROTARY.replace("PAIRS = False", f"PAIRS = {pairs}")
    found = interpret(text, {"X": x, "P": places, "F": rates, "Y": np.zeros_like(x)})["Y"]
    angle = places[:, None] * rates[None, :].astype(np.float64)
    first = np.s_[:, 0:20:2] if pairs else np.s_[:, :10]
    second = np.s_[:, 1:20:2] if pairs else np.s_[:, 10:20]
    wanted = x.astype(np.float64)
    wanted[first] = x[first] * np.cos(angle) - x[second] * np.sin(angle)
    wanted[second] = x[second] * np.cos(angle) + x[first] * np.sin(angle)
    np.testing.assert_allclose(found, wanted, atol=2e-3 if places.max() > 100 else 1e-6)
    np.testing.assert_allclose(found[:3], wanted[:3], atol=1e-5)
    np.testing.assert_array_equal(found[:, 20:], x[:, 20:])
    np.testing.assert_array_equal(found[0], x[0])


DROPOUT = """
tune B = 16
kernel dropout(X: global[f32, H, M, N], Y: global[f32, H, M, N], seed: i64, p: f32):
    h, i, j = tile_ids(H, cdiv(M, B), cdiv(N, 32))
    x = load(X, [h, i * B, j * 32], [1, B, 32])[0]
    keep = random(seed, [h, i * B, j * 32], [1, B, 32])[0] >= p
    store(Y, [h, i * B, j * 32], where(keep, x / (1.0 - p), 0.0)[None])
"""


def test_dropout_depends_on_seed_and_place_alone() -> None:
    x = RNG.integers(1, 9, (3, 40, 70)).astype(np.float32)

    def run(seed: int, p: float, b: int = 16) -> np.ndarray:
        scalars = {"seed": seed, "p": p}
        return interpret(DROPOUT.replace("B = 16", f"B = {b}"), {"X": x, "Y": np.zeros_like(x)}, scalars)["Y"]

    for p in (0.125, 0.5):
        found = run(7, p)
        kept = found != 0
        np.testing.assert_array_equal(found[kept], (x / (1 - p))[kept])
        assert abs(kept.mean() - (1 - p)) < 4 * np.sqrt(p * (1 - p) / x.size)
        np.testing.assert_array_equal(found, run(7, p, 32))
        assert (found != run(8, p)).any()
        assert (kept[0] != kept[1]).any()
    np.testing.assert_array_equal(run(7, 0.0), x)


NORM = """
kernel backward(X: global[f32, M, N], W: global[f32, N], G: global[f32, M, N], DX: global[f32, M, N],
                DW: global[f32, N], DB: global[f32, N]):
    i = tile_ids(cdiv(M, 16)) * 16
    inside = (iota[128] < cast(N, i32))[None, :]
    x = load(X, [i, 0], [16, 128])
    g = load(G, [i, 0], [16, 128])
    count = cast(N, f32)
    mean = sum(x, axis=1, keepdims=True) / count
    centred = where(inside, x - mean, 0.0)
    rate = rsqrt(sum(centred * centred, axis=1, keepdims=True) / count + 1e-5)
    hat = centred * rate
    wg = g * load(W, [0], [128])[None, :]
    a = sum(wg, axis=1, keepdims=True) / count
    b = sum(wg * hat, axis=1, keepdims=True) / count
    store(DX, [i, 0], (wg - a - hat * b) * rate)
    atomic_add(DW, [0], sum(g * hat, axis=0))
    atomic_add(DB, [0], sum(g, axis=0))
"""


@pytest.mark.parametrize("shape", [(7, 65), (33, 127), (20, 1)])
def test_gradients_of_a_layer_norm(shape: tuple[int, int]) -> None:
    x, g = (RNG.standard_normal(shape).astype(np.float32) for _ in range(2))
    w = RNG.standard_normal(shape[1]).astype(np.float32)
    zeros = {"DX": np.zeros(shape, np.float32), "DW": np.zeros_like(w), "DB": np.zeros_like(w)}
    found = interpret(NORM, {"X": x, "W": w, "G": g, **zeros})
    wide = x.astype(np.float64)
    rate = 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    hat, wg = (wide - wide.mean(1, keepdims=True)) * rate, g * w.astype(np.float64)
    dx = (wg - wg.mean(1, keepdims=True) - hat * (wg * hat).mean(1, keepdims=True)) * rate
    for name, wanted in {"DX": dx, "DW": (g * hat).sum(0), "DB": g.sum(0, np.float64)}.items():
        np.testing.assert_allclose(found[name], wanted, atol=2e-4 * max(1, np.abs(wanted).max()))


def test_cross_entropy_of_rows_longer_than_a_tile() -> None:
    x = (RNG.standard_normal((5, 300)) * 30).astype(np.float32)
    labels = np.array([0, 299, 17, -100, 128], np.int32)
    text = """
kernel loss(X: global[f32, M, N], T: global[i32, M], L: global[f32, M]):
    i = tile_ids(cdiv(M, 16)) * 16
    label = load(T, [i], [16], fill=-100)
    high, total, at_label = full[f32, 16](-inf), zeros[f32, 16], zeros[f32, 16]
    for j in range(0, N, 64):
        x = load(X, [i, j], [16, 64], fill=-inf)
        column = iota[64] + cast(j, i32)
        new = max(high, max(x, axis=1))
        total = total * exp(high - new) + sum(exp(x - new[:, None]), axis=1)
        at_label += sum(where(column[None, :] == label[:, None], x, 0.0), axis=1)
        high = new
    store(L, [i], where(label >= 0, high + log(total) - at_label, 0.0))
"""
    found = interpret(text, {"X": x, "T": labels, "L": np.zeros(5, np.float32)})["L"]
    wide = x.astype(np.float64)
    log_sum = np.log(np.exp(wide - wide.max(1, keepdims=True)).sum(1)) + wide.max(1)
    wanted = np.where(labels >= 0, log_sum - wide[np.arange(5), np.maximum(labels, 0)], 0)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize(("kind", "most"), [("f8e4m3fn", 448), ("f8e5m2fnuz", 57344), ("i8", 127)])
def test_rows_are_quantised_with_a_scale_each(kind: str, most: int) -> None:
    from hkc.support.dtypes import dtype

    x = RNG.standard_normal((9, 100)).astype(np.float32) * np.logspace(-3, 3, 9)[:, None].astype(np.float32)
    x[4] = 0
    text = f"""
kernel quantise(X: global[f32, M, N], Q: global[{kind}, M, N], S: global[f32, M]):
    i = tile_ids(cdiv(M, 16)) * 16
    x = load(X, [i, 0], [16, 128])
    top = max(abs(x), axis=1, keepdims=True)
    scale = where(top > 0.0, top / {most}.0, 1.0)
    store(Q, [i, 0], cast({"x / scale" if kind[0] == "f" else "floor(x / scale + 0.5)"}, {kind}, saturate=True))
    store(S, [i], scale[:, 0])
"""
    numpy = dtype(kind).numpy
    found = interpret(text, {"X": x, "Q": np.zeros(x.shape, numpy), "S": np.zeros(9, np.float32)})
    scale = found["S"].astype(np.float64)[:, None]
    np.testing.assert_allclose(scale[:, 0], np.where(x.any(1), np.abs(x).max(1) / most, 1), rtol=1e-6)
    step = {"f8e4m3fn": 2**-4, "f8e5m2fnuz": 2**-3, "i8": 0}[kind]
    back = found["Q"].astype(np.float64) * scale
    assert (np.abs(back - x) <= np.abs(x) * step + scale * (0.51 if kind == "i8" else 2**-9)).all()
    assert np.abs(found["Q"].astype(np.float64)).max() == most


def test_embeddings_are_gathered_and_their_gradients_added() -> None:
    table = RNG.integers(-9, 9, (50, 24)).astype(np.float32)
    ids = np.array([3, 3, 49, 0, -1, 50, 7] * 5, np.int32)
    text = """
kernel embed(T: global[f32, V, D], I: global[i32, M], E: global[f32, M, D], G: global[f32, V, D]):
    i = tile_ids(cdiv(M, 16)) * 16
    ids = load(I, [i], [16], fill=-1)
    e = gather(T, ids[:, None], [0], shape=[16, 32])
    store(E, [i, 0], e)
    scatter_add(G, broadcast(ids[:, None], [16, 32]), [0], e + 1.0)
"""
    arrays = {"T": table, "I": ids, "E": np.zeros((35, 24), np.float32), "G": np.zeros_like(table)}
    found = interpret(text, arrays)
    known = (ids >= 0) & (ids < 50)
    wanted = np.where(known[:, None], table[np.where(known, ids, 0)], 0)
    np.testing.assert_array_equal(found["E"], wanted)
    added = np.zeros_like(table)
    np.add.at(added, ids[known], wanted[known] + 1)
    np.testing.assert_array_equal(found["G"], added)


def test_a_histogram() -> None:
    x = RNG.integers(0, 1000, 3000).astype(np.int32)
    text = """
kernel histogram(X: global[i32, N], H: global[i32, B]):
    i = tile_ids(cdiv(N, 256)) * 256
    x = load(X, [i], [256], fill=-1)
    scatter_add(H, where(x >= 0, x * 20 // 1000, -1), [], full[i32, 256](1))
"""
    found = interpret(text, {"X": x, "H": np.zeros(20, np.int32)})["H"]
    np.testing.assert_array_equal(found, np.bincount(x * 20 // 1000, minlength=20))


def test_tokens_of_an_expert_are_multiplied_together() -> None:
    tokens, weights = RNG.integers(-3, 4, (40, 48)), RNG.integers(-3, 4, (3, 33, 48))
    expert = np.sort(RNG.integers(0, 3, 40))
    order = RNG.permutation(40)
    blocks = [(e, s) for e in range(3) for s in range(0, int((expert == e).sum()), 16)]
    firsts = np.searchsorted(expert, np.arange(4))
    lists = np.full((len(blocks), 16), -1, np.int32)
    for row, (e, s) in zip(lists, blocks, strict=True):
        mine = order[firsts[e] : firsts[e + 1]][s : s + 16]
        row[: len(mine)] = mine
    text = """
kernel experts(X: global[bf16, M, K], W: global[bf16, E, N, K], L: global[i32, B, 16], W2: global[i32, B],
               Y: global[f32, M, N]):
    b, n = tile_ids(B, cdiv(N, 32))
    rows = load(L, [b, 0], [1, 16])[0]
    e = item(load(W2, [b], [1]))
    acc = zeros[f32, 16, 32]
    for k in range(0, K, 32):
        x = gather(X, rows[:, None], [k], shape=[16, 32])
        acc += dot(x, load(W, [e, n * 32, k], [1, 32, 32])[0].T)
    scatter(Y, broadcast(rows[:, None], [16, 32]), [n * 32], acc)
"""
    kind = ml_dtypes.bfloat16
    arrays = {"X": tokens.astype(kind), "W": weights.astype(kind), "L": lists}
    arrays |= {"W2": np.array([e for e, _ in blocks], np.int32), "Y": np.zeros((40, 33), np.float32)}
    wanted = np.zeros((40, 33))
    for place, e in zip(order, expert, strict=True):
        wanted[place] = weights[e] @ tokens[place]
    np.testing.assert_array_equal(interpret(text, arrays)["Y"], wanted)


def test_a_convolution_along_rows() -> None:
    x, w = RNG.integers(-4, 5, (5, 100)).astype(np.float32), RNG.integers(-3, 4, (5, 4)).astype(np.float32)
    text = """
kernel convolve(X: global[f32, C, N], W: global[f32, C, T], Y: global[f32, C, N]):
    c, i = tile_ids(cdiv(C, 4), cdiv(N, 64))
    acc = zeros[f32, 4, 64]
    for t in range(T):
        acc += load(X, [c * 4, i * 64 + t - T + 1], [4, 64]) * load(W, [c * 4, t], [4, 1])
    store(Y, [c * 4, i * 64], acc)
"""
    found = interpret(text, {"X": x, "W": w, "Y": np.zeros_like(x)})["Y"]
    wanted = [np.convolve(row, taps[::-1])[:100] for row, taps in zip(x, w, strict=True)]
    np.testing.assert_array_equal(found, wanted)


def test_a_product_of_blocks_with_scales() -> None:
    q, x = RNG.integers(-8, 8, (32, 96)).astype(np.int8), RNG.integers(-4, 5, (16, 96)).astype(np.float32)
    scales = 2.0 ** RNG.integers(-2, 3, (32, 3))
    body = """
acc = zeros[f32, 16, 32]
for g in range(S1):
    w = cast(load(Q, [0, g * 32], [32, 32]), f32) * load(S, [0, g], [32, 1])
    acc += dot(cast(load(X, [0, g * 32], [16, 32]), bf16), cast(w, bf16).T)
store(OUT, [0, 0], acc)
"""
    found = result(body, shape=(16, 32), Q=q, X=x, S=scales.astype(np.float32))
    np.testing.assert_array_equal(found, x @ (q * np.repeat(scales, 32, 1)).T)


def test_an_odd_rotary_width_is_told_by_an_assertion() -> None:
    with pytest.raises(HkcError, match="HK218"):
        interpret('const W = 5\nkernel k(A: global[f32, M]):\n    assert W % 2 == 0, "pairs"\n', {"A": np.zeros(3)})
