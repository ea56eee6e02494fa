"""Every op for every dtype: one kernel per dtype that stores what each op gives to a tensor of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from hkc import api
from hkc.frontend.check import check
from hkc.frontend.parse import parse
from hkc.support.dtypes import DTYPES
from hkc.support.errors import Source
from hkc.support.worker import call

SHAPE = (16, 32)
FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64")

NUMBERS = {
    "sums": "x + y - x * y",
    "extremes": "maximum(minimum(x, y), clamp(x, y, y))",
    "chosen": "where(x < y, x, y)",
    "compared": "cast((x <= y) & (x != y) | (x == y) ^ (x > y), T)",
    "moved": "concat(x[:, 16:], y[:, :16], axis=1)",
    "turned": "transpose(transpose(x, [1, 0]), [1, 0])",
    "total": "broadcast(sum(x, axis=1, keepdims=True), [16, 32])",
    "highest": "broadcast(max(x, axis=0, keepdims=True) - min(x, axis=0, keepdims=True), [16, 32])",
    "product": "broadcast(prod(clamp(x, ONE, TWO), axis=1, keepdims=True), [16, 32])",
    "running": "cumsum(x, axis=1) + cummax(y, axis=0) + cummin(x, axis=1, reverse=True)",
    "places": "cast(broadcast(argmax(x, axis=1, keepdims=True) + argmin(y, axis=1, keepdims=True), [16, 32]), T)",
    "some": "cast(broadcast(any(x > y, axis=0, keepdims=True), [16, 32]) & all(x == x), T)",
    "gathered": "gather(X, iota[16, 32](axis=0) * 3 % 19 - 1, [1], axis=0, fill=ONE)",
    "masked": "load(X, [-1, 2], [16, 32], fill=TWO, mask=x < y)",
}
"""Expressions of any numbers; `x`, `y` are tiles of dtype `T`, ONE and TWO numbers of it."""

OF_FLOATS = {
    "quotient": "x / (abs(y) + ONE)",
    "rounded": "floor(x) + ceil(y) + rcp(abs(x) + ONE)",
    "roots": "sqrt(abs(x)) + rsqrt(abs(y) + ONE)",
    "negated": "-x + abs(y)",
}
OF_EXPONENTIALS = {
    "powers": "exp(clamp(x, -TWO, TWO)) + exp2(clamp(y, -TWO, TWO))",
    "logarithms": "log(abs(x) + ONE) + log2(abs(y) + ONE)",
    "angles": "sin(x) + cos(y) + tanh(x)",
    "activations": "sigmoid(x) + silu(y) + gelu(x) + erf(y)",
}
OF_INTEGERS = {
    "halves": "x // ((y & 7) + 1) + x % ((x & 3) + 2)",
    "bits": "(x & y | ~x) ^ (y << (x & 5)) + (x >> (y & 5))",
}

ATOMIC = """kernel k(
    X: global[T, M, N], A: global[T, M, N], B: global[T, M, N], C: global[T, M, N], D: global[T, M, N]
):
    x = load(X, [0, 0], [16, 32])
    atomic_add(A, [1, 1], x)
    atomic_max(B, [0, 2], x, mask=iota[16, 32](axis=1) < 20)
    atomic_min(C, [0, 0], x)
    scatter_add(D, iota[16, 32](axis=0), [0], x, axis=0)
"""


def expressions(dtype: str) -> dict[str, str]:
    """What can be computed in a dtype."""
    if dtype in INTEGERS:
        return NUMBERS | OF_INTEGERS
    return NUMBERS | OF_FLOATS | (OF_EXPONENTIALS if dtype != "f64" else {})


def source(dtype: str) -> str:
    """The kernel of a dtype."""
    names = expressions(dtype)
    tensors = ", ".join(f"{n}: global[T, M, N]" for n in names)
    lines = [f"    store({n}, [0, 0], {e})" for n, e in names.items()]
    numbers = ("1.0", "2.0") if dtype in FLOATS else ("1", "2")
    text = "\n".join(
        [
            f"const T = {dtype}, ONE = {numbers[0]}, TWO = {numbers[1]}",
            f"kernel k(X: global[T, M, N], Y: global[T, M, N], {tensors}):",
            *(f"    {v} = load({v.upper()}, [0, 0], [16, 32])" for v in "xy"),
            *lines,
        ]
    )
    return text + "\n"


def inputs(dtype: str) -> dict[str, np.ndarray]:
    """Tensors that a 16x32 tile reaches over; small numbers of both signs, and the ends of the range."""
    kind, rng = DTYPES[dtype].numpy, np.random.default_rng(3)
    shape = (15, 28)
    if dtype in FLOATS:
        return {n: (rng.integers(-12, 13, shape) / 4).astype(kind) for n in "XY"}
    info: Any = np.iinfo(kind)
    made = {n: rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True) for n in "XY"}
    made["X"][::2] = rng.integers(0, 9, made["X"][::2].shape).astype(kind)
    made["X"][0, :2], made["Y"][0, :2] = (info.min, info.max), (info.max, info.min)
    return made


def differences(text: str, arch: str, arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """By output: where machine code is farther from the meaning than the bound derived for it."""
    checked = check(parse(Source("sweep.hk", text)))
    compiled = api.build(checked, arch)
    rows, columns = next(iter(arrays.values())).shape
    wanted = call("hkc.reference:bound", checked, arrays, {"M": rows, "N": columns})
    arguments = compiled.bind(**{n: a.copy() for n, a in arrays.items()})
    compiled.launch(arguments, "emulator")
    found = {}
    for name, array in zip(compiled.info.outputs, arguments.results(compiled.info), strict=True):
        value, error = (np.asarray(part, np.float64) for part in wanted[name])
        seen = np.asarray(array, np.float64)
        right = (seen == value) | (np.isnan(seen) & np.isnan(value)) | (np.abs(seen - value) <= error)
        if not right.all():
            at = tuple(np.argwhere(~right)[0])
            found[name] = f"{(~right).sum()} wrong, first {at}: {seen[at]} for {value[at]} within {error[at]}"
    return found
