"""Conversions within a wave: every plan, executed on numbers, is the conversion."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import layouts
from test_exchange import pairs

from hkc.layout import DistributedLayout, blocked, with_runs
from hkc.layout.exchange import Exchange, exchange, register_sources
from hkc.layout.within_wave import execute, steps
from hkc.targets.chip import load

CHIPS = ("gfx942", "gfx950")


def converted(source: DistributedLayout, target: DistributedLayout, shape: tuple[int, ...]) -> np.ndarray:
    """What a plan leaves in the registers of `target`, [fragment, register, lane, wave], where an element is its
    number."""
    at = source.coordinates(shape)
    held, layout = np.ravel_multi_index(tuple(np.moveaxis(at, -1, 0)), source.covered(shape)), source
    plan = steps(source, target)
    assert plan is not None
    for wanted, step in itertools.chain(((s.before, s) for s in plan), [(target, None)]):
        fragment, register = np.moveaxis(register_sources(layout, shape, wanted, shape), -1, 0)
        held, layout = held[fragment, register], wanted
        if step is not None:
            held, layout = execute(step, held), step.after
    return held


def check(source: DistributedLayout, target: DistributedLayout, shape: tuple[int, ...]) -> None:
    wanted = np.ravel_multi_index(tuple(np.moveaxis(target.coordinates(shape), -1, 0)), shape)
    assert np.array_equal(converted(source, target, shape), wanted)


@settings(max_examples=80, deadline=None)
@given(pairs())
def test_plans_are_conversions(pair):
    """What is called a plan is one, and there is none where a wave needs what another holds."""
    source, target = pair
    shape = tuple(max(ab) for ab in zip(source.block, target.block, strict=True))
    how, plan = exchange(source, target), steps(source, target)
    assert (plan == ()) == (how <= Exchange.REGISTERS)
    if plan is not None:
        assert how < Exchange.WAVES
        check(source, target, shape)


@settings(max_examples=80, deadline=None)
@given(layouts(rank=2, lane_bits=4, wave_bits=1, low=2, high=3), st.data())
def test_bases_in_any_other_order_have_a_plan(source, data):
    """Registers and lanes trade places at will, and lanes choose registers."""
    bases = data.draw(st.permutations(source.register + source.lane))
    r = len(source.register)
    register, lane = list(bases[:r]), list(bases[r:])
    if r and data.draw(st.booleans()):
        lane[0] = tuple(a ^ b for a, b in zip(lane[0], register[0], strict=True))
    check(source, DistributedLayout(source.block, tuple(register), tuple(lane), source.wave), source.block)


@settings(max_examples=80, deadline=None)
@given(layouts(rank=2, lane_bits=4, wave_bits=1, low=1, high=3), st.data())
def test_copies_of_any_kind_have_right_plans_or_none(source, data):
    """Lanes that hold the same, registers that hold what lanes hold too."""
    some = st.sampled_from([(0, 0), *source.register, *source.lane])
    lane = tuple(data.draw(some) for _ in source.lane)
    register = tuple(dict.fromkeys((*source.register, *source.lane)))
    target = DistributedLayout(source.block, tuple(b for b in register if b not in lane and any(b)), lane, source.wave)
    if steps(source, target) is not None:
        check(source, target, source.block)


@settings(max_examples=80, deadline=None)
@given(layouts(rank=2, lane_bits=4, wave_bits=1, low=2, high=3))
def test_runs_are_made_within_the_wave(source):
    target = with_runs(source, 1, 4)
    if target != source:
        assert target.contiguous(1) >= 4 and target.wave == source.wave
        check(source, target, source.block)


def test_copies_in_lanes_are_made_and_dropped():
    one = DistributedLayout((4, 4), ((0, 1),), ((0, 2), (1, 0), (2, 0)), ())
    copies = DistributedLayout((4, 4), ((0, 1), (1, 0)), ((0, 2), (0, 0), (2, 0)), ())
    for source, target in itertools.permutations((one, copies)):
        assert steps(source, target)
        check(source, target, (8, 4))


def test_a_swap_of_a_wave_half_is_one_instruction_where_there_is_one():
    """f32: registers and the upper half of the wave trade places, two words per instruction."""
    source, target = (
        DistributedLayout((8, 64), ((1, 0), (2, 0), last), (*((0, 1 << i) for i in range(5)), lane), ())
        for last, lane in (((4, 0), (0, 32)), ((0, 32), (4, 0)))
    )
    plan = steps(source, target)
    assert plan is not None and [step.kind for step in plan] == ["swap"]
    costs = {arch: plan[0].clocks(1, 4, load(arch).lanes) for arch in CHIPS}
    chip = load("gfx950").lanes
    assert chip.swap is not None and costs["gfx950"] == 4 * chip.swap < costs["gfx942"]


@pytest.mark.parametrize("arch", CHIPS)
def test_lanes_alone_are_gathered(arch):
    source, target = blocked((8, 8), 1, 1, 1), blocked((8, 8), 1, 1, 0)
    plan = steps(source, target)
    assert plan is not None and [step.kind for step in plan] == ["gather"]
    assert plan[0].clocks(1, 4, load(arch).lanes) == load(arch).lanes.bpermute
    check(source, target, (16, 8))
