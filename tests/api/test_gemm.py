"""The matrix product called from Python: degenerate sizes and views of every kind, on both chips, as exact integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hkc.api import CompiledKernel

Example = Callable[..., CompiledKernel]
Array = np.ndarray[Any, Any]
BF16 = ml_dtypes.bfloat16


@pytest.fixture(params=["gfx942", "gfx950"])
def gemm(request: pytest.FixtureRequest, example: Example) -> CompiledKernel:
    return example("gemm", request.param, OUT="f32", BM=32, BN=32)


def operands(m: int, n: int, k: int) -> tuple[Array, Array]:
    """Small whole numbers without symmetry, so that sums are exact and a transposition shows."""
    a = (np.arange(m)[:, None] + np.arange(k)) % 3 - 1
    b = (2 * np.arange(k) + np.arange(n)[:, None]) % 5 - 2
    return a.astype(BF16), b.astype(BF16)


def product(a: Array, b: Array) -> Array:
    return a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.parametrize("size", [(0, 8, 8), (8, 0, 8), (8, 8, 0), (0, 0, 0), (1, 1, 1), (1, 2, 1)])
def test_empty_and_degenerate(gemm: CompiledKernel, size: tuple[int, int, int]) -> None:
    m, n, k = size
    a, b = operands(m, n, k)
    c = np.full((m, n), np.nan, np.float32)
    assert gemm(a, b, c) is c
    assert np.array_equal(c, product(a, b))


@pytest.mark.parametrize("size", [(64, 32, 96), (33, 65, 40), (65, 33, 100), (17, 100, 7)])
def test_ragged(gemm: CompiledKernel, size: tuple[int, int, int]) -> None:
    a, b = operands(*size)
    assert np.array_equal(gemm(a, b), product(a, b))


def embed(array: Array, make: Callable[[tuple[int, ...]], tuple[Array, Array]]) -> tuple[Array, Array]:
    """A larger memory full of NaN and the view of it that `make` cuts, filled with the content of `array`."""
    memory, view = make(array.shape)
    view[...] = array
    return memory, view


def rows(shape: tuple[int, ...]) -> tuple[Array, Array]:
    memory = np.full((2 * shape[0], shape[1]), np.nan, BF16)
    return memory, memory[::2]


def columns(shape: tuple[int, ...]) -> tuple[Array, Array]:
    memory = np.full((shape[0], 3 * shape[1]), np.nan, BF16)
    return memory, memory[:, ::3]


def reversed_rows(shape: tuple[int, ...]) -> tuple[Array, Array]:
    memory = np.full(shape, np.nan, BF16)
    return memory, memory[::-1]


def reversed_columns(shape: tuple[int, ...]) -> tuple[Array, Array]:
    memory = np.full(shape, np.nan, BF16)
    return memory, memory[:, ::-1]


def transposed(shape: tuple[int, ...]) -> tuple[Array, Array]:
    memory = np.full(shape[::-1], np.nan, BF16)
    return memory, memory.T


def padded(shape: tuple[int, ...]) -> tuple[Array, Array]:
    memory = np.full((shape[0] + 3, shape[1] + 9), np.nan, BF16)
    return memory, memory[1:-2, 1:-8]  # the base is 2-byte aligned


def head_of_three(shape: tuple[int, ...]) -> tuple[Array, Array]:
    memory = np.full((shape[0], 3, shape[1]), np.nan, BF16)
    return memory, memory.transpose(1, 0, 2)[1]


VIEWS = [rows, columns, reversed_rows, reversed_columns, transposed, padded, head_of_three]


@pytest.mark.parametrize("make", VIEWS, ids=lambda make: make.__name__)
def test_views(gemm: CompiledKernel, make: Callable[[tuple[int, ...]], tuple[Array, Array]]) -> None:
    """Inputs and output are views of that kind; nothing around the output changes."""
    a, b = operands(35, 37, 40)
    _, left = embed(a, make)
    _, right = embed(b, make)
    memory, out = wide((35, 37), make)
    result = gemm(left, right, out)
    assert result is out
    assert np.array_equal(out, product(a, b))
    out[...] = np.nan
    assert np.isnan(memory).all()


def wide(shape: tuple[int, ...], make: Callable[[tuple[int, ...]], tuple[Array, Array]]) -> tuple[Array, Array]:
    """The same view of f32 memory."""
    memory, view = make(shape)
    offset = (view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]) // memory.itemsize
    memory = np.full(memory.shape, np.nan, np.float32)
    return memory, np.ndarray(shape, np.float32, memory, 4 * offset, tuple(2 * s for s in view.strides))


def test_a_broadcast_operand(gemm: CompiledKernel) -> None:
    a, b = operands(35, 37, 40)
    row = np.broadcast_to(a[3], a.shape)
    assert np.array_equal(gemm(row, b), product(row, b))


def test_an_operand_used_twice(gemm: CompiledKernel) -> None:
    a, _ = operands(35, 1, 40)
    assert np.array_equal(gemm(a, a), product(a, a))
    assert np.array_equal(gemm(a, a[::-1]), product(a, a[::-1]))


def test_twenty_launches_give_the_same_bytes(gemm: CompiledKernel) -> None:
    a, b = (np.random.default_rng(0).standard_normal((33, 40)).astype(BF16) for _ in range(2))
    assert len({gemm(a, b).tobytes() for _ in range(20)}) == 1
