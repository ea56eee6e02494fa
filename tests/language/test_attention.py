"""Attention of grouped heads with dropout, forwards and backwards, against NumPy in float64; the gradients are also
those that differences of the loss show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from interpret import field, near

from hkc.dialects.tile.random import philox

Array = np.ndarray[Any, Any]
D = 32
SCALE = 0.17677669529663687
SEED = 1234567890123


@dataclass(frozen=True)
class Attention:
    """Arrays of whole multiples of 1/8, as bf16 holds them, in float64; and what is computed from them."""

    q: Array
    k: Array
    v: Array
    do: Array
    causal: bool
    p: float

    @cached_property
    def scores(self) -> Array:
        n, m = self.k.shape[1], self.q.shape[1]
        row, column = np.ogrid[:m, :n]
        s = self.q @ self.shared(self.k).swapaxes(1, 2) * SCALE
        return np.where(column <= row + n - m if self.causal else True, s, -np.inf)

    @cached_property
    def l(self) -> Array:  # noqa: E743
        """The logarithm of the softmax's denominator; -inf for rows that see nothing."""
        with np.errstate(divide="ignore"):
            return np.log(np.exp(self.scores).sum(2))

    def weights(self, l: Array) -> Array:  # noqa: E741
        return np.exp(np.where(np.isinf(l)[:, :, None], -np.inf, self.scores) - np.where(np.isinf(l), 0, l)[:, :, None])

    @cached_property
    def kept(self) -> Array:
        """1 / (1 - p) where a weight is kept, 0 elsewhere: by Philox 4x32-10 of the place."""
        shape = (*self.q.shape[:2], self.k.shape[1])
        head, row, column = np.indices(shape)
        block = philox([column // 4, row, head, np.zeros_like(row)], (SEED & 0xFFFFFFFF, SEED >> 32))
        uniform = np.choose(column % 4, block) // 256 / 2.0**24
        return np.where(uniform >= self.p, 1 / (1 - self.p), 0)

    @property
    def o(self) -> Array:
        return self.weights(self.l) * self.kept @ self.shared(self.v)

    @property
    def c(self) -> Array:
        return (self.do * self.o).sum(2)

    def shared(self, x: Array) -> Array:
        """Each head of keys or values as often as heads of queries use it."""
        return np.repeat(x, len(self.q) // len(x), axis=0)

    def added(self, x: Array) -> Array:
        return x.reshape(len(self.k), -1, *x.shape[1:]).sum(1)

    def gradients(self, l: Array, c: Array) -> dict[str, Array]:  # noqa: E741
        weights, dw = self.weights(l), self.do @ self.shared(self.v).swapaxes(1, 2) * self.kept
        ds = weights * (dw - c[:, :, None]) * SCALE
        return {
            "q": ds @ self.shared(self.k),
            "k": self.added(ds.swapaxes(1, 2) @ self.q),
            "v": self.added((weights * self.kept).swapaxes(1, 2) @ self.do),
        }


SHAPES = [(4, 2, 40, 50), (3, 1, 50, 33), (2, 2, 1, 64), (6, 2, 33, 1)]
CASES = pytest.mark.parametrize(
    ("shape", "causal", "p"), [(s, c, p) for i, s in enumerate(SHAPES) for c, p in ((True, 0.0), (i % 2 == 0, 0.25))]
)


def attention(shape: tuple[int, int, int, int], causal: bool, p: float) -> Attention:
    """Heads, heads of keys, queries and keys."""
    heads, groups, m, n = shape
    rng = np.random.default_rng(n)
    q, k, v, do = (rng.integers(-8, 9, (h, x, D)) / 8 for h, x in ((heads, m), (groups, n), (groups, n), (heads, m)))
    return Attention(q, k, v, do, causal, p)


def stored(**arrays: Array) -> dict[str, Array]:
    return {name: x.astype(ml_dtypes.bfloat16) for name, x in arrays.items()}


@CASES
def test_forwards(shape: tuple[int, int, int, int], causal: bool, p: float) -> None:
    a = attention(shape, causal, p)
    wanted = {"O": a.o, "L": a.l}
    near(field("attention_forward"), stored(Q=a.q, K=a.k, V=a.v), wanted, {"p": p, "seed": SEED}, CAUSAL=causal)


@CASES
def test_backwards(shape: tuple[int, int, int, int], causal: bool, p: float) -> None:
    a = attention(shape, causal, p)
    given = stored(Q=a.q, K=a.k, V=a.v, DO=a.do)
    given |= {"L": a.l.astype(np.float32), "C": a.c.astype(np.float32)}
    wanted = a.gradients(given["L"].astype(np.float64), given["C"].astype(np.float64))
    scalars = {"p": p, "seed": SEED}
    near(field("attention_gradient_of_queries"), given, {"DQ": wanted["q"]}, scalars, CAUSAL=causal)
    both = {"DK": wanted["k"], "DV": wanted["v"]}
    near(field("attention_gradients_of_keys_and_values"), given, both, scalars, CAUSAL=causal)


@CASES
def test_gradients_are_differences(shape: tuple[int, int, int, int], causal: bool, p: float) -> None:
    """Of the oracle itself, along random directions."""
    a, rng, step = attention(shape, causal, p), np.random.default_rng(1), 1e-4
    for name, gradient in a.gradients(a.l, a.c).items():
        way = rng.standard_normal(gradient.shape)
        ahead, back = ((replace(a, **{name: getattr(a, name) + s * way}).o * a.do).sum() for s in (step, -step))
        assert abs((ahead - back) / (2 * step) - (gradient * way).sum()) < 1e-5 * np.abs(gradient * way).sum() + 1e-9
