"""Synthesised swizzles: never worse than published ones, and the algebra agrees with counting every address."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import layouts

from hkc.layout import DistributedLayout, LdsMap, blocked, tile_waves
from hkc.layout.accesses import Use, moves, pointed_at, runs
from hkc.layout.synthesis import prove, synthesise
from hkc.support.errors import HkcError
from hkc.targets.chip import load

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import swizzles as published

LANE = np.arange(64)
CHIPS = ("gfx942", "gfx950")


@pytest.mark.parametrize("case", published.ROWS, ids=lambda case: f"{case.name}-{len(case.uses)}")
def test_never_worse_than_published(case):
    made = published.compare(case)
    assert made.synthesised <= made.published
    assert set(made.ways[1]) == {1}


def test_rows_over_granules_of_8_bytes_take_two_instructions():
    """One map for rows, columns and stores of results: no conflicts, but no read of 16 bytes either."""
    case = next(c for c in published.ROWS if c.name == "16x32" and len(c.uses) == 3)
    made = published.compare(case)
    assert (made.map.granule, made.widths) == (8, (8, 8, 8))
    assert made.instructions[1] == made.instructions[0] + 8  # 8 reads of 16 bytes became 16 of 8
    kept = synthesise((64, 64), 2, case.uses, load("gfx950").lds.access, 16).chosen
    assert [(a.mnemonic, a.cycles // a.minimum) for a in kept.accesses] == [
        ("ds_read_b128", 1), ("ds_read_b64_tr_b16", 1), ("ds_write_b64", 2)
    ]  # fmt: skip
    assert made.synthesised < kept.clocks


def test_better_where_the_published_swizzles_conflict():
    better = [c.name for c in published.ROWS if (m := published.compare(c)).synthesised < m.published]
    assert better == ["16x16", "16x16", "32x32", "16x32", "16x32", "32x16", "8x32", "8x32"]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", [(64, 64), (128, 32)])
@pytest.mark.parametrize("itemsize", [1, 2, 4])
def test_rows_and_columns_at_once(arch, shape, itemsize):
    """Rows written and read 16 bytes at a time, columns read element by element by lanes that walk the rows."""
    rows = blocked(shape, 4, 16 // itemsize, 1)
    columns = DistributedLayout(shape, *_columns(shape, 4 // itemsize))
    uses = (Use("write", rows), Use("read", rows), Use("read", columns))
    found = synthesise(shape, itemsize, uses, load(arch).lds.access).chosen
    for access in found.accesses:
        assert access.cycles == access.minimum or (
            access.cycles <= access.lower_bound and "lower bound" in access.reason
        )


def _columns(shape, vector):
    """Registers `vector` elements of a row, lanes down the rows, waves and more registers over what is left."""
    steps = [(0, 1 << i) for i in range(shape[1].bit_length() - 1)]
    run = vector.bit_length() - 1
    lane = [(1 << i, 0) for i in range(6)]
    rest = [(1 << i, 0) for i in range(6, shape[0].bit_length() - 1)] + steps[run:]
    return tuple(steps[:run] + rest[:-2]), tuple(lane), tuple(rest[-2:])


# -- the algebra against counting


@st.composite
def cases(draw):
    inner = draw(st.sampled_from([32, 64]))
    itemsize = draw(st.sampled_from([2, 4]))
    shape = (64, inner)
    write = blocked(shape, 1, draw(st.sampled_from([2, 4, 8])), draw(st.integers(0, 1)))
    read = draw(st.sampled_from(list(published.LAYOUTS)[:4]))
    return shape, itemsize, (Use("write", write), Use("read", DistributedLayout.parse(published.LAYOUTS[read])))


@settings(max_examples=15)
@given(cases(), st.sampled_from(CHIPS))
def test_no_single_pair_of_bits_does_better(case, arch):
    """Against every map of one block with up to two XOR pairs, counted on all addresses."""
    shape, itemsize, uses = case
    timings = load(arch).lds.access
    best = synthesise(shape, itemsize, uses, timings).chosen
    assert best.clocks == sum(a.total for a in prove(best.map, uses, timings))
    bits = best.map.block_bits
    pairs = [(i, j) for i in range(2, min(8, bits)) for j in range(i + 1, bits)]
    both = itertools.islice(itertools.combinations(pairs, 2), 0, None, 7)
    for xor in [(), *((pair,) for pair in pairs), *both]:
        other = LdsMap.swizzled(shape, itemsize, best.map.block, xor, order=best.map.order)
        assert best.clocks <= sum(a.total for a in prove(other, uses, timings))


@given(cases(), st.sampled_from(CHIPS))
def test_every_map_is_a_bijection(case, arch):
    shape, itemsize, uses = case
    lds = synthesise(shape, itemsize, uses, load(arch).lds.access).chosen.map
    offsets = lds.offset(np.moveaxis(np.indices(shape), 0, -1)).ravel()
    assert len(set(offsets.tolist())) == offsets.size and offsets.min() == 0
    assert offsets.max() + itemsize <= lds.bytes


def test_padding_where_no_xor_helps():
    """A 12-element row has no power-of-two bits to XOR: rows are padded, and the padding is counted."""
    layout = DistributedLayout.parse("64x1 r() l(1,0 2,0 4,0 8,0 16,0 32,0) w()")
    found = synthesise((64, 16), 4, (Use("read", layout), Use("write", layout)), load("gfx942").lds.access).chosen
    assert all(access.cycles == access.minimum for access in found.accesses)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", [(16, 16), (16, 8), (4, 8)])
def test_lanes_that_hold_copies_take_no_time(arch, shape):
    """Where fewer lanes write, phases without any of them neither count nor are waited for; all lanes read."""
    layout = blocked(shape, 1, 8, 1)
    uses = (Use("write", layout), Use("read", layout))
    write, read = synthesise(shape, 2, uses, load(arch).lds.access).chosen.accesses
    taking = 64 >> sum(not any(basis) for basis in layout.lane)
    assert write.cycles == write.minimum == write.lower_bound == -(-taking // 8)
    assert read.cycles == read.minimum == read.lower_bound == len(load(arch).lds.access("ds_read_b128").phases)


# -- instructions


@given(layouts(rank=2, lane_bits=6, wave_bits=1, low=2, high=5), st.integers(0, 1))
def test_instructions_move_every_element_once(layout, inner):
    lds = LdsMap.swizzled(layout.block, 2, layout.block, order=(inner, 1 - inner))
    groups = runs(layout, lds, 16)
    assert sorted(r for run in groups for r in run) == list(range(layout.registers))
    made = moves(Use("read", layout), lds)
    assert made.addresses.shape == (len(groups), layout.waves, layout.lanes)
    touched = made.addresses[..., None] + np.arange(0, made.width, 2)
    assert set(touched.ravel().tolist()) == set(range(0, lds.bytes, 2))


@pytest.mark.parametrize("name", ["16x32 columns", "32x16 columns", "16x16 columns"])
def test_transposed_reads_deliver_the_layout(name):
    """What the ISA says of ds_read_b64_tr_b16, on the elements themselves."""
    layout = DistributedLayout.parse(published.LAYOUTS[name])
    pointed = pointed_at(layout, 1, 2)
    elements = np.arange(np.prod(layout.block)).reshape(layout.block)
    source = elements[tuple(np.moveaxis(pointed.coordinates(layout.block)[0, :, :, 0], -1, 0))].T  # [lane, register]
    wanted = elements[tuple(np.moveaxis(layout.coordinates(layout.block)[0, :, :, 0], -1, 0))].T
    for first in range(0, layout.registers, 4):
        got = source[(LANE & ~15)[:, None] + (LANE >> 2 & 3)[:, None] + 4 * np.arange(4), first + (LANE & 3)[:, None]]
        assert np.array_equal(got, wanted[:, first : first + 4])


def test_transposed_reads_of_bytes_deliver_the_layout():
    layout = DistributedLayout.parse("32x16 r(1,0 2,0 4,0) l(0,1 0,2 0,4 0,8 8,0 16,0) w()")
    pointed = pointed_at(layout, 1, 1)
    elements = np.arange(512).reshape(32, 16)
    source = elements[tuple(np.moveaxis(pointed.coordinates((32, 16))[0, :, :, 0], -1, 0))].T
    wanted = elements[tuple(np.moveaxis(layout.coordinates((32, 16))[0, :, :, 0], -1, 0))].T
    got = source[(LANE & ~15)[:, None] + (LANE >> 3 & 1)[:, None] + 2 * np.arange(8), (LANE & 7)[:, None]]
    assert np.array_equal(got, wanted)


def test_no_transposed_read_without_the_lanes_for_it():
    rows = blocked((64, 64), 1, 8, 1)
    assert pointed_at(rows, 0, 2) is None and pointed_at(rows, 1, 2) is None
    with pytest.raises(HkcError, match="HK414"):
        synthesise((64, 64), 2, (Use("read_transposed", rows),), load("gfx950").lds.access)


# -- legality


def test_the_pair_that_would_read_wrong_data_is_read_in_halves():
    """A 16-byte access over a map that moves 8-byte granules tears rows apart; the access narrows to the granule."""
    swizzled = LdsMap.swizzled((64, 64), 2, (16, 16), ((3, 7), (4, 8)))
    with pytest.raises(HkcError, match="HK413"):
        swizzled.check_access(np.stack([LANE % 16, 8 * (LANE // 16)], -1), 8)
    for name in ("16x32", "32x16", "32x32"):
        layout = DistributedLayout.parse(published.LAYOUTS[name])
        made = moves(Use("read", layout), swizzled)
        assert made.width == 8
        at = layout.coordinates((64, 64))[..., 0, :][:, [run[0] for run in runs(layout, swizzled, 16)]]
        assert np.array_equal(made.addresses[:, 0], swizzled.offset(at).reshape(-1, 64))


# -- conversions


@st.composite
def pairs(draw):
    """Two layouts of a tile in the same waves, with 1, 2 or 4 bytes per element."""
    vectors = st.sampled_from([1, 2, 4, 8])
    one = blocked((64, 64), 4, draw(vectors), draw(st.integers(0, 1)))
    other = draw(st.sampled_from([*list(published.LAYOUTS)[:-1], ""]))
    two = blocked((64, 64), 4, draw(vectors), draw(st.integers(0, 1)))
    if other:
        unit = DistributedLayout.parse(published.LAYOUTS[other])
        two = tile_waves(unit, (2, 2), draw(st.sampled_from([(0, 1), (0, None), (None, 1)])))
    return one, two, draw(st.sampled_from([1, 2, 4]))


@settings(max_examples=40)
@given(pairs(), st.sampled_from(CHIPS))
def test_a_tile_comes_back_from_lds_as_it_was(pair, arch):
    """Written in one layout and read in another, run by run, as the instructions do."""
    one, two, itemsize = pair
    shape, kind = (64, 64), {1: np.uint8, 2: np.uint16, 4: np.uint32}[itemsize]
    found = synthesise(shape, itemsize, (Use("write", one), Use("read", two)), load(arch).lds.access).chosen
    tile = np.random.default_rng(0).integers(0, 256, (64, 64)).astype(kind)
    memory = np.zeros(found.map.bytes, np.uint8)
    for use, write in ((Use("write", one), True), (Use("read", two), False)):
        made, groups = moves(use, found.map), np.array(runs(use.layout, found.map, 16))
        at = use.layout.coordinates(shape)[:, groups]  # [fragment, instruction, element, lane, wave, dim]
        wanted = np.moveaxis(tile[at[..., 0], at[..., 1]], (2, 3, 4), (4, 3, 2)).reshape(*made.addresses.shape, -1)
        where = made.addresses[..., None] + np.arange(made.width)
        if write:
            raw = np.ascontiguousarray(wanted).view(np.uint8).reshape(where.shape)
            memory[where[:, made.active]] = raw[:, made.active]
        else:
            assert np.array_equal(np.ascontiguousarray(memory[where]).view(kind), wanted)
