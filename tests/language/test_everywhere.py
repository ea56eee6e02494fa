"""Inputs on which compilers for these chips have failed, under every condition: all numbers of waves, all depths."""

from __future__ import annotations

from math import erf
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from everywhere import exactly, nearly, outcomes

from hkc.support.dtypes import dtype

RNG = np.random.default_rng(5)
BF16 = ml_dtypes.bfloat16

FILLS = [*(("f32", f) for f in ("0.0", "-0.0", "1.0", "-7.0", "inf", "nan")), ("i8", "-1"), ("bool", "True")]


@pytest.mark.parametrize(("kind", "fill"), FILLS)
def test_fills(kind: str, fill: str, machine: str) -> None:
    """Straight to registers, and transposed through LDS that held 1234s."""
    text = f"""
const T = {kind}, FILL = {fill}
kernel k(A: global[T, M, N], W: global[T, V, V], D: global[T, D0, D1], E: global[T, E0, E1], F: global[T, F0, F1]):
    store(E, [0, 0], load(W, [0, 0], [32, 32]).T)
    store(D, [0, 0], load(A, [-1, 2], [32, 32], fill=FILL))
    store(F, [0, 0], load(A, [-1, 2], [32, 32], fill=FILL).T)
"""
    a = RNG.integers(0, 2, (20, 25)).astype(dtype(kind).numpy)
    w = np.full((32, 32), 1 if kind == "bool" else 1234 % 256 - 256 if kind == "i8" else 1234).astype(a.dtype)
    filled = np.full((32, 32), float(fill) if kind != "bool" else True).astype(a.dtype)
    filled[1:21, :23] = a[:, 2:]
    exactly(text, {"A": a, "W": w}, {"D": filled, "E": w, "F": filled.T}, machine)
    signs = [np.signbit(out[n]) for out in outcomes(text, {"A": a, "W": w, "D": w * 0, "E": w * 0, "F": w * 0}, machine)
             .values() for n in "D"] if fill == "-0.0" else []  # fmt: skip
    assert all(s[25:].all() for s in signs)


def test_a_missing_fill_is_zero(machine: str) -> None:
    text = """
kernel k(A: global[i32, M], D: global[i32, N], E: global[i32, N, N]):
    x = load(A, [3], [32])
    store(D, [0], x)
    store(E, [0, 0], broadcast(x[None, :], [32, 32]).T)
"""
    a = np.arange(1, 21, dtype=np.int32)
    wanted = np.concatenate([a[3:], np.zeros(15, np.int32)])
    exactly(text, {"A": a}, {"D": wanted, "E": np.broadcast_to(wanted[:, None], (32, 32)).copy()}, machine)


PERMUTED = RNG.integers(-4, 5, (4, 6, 48))
MATRIX = RNG.integers(-4, 5, (24, 56))
VIEWS = {
    "contiguous": lambda x, y: x,
    "transposed": lambda x, y: x.T,
    "every second row": lambda x, y: x[::2],
    "every third column": lambda x, y: x[:, ::3],
    "backwards": lambda x, y: x[::-1],
    "expanded": lambda x, y: np.broadcast_to(x[:1], (24, 56)),
    "a head of padded rows": lambda x, y: x.reshape(24, 2, 28)[:, 1, :25],
    "permuted": lambda x, y: y.transpose(2, 0, 1)[:, 2],
}


