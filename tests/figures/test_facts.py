"""What pages say is true: who holds what, which banks are used, what fits a compute unit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hkc.api import CompiledKernel
from hkc.figures.facts import Facts, occupancy
from hkc.figures.tiles import held
from hkc.handover import Resources
from hkc.layout import DistributedLayout, blocked
from hkc.targets.chip import Chip, load

Known = Callable[[str, str], tuple[CompiledKernel, Facts, Chip]]


def test_every_tile_has_a_layout_that_covers_it(kernel_facts: Known, name: str, arch: str) -> None:
    _, known, _ = kernel_facts(name, arch)
    assert known.tiles
    for tile in known.tiles:
        assert DistributedLayout.parse(tile.layout).covers(tile.shape)
    names = {tile.name for tile in known.tiles}
    assert {t for p in known.products for t in (p.a, p.b, p.acc)} <= names
    assert {t for move in known.conversions for t in (move.source, move.target)} <= names


def test_phases_add_up_to_the_proof(kernel_facts: Known, name: str, arch: str) -> None:
    kernel, known, _ = kernel_facts(name, arch)
    assert {copy for buffer in known.buffers for copy in buffer.copies} == {buffer.buffer for buffer in kernel.lds}
    for access in (access for buffer in known.buffers for access in buffer.accesses):
        assert sum(clocks for _, clocks in access.phases) == access.proof.cycles
        assert access.total == access.proof.cycles * access.proof.instructions
        assert access.unswizzled is None or access.unswizzled >= access.total


@pytest.mark.parametrize("text", [
    "16x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w()",
    "64x32 r(0,1 0,2 0,16) l(1,0 2,0 4,0 8,0 0,4 0,8) w(16,0 32,0)",
    "64x1 r() l(1,0 2,0 4,0 8,0 0,0 0,0) w(16,0 32,0)",
    "256 r(1 2) l(4 8 16 32 64 128) w()",
])  # fmt: skip
def test_runs_are_what_lanes_hold(text: str) -> None:
    """Every element of a run, by the layout itself."""
    layout = DistributedLayout.parse(text)
    owned = held(layout)
    for run in owned.runs():
        where = np.stack(np.meshgrid(np.arange(run.rows), np.arange(run.columns), indexing="ij"), -1).reshape(-1, 2)
        where += (run.row, run.column)
        owners = layout.owners(where[:, -layout.rank :], layout.block)
        assert set(owners[:, 2]) == {run.lane}
        assert owners[:, 1].tolist() == list(range(run.first, run.last + 1))
    assert owned.copies == 1 << sum(not any(basis) for basis in layout.lane)


def test_blocks_of_three_dims_show_their_last_two() -> None:
    owned = held(blocked((2, 16, 64), 1, 8, 2))
    assert owned.lane.shape == (8, 64)


@pytest.mark.parametrize(
    ("vgpr", "lds", "waves", "fitting"),
    [(128, 0, 4, (4, 4)), (129, 0, 4, (3, 3)), (64, 32768, 4, (8, 2)), (512, 0, 8, (1, 0)), (24, 0, 16, (8, 2))],
)
def test_what_fits_a_compute_unit(vgpr: int, lds: int, waves: int, fitting: tuple[int, int]) -> None:
    assert occupancy(Resources(vgpr, 0, 50, 0, 0, 0, lds), waves, load("gfx942")) == fitting
