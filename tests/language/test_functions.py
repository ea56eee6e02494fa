"""Every function of the language against NumPy, by the reference interpreter."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from interpret import checked, result

from hkc.frontend.constants import admits
from hkc.machine.abi import Aligned, StrideMultiple, UnitStride
from hkc.support.dtypes import DTYPES
from hkc.support.errors import HkcError

RNG = np.random.default_rng(7)
X = RNG.normal(size=(16, 32)).astype(np.float32)
Y = RNG.normal(size=(16, 32)).astype(np.float32)
I = RNG.integers(-9, 9, (16, 32)).astype(np.int32)  # noqa: E741
U = RNG.integers(0, 256, (16, 32)).astype(np.uint8)
NAN = np.where(X > 1, np.float32(np.nan), X)


def of_tiles(expression: str, dtype: str = "f32", shape: tuple[int, ...] = (16, 32), **inputs: Any) -> np.ndarray:
    """An expression over whole tiles, named like the inputs in lower case."""
    loads = []
    for name, value in inputs.items():
        if isinstance(value, np.ndarray):
            zeros = ", ".join("0" * value.ndim)
            loads.append(f"{name.lower()} = load({name}, [{zeros}], [{', '.join(map(str, value.shape))}])")
    where = ", ".join("0" * len(shape))
    return result("\n".join([*loads, f"store(OUT, [{where}], {expression})"]), dtype, shape, **inputs)


FLOATS = {
    "maximum(x, y)": np.maximum(X, Y),
    "min(x, y)": np.minimum(X, Y),
    "fmax(n, y)": np.fmax(NAN, Y),
    "fmin(n, 0.0)": np.fmin(NAN, np.float32(0)),
    "max(n, 0.0)": np.maximum(NAN, np.float32(0)),
    "clamp(x, -0.5, 0.25)": np.clip(X, np.float32(-0.5), np.float32(0.25)),
    "where(x < y, x, 1.0)": np.where(X < Y, X, np.float32(1)),
    "abs(-x)": np.abs(X),
    "x - y * 2.0": X - Y * 2,
    "sum(floor(x), axis=1, keepdims=True) + x * 0.0": np.floor(X).sum(1, keepdims=True) + X * 0,
    "x[3, :] + x * 0.0": X[3] + X * 0,
    "x[:, 5:6] + x * 0.0": X[:, 5:6] + X * 0,
    "x[2, None] + x * 0.0": X[2, None] + X * 0,
    "broadcast(x[-1], [16, 32])": np.broadcast_to(X[-1], (16, 32)),
    "concat(x[8:16], x[0:8], axis=0)": np.concatenate([X[8:], X[:8]]),
    "concat(x[:, 16:], x[:, :16], axis=-1)": np.concatenate([X[:, 16:], X[:, :16]], 1),
    "reshape(reshape(x, [512]), [16, 32])": X,
    "reshape(transpose(reshape(x, [4, 4, 32]), [1, 0, 2]), [16, 32])": X.reshape(4, 4, 32)
    .swapaxes(0, 1)
    .reshape(16, 32),
    "transpose(x).T": X,
    "cummax(x, axis=0)": np.maximum.accumulate(X, 0),
    "cummin(n, axis=1, reverse=True)": np.minimum.accumulate(NAN[:, ::-1], 1)[:, ::-1],
    "x + max(x)": X + X.max(),
    "x * cast(any(x > 2.0), f32)": X * np.float32((X > 2).any()),
    "x * cast(all(x > -9.0, axis=0), f32)": X * (X > -9).all(0).astype(np.float32),
    "x + cast(argmax(x, axis=1, keepdims=True), f32)": X + X.argmax(1)[:, None].astype(np.float32),
    "x + cast(argmin(x, axis=0), f32)": X + X.argmin(0).astype(np.float32),
    "x + cast(argmax(n, axis=1, keepdims=True), f32)": X + NAN.argmax(1)[:, None].astype(np.float32),
    "cast(bitcast(x, u32) >> 31, f32)": np.signbit(X).astype(np.float32),
    "random(5, [0, 0], [16, 32]) * 0.0": X * 0,
}


@pytest.mark.parametrize("expression", FLOATS)
def test_floats(expression: str) -> None:
    np.testing.assert_array_equal(of_tiles(expression, X=X, Y=Y, N=NAN), FLOATS[expression])


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("sigmoid(x)", 1 / (1 + np.exp(-X.astype(float)))),
        ("silu(x)", X / (1 + np.exp(-X.astype(float)))),
        ("rcp(x)", 1 / X.astype(float)),
        ("rsqrt(abs(x))", 1 / np.sqrt(np.abs(X.astype(float)))),
        ("exp2(x) + log2(abs(x))", np.exp2(X.astype(float)) + np.log2(np.abs(X.astype(float)))),
        ("cumsum(x, axis=1)", np.cumsum(X.astype(float), 1)),
        ("cumprod(x, axis=0)", np.cumprod(X.astype(float), 0)),
        ("cumsum(x, axis=0, reverse=True)", np.cumsum(X.astype(float)[::-1], 0)[::-1]),
        ("cast(sigmoid(cast(x, bf16)), f32)", 1 / (1 + np.exp(-X.astype(ml_dtypes.bfloat16).astype(float)))),
        ("sin(x) + cos(x) + tanh(x)", np.sin(X.astype(float)) + np.cos(X.astype(float)) + np.tanh(X.astype(float))),
    ],
)
def test_functions_that_round(expression: str, wanted: np.ndarray) -> None:
    rough = "bf16" in expression
    np.testing.assert_allclose(of_tiles(expression, X=X), wanted, rtol=1e-2 if rough else 2e-5, atol=1e-5)


def test_gelu() -> None:
    from math import erf

    wanted = np.array([[x / 2 * (1 + erf(x / 2**0.5)) for x in row] for row in X.astype(float)])
    np.testing.assert_allclose(of_tiles("gelu(x)", X=X), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(of_tiles("gelu_tanh(x)", X=X), wanted, atol=1e-3)


INTEGERS = {
    "i // 3": I // 3,
    "i % -4": I % -4,
    "i // (abs(i) + 1)": I // (abs(I) + 1),
    "cdiv(i, 4) + cdiv(i, -3) + cdiv(7, abs(i) + 1)": -(-I // 4) - (-I // -3) - (-7 // (abs(I) + 1)),
    "i & 6 | i ^ 3": (I & 6) | (I ^ 3),
    "~i": ~I,
    "i << 2 >> 1": I << 2 >> 1,
    "max(i, axis=0) + min(i, axis=1, keepdims=True)": I.max(0) + I.min(1, keepdims=True),
    "where((i > 0) & ~(i >= 5), 1, i)": np.where((I > 0) & (I < 5), 1, I),
    "cumsum(i, axis=1)": np.cumsum(I, 1, dtype=np.int32),
    "i + iota[16, 32](axis=1)": I + np.arange(32, dtype=np.int32),
}


@pytest.mark.parametrize("expression", INTEGERS)
def test_integers(expression: str) -> None:
    np.testing.assert_array_equal(of_tiles(expression, "i32", I=I), INTEGERS[expression])


UNSIGNED = {
    "u // 3": U // 3,
    "u % 7": U % 7,
    "cdiv(u, 7)": (U.astype(int) + 6).astype(np.int64) // 7,
    "u >> 1": U >> 1,
    "u << 1": U << 1,
    "maximum(u, 100)": np.maximum(U, 100),
    "where(u > 127, u, 1)": np.where(U > 127, U, 1),
    "u + u": U + U,
    "~u": ~U,
    "max(u, axis=1, keepdims=True) + u * 0": U.max(1, keepdims=True) + U * 0,
    "cummin(u, axis=0)": np.minimum.accumulate(U, 0),
    "cast(cast(u, f32) * 0.5, u8)": (U // 2).astype(np.uint8),
    "cast(cast(u, i32) - 100, u8, saturate=True)": np.clip(U.astype(int) - 100, 0, 255).astype(np.uint8),
    "cast(cast(u, u16) * 3, u8, saturate=True)": np.minimum(U.astype(int) * 3, 255).astype(np.uint8),
}


@pytest.mark.parametrize("expression", UNSIGNED)
def test_unsigned_integers(expression: str) -> None:
    np.testing.assert_array_equal(of_tiles(expression, "u8", U=U), UNSIGNED[expression])


def test_unsigned_maxima_are_found() -> None:
    found = of_tiles("argmax(u, axis=1)", "i32", (16,), U=U)
    np.testing.assert_array_equal(found, U.argmax(1))


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("i32", np.trunc(X * 3).astype(np.int32)),
        ("i32, rounding=nearest_even", np.rint(X * 3).astype(np.int32)),
        ("bf16", (X * 3).astype(ml_dtypes.bfloat16)),
        ("f8e4m3fn", (X * 3).astype(ml_dtypes.float8_e4m3fn)),
        ("f8e5m2fnuz, saturate=True", (X * 3).astype(ml_dtypes.float8_e5m2fnuz)),
        ("f4e2m1, saturate=True", np.clip(X * 3, -6, 6).astype(ml_dtypes.float4_e2m1fn)),
        ("bool", X * 3 != 0),
        ("u16, saturate=True", np.clip(np.trunc(X * 3), 0, 65535).astype(np.uint16)),
    ],
)
def test_casts(options: str, wanted: np.ndarray) -> None:
    dtype = options.partition(",")[0]
    found = of_tiles(f"cast(x * 3.0, {options})", dtype, X=X)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))


def test_numbers_of_every_kind_as_parameters() -> None:
    scalars = "a: u8, b: i64, c: bf16, d: bool, e: f64"
    body = "x = cast(a, f32) + cast(b, f32) + cast(c, f32) + cast(d, f32) + cast(e, f32)\n"
    body += "store(OUT, [0], full[f32, 16](x))"
    found = result(body, scalars=scalars, a=200, b=-3, c=1.5, d=True, e=0.25)
    assert (found == 200 - 3 + 1.5 + 1 + 0.25).all()


def test_masks() -> None:
    body = """
