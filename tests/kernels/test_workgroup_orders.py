"""The words for the order of workgroups: machine code visits every tile once, in the order that the map states."""

from __future__ import annotations

import numpy as np
import pytest
from matrix_products import operands

import hkc
from hkc.layout.workgroups import Chiplets, chiplet
from hkc.support.errors import HkcError
from hkc.targets.chip import load, names

GRID = """
kernel visit(OUT: global[i32, M, N], TICKET: global[i32, ONE]) with waves=1:
    i, j = tile_ids(M, N, order={order})
    turn = fetch_add(TICKET, [0], full[i32, 1](1))
    atomic_add(OUT, [i, j], reshape(turn, [1, 1]) + 1)
"""
"""Each tile gets the number of the workgroup that computes it (the emulator runs them one after another), plus 1."""

SHARED = """
kernel visit(OUT: global[i32, M, N]) with waves=1:
    turn = full[i32, 1, 1](1)
    for i, j in tiles(M, N, workgroups={workgroups}, order={order}):
        atomic_add(OUT, [i, j], turn)
        turn = turn + 1
"""

GRIDS = [(1, 1), (1, 7), (7, 1), (3, 5), (8, 8), (13, 31), (40, 9)]


def wanted(shape: tuple[int, int], chip: str, chunk: int, window: int) -> np.ndarray:
    """The number of each tile in the order, plus 1."""
    numbers = np.arange(shape[0] * shape[1])
    i, j = chiplet(numbers, shape, load(chip).compute.chiplets, chunk, window, np.minimum)
    found = np.zeros(shape, np.int32)
    found[i, j] = numbers + 1
    return found


@pytest.mark.parametrize("chip", names())
@pytest.mark.parametrize(("chunk", "window"), [(1, 1), (3, 2), (32, 8), (1000, 1000)])
def test_workgroups_compute_the_tiles_of_the_map(chip: str, chunk: int, window: int) -> None:
    text = GRID.format(order=f"chiplet, chunk={chunk}, window={window}")
    compiled = hkc.compile(text, chip)
    for shape in GRIDS:
        out = np.zeros(shape, np.int32)
        compiled(out, np.zeros(1, np.int32), device="emulator")
        np.testing.assert_array_equal(out, wanted(shape, chip, chunk, window))


@pytest.mark.parametrize("chip", names())
def test_without_numbers_they_are_chosen_for_the_chip(chip: str) -> None:
    """No loads: rows and columns count alike, and nothing is kept in the L2."""
    compute = load(chip).compute
    at_once = compute.units // compute.chiplets
    window = Chiplets(compute.chiplets, at_once, 0).window(1, 1, at_once)
    compiled = hkc.compile(GRID.format(order="chiplet"), chip)
    for shape in GRIDS:
        out = np.zeros(shape, np.int32)
        compiled(out, np.zeros(1, np.int32), device="emulator")
        np.testing.assert_array_equal(out, wanted(shape, chip, at_once, window))


@pytest.mark.parametrize("chip", names())
@pytest.mark.parametrize("order", ["rows", "chiplet, chunk=5, window=3"])
def test_one_workgroup_walks_all_tiles_in_order(chip: str, order: str) -> None:
    compiled = hkc.compile(SHARED.format(workgroups=1, order=order), chip)
    for shape in GRIDS:
        out = np.zeros(shape, np.int32)
        compiled(out, device="emulator")
        rows = np.arange(1, out.size + 1).reshape(shape)
        np.testing.assert_array_equal(out, rows if order == "rows" else wanted(shape, chip, 5, 3))


@pytest.mark.parametrize("order", ["rows", "chiplet"])
@pytest.mark.parametrize("workgroups", [2, 16, 100])
def test_few_workgroups_share_all_tiles(order: str, workgroups: int) -> None:
    text = SHARED.format(workgroups=workgroups, order=order).replace("turn = turn + 1", "turn = turn + 0")
    compiled = hkc.compile(text, names()[0])
    for shape in GRIDS:
        for device in ("emulator", "reference"):
            out = np.zeros(shape, np.int32)
            compiled(out, device=device)
            np.testing.assert_array_equal(out, np.ones(shape, np.int32))


@pytest.mark.parametrize("chip", names())
def test_three_axes(chip: str) -> None:
    compiled = hkc.compile(
        """
kernel visit(OUT: global[i32, B, M, N]) with waves=1:
    b, i, j = tile_ids(B, M, N, order=chiplet, chunk=4, window=3)
    atomic_add(OUT, [b, i, j], full[i32, 1, 1, 1](1))
""",
        chip,
    )
    for device in ("emulator", "reference"):
        out = np.zeros((3, 7, 5), np.int32)
        compiled(out, device=device)
        np.testing.assert_array_equal(out, np.ones((3, 7, 5), np.int32))


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("rows, chunk=4", r"HK309.*a grid in the order `rows` has no chunk"),
        ("chiplet, chunk=0-1", r"HK309.*the chunk of a grid can.t be -1"),
        ("chiplet, window=M", r"HK208.*the window of a grid must be known at compile time"),
        ("chiplet, height=2", r"HK211.*a grid has no argument `height`"),
    ],
)
def test_what_an_order_is_not(order: str, said: str) -> None:
    with pytest.raises(HkcError, match=said):
        hkc.compile(GRID.format(order=order), names()[0])


PERSISTENT = """
tune BM = 64, BN = 64, BK = 32

kernel gemm(A: global[bf16, M, K], B: global[bf16, N, K], C: global[f32, M, N]):
    for m, n in tiles(cdiv(M, BM), cdiv(N, BN), workgroups=3, order=chiplet):
        acc = zeros[f32, BM, BN]
        for k in range(0, K, BK):
            acc += dot(load(A, [m*BM, k], [BM, BK]), load(B, [n*BN, k], [BN, BK]).T)
        store(C, [m*BM, n*BN], acc)
"""


@pytest.mark.parametrize("chip", names())
def test_a_persistent_product_is_pipelined_too(chip: str) -> None:
    """The loop over K brings in tiles one trip ahead, within the loop over tiles of C."""
    compiled = hkc.compile(PERSISTENT, chip)
    assert compiled.lds_bytes >= 2 * (64 + 64) * 32 * 2, "the tiles of two trips"
    for m, n, k in ((200, 136, 72), (130, 70, 33), (64, 64, 8), (3, 3, 0)):
        a, b, exact = operands("NT", "bf16", m, n, k)
        assert np.array_equal(compiled(a, b, device="emulator"), exact)
