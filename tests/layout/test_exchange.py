"""The algebraic classification of layout changes against the definition: looking at every element."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import layouts

from hkc.layout import DistributedLayout, blocked
from hkc.layout.exchange import Exchange, exchange, register_sources, same_data
from hkc.support.errors import HkcError


def by_definition(source, target, shape):
    """The class of a change, found by searching where each element of the target is held in the source."""
    held, needed = source.coordinates(shape), target.coordinates(shape)
    lanes, waves = range(source.lanes), range(source.waves)
    places = {}
    for f, r, lane, wave in np.ndindex(*held.shape[:-1]):
        places.setdefault(tuple(held[f, r, lane, wave]), []).append((f, r, lane, wave))
    if source == target:
        return Exchange.IDENTITY
    worst = Exchange.REGISTERS
    for f, r in np.ndindex(*needed.shape[:2]):
        common = None
        for lane in lanes:
            for wave in waves:
                found = places[tuple(needed[f, r, lane, wave])]
                here = {p[:2] for p in found if p[2:] == (lane, wave)}
                common = here if common is None else common & here
                if not here:
                    worst = max(worst, Exchange.LANES if any(p[3] == wave for p in found) else Exchange.WAVES)
        worst = max(worst, Exchange.REGISTERS if common else Exchange.SELECT)
    return worst


@st.composite
def pairs(draw):
    """Two layouts of equal rank, often related so that every class occurs."""
    one = draw(layouts(rank=2, lane_bits=2, low=2, high=3))
    kind = draw(st.sampled_from(["any", "registers", "select", "lanes", "waves"]))
    register, lane, wave = list(one.register), list(one.lane), list(one.wave)
    if kind == "any":
        return one, draw(layouts(rank=2, lane_bits=2, low=1, high=3))
    if kind == "registers":
        register = draw(st.permutations(register))
    if kind == "select":
        lane[0] = tuple(a ^ b for a, b in zip(lane[0], register[-1], strict=True))
    if kind == "lanes":
        register[0], lane[0] = lane[0], register[0]
    if kind == "waves":
        register[0], wave[0] = wave[0], register[0]
    return one, DistributedLayout(one.block, tuple(register), tuple(lane), tuple(wave))


@settings(max_examples=150, deadline=None)
@given(pairs())
def test_classification_equals_the_definition(pair):
    source, target = pair
    shape = tuple(map(max, source.block, target.block))
    assert exchange(source, target) == by_definition(source, target, shape)
    assert exchange(source, source) == Exchange.IDENTITY


@settings(max_examples=100)
@given(pairs())
def test_register_sources_names_the_same_element(pair):
    source, target = pair
    shape = tuple(2 * max(a, b) for a, b in zip(source.block, target.block, strict=True))
    if exchange(source, target) > Exchange.REGISTERS:
        with pytest.raises(HkcError, match="HK406"):
            register_sources(source, shape, target, shape)
        return
    fragment, register = np.moveaxis(register_sources(source, shape, target, shape), -1, 0)
    assert np.array_equal(source.coordinates(shape)[fragment, register], target.coordinates(shape))


@settings(max_examples=100)
@given(pairs(), st.data())
def test_register_sources_of_tiles_that_blocks_reach_beyond(pair, data):
    source, target = pair
    shape = tuple(data.draw(st.integers(1, 2 * max(ab))) for ab in zip(source.block, target.block, strict=True))
    if exchange(source, target) > Exchange.REGISTERS:
        return
    fragment, register = np.moveaxis(register_sources(source, shape, target, shape), -1, 0)
    needed = target.coordinates(shape)
    inside = np.all(needed < np.array(shape), axis=-1)
    assert np.array_equal(source.coordinates(shape)[fragment, register][inside], needed[inside])


@given(layouts(), st.data())
def test_register_sources_of_a_reduction(layout, data):
    dim = data.draw(st.integers(0, layout.rank - 1))
    shape = tuple(2 * b for b in layout.block)
    reduced = layout.reduce(dim)
    kept_shape = tuple(1 if d == dim else n for d, n in enumerate(shape))
    keep = np.array([d != dim for d in range(layout.rank)])
    sources = register_sources(reduced, kept_shape, layout, shape, lambda at: at * keep)
    fragment, register = np.moveaxis(sources, -1, 0)
    expected = layout.coordinates(shape)
    expected[..., dim] = 0
    assert np.array_equal(reduced.coordinates(kept_shape)[fragment, register], expected)


def test_growing_the_block_keeps_the_data():
    small = blocked((64, 32), waves=1, vector=8, dim=1)
    large = small.extend((32, 32))
    assert same_data(small, large) and exchange(small, large) == Exchange.REGISTERS
    sources = register_sources(small, (64, 32), large, (64, 32))
    assert sources.shape == (2, 16, 2) and sources[0, 8].tolist() == [1, 0]


def test_different_worlds_are_refused():
    one, two = blocked((64, 32), 1, 8, 1), blocked((64, 32), 2, 8, 1)
    with pytest.raises(HkcError, match="HK403"):
        exchange(one, two)