m = iota[16, 32](axis=0) < 5
x = load(X, [0, 0], [16, 32], fill=-1.0, mask=m)
store(OUT, [0, 0], x + 1.0, mask=iota[32] >= 16)
"""
    wanted = np.where(np.arange(16)[:, None] < 5, X, np.float32(-1)) + 1
    wanted[:, :16] = 0
    np.testing.assert_array_equal(result(body, shape=(16, 32), X=X), wanted)


def test_gather_and_scatter() -> None:
    places = np.array([3, -1, 0, 15, 16, 2, 2, 7], np.int32)
    body = """
p = load(P, [0], [8])
rows = gather(X, p[:, None], [4], axis=0, fill=9.0, shape=[8, 16])
masked = gather(X, p[:, None], [4], mask=p[:, None] != 3, shape=[8, 16])
scatter(OUT, p[:, None] + iota[8, 16](axis=0) * 16, [0], rows + masked, axis=0)
"""
    found = result(body, shape=(128, 16), X=X, P=places)
    wanted = np.zeros((128, 16), np.float32)
    for i, p in enumerate(places):
        at = p + 16 * i
        if 0 <= at < 128:
            inside = 0 <= p < 16
            wanted[at] = (X[p, 4:20] if inside else 9) + (X[p, 4:20] if inside and p != 3 else 0)
    np.testing.assert_array_equal(found, wanted)


def test_atomics_count_across_workgroups() -> None:
    body = """
