"""Kernels as authors of this field write them, against NumPy in float64: rotary, dropout, norms with gradients, losses,
quantisation, embeddings, histograms, experts, convolutions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from interpret import field, interpret, near

from hkc.support.errors import HkcError

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("pairs", [False, True])
def test_rotary(pairs: bool) -> None:
    """80 columns of which 20 turn: the others, and the row at position 0, stay bit for bit."""
    x, places = RNG.standard_normal((4, 80)).astype(np.float32), np.array([0, 1, 7, 2047], np.int32)
    rates = (10000.0 ** (-np.arange(10) / 10)).astype(np.float32)
    angle = places[:, None] * rates[None, :].astype(np.float64)
    first = np.s_[:, 0:20:2] if pairs else np.s_[:, :10]
    second = np.s_[:, 1:20:2] if pairs else np.s_[:, 10:20]
    wanted = x.astype(np.float64)
    wanted[first] = x[first] * np.cos(angle) - x[second] * np.sin(angle)
    wanted[second] = x[second] * np.cos(angle) + x[first] * np.sin(angle)
    found = near(field("rotary"), {"X": x, "P": places, "F": rates}, {"Y": wanted}, PAIRS=pairs)["Y"]
    np.testing.assert_array_equal(found[:, 20:], x[:, 20:])
    np.testing.assert_array_equal(found[0], x[0])


def test_dropout_depends_on_seed_and_place_alone() -> None:
    x = RNG.integers(1, 9, (3, 40, 70)).astype(np.float32)

    def run(seed: int, p: float, b: int = 16) -> np.ndarray:
        return interpret(field("dropout"), {"X": x, "Y": np.zeros_like(x)}, {"seed": seed, "p": p}, B=b)["Y"]

    for p in (0.125, 0.5):
        found = run(7, p)
        kept = found != 0
        np.testing.assert_array_equal(found[kept], (x / (1 - p))[kept])
        assert abs(kept.mean() - (1 - p)) < 4 * np.sqrt(p * (1 - p) / x.size)
        np.testing.assert_array_equal(found, run(7, p, 32))
        assert (found != run(8, p)).any()
        assert (kept[0] != kept[1]).any()
    np.testing.assert_array_equal(run(7, 0.0), x)


@pytest.mark.parametrize("shape", [(7, 65), (33, 127), (20, 1)])
def test_gradients_of_a_layer_norm(shape: tuple[int, int]) -> None:
    x, g = (RNG.standard_normal(shape).astype(np.float32) for _ in range(2))
    w = RNG.standard_normal(shape[1]).astype(np.float32)
    wide = x.astype(np.float64)
    rate = 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    hat, wg = (wide - wide.mean(1, keepdims=True)) * rate, g * w.astype(np.float64)
    dx = (wg - wg.mean(1, keepdims=True) - hat * (wg * hat).mean(1, keepdims=True)) * rate
    sums = {"DW": np.zeros_like(w), "DB": np.zeros_like(w)}
    wanted = {"DX": dx, "DW": (g * hat).sum(0), "DB": g.sum(0, np.float64)}
    near(field("layer_norm_gradients"), {"X": x, "W": w, "G": g, **sums}, wanted)


def test_cross_entropy_of_rows_longer_than_a_tile() -> None:
    x = (RNG.standard_normal((5, 300)) * 30).astype(np.float32)
    labels = np.array([0, 299, 17, -100, 128], np.int32)
    wide = x.astype(np.float64)
    log_sum = np.log(np.exp(wide - wide.max(1, keepdims=True)).sum(1)) + wide.max(1)
    wanted = np.where(labels >= 0, log_sum - wide[np.arange(5), np.maximum(labels, 0)], 0)
    near(field("cross_entropy"), {"X": x, "T": labels}, {"L": wanted})


@pytest.mark.parametrize(("kind", "most"), [("f8e4m3fn", 448), ("f8e5m2fnuz", 57344), ("i8", 127)])
def test_rows_are_quantised_with_a_scale_each(kind: str, most: int) -> None:
    from hkc.support.dtypes import dtype

    x = RNG.standard_normal((9, 100)).astype(np.float32) * np.logspace(-3, 3, 9)[:, None].astype(np.float32)
    x[4] = 0
    numpy = dtype(kind).numpy
    arrays = {"X": x, "Q": np.zeros(x.shape, numpy), "S": np.zeros(9, np.float32)}
    found = interpret(field("quantise"), arrays, T=kind, MOST=float(most), WHOLE=kind == "i8")
    scale = found["S"].astype(np.float64)[:, None]
    np.testing.assert_allclose(scale[:, 0], np.where(x.any(1), np.abs(x).max(1) / most, 1), rtol=1e-6)
    step = {"f8e4m3fn": 2**-4, "f8e5m2fnuz": 2**-3, "i8": 0}[kind]
    back = found["Q"].astype(np.float64) * scale
    assert (np.abs(back - x) <= np.abs(x) * step + scale * (0.51 if kind == "i8" else 2**-9)).all()
    assert np.abs(found["Q"].astype(np.float64)).max() == most


def test_embeddings_are_gathered_and_their_gradients_added() -> None:
    table = RNG.integers(-9, 9, (50, 24)).astype(np.float32)
    ids = np.array([3, 3, 49, 0, -1, 50, 7] * 5, np.int32)
    arrays = {"T": table, "I": ids, "E": np.zeros((35, 24), np.float32), "G": np.zeros_like(table)}
    found = interpret(field("embed"), arrays)
    known = (ids >= 0) & (ids < 50)
    wanted = np.where(known[:, None], table[np.where(known, ids, 0)], 0)
    np.testing.assert_array_equal(found["E"], wanted)
    added = np.zeros_like(table)
    np.add.at(added, ids[known], wanted[known] + 1)
    np.testing.assert_array_equal(found["G"], added)


def test_a_histogram() -> None:
    x = RNG.integers(0, 1000, 3000).astype(np.int32)
    found = interpret(field("histogram"), {"X": x, "H": np.zeros(20, np.int32)})["H"]
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
    kind = ml_dtypes.bfloat16
    arrays = {"X": tokens.astype(kind), "W": weights.astype(kind), "L": lists}
    arrays |= {"W2": np.array([e for e, _ in blocks], np.int32), "Y": np.zeros((40, 33), np.float32)}
    wanted = np.zeros((40, 33))
    for place, e in zip(order, expert, strict=True):
        wanted[place] = weights[e] @ tokens[place]
    np.testing.assert_array_equal(interpret(field("experts"), arrays)["Y"], wanted)


def test_a_convolution_along_rows() -> None:
    x, w = RNG.integers(-4, 5, (5, 100)).astype(np.float32), RNG.integers(-3, 4, (5, 4)).astype(np.float32)
    found = interpret(field("convolve"), {"X": x, "W": w, "Y": np.zeros_like(x)})["Y"]
    wanted = [np.convolve(row, taps[::-1])[:100] for row, taps in zip(x, w, strict=True)]
    np.testing.assert_array_equal(found, wanted)


def test_a_product_of_blocks_with_scales() -> None:
    q, x = RNG.integers(-8, 8, (32, 96)).astype(np.int8), RNG.integers(-4, 5, (16, 96)).astype(np.float32)
    scales = 2.0 ** RNG.integers(-2, 3, (32, 3))
    arrays = {"X": x, "Q": q, "S": scales.astype(np.float32), "OUT": np.zeros((16, 32), np.float32)}
    found = interpret(field("dequantised_product"), arrays)["OUT"]
    np.testing.assert_array_equal(found, x @ (q * np.repeat(scales, 32, 1)).T)


def test_an_odd_rotary_width_is_told_by_an_assertion() -> None:
    with pytest.raises(HkcError, match="HK218"):
        interpret('const W = 5\nkernel k(A: global[f32, M]):\n    assert W % 2 == 0, "pairs"\n', {"A": np.zeros(3)})