@pytest.mark.parametrize("view", VIEWS)
def test_views(view: str, machine: str) -> None:
    """Copied, transposed and multiplied, to results that have strides of their own."""
    a = VIEWS[view](MATRIX.astype(np.float32), PERMUTED.astype(np.float32))
    text = """
kernel k(A: global[f32, M, N], S: global[f32, M, N], T: global[f32, N, M], C: global[f32, M, M]):
    i, j = tile_ids(cdiv(M, 16), cdiv(M, 16))
    acc = zeros[f32, 16, 16]
    for k in range(0, N, 16):
        a = load(A, [i*16, k], [16, 16])
        if j == 0:
            store(S, [i*16, k], a)
            store(T, [k, i*16], a.T)
        acc += dot(a, load(A, [j*16, k], [16, 16]).T)
    store(C, [i*16, j*16], acc)
"""
    rows, columns = a.shape
    outs = {
        "S": np.full((columns, rows), np.nan, np.float32).T,
        "T": np.full((2 * columns, rows), np.nan, np.float32)[::2],
        "C": np.full((rows, rows + 3), np.nan, np.float32)[::-1, :rows],
    }
    exactly(text, {"A": a, **outs}, {"S": a, "T": a.T, "C": a @ a.T}, machine, loops=True)


MIXED = [("f8e5m2", "f8e4m3fn", 60.0), ("f8e5m2fnuz", "f8e4m3fnuz", 15.0),
         ("f8e4m3fn", "f8e5m2", 42.0), ("f8e4m3fnuz", "f8e5m2fnuz", 10.5)]  # fmt: skip


@pytest.mark.parametrize("size", [16, 32, 64])
@pytest.mark.parametrize(("left", "right", "total"), MIXED)
def test_products_of_two_kinds_of_8_bits(left: str, right: str, total: float, size: int, machine: str) -> None:
    """Both operands by rows and by columns."""
    text = f"""
kernel k(A: global[{left}, M, K], AT: global[{left}, K, M], B: global[{right}, K, N], BT: global[{right}, N, K],
         C: global[f32, M, N], CT: global[f32, M, N]):
    store(C, [0, 0], dot(load(A, [0, 0], [{size}, 32]), load(B, [0, 0], [32, {size}])))
    store(CT, [0, 0], dot(load(AT, [0, 0], [32, {size}]).T, load(BT, [0, 0], [{size}, 32]).T))
"""
    k, kinds = np.arange(32), (dtype(left).numpy, dtype(right).numpy)
    a = np.tile(np.where(k % 2, 0x40, 0x3C).astype(np.uint8), (size, 1)).view(kinds[0])
    bt = np.tile(np.where(k < 16, 0x38, 0x3C).astype(np.uint8), (size, 1)).view(kinds[1])
    c = np.full((size, size), total, np.float32)
    stored = {"A": a, "AT": np.ascontiguousarray(a.T), "B": np.ascontiguousarray(bt.T), "BT": bt}
    exactly(text, stored, {"C": c, "CT": c}, machine)


def test_sums_in_bf16_do_not_drift(machine: str) -> None:
    """Rounded to nearest, 72 small steps keep the norm; cut off, a sixth of it would be lost."""
    text = """
kernel k(R: global[f32, M, N], D: global[f32, S, M, N], OUT: global[bf16, M, N]):
    i = tile_ids(cdiv(M, 16)) * 16
    r = cast(load(R, [i, 0], [16, 256]), bf16)
    for s in range(S):
        r = cast(cast(r, f32) + load(D, [s, i, 0], [1, 16, 256])[0], bf16)
    store(OUT, [i, 0], r)
"""
    start = RNG.standard_normal((64, 256)).astype(np.float32)
    steps = (RNG.standard_normal((72, 64, 256)) * 0.05).astype(np.float32)
    wanted = start.astype(BF16)
    for step in steps:
        wanted = (wanted.astype(np.float32) + step).astype(BF16)
    exact = start.astype(np.float64) + steps.sum(0, np.float64)
    assert abs(np.linalg.norm(wanted.astype(np.float64)) / np.linalg.norm(exact) - 1) < 0.005
    exactly(text, {"R": start, "D": steps}, {"OUT": wanted}, machine)


CONSTANTS = [("i8", -3), ("u8", 200), ("bf16", -1.5), ("bool", True)]