i = tile_ids(8)
p = load(P, [i * 16], [16])
scatter_add(OUT, p, [], full[i32, 16](1))
atomic_max(OUT, [30], full[i32, 1](cast(i, i32) * 10))
old = fetch_add(OUT, [31], full[i32, 1](2))
swapped = compare_and_swap(OUT, [29], full[i32, 1](0), full[i32, 1](cast(i, i32) + 5))
"""
    places = RNG.integers(-3, 20, 128).astype(np.int32)
    found = result(body, "i32", (32,), P=places)
    wanted = np.bincount(places[places >= 0], minlength=32)
    wanted[29:] = 5, 70, 16
    np.testing.assert_array_equal(found, wanted)


def test_what_is_updated_is_read() -> None:
    text = """
kernel k(X: global[i32, M], A: global[i32, M], B: global[i32, M], C: global[i32, M], D: global[i32, M]):
    x = load(X, [0], [64])
    atomic_add(A, [0], x, mask=x > 0)
    scatter_max(B, x, [], x, axis=0)
    scatter(C, x, [], x, axis=0)
    store(D, [0], x)
"""
    (kernel,) = checked(text).kernels
    assert kernel.outputs == ("A", "B", "C", "D") and kernel.inputs == ("X", "A", "B")


def test_scans_and_reductions_by_functions() -> None:
    head = """
