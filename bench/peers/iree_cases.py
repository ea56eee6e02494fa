"""Inputs and references of the programs in `iree_kernels.py`."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from peers.numerics import Case, Check, U, attention, draw, product, softmax

from hkc.emulate import Output


def matmul(m: int, n: int, k: int, dtype: Any) -> Case:
    """C = A · B with f32 sums."""
    a, b, c = draw(1, m, k, dtype=dtype), draw(2, k, n, dtype=dtype), np.full((m, n), np.nan, np.float32)
    return Case(f"{m}x{n}x{k}", (a, b, Output(c)), (), (product(a, b, c),))


def elementwise() -> Case:
    """tanh(a + b), the row b broadcast; the sum's rounding and the function's own error of some ulps."""
    a, b, c = draw(1, 1000, 37), draw(2, 37), np.full((1000, 37), np.nan, np.float32)
    s = a.astype(np.float64) + b
    return Case("1000x37", (a, b, Output(c)), (), (Check(c, np.tanh(s), 20 * U * np.abs(np.tanh(s)) + U * np.abs(s)),))


def reduction() -> Case:
    """Sums of rows: no element goes through more than some 100 additions (12 in its lane, a tree above)."""
    a, c = draw(1, 128, 3000), np.full(128, np.nan, np.float32)
    wide = a.astype(np.float64)
    return Case("128x3000", (a, Output(c)), (), (Check(c, wide.sum(axis=1), 100 * U * np.abs(wide).sum(axis=1)),))


def rows() -> Case:
    """Softmax of f16 rows, which IREE computes in f16 but for the exponential function."""
    x, out = draw(1, 64, 1024, dtype=np.float16), np.full((64, 1024), np.nan, np.float16)
    return Case("64x1024", (x, Output(out)), (), (softmax(x, out, 2.0**-11),))


def heads() -> Case:
    """Attention forward of four heads."""
    q, k, v = (draw(i, 4, 256, 64, dtype=np.float16) for i in (1, 2, 3))
    out = np.full(q.shape, np.nan, np.float16)
    checks = attention(q, k, v, out, None, 1 / math.sqrt(64), False, scaled_query=True)
    return Case("4x256x64", (q, k, v, Output(out)), (), checks)


CASES: dict[str, Callable[[], Case]] = {
    "matmul_f16": lambda: matmul(256, 128, 512, np.float16),
    "matmul_f32": lambda: matmul(192, 128, 256, np.float32),
    "matmul_odd": lambda: matmul(113, 77, 130, np.float16),
    "elementwise": elementwise,
    "reduction": reduction,
    "softmax": rows,
    "attention": heads,
}