@pytest.mark.parametrize(("kind", "value"), CONSTANTS)
def test_constants_are_packed(kind: str, value: Any, machine: str) -> None:
    """Into rows of every width from 1 to 17, each in guards."""
    outs = {f"O{n}": np.full((3, n), value).astype(dtype(kind).numpy) for n in range(1, 18)}
    head = ", ".join(f"O{n}: global[{kind}, M{n}, N{n}]" for n in range(1, 18))
    lines = "\n".join(f"    store(O{n}, [0, 0], full[{kind}, 4, 32]({value}))" for n in range(1, 18))
    exactly(f"\nkernel k({head}):\n{lines}\n", {}, outs, machine)


@pytest.mark.parametrize("depth", [64, 128, 256])
def test_steps_wider_than_a_group_of_scales(depth: int, machine: str) -> None:
    """A scale of 1, then of 2 for each 128 of K: 384 times the row's own, where one scale gives 256 or 512."""
    text = f"""
const BK = {depth}, GROUP = 128, STEP = min(BK, GROUP)
kernel k(A: global[bf16, M, K], S: global[f32, M, G], B: global[bf16, N, K], C: global[f32, M, N]):
    acc = zeros[f32, 16, 32]
    for k in range(0, K, BK):
        for g in range(k, k + BK, STEP):
            part = dot(load(A, [0, g], [16, STEP]), load(B, [0, g], [32, STEP]).T)
            acc += part * load(S, [0, g // GROUP], [16, 1])
    store(C, [0, 0], acc)
"""
    rows = np.arange(1, 8, dtype=np.float32)
    arrays = {"A": np.ones((7, 256), BF16), "B": np.ones((21, 256), BF16), "S": rows[:, None] * np.float32([1, 2])}
    exactly(text, arrays, {"C": np.broadcast_to(384 * rows[:, None], (7, 21)).copy()}, machine)


@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_products_of_f32_keep_all_digits(kind: str, machine: str) -> None:
    """An operand that comes as bf16 and is cast does not turn the product into one of bf16."""
    text = f"""
kernel k(A: global[f32, M, K], B: global[{kind}, K, N], C: global[f32, M, N]):
    b = load(B, [0, 0], [32, 32])
    store(C, [0, 0], dot(load(A, [0, 0], [32, 32]), cast(b, f32)))
"""
    a = (np.eye(32) * (1 + 2.0**-20)).astype(np.float32)
    b = np.full((32, 32), 1 + 2.0**-21 if kind == "f32" else 1 + 2.0**-7).astype(dtype(kind).numpy)
    exactly(text, {"A": a, "B": b}, {"C": np.float32(1 + 2.0**-20) * b.astype(np.float32)}, machine)


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "i32", "i64", "f64"])
def test_atomic_additions(kind: str, machine: str) -> None:
    """One element on, so that 16-bit words begin at odd places; lanes that are masked off; 64 workgroups, one cell."""
    text = f"""
kernel k(X: global[{kind}, N], Y: global[{kind}, N], Z: global[{kind}, C]):
    i = tile_ids(64)
    if i == 0:
        atomic_add(X, [1], full[{kind}, 512](1))
        atomic_add(Y, [1], full[{kind}, 512](1), mask=iota[512] % 3 == 1)
    atomic_add(Z, [2], full[{kind}, 1](1))
"""
    x, z = np.tile([0, 1], 257).astype(dtype(kind).numpy), np.zeros(4, dtype(kind).numpy)
    one, some = np.ones(512, x.dtype), (np.arange(512) % 3 == 1).astype(x.dtype)
    wanted = {
        "X": np.concatenate([x[:1], x[1:513] + one, x[513:]]),
        "Y": np.concatenate([x[:1], x[1:513] + some, x[513:]]),
        "Z": np.array([0, 0, 64, 0]).astype(x.dtype),
    }
    exactly(text, {"X": x, "Y": x, "Z": z}, wanted, machine)


def test_phases_of_different_widths(machine: str) -> None:
    text = """
kernel k(OUT: global[f32, M], X: global[f32, R, N]):
    a = load(X, [0, 0], [16, 32])
    store(OUT, [0], sum(a * a, axis=1))
    b = load(X, [0, 0], [16, 96])
    store(OUT, [16], sum(b * b, axis=1))
"""
    exactly(text, {"X": np.ones((16, 96), np.float32)}, {"OUT": np.repeat(np.float32([32, 96]), 16)}, machine)


