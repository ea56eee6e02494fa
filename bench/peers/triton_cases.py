"""Inputs and references of the kernels in `triton_kernels.py`, for a chip and the constants of the kernel."""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from peers.numerics import Array, Case, Check, U, attention, draw, product, rounded, softmax

from hkc.emulate import Output

Constants = dict[str, Any]

FLOAT8 = {"gfx942": (ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz),
          "gfx950": (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)}  # fmt: skip


def empty(*shape: int, dtype: Any = np.float32) -> Array:
    """An output that shows what was not written: NaN, bytes 0x5A where there is none."""
    if np.dtype(dtype).kind in "iu":
        return np.full((*shape, np.dtype(dtype).itemsize), 0x5A, np.uint8).view(dtype)[..., 0]
    return np.full(shape, np.nan, dtype)


def add(chip: str, c: Constants) -> Case:
    """Not a multiple of the block."""
    n = 20_000
    x, y, out = draw(1, n), draw(2, n), empty(n)
    return Case(f"{n}", (x, y, Output(out), n), (-(-n // c["BLOCK"]),), (Check(out, x + y, 0),))


def rows(chip: str, c: Constants) -> Case:
    """Softmax of rows shorter than the block."""
    x, out = draw(1, 64, 781, scale=3), empty(64, 781)
    return Case("64x781", (x, Output(out), 781), (64,), (softmax(x, out),))


def layernorm(chip: str, c: Constants) -> Case:
    """f16 in and out, f32 statistics."""
    m, n, eps = 32, 1300, 1e-5
    x, w, b, out = draw(1, m, n, dtype="f2"), draw(2, n, dtype="f2"), draw(3, n, dtype="f2"), empty(m, n, dtype="f2")
    means, rstds = empty(m), empty(m)
    wide, weight, bias = (v.astype(np.float64) for v in (x, w, b))
    mean = wide.mean(axis=1)
    rstd = 1 / np.sqrt(wide.var(axis=1) + eps)
    unit = (wide - mean[:, None]) * rstd[:, None]
    slip = 32 * U * np.abs(wide).mean(axis=1)
    bound = 64 * U * (np.abs(unit * weight) + np.abs(bias)) + (slip * rstd)[:, None] * np.abs(weight)
    expected = unit * weight + bias
    checks = (
        Check(out, expected, rounded(expected, "f2") + bound),
        Check(means, mean, slip),
        Check(rstds, rstd, 64 * U * rstd),
    )
    arguments = (x, w, b, Output(out), Output(means), Output(rstds), n, eps)
    return Case(f"{m}x{n}", arguments, (m,), checks)


def matmul(m: int, n: int, k: int, dtype: Any, out: Any) -> Callable[[str, Constants], Case]:
    """C = A · B; `dtype` None is the chip's 8-bit float. Triton takes f32 factors as xf32 where the chip has it."""

    def case(chip: str, c: Constants) -> Case:
        kind = FLOAT8[chip][0] if dtype is None else dtype
        if np.dtype(kind).kind == "i":
            a, b = (np.random.default_rng(i).integers(-128, 128, s, kind) for i, s in ((1, (m, k)), (2, (k, n))))
        else:
            a, b = draw(1, m, k, dtype=kind), draw(2, k, n, dtype=kind)
        inputs = 2.0**-11 if dtype is np.float32 and chip == "gfx942" else 0.0
        result = empty(m, n, dtype=out)
        grid = -(-m // c["BM"]) * -(-n // c["BN"])
        return Case(f"{m}x{n}x{k}", (a, b, Output(result), m, n, k), (grid,), (product(a, b, result, inputs),))

    return case


def split_k(chip: str, c: Constants) -> Case:
    """Four programs add into each tile."""
    m, n, k = 120, 128, 512
    a, b, out = draw(1, m, k, dtype="f2"), draw(2, k, n, dtype="f2"), np.zeros((m, n), np.float32)
    grid = (-(-m // c["BM"]), -(-n // c["BN"]), c["SPLIT"])
    return Case(f"{m}x{n}x{k}", (a, b, out, m, n, k), grid, (product(a, b, out),))


def flash(heads: int, length: int, dtype: Any) -> Callable[[str, Constants], Case]:
    """Attention forward with its log-sum-exp."""

    def case(chip: str, c: Constants) -> Case:
        q, k, v = (draw(i, heads, length, c["D"], dtype=dtype) for i in (1, 2, 3))
        out, lse, scale = empty(*q.shape, dtype=dtype), empty(heads, length), 1 / math.sqrt(c["D"])
        checks = attention(q, k, v, out, lse, scale, c["CAUSAL"])
        arguments = (q, k, v, Output(out), Output(lse), length, scale)
        return Case(f"{heads}x{length}x{c['D']}", arguments, (-(-length // c["BM"]), heads), checks)

    return case


def cumsum(chip: str, c: Constants) -> Case:
    """Running sums of rows."""
    x, out = draw(1, 32, 500), empty(32, 500)
    expected, size = (np.cumsum(v, axis=1) for v in (x.astype(np.float64), np.abs(x.astype(np.float64))))
    return Case("32x500", (x, Output(out), 500), (32 // c["ROWS"],), (Check(out, expected, 32 * U * size),))


def recurrence(chip: str, c: Constants) -> Case:
    """h = a h + b; a scan tree some 20 levels deep with three roundings a level."""
    n = c["BLOCK"]
    a, b, out = (1 - np.abs(draw(1, 3, n, scale=0.1))).astype(np.float32), draw(2, 3, n), empty(3, n)
    h, size = np.zeros((3, n + 1)), np.zeros((3, n + 1))
    for t in range(n):
        h[:, t + 1] = a[:, t].astype(np.float64) * h[:, t] + b[:, t]
        size[:, t + 1] = np.abs(a[:, t].astype(np.float64)) * size[:, t] + np.abs(b[:, t])
    return Case(f"3x{n}", (a, b, Output(out)), (3,), (Check(out, h[:, 1:], 64 * U * size[:, 1:]),))


def histogram(chip: str, c: Constants) -> Case:
    """Counts in 97 bins."""
    n = 10_000
    x, counts = np.random.default_rng(1).integers(0, 97, n, np.int32), np.zeros(97, np.int32)
    return Case(f"{n}", (x, counts, n), (-(-n // c["BLOCK"]),), (Check(counts, np.bincount(x, minlength=97), 0),))


def atomics(chip: str, c: Constants) -> Case:
    """Sixteen slots each: minimum, maximum, or, a sum in f16 that stays exact; a compare-and-swap per program."""
    n = 5000
    x = np.random.default_rng(1).integers(-3, 4, n, np.int32)
    f, low, high = np.zeros(16, np.float16), np.full(16, 9, np.int32), np.full(16, -9, np.int32)
    seen, swapped, programs = np.zeros(16, np.int32), np.zeros(1, np.int32), -(-n // c["BLOCK"])
    slots = [x[i::16] for i in range(16)]
    checks = (
        Check(low, np.array([s.min() for s in slots]), 0),
        Check(high, np.array([s.max() for s in slots]), 0),
        Check(seen, np.array([np.bitwise_or.reduce(s) for s in slots]), 0),
        Check(f, np.array([s.sum() for s in slots]), 0),
        Check(swapped, np.array([(programs + 1) / 2]), (programs - 1) / 2),  # any order of the programs
    )
    return Case(f"{n}", (x, f, low, high, seen, swapped, n), (programs,), checks)


def sort(chip: str, c: Constants) -> Case:
    """Rows in ascending order."""
    x = np.random.default_rng(1).integers(-(2**31), 2**31, (4, c["BLOCK"]), np.int32)
    out = empty(*x.shape, dtype=np.int32)
    return Case(f"4x{c['BLOCK']}", (x, Output(out)), (4,), (Check(out, np.sort(x, axis=1), 0),))


def dropout(chip: str, c: Constants) -> Case:
    """Philox with ten rounds decides; the kept ones are divided by 1 - p."""
    n, p, seed = 5000, 0.3, 1234
    x, out = draw(1, n), empty(n)
    keep = _uniform(seed, n) > np.float32(p)
    expected = np.where(keep, x.astype(np.float64) / (1 - p), 0)
    checks = (Check(out, expected, 4 * U * np.abs(expected)),)
    return Case(f"{n}", (x, Output(out), n, p, seed), (-(-n // c["BLOCK"]),), checks)


def _uniform(seed: int, n: int) -> Array:
    """What `tl.rand(seed, 0 … n - 1)` gives: the first word of Philox4x32-10, folded to [0, 1)."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    c0, c1, c2, c3 = np.arange(n, dtype=np.uint64), *(np.zeros(n, np.uint64) for _ in range(3))
    k0, k1 = seed, 0
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1 = (b >> shift) ^ c1 ^ np.uint64(k0), b & low
        c2, c3 = (a >> shift) ^ c3 ^ np.uint64(k1), a & low
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    x = c0.astype(np.uint32).view(np.int32)
    return np.where(x < 0, -1 - x, x).astype(np.float32) * np.float32(4.6566127342e-10)


def functions(chip: str, c: Constants) -> Case:
    """Bounds in roundings: what the libraries document, exact where the function is called `_rn`."""
    n = 3000
    x, out = draw(1, n, scale=2), empty(10, n)
    v = x.astype(np.float64)
    size = np.abs(v) + 0.125
    exact = (np.abs(x) + np.float32(0.125)).astype(np.float64)
    erf = np.array([math.erf(t) for t in v])
    third = (x * np.float32(3)).astype(np.float64)
    rows: list[tuple[Array, Array | float]] = [
        (np.sin(v), 8 * U * np.abs(np.sin(v)) + 2.0**-140),
        (np.cos(v), 8 * U * np.abs(np.cos(v)) + 2.0**-140),
        (np.exp(v), (4 * np.abs(v) + 8) * U * np.exp(v)),
        (np.log(size), 8 * U * np.abs(np.log(size)) + 4 * U),
        (np.sqrt(exact), U * np.sqrt(exact)),
        (1 / np.sqrt(exact), 4 * U / np.sqrt(exact)),
        (erf, 32 * U * np.abs(erf)),
        (1 / (1 + np.exp(-v)), (4 * np.abs(v) + 16) * U / (1 + np.exp(-v))),
        (v / exact, U * np.abs(v / exact)),
        (np.floor(v) + np.ceil(third), 0.0),
    ]
    checks = tuple(Check(out[i], expected, bound) for i, (expected, bound) in enumerate(rows))
    return Case(f"{n}", (x, Output(out), n), (-(-n // c["BLOCK"]),), checks)


def integers(chip: str, c: Constants) -> Case:
    """Division truncates, remainders have the dividend's sign, as in C."""
    n, source = 2000, np.random.default_rng(1)
    x = source.integers(-(2**63), 2**63, n, np.int64) >> source.integers(0, 60, n)
    y = (source.integers(-(2**63), 2**63, n, np.int64) >> source.integers(0, 60, n)) | 1
    out = empty(6, n, dtype=np.int64)
    wide, other = [int(v) for v in x], [int(v) for v in y]
    low = [(int(a), int(b)) for a, b in zip(x.astype(np.int32), y.astype(np.int32), strict=True)]
    expected = [
        [_quotient(a, b) for a, b in zip(wide, other, strict=True)],
        [a - b * _quotient(a, b) for a, b in zip(wide, other, strict=True)],
        [a * b for a, b in zip(wide, other, strict=True)],
        [(a << (b & 63)) ^ (a >> (b & 31)) for a, b in zip(wide, other, strict=True)],
        [(a % 2**64) * (b % 2**64) >> 64 for a, b in zip(wide, other, strict=True)],
        [_quotient(a, b) for a, b in low],
    ]
    words = np.array([[v % 2**64 for v in row] for row in expected], np.uint64).view(np.int64)
    return Case(f"{n}", (x, y, Output(out), n), (-(-n // c["BLOCK"]),), (Check(out, words, 0),))


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def casts(chip: str, c: Constants) -> Case:
    """To nearest even, down to the subnormals of each type."""
    n = 4000
    x = (draw(1, n) * np.exp2(np.random.default_rng(2).integers(-20, 7, n))).astype(np.float32)
    kinds = (ml_dtypes.bfloat16, np.float16, *FLOAT8[chip])
    outs = [empty(n, dtype=np.uint16 if np.dtype(k).itemsize == 2 else np.uint8) for k in kinds]
    checks = tuple(Check(o.view(k), x.astype(k), 0) for o, k in zip(outs, kinds, strict=True))
    return Case(f"{n}", (x, *map(Output, outs), n), (-(-n // c["BLOCK"]),), checks)


def scaled(chip: str, c: Constants) -> Case:
    """e4m3 times e2m1, two to a byte with the lower first, one e8m0 scale per 32 along K."""
    m, n, k = 64, 128, 256
    source = np.random.default_rng(1)
    a, sa = draw(2, m, k, dtype=ml_dtypes.float8_e4m3fn), source.integers(120, 133, (m, k // 32), np.uint8)
    nibbles, sb = source.integers(0, 16, (k, n), np.uint8), source.integers(120, 133, (n, k // 32), np.uint8)
    b = nibbles[0::2] | nibbles[1::2] << 4
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])[nibbles]
    left = a.astype(np.float64) * np.exp2(np.repeat(sa, 32, axis=1) - 127.0)
    right = values * np.exp2(np.repeat(sb, 32, axis=1) - 127.0).T
    out, grid = empty(m, n), (m // c["BM"], n // c["BN"])
    return Case(f"{m}x{n}x{k}", (a, sa, b, sb, Output(out), n, k), grid, (product(left, right, out),))


BF16 = ml_dtypes.bfloat16
CASES: dict[str, Callable[[str, Constants], Case]] = {
    "add": add, "softmax": rows, "layernorm": layernorm,
    "matmul_bf16": matmul(256, 256, 256, BF16, BF16), "matmul_f16": matmul(200, 264, 144, np.float16, np.float32),
    "matmul_f32": matmul(128, 128, 96, np.float32, np.float32),
    "matmul_f64": matmul(64, 96, 64, np.float64, np.float64),
    "matmul_f8": matmul(256, 128, 256, None, np.float16), "matmul_i8": matmul(128, 128, 256, np.int8, np.int32),
    "matmul_256": matmul(512, 512, 256, BF16, BF16), "split_k": split_k,
    "attention_f16": flash(2, 300, np.float16), "attention_causal": flash(2, 256, BF16),
    "attention_d128": flash(8, 1024, BF16), "cumsum": cumsum, "recurrence": recurrence,
    "histogram": histogram, "atomics": atomics, "sort": sort, "dropout": dropout,
    "functions": functions, "integers": integers, "casts": casts, "scaled_f8f4": scaled,
}  # fmt: skip
