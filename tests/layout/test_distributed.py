"""Distributed layouts: the map itself, its inverse, and the operations that keep or move elements."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import layouts

from hkc.layout import DistributedLayout, Piece, blocked, tile_waves
from hkc.support.errors import HkcError

SMALL = DistributedLayout((4, 4), ((0, 1),), ((0, 2), (1, 0)), ((2, 0),))


def some_shape(layout, factors=(3, 1, 2, 1, 1)):
    return tuple(f * b for f, b in zip(factors, layout.block, strict=False))


@given(layouts())
def test_coordinates_cover_the_tile_and_owners_invert_them(layout):
    shape = some_shape(layout)
    coordinates = layout.coordinates(shape)
    assert coordinates.shape == (layout.fragments(shape), layout.registers, layout.lanes, layout.waves, layout.rank)
    every = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    owners = layout.owners(every, shape)
    assert np.array_equal(coordinates[tuple(np.moveaxis(owners, -1, 0))], every)
    assert coordinates.max(axis=(0, 1, 2, 3)).tolist() == [extent - 1 for extent in shape]


@given(layouts())
def test_text_round_trip(layout):
    assert DistributedLayout.parse(layout.text()) == layout
    assert repr(layout) == layout.text()
    assert hash(layout) == hash(DistributedLayout.parse(repr(layout)))


@given(layouts(), st.data())
def test_transpose_moves_coordinates(layout, data):
    permutation = data.draw(st.permutations(range(layout.rank)))
    shape = some_shape(layout)
    moved = layout.transpose(permutation)
    moved_shape = tuple(shape[p] for p in permutation)
    inside, moved_inside = layout.coordinates(layout.block), moved.coordinates(moved.block)
    assert np.array_equal(moved_inside, inside[..., list(permutation)])
    assert moved.fragments(moved_shape) == layout.fragments(shape)


@given(layouts(), st.data())
def test_insert_then_drop(layout, data):
    dim = data.draw(st.integers(0, layout.rank))
    inserted = layout.insert(dim)
    assert inserted.block[dim] == 1 and inserted.rank == layout.rank + 1
    assert inserted.drop(dim) == layout


@given(layouts(), st.data())
def test_reduce_keeps_the_other_coordinates(layout, data):
    dim = data.draw(st.integers(0, layout.rank - 1))
    reduced = layout.reduce(dim)
    kept, before = reduced.coordinates(reduced.block)[0], layout.coordinates(layout.block)[0]
    before[..., dim] = 0
    for lane in range(layout.lanes):
        for wave in range(layout.waves):
            assert {*map(tuple, kept[:, lane, wave])} == {*map(tuple, before[:, lane, wave])}
    assert all(map(any, reduced.register))


@given(layouts(), st.lists(st.integers(0, 1), min_size=3, max_size=3))
def test_extend_keeps_every_lanes_elements(layout, growth):
    larger = layout.extend([b << g for b, g in zip(layout.block, growth, strict=False)])
    shape = some_shape(larger)
    one, other = layout.coordinates(shape), larger.coordinates(shape)
    for lane in range(layout.lanes):
        assert {*map(tuple, one[:, :, lane, 0].reshape(-1, layout.rank))} == {
            *map(tuple, other[:, :, lane, 0].reshape(-1, layout.rank))
        }


@given(layouts())
def test_offsets_and_pieces_rebuild_coordinates(layout):
    shape = some_shape(layout)
    ids = {"lane": np.arange(layout.lanes)[:, None], "wave": np.arange(layout.waves)[None, :]}
    fragments, registers = layout.fragment_offsets(shape), layout.register_offsets()
    expected = layout.coordinates(shape)
    for dim in range(layout.rank):
        part = np.zeros((layout.lanes, layout.waves), np.int64)
        for piece in layout.pieces(dim):
            part ^= ((ids[piece.source] >> piece.low_bit) & ((1 << piece.width) - 1)) * piece.scale
        terms = sum(((ids[s] >> i) & 1) * 0 for s, i, _ in layout.lane_terms(dim)) + np.zeros_like(part)
        for source, bit, contribution in layout.lane_terms(dim):
            terms = terms ^ ((ids[source] >> bit) & 1) * contribution
        assert np.array_equal(part, terms)
        for r, register in enumerate(registers):
            inside = register[dim] ^ part
            assert np.array_equal(fragments[-1][dim] + inside, expected[-1, r, :, :, dim])
            if layout.is_separable(dim):
                assert np.array_equal(inside, register[dim] + part)


@given(layouts(lane_bits=4))
def test_replication_masks_leave_one_copy(layout):
    lane_mask, wave_mask = layout.replication()
    inside = layout.coordinates(layout.block)[0]
    lanes = [lane for lane in range(layout.lanes) if not lane & lane_mask]
    waves = [wave for wave in range(layout.waves) if not wave & wave_mask]
    written = [tuple(c) for c in inside[:, lanes][:, :, waves].reshape(-1, layout.rank)]
    assert len(set(written)) == np.prod(layout.block)
    if layout.copies_are_zero_bases and all(map(any, layout.register)):
        assert len(written) == len(set(written))


def test_pieces_merge_runs():
    layout = blocked((128, 64), waves=4, vector=8, dim=1)
    assert layout.pieces(1) == (Piece("lane", 0, 3, 8),)
    assert layout.pieces(0) == (Piece("lane", 3, 3, 1), Piece("wave", 0, 2, 8))
    assert layout.contiguous(1) == 8 and layout.contiguous(0) == 1


def test_equivalent_ignores_register_order():
    swapped = DistributedLayout((4, 8), ((0, 1), (0, 4)), ((0, 2), (1, 0)), ((2, 0),))
    assert swapped.equivalent(DistributedLayout((4, 8), ((0, 4), (0, 1)), ((0, 2), (1, 0)), ((2, 0),)))
    assert not swapped.equivalent(DistributedLayout((4, 8), ((0, 1), (0, 4)), ((1, 0), (0, 2)), ((2, 0),)))


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([1, 16, 48, 64, 80, 96, 128]), min_size=1, max_size=3),
    st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from([1, 2, 4, 8]), st.data(),
)  # fmt: skip
def test_blocked_fits_and_is_coalesced(shape, waves, vector, data):
    dim = data.draw(st.integers(0, len(shape) - 1))
    layout = blocked(shape, waves, vector, dim)
    assert layout.fits(shape) and (layout.lanes, layout.waves) == (64, waves)
    assert layout.contiguous(dim) == min(vector, shape[dim] & -shape[dim])
    lane_walk = layout.coordinates(layout.block)[0, 0, :, 0, dim]
    run = layout.block[dim] // layout.registers
    assert lane_walk[: min(run, 64)].tolist() == [i * layout.registers for i in range(min(run, 64))]


def test_tile_waves_places_copies_where_a_grid_axis_has_no_dim():
    unit = DistributedLayout((16, 4), ((0, 1),), ((1, 0), (2, 0), (4, 0), (8, 0), (0, 2)), ())
    acc, a, b = (tile_waves(unit, (2, 4), dims) for dims in ((0, 1), (0, None), (None, 1)))
    assert (acc.block, a.block, b.block) == ((32, 16), (32, 4), (16, 16))
    assert acc.wave == ((0, 4), (0, 8), (16, 0))
    assert a.wave == ((0, 0), (0, 0), (16, 0)) and a.replication() == (0, 3)
    assert b.wave == ((0, 4), (0, 8), (0, 0)) and b.replication() == (0, 4)
    with pytest.raises(HkcError, match="one wave"):
        tile_waves(acc, (2,))


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (((3,), ((1,),), ((2,),), ()), "powers of two"),
        (((4,), ((4,),), ((2,),), ()), "outside"),
        (((4,), ((1,),), ((1,),), ()), "every element"),
        (((2, 2), ((1,),), ((0, 1),), ()), "outside"),
        (((), (), (), ()), "1 to 5 dims"),
    ],
)
def test_malformed_layouts_are_refused(parts, why):
    with pytest.raises(HkcError, match=f"HK403.*{why}"):
        DistributedLayout(*parts)


@given(layouts(), st.data())
def test_blocks_may_reach_beyond_a_tile(layout, data):
    """Every element of any tile is held, and the whole blocks around it by the same lanes as in a tile of whole
    blocks."""
    shape = tuple(data.draw(st.integers(1, 2 * b + 1)) for b in layout.block)
    covered = layout.covered(shape)
    assert layout.covers(shape) and layout.fits(covered)
    assert layout.fits(shape) == (covered == shape) == (not layout.reaches_beyond(shape))
    held = layout.coordinates(shape)
    assert np.array_equal(held, layout.coordinates(covered))
    every = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(-1, layout.rank)
    assert np.array_equal(held[tuple(np.moveaxis(layout.owners(every, shape), -1, 0))], every)


def test_misfits_are_refused():
    assert SMALL.fits((8, 12)) and not SMALL.fits((8, 6)) and not SMALL.fits((8,)) and not SMALL.fits((0, 4))
    with pytest.raises(HkcError, match=r"HK404.*8 tile"):
        SMALL.grid((8,))
    for text in ("", "4x4 r(0,1)", "4x4 r(0,) l() w()", "4x4 r( 0,1) l() w()", "4x r() l() w()", "4x4 r(-1,0) l() w()"):
        with pytest.raises(HkcError, match="HK405"):
            DistributedLayout.parse(text)
    with pytest.raises(HkcError, match="power"):
        blocked((64, 64), waves=3, vector=8, dim=1)