def test_int8_products_and_the_policy_of_nan(machine: str) -> None:
    text = """
kernel k(A: global[i8, M, K], C: global[i32, M, M], X: global[f32, N], H: global[f32, P], L: global[f32, P]):
    a = load(A, [0, 0], [32, 64])
    store(C, [0, 0], dot(a, a.T))
    x = load(X, [0], [64])
    store(H, [0], full[f32, 1](max(x)))
    store(L, [0], full[f32, 1](max(where(x != x, -inf, x))))
"""
    a = RNG.integers(-128, 128, (32, 64)).astype(np.int8)
    x = np.where(np.arange(64) == 37, np.nan, np.arange(64)).astype(np.float32)
    wanted = {"C": a.astype(np.int32) @ a.astype(np.int32).T, "H": np.float32([np.nan]), "L": np.float32([63])}
    exactly(text, {"A": a, "X": x}, wanted, machine)


ENDS = {
    "50.0 * tanh(x / 50.0)": lambda s: 50 * np.tanh(s / 50),
    "tanh(x)": np.tanh,
    "sigmoid(x)": lambda s: 1 / (1 + np.exp(-s)),
    "silu(x)": lambda s: s / (1 + np.exp(-s)),
    "gelu(x)": lambda s: s / 2 * (1 + np.vectorize(erf)(s / np.sqrt(2))),
    "erf(x)": np.vectorize(erf),
}


@pytest.mark.parametrize("expression", ENDS)
def test_functions_at_their_ends(expression: str, machine: str) -> None:
    s = np.float32([1, 100, 1000, 3000, 4400, 5000, 1e4, -1, -1e4, 0.5, 3, 6])
    text = f"""
kernel k(S: global[f32, N], OUT: global[f32, N]):
    x = load(S, [0], [16])
    store(OUT, [0], {expression})
"""
    with np.errstate(over="ignore"):
        nearly(text, {"S": s}, {"OUT": ENDS[expression](s.astype(np.float64))}, machine)


SUBNORMAL = {
    "exp": [-88, -95, -100, -104],
    "exp2": [-127, -140, -149, -150],
    "sqrt": [2.0**-140],
    "log": [2.0**-140],
}


@pytest.mark.parametrize("function", SUBNORMAL)
def test_subnormal_numbers_stay(function: str, machine: str) -> None:
    x = np.float32(SUBNORMAL[function])
    text = f"""
kernel k(X: global[f32, N], OUT: global[f32, N]):
    store(OUT, [0], {function}(load(X, [0], [16])))
"""
    nearly(text, {"X": x}, {"OUT": getattr(np, function)(x.astype(np.float64))}, machine)


def test_subnormal_numbers_of_16_bits_stay(machine: str) -> None:
    """By way of f32; in a product of bf16 matrix units may take them for 0, all alike."""
    tiny = np.array([1, 0x3FF, 0x8001] * 5, np.uint16).view(np.float16)
    text = """
kernel k(X: global[f16, N], OUT: global[f16, N]):
    store(OUT, [0], cast(cast(load(X, [0], [16]), f32), f16))
"""
    exactly(text, {"X": tiny}, {"OUT": tiny}, machine)
    text = """
kernel k(A: global[bf16, M, M], B: global[bf16, M, M], C: global[f32, M, M]):
    store(C, [0, 0], dot(load(A, [0, 0], [16, 16]), load(B, [0, 0], [16, 16])))
"""
    a, c = np.full((16, 16), 1e-39, BF16), np.full((16, 16), np.nan, np.float32)
    for found in outcomes(text, {"A": a, "B": np.eye(16).astype(BF16), "C": c}, machine).values():
        assert set(found["C"].flat) in ({np.float32(0)}, {np.float32(a[0, 0])})