def affine(a, b, c, d):
    return a * c, b * c + d

def larger(a, b):
    return a if a > b else b
"""
    body = """
x = load(X, [0, 0], [16, 32])
y = load(Y, [0, 0], [16, 32])
p, q = scan(affine, x, y, axis=1)
s = reduce(larger, x, axis=1, keepdims=True)
t, u = reduce(affine, x, y, axis=1)
store(OUT, [0, 0], q + s + u[:, None])
"""
    state = np.zeros(16)
    wanted = np.empty((16, 32))
    for j in range(32):
        state = state * X[:, j].astype(float) + Y[:, j]
        wanted[:, j] = state
    found = result(body, shape=(16, 32), head=head, X=X, Y=Y)
    np.testing.assert_allclose(found, wanted + X.max(1, keepdims=True) + state[:, None], rtol=1e-4, atol=1e-4)


def test_tiles_of_several_dtypes_are_folded_together() -> None:
    head = """
def best(a, i, f, b, j, g):
    return where(b > a, b, a), where(b > a, j, i), f | g
"""
    body = """
x = load(X, [0, 0], [16, 32])
places = cast(iota[16, 32](axis=1), i16)
v, i, f = reduce(best, x, places, x > 2.0, axis=1, keepdims=True)
w, j, g = scan(best, x, places, x > 2.0, axis=1)
store(OUT, [0, 0], v + w + cast(i, f32) * cast(j, f32) + cast(f, f32) - cast(g, f32))
"""
    above, running = X > 2, np.maximum.accumulate(X, axis=1)
    first = np.array([[np.argmax(row[: j + 1]) for j in range(32)] for row in X])
    any_so_far = np.logical_or.accumulate(above, axis=1).astype(np.float32)
    wanted = X.max(1, keepdims=True) + running + first[:, -1:] * first + any_so_far[:, -1:] - any_so_far
    np.testing.assert_allclose(result(body, shape=(16, 32), head=head, X=X), wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "total"), [("i8", "i32"), ("f16", "f32"), ("f64", "f64"), ("f8e4m3fn", "f32"), ("f8e5m2fnuz", "f32")]
)
def test_products_of_every_dtype(dtype: str, total: str) -> None:
    body = f"""
a = cast(load(X, [0, 0], [16, 32]) * 4.0, {dtype})
b = cast(load(Y, [0, 0], [16, 32]) * 4.0, {dtype})
acc = dot(a, b.T)
acc += dot(a, b.T)
store(OUT, [0, 0], acc)
"""
    kind = DTYPES[dtype].numpy
    a, b = ((m * 4).astype(kind).astype(float) for m in (X, Y))
    found = result(body, total, (16, 16), X=X, Y=Y)
    np.testing.assert_allclose(found.astype(float), 2 * a @ b.T, rtol=1e-5, atol=1e-3)


def test_scaled_products(machine: str) -> None:
    scale = np.full((16, 4), 4.0).astype(ml_dtypes.float8_e8m0fnu)
    a = RNG.integers(-3, 4, (16, 128)).astype(ml_dtypes.float4_e2m1fn)
    body = """
