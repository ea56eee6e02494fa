"""The laws that `LinearMap` states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from layout_strategies import invertible_maps, linear_maps

from hkc.layout import LinearMap
from hkc.support.errors import HkcError

inputs = st.integers(0, 63)


@given(linear_maps(), inputs, inputs)
def test_linear(f, x, y):
    assert f(x ^ y) == f(x) ^ f(y)


@given(linear_maps())
def test_arrays_agree_with_ints(f):
    xs = np.arange(64).reshape(8, 8)
    assert f(xs).tolist() == [[f(int(x)) for x in row] for row in xs]


@given(linear_maps(in_bits=4), linear_maps(out_bits=4), inputs)
def test_compose(f, g, x):
    assert (f @ g)(x) == f(g(x))


@given(linear_maps(3, 4), linear_maps(3, 4), linear_maps(5, 4), inputs, inputs)
def test_sum_and_concatenation(f, g, h, x, y):
    x %= 8
    assert (f ^ g)(x) == f(x) ^ g(x)
    assert f.beside(h)(x | (y % 32) << 3) == f(x) ^ h(y)
    assert f.stack(g)(x) == f(x) | g(x) << 4


@given(linear_maps(5, 5), st.integers(0, 5), st.integers(0, 5), inputs)
def test_slices(f, a, b, x):
    a, b = sorted((a, b))
    x %= 1 << (b - a)
    assert f.inputs(a, b)(x) == f(x << a)
    assert f.outputs(a, b)(x) == (f(x) >> a) % (1 << (b - a))


@given(linear_maps())
def test_rank_kernel_image(f):
    values = {f(x) for x in range(1 << f.in_bits)}
    assert len(values) == 1 << f.rank
    assert {f.image()(x) for x in range(1 << f.rank)} == values
    assert f.rank + f.kernel().in_bits == f.in_bits
    assert f @ f.kernel() == LinearMap.zero(f.kernel().in_bits, f.out_bits)
    assert f.kernel().is_injective and f.image().is_injective
    assert f.is_surjective == (len(values) == 1 << f.out_bits)


@given(linear_maps(out_bits=5), linear_maps(out_bits=5))
def test_divide(f, g):
    reachable = {g(x) for x in range(1 << g.in_bits)}
    if {f(x) for x in range(1 << f.in_bits)} <= reachable:
        assert g @ f.divide(g) == f
    else:
        with pytest.raises(HkcError, match="HK402"):
            f.divide(g)


@given(invertible_maps(5))
def test_inverse(f):
    assert f.inverse() @ f == LinearMap.identity(5) == f @ f.inverse()


@given(linear_maps())
def test_right_inverse(f):
    if f.is_surjective:
        assert f @ f.right_inverse() == LinearMap.identity(f.out_bits)
    else:
        with pytest.raises(HkcError, match="HK402"):
            f.right_inverse()


def test_refusals():
    with pytest.raises(HkcError, match="HK401"):
        LinearMap((4,), 2)
    with pytest.raises(HkcError, match="HK401"):
        LinearMap.identity(2) @ LinearMap.identity(3)
    with pytest.raises(HkcError, match="HK402"):
        LinearMap((1, 1), 1).inverse()