def test_a_fused_element_wise_kernel_with_flat_indices(machine: str) -> None:
    """64 rows of 40, of which those of x lie 56 apart, in blocks of 128."""
    text = """
kernel k(X: global[bf16, L], C: global[i64, MN], O: global[bf16, MN], width: i32, stride: i32):
    block = tile_ids(cdiv(MN, 128)) * 128
    at = cast(block, i32) + iota[128]
    x = gather(X, at // width * stride + at % width, [])
    store(O, [block], cast(cast(x, f32) * log(cast(load(C, [block], [128]), f32) + 1.0), bf16))
"""
    whole = np.full(63 * 56 + 40, np.nan).astype(BF16)
    x = np.lib.stride_tricks.as_strided(whole, (64, 40), (112, 2))
    x[...] = RNG.normal(size=(64, 40))
    c = RNG.integers(10, 131768, (64, 40))
    wanted = (x.astype(np.float64) * np.log(c + 1.0)).reshape(-1)
    nearly(text, {"X": whole, "C": c.reshape(-1)}, {"O": wanted}, machine, width=40, stride=56)


ATTENTION = """
const BOTTOM_RIGHT = False
kernel attention(Q: global[f32, M, D], K: global[f32, N, D], V: global[f32, N, D], MASK: global[f32, N],
                 O: global[f32, M, D], L: global[f32, M]):
    i = tile_ids(cdiv(M, 16)) * 16
    q = load(Q, [i, 0], [16, 16])
    high, total, acc = full[f32, 16, 1](-inf), zeros[f32, 16, 1], zeros[f32, 16, 16]
    last = N - M if BOTTOM_RIGHT else 0
    for j in range(0, N, 16):
        row = iota[16, 16](axis=0) + cast(i + last, i32)
        column = iota[16, 16](axis=1) + cast(j, i32)
        s = dot(q, load(K, [j, 0], [16, 16]).T) + load(MASK, [j], [16], fill=-inf)[None, :]
        s = where(column <= row, s, -inf)
        new = maximum(high, max(s, axis=1, keepdims=True))
        base = where(new == -inf, 0.0, new)
        p, shrink = exp(s - base), exp(high - base)
        total = total * shrink + sum(p, axis=1, keepdims=True)
        acc = acc * shrink + dot(p, load(V, [j, 0], [16, 16]))
        high = new
    some = total > 0.0
    store(O, [i, 0], where(some, acc / where(some, total, 1.0), 0.0))
    store(L, [i], where(some, high + log(where(some, total, 1.0)), -inf)[:, 0])
"""


@pytest.mark.parametrize("bottom_right", [False, True])
@pytest.mark.parametrize(("queries", "keys", "hidden"), [(5, 3, 0), (1, 64, 0), (64, 1, 0), (48, 48, 20), (20, 40, 40)])
def test_rows_that_see_nothing(bottom_right: bool, queries: int, keys: int, hidden: int, machine: str) -> None:
    """`hidden` keys from the fourth on have -inf added, whole blocks among them."""
    text = ATTENTION.replace("RIGHT = False", f"RIGHT = {bottom_right}")
    row, column = np.ogrid[:queries, :keys]
    mask = np.where((column[0] >= 3) & (column[0] < 3 + hidden), -np.inf, 0).astype(np.float32)
    seen = (column <= row + (keys - queries if bottom_right else 0)) & (mask == 0)
    v = np.broadcast_to(np.arange(1, keys + 1, dtype=np.float32)[:, None], (keys, 16))
    with np.errstate(divide="ignore"):
        o = np.broadcast_to((seen @ v[:, :1]) / np.maximum(seen.sum(1, keepdims=True), 1), (queries, 16))
        wanted = {"O": o.astype(np.float64), "L": np.log(seen.sum(1, dtype=np.float64))}
    zeros = {"Q": np.zeros((queries, 16), np.float32), "K": np.zeros((keys, 16), np.float32)}
    nearly(text, {**zeros, "V": v.copy(), "MASK": mask}, wanted, machine, loops=True)
