"""The orders of workgroups are permutations of the grid, for every number of tiles, and keep neighbours together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hkc.layout.workgroups import Chiplets, chiplet, rows, shared_out, windowed

QUICK = 1024
"""Tiles of the largest grid that every run tries; the rest up to 4096 takes part in `./dev test-all`."""


def numbers(total: int) -> np.ndarray:
    return np.arange(total, dtype=np.int64)


def visits_once(places: list[np.ndarray], extents: tuple[int, ...]) -> bool:
    total = int(np.prod(extents))
    if any((p < 0).any() or (p >= e).any() for p, e in zip(places, extents, strict=True)):
        return False
    return bool((np.bincount(np.ravel_multi_index(places, extents), minlength=total) == 1).all())


def shared(total: int, chiplets: int, chunk: int) -> np.ndarray:
    limit = min(chunk, -(-total // chiplets))
    return np.asarray(shared_out(numbers(total), total, chiplets, limit, np.minimum))


@pytest.mark.parametrize("chiplets", [1, 6, 8])
@pytest.mark.parametrize("chunk", [1, 5, 32, 38, 10**6])
@pytest.mark.parametrize("most", [QUICK, pytest.param(4096, marks=pytest.mark.long)])
def test_every_number_of_tiles_is_shared_out_once(chiplets: int, chunk: int, most: int) -> None:
    for total in range(1, most + 1):
        assert visits_once([shared(total, chiplets, chunk)], (total,)), total


@pytest.mark.parametrize("window", [1, 3, 8])
@pytest.mark.parametrize("most", [QUICK, pytest.param(4096, marks=pytest.mark.long)])
def test_windows_visit_every_tile_of_every_grid_once(window: int, most: int) -> None:
    for height in range(1, most + 1):
        for width in range(1, most // height + 1):
            places = windowed(numbers(height * width), (height, width), min(window, height), np.minimum)
            assert visits_once(places, (height, width)), (height, width)


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=3),
    st.integers(1, 12),
    st.integers(1, 5000),
    st.integers(1, 5000),
)
def test_the_order_is_a_permutation(extents: list[int], chiplets: int, chunk: int, window: int) -> None:
    order = chiplet(numbers(int(np.prod(extents))), extents, chiplets, chunk, window, np.minimum)
    assert visits_once(order, tuple(extents))
    one = int(np.prod(extents)) // 2
    assert chiplet(one, extents, chiplets, chunk, window) == [int(p[one]) for p in order]


@given(st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_rows_are_the_order_of_memory(extents: list[int]) -> None:
    total = int(np.prod(extents))
    assert np.array_equal(np.ravel_multi_index(rows(numbers(total), extents), extents), numbers(total))


@given(st.integers(1, 5000), st.integers(1, 8), st.integers(1, 64))
def test_a_chiplet_gets_neighbours(total: int, chiplets: int, chunk: int) -> None:
    """In whole blocks chiplet c gets `chunk` neighbours; in all, no chiplet gets two tiles more than another."""
    found = shared(total, chiplets, chunk)
    for block in range(total // (chunk * chiplets)):
        for c in range(chiplets):
            own = found[block * chunk * chiplets :][: chunk * chiplets][c::chiplets]
            assert np.array_equal(own, own[0] + numbers(chunk))
    assert np.array_equal(np.sort(found), numbers(total))


def test_the_default_window_reads_the_least() -> None:
    chip = Chiplets(8, 32, 1 << 22)
    for row, column in ((1, 1), (256, 128), (64, 512), (1, 4096)):
        costs = [r * row + 32 / r * column for r in range(1, 33)]
        chosen = chip.window(row, column, 32)
        assert costs[chosen - 1] <= 1.02 * min(costs)
    assert chip.kept(256 * 2) == 4096