a = load(A, [0, 0], [16, 128])
s = load(S, [0, 0], [16, 4])
store(OUT, [0, 0], dot_scaled(a, s, a.T, s.T))
"""
    if machine == "gfx942":
        with pytest.raises(HkcError, match="gfx942"):
            result(body, shape=(16, 16), A=a, S=scale)
        return
    found = result(body, shape=(16, 16), A=a, S=scale)
    np.testing.assert_array_equal(found, 16 * (a.astype(np.float32) @ a.astype(np.float32).T))


def test_random_numbers_depend_on_seed_and_place_alone() -> None:
    whole = result("store(OUT, [0, 0], random(seed, [0, 0], [32, 32]))", shape=(32, 32), scalars="seed: i64", seed=77)
    part = result("store(OUT, [0, 0], random(77, [8, 16], [16, 16]))", shape=(16, 16))
    np.testing.assert_array_equal(whole[8:24, 16:], part)
    assert 0.4 < whole.mean() < 0.6 and whole.min() >= 0 and whole.max() < 1
    bits = result("store(OUT, [0], random_bits(1, [0], [16]))", "u32")
    assert len(set(bits.tolist())) == 16


def test_assertions(machine: str) -> None:
    body = 'x = load(X, [0, 0], [16, 32])\nassert x < 100.0, "small"\nassert n > 2, "n is large"\n'
    body += "store(OUT, [0], zeros[f32, 16])"
    result(body, X=X, n=3)
    with pytest.raises(HkcError, match=r"HK720.*assertion failed: n is large"):
        result(body, X=X, n=2)


def test_prints_change_nothing() -> None:
    body = 'x = load(X, [0, 0], [16, 32])\nprint("n, sum", n, sum(x))\nstore(OUT, [0], zeros[f32, 16])'
    assert (result(body, X=X, n=3) == 0).all()


def test_declarations_reach_the_launch() -> None:
    text = "kernel k(A: global[f32, M, N](align=16, contiguous=True)):\n    store(A, [0, 0], zeros[f32, 16, 16])\n"
    wanted = (Aligned("A", 16), StrideMultiple("A", 0, 16), UnitStride("A", 1))
    assert checked(text).kernels[0].conditions == wanted


def test_candidates_and_constraints() -> None:
    text = "tune BM = 64 in [32, 64, 128], BK = 16 where BM * BK <= 1024\nkernel k(A: global[f32, M]):\n"
    text += "    store(A, [0], zeros[f32, BM])\n"
    program = checked(text)
    assert program.candidates == (("BM", (32, 64, 128)),)
    assert [admits(program.constraints, program.constants, {"BM": n}) for n in (32, 128)] == [True, False]
    with pytest.raises(HkcError, match="BK = 16, BM = 128"):
        checked(text, BM=128)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if DTYPES[d].is_narrow])
def test_scalars_of_narrow_floats(dtype: str) -> None:
    """A number of a launch, or one that is written, and back from f32 into one."""
    kind = DTYPES[dtype].numpy
    for number in (0.5, 2.0):
        body = f"""
made = cast(2.0 * cast(s, f32), {dtype})
x = cast(s, f32) + cast(made, f32) + cast(cast(2, {dtype}), f32)
store(OUT, [0], full[f32, 16](x) * cast(full[{dtype}, 16](made), f32))"""
        found = result(body, scalars=f"s: {dtype}", s=number)
        wide = float(np.array(number).astype(kind))
        np.testing.assert_array_equal(found, np.full(16, (3 * wide + 2) * 2 * wide, np.float32))
