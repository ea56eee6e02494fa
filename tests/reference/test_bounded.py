"""Error bounds hold for every order of every sum, and are tight enough to catch what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hkc.dialects.builtin import BUILTINS
from hkc.dialects.define import evaluate
from hkc.dialects.tile.atomics import combine_at
from hkc.dialects.tile.dot import Dot
from hkc.dialects.tile.reduce import Reduce
from hkc.emulate.matrix import Operand, aligned_sums, powers_of
from hkc.reference import compare
from hkc.reference.bounded import Bounded, Undecided

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(np.float32), np.dtype(np.float16), BF16]
BINARY = ["addf", "subf", "mulf", "divf", "maximumf", "minimumf"]
UNARY = ["math.exp", "math.exp2", "math.log", "math.sqrt", "math.rsqrt", "math.absf", "arith.negf"]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, 60000.0, 1e-8]


def values(dtype: Any, size: int = 24) -> st.SearchStrategy[Any]:
    """Arrays of a dtype: ordinary numbers, and now and then special ones."""
    one = st.one_of(st.floats(-50, 50, width=16), st.floats(-50, 50, width=16), st.sampled_from(SPECIAL))
    return st.lists(one, min_size=size, max_size=size).map(lambda x: _rounded(x, dtype))


def _rounded(x: Any, dtype: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(dtype)


def assert_within(computed: Any, bounded: Bounded) -> None:
    found = compare(computed, bounded.value, bounded.errors)
    assert found.ok, found


@given(st.data(), st.sampled_from(FLOATS), st.lists(st.sampled_from(BINARY + UNARY), min_size=1, max_size=6))
def test_chains_of_operations_stay_within_their_bound(data: Any, dtype: Any, ops: list[str]) -> None:
    arrays = [data.draw(values(dtype)), data.draw(values(dtype))]
    pairs = [(a, Bounded.exact(a)) for a in arrays]
    with np.errstate(all="ignore"):
        for op in ops:
            meaning = BUILTINS[op if op in UNARY else f"arith.{op}"].meaning
            chosen = [pairs[data.draw(st.integers(0, len(pairs) - 1))] for _ in range(1 if op in UNARY else 2)]
            computed, bounded = meaning(*(c for c, _ in chosen)), meaning(*(b for _, b in chosen))
            assert computed.dtype == dtype
            assert_within(computed, bounded)
            pairs.append((computed, bounded))


@given(st.data(), st.sampled_from(FLOATS), st.sampled_from(FLOATS))
def test_casts_stay_within_their_bound(data: Any, source: Any, target: Any) -> None:
    x = data.draw(values(source))
    with np.errstate(all="ignore"):
        y, b = (a * a + a for a in (x, Bounded.exact(x)))
        assert_within(y.astype(target), b.astype(target))
        certain = np.isfinite(b.errors) & np.isfinite(b.value) & (np.abs(b.value) < 1e9)
        assert_within(np.where(certain, y, 0).astype(np.int32), _kept(b, certain).astype(np.int32))


@given(st.lists(st.floats(-9, 9), min_size=8, max_size=8), st.lists(st.floats(0, 9), min_size=8, max_size=8))
def test_extremes_take_the_errors_of_what_could_be_them(middles: list[float], reaches: list[float]) -> None:
    """The bound of the greater of two is that of the interval it lies in, neither more nor less."""
    x, y = (Bounded(np.array(middles[i : i + 4]), np.array(reaches[i : i + 4]), np.float64) for i in (0, 4))
    for extreme in (np.maximum, np.minimum, np.fmax, np.fmin):
        found: Bounded = extreme(x, y)  # type: ignore[assignment]
        ends = [extreme(x.value + side * x.errors, y.value + side * y.errors) for side in (-1, 1)]
        wanted = np.maximum(found.value - ends[0], ends[1] - found.value)
        np.testing.assert_allclose(found.errors, wanted, rtol=1e-12, atol=1e-12)


def test_choices_between_plain_indices_give_them() -> None:
    for condition, wanted in ((True, 10), (False, -3)):
        found: Bounded = np.where(Bounded.exact(np.asarray(condition)), 10, -3)  # type: ignore[call-overload]
        assert (int(found), found.error) == (wanted, None)


def _kept(b: Bounded, where: Any) -> Bounded:
    result: Bounded = np.where(where, b, Bounded.exact(np.zeros((), b.dtype)))  # type: ignore[call-overload]
    return result


@given(st.data(), st.sampled_from(FLOATS))
def test_choices_by_comparison_stay_within_their_bound(data: Any, dtype: Any) -> None:
    """Wherever a comparison may come out otherwise, the bound spans both outcomes."""
    x, y = data.draw(values(dtype)), data.draw(values(dtype))
    results = []
    for a, b in ((x, y), (Bounded.exact(x), Bounded.exact(y))):
        with np.errstate(all="ignore"):
            less = BUILTINS["arith.cmpf"].meaning(a * b + b, a + b, predicate=4)
            results.append(BUILTINS["arith.select"].meaning(less, a * b, a - b))
    assert_within(*results)


ORDERS: dict[str, Callable[[Any], Any]] = {
    "forwards": lambda x: _chain(x),
    "backwards": lambda x: _chain(x[::-1]),
    "by magnitude": lambda x: _chain(x[np.argsort(np.abs(x))]),
    "largest first": lambda x: _chain(x[np.argsort(-np.abs(x))]),
    "pairwise": lambda x: _pairwise(x),
}


def _chain(x: Any) -> Any:
    total = x[0]
    for term in x[1:]:
        total = (total + term).astype(x.dtype)
    return total


def _pairwise(x: Any) -> Any:
    while len(x) > 1:
        half = len(x) // 2
        x = np.concatenate([x[:half] + x[half : 2 * half], x[2 * half :]]).astype(x.dtype)
    return x[0]


@given(st.integers(0, 10**6), st.integers(1, 300), st.sampled_from(FLOATS), st.sampled_from(sorted(ORDERS)))
def test_sums_of_any_order_stay_within_the_bound(seed: int, size: int, dtype: Any, order: str) -> None:
    x = (np.random.default_rng(seed).standard_normal(size) * 4).astype(dtype)
    bounded = Reduce.meaning(Bounded.exact(x), axis=0, kind="sum")
    assert_within(np.asarray(ORDERS[order](x))[None], bounded)


@given(st.integers(0, 10**6), st.sampled_from(["prod", "max", "min"]), st.sampled_from(FLOATS))
def test_other_folds_stay_within_the_bound(seed: int, kind: str, dtype: Any) -> None:
    x = np.random.default_rng(seed).uniform(0.5, 1.5, (5, 12)).astype(dtype)
    computed, bounded = x * x - x, Bounded.exact(x) * Bounded.exact(x) - Bounded.exact(x)
    assert_within(Reduce.meaning(computed, axis=1, kind=kind), Reduce.meaning(bounded, axis=1, kind=kind))


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from(FLOATS))
def test_updates_of_one_place_in_any_order_stay_within_the_bound(seed: int, count: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    start, new = rng.standard_normal(4).astype(dtype), rng.standard_normal(count).astype(dtype)
    places = rng.integers(0, 4, count)
    bounded = Bounded.exact(start.copy())
    np.add.at(bounded, places, Bounded.exact(new))  # type: ignore[arg-type]
    for order in (np.arange(count), np.arange(count)[::-1], rng.permutation(count)):
        total = start.copy()
        for i in order:
            total[places[i]] = total[places[i]] + new[i]
        assert_within(total, bounded)


@given(st.data(), st.sampled_from(FLOATS))
def test_places_of_extremes_are_known_or_said_to_be_unknown(data: Any, dtype: Any) -> None:
    x = data.draw(values(dtype)).reshape(4, 6)
    with np.errstate(all="ignore"):
        computed, bounded = x * x - x, Bounded.exact(x) * Bounded.exact(x) - Bounded.exact(x)
    finite = np.isfinite(bounded.value) & np.isfinite(bounded.errors) & np.isfinite(computed)
    kept = _kept(bounded, finite)
    place: Bounded = np.argmax(kept, axis=1)  # type: ignore[call-overload]
    assert_within(np.argmax(np.where(finite, computed, 0), axis=1), place)


def dots(seed: int, depth: int, dtype: Any, scale: float = 1.0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((6, depth)).astype(dtype), rng.standard_normal((depth, 5)).astype(dtype)
    return a, b, (rng.standard_normal((6, 5)) * scale).astype(np.float32)


@given(st.integers(0, 10**6), st.integers(1, 80), st.sampled_from(FLOATS), st.sampled_from([0.0, 1.0, 1e4]))
def test_dots_of_any_order_stay_within_the_bound(seed: int, depth: int, dtype: Any, scale: float) -> None:
    a, b, acc = dots(seed, depth, dtype, scale)
    bounded = Dot.meaning(*(Bounded.exact(x) for x in (a, b, acc)))
    terms = a.astype(np.float32)[:, :, None] * b.astype(np.float32)
    for order in range(depth), reversed(range(depth)):
        total = acc
        for k in order:
            total = total + terms[:, k]
        assert_within(total, bounded)
    assert_within(Dot.meaning(a, b, acc), bounded)


@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from([4, 8, 16]), st.sampled_from([0.0, 1e-3, 1.0, 1e3]))
def test_dots_of_matrix_units_stay_within_the_bound(seed: int, groups: int, length: int, scale: float) -> None:
    """Products cut below the largest one of their group, as the hardware does it, group after group."""
    a, b, acc = dots(seed, groups * length, BF16, scale)
    bounded = Dot.meaning(*(Bounded.exact(x) for x in (a, b, acc)))
    rows, columns = (
        Operand(x, powers_of(x, -126))
        for x in (a.astype(np.float32)[None], np.ascontiguousarray(b.astype(np.float32).T)[None])
    )
    assert_within(aligned_sums(rows, columns, acc[None], length, False)[0], bounded)


@pytest.mark.parametrize("depth", [32, 256, 1024])
def test_a_dropped_term_lies_outside(depth: int) -> None:
    a, b = np.ones((4, depth), BF16), np.ones((depth, 4), BF16)
    acc = np.zeros((4, 4), np.float32)
    bounded = Dot.meaning(*(Bounded.exact(x) for x in (a, b, acc)))
    a[:, 7] = 0
    assert not compare(Dot.meaning(a, b, acc), bounded.value, bounded.errors).ok


def test_accumulating_in_bf16_lies_outside() -> None:
    a, b, _ = dots(3, 256, BF16)
    bounded = Dot.meaning(*(Bounded.exact(x) for x in (a, b, np.zeros((6, 5), np.float32))))
    total = np.zeros((6, 5), BF16)
    for k in range(256):
        total = total + a[:, k : k + 1] * b[k : k + 1]
    assert not compare(total, bounded.value, bounded.errors).ok


def test_whole_numbers_are_exact_where_a_rounding_would_show() -> None:
    x = Bounded.exact(np.arange(1, 100, dtype=np.float32))
    assert not (x * x + x).errors.any()
    assert (x / Bounded.exact(np.float32(3))).errors.any()


def test_what_overflows_is_unknown_and_what_is_infinite_is_certain() -> None:
    with np.errstate(all="ignore"):
        big = Bounded.exact(np.array([1e38, np.inf, -np.inf, np.nan], np.float32))
        product = big * Bounded.exact(np.float32(10))
        np.testing.assert_array_equal(product.errors, [np.inf, 0, 0, 0])
        difference = big - big
        assert difference.errors[1] == 0 and np.isnan(difference.value[1])
        assert not Bounded.exact(np.array([-np.inf], np.float32)).astype(BF16).errors.any()


def test_a_division_by_what_may_be_zero_is_unknown() -> None:
    third = Bounded.exact(np.float32(1)) / Bounded.exact(np.float32(3))
    zero = third * Bounded.exact(np.float32(3)) - Bounded.exact(np.float32(1))
    assert np.isinf((third / zero).errors)
    assert np.isinf(evaluate(np.sqrt, zero - zero, result=None).errors)


def test_a_decision_by_rounding_errors_is_refused() -> None:
    third = Bounded.exact(np.float32(1)) / Bounded.exact(np.float32(3))
    with pytest.raises(Undecided):
        bool(third * Bounded.exact(np.float32(3)) < Bounded.exact(np.float32(1)))
    assert bool(third < Bounded.exact(np.float32(1)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sums_of_whole_numbers_are_certain_as_long_as_the_dtype_holds_them(dtype: Any) -> None:
    most = int(2 / ml_dtypes.finfo(dtype).eps)  # from here on not every whole number is one of the dtype
    few, many = (np.array([[n - 3, 2, -1, 0], [0.5, 0.25, 2.0, 0.25]]).astype(dtype) for n in (most, most + 2))
    sums = [evaluate(Reduce.meaning, Bounded.exact(x), axis=1, kind="sum", result=None) for x in (few, many)]
    assert list(sums[0].errors) == [0, 0]
    assert sums[1].errors[0] > 0 and sums[1].errors[1] == 0
    tiny = np.full((1, 4), 1e-45, np.float32)
    assert evaluate(Reduce.meaning, Bounded.exact(tiny), axis=1, kind="sum", result=None).errors[0] > 0


@given(st.integers(0, 2**20), st.integers(1, 64), st.sampled_from([1.0, 0.125, 2.0**40]))
def test_certain_products_are_what_every_order_gives(seed: int, k: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-40, 41, (3, k)), rng.integers(-40, 41, (k, 5))
    factors = [Bounded.exact((x * s).astype(BF16)) for x, s in ((a, scale), (b, 1.0))]
    acc = Bounded.exact(rng.integers(-9, 10, (3, 5)).astype(np.float32) * np.float32(scale))
    found = evaluate(Dot.meaning, *factors, acc, result=None)
    assert not found.errors.any() and np.array_equal(found.value, a @ b * scale + acc.value)
    finer = Bounded.exact((acc.value + scale * 2.0**-20).astype(np.float32))
    assert k < 8 or evaluate(Dot.meaning, *factors, finer, result=None).errors.any()


def test_written_numbers_may_have_been_rounded() -> None:
    written = Bounded.literal(np.array([0.5, 3.0, 0.1, np.inf], np.float32))
    assert list(written.errors != 0) == [False, False, True, False]
    assert abs(float(written.value[2]) - 0.1) <= written.errors[2]


def test_comparisons_know_infinities_and_nan() -> None:
    wanted = np.array([1.0, np.inf, np.nan, 0.0])
    assert compare(wanted, wanted, 0.0).ok
    assert compare(np.zeros((0, 3)), np.zeros((0, 3)), 0.0).ok
    for wrong in ([1.0, np.inf, np.nan, np.nan], [1.0, -np.inf, np.nan, 0.0], [1.0, 5.0, np.nan, 0.0]):
        found = compare(np.array(wrong), wanted, 1e30)
        assert not found.ok and found.max_error == np.inf
    close = compare(np.array([1.5, 3.0]), np.array([1.0, 3.25]), np.array([1.0, 0.125]))
    assert (close.worst, close.error, close.bound, close.max_error, close.ok) == ((1,), 0.25, 0.125, 0.5, False)


def test_atomic_updates_without_a_sign_keep_their_errors() -> None:
    """They are made through a view of the tensor."""
    held, new = (
        Bounded.exact(np.array([5, 5], np.int8)),
        Bounded(np.array([9, 9], np.int8), np.array([0.0, 2.0]), np.int8),
    )
    combine_at(held, (np.arange(2),), new, "max", unsigned=True)
    assert list(held.value) == [9, 9] and list(held.errors) == [0, 2]


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
def test_folds_of_whole_numbers_that_rounding_leaves_open(kind: str) -> None:
    x = Bounded(np.array([[1, 2], [3, 4]], np.int8), np.array([[0.0, 1.0], [0.0, 0.0]]), np.int8)
    found = evaluate(Reduce.meaning, x, axis=1, kind=kind, unsigned=True, result=None)
    assert np.isinf(found.errors[0, 0]) and found.errors[1, 0] == 0


@pytest.mark.parametrize("dtype", [*FLOATS, np.dtype(np.float64)])
@given(data=st.data(), distance=st.sampled_from([0.0, 2.0**-20, 2.0**-6, 3.0]))
def test_bits_stay_within_their_bound(data: Any, dtype: Any, distance: float) -> None:
    """Read as integers and back as floats, a number near an uncertain one lies within the bounds of that one."""
    exact = data.draw(values(dtype))
    whole = np.dtype(f"i{dtype.itemsize}")
    with np.errstate(all="ignore"):
        near = (exact.astype(np.float64) + distance).astype(dtype).astype(np.float64)
        apart = np.where(np.isfinite(near), np.abs(near - exact.astype(np.float64)), 0.0)
        apart = np.where(apart > 0, np.nextafter(apart, np.inf), 0.0)  # the distance itself was rounded
        kept = np.isfinite(near) == np.isfinite(exact.astype(np.float64))
        bounded = Bounded(near[kept], apart[kept], dtype)
        bits = bounded.view(whole)
        back = bits.view(dtype)
        numbers = exact[kept]
        off = np.abs(numbers.view(whole).astype(np.int64) - bits.value).astype(np.float64)
    certain = ~np.isnan(numbers.astype(np.float64)) & (numbers != 0)  # the sign of 0 has no bound
    assert (off <= bits.errors)[certain].all()
    assert compare(numbers, back.value, back.errors).ok
    assert np.isfinite(back.errors[certain & (apart[kept] < np.abs(near[kept]) / 2)]).all()


def test_bits_of_what_is_certain_are_certain() -> None:
    for x in (np.float32([1, -2.5, np.inf, -0.0]), np.arange(-3, 3, dtype=np.int32)):
        other = np.int32 if x.dtype == np.float32 else np.float32
        made = Bounded.exact(x).view(other)
        assert made.error is None
        np.testing.assert_array_equal(made.value, x.view(other).astype(made.value.dtype))
