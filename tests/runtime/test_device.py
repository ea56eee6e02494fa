"""Copies of host memory: strides survive, shared memory stays shared."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hkc.machine.abi import GlobalParam
from hkc.runtime.arrays import Tensor, tensor
from hkc.runtime.device import moved, regions

slices = st.builds(
    slice, st.integers(0, 7) | st.none(), st.integers(0, 7) | st.none(), st.sampled_from([-3, -2, -1, 1, 2, 3])
)


def tensors(*arrays: np.ndarray[Any, Any]) -> dict[str, Tensor]:
    dims = [tuple(f"{name}{axis}" for axis in range(a.ndim)) for name, a in zip("XYZ", arrays, strict=False)]
    return {n: tensor(GlobalParam(n, "i32", d), a) for n, d, a in zip("XYZ", dims, arrays, strict=False)}


@given(st.lists(st.tuples(slices, slices), min_size=1, max_size=3))
def test_copies_of_views_hold_the_same_elements(cuts: list[tuple[slice, slice]]) -> None:
    """Any views of one array, copied by region: what is stored through a copied view arrives in the others' copies."""
    base = np.arange(64, dtype=np.int32).reshape(8, 8)
    views = [base[cut] for cut in cuts]
    expected = base.copy()
    for view in (expected[cut] for cut in cuts):
        view += 100
    given_ = tensors(*views)
    found = regions(given_)
    covered = [name for region in found for name in region.params]
    assert sorted(covered) == sorted(name for name, t in given_.items() if 0 not in t.view.extents)
    for region in found:
        copy = np.zeros(region.size, np.uint8)
        for name in region.params:
            region.elements(copy, given_[name])[...] = given_[name].array
        for name in sorted(region.params):
            region.elements(copy, given_[name])[...] += 100
        for name in region.params:
            array = given_[name].array
            assert array is not None
            array[...] = region.elements(copy, given_[name])
    assert base.tolist() == expected.tolist()


def test_regions_join_where_bytes_are_shared() -> None:
    base = np.zeros((4, 8), np.int32)
    touching = regions(tensors(base[:2], base[2:]))
    assert [r.params for r in touching] == [("X",), ("Y",)]
    (shared,) = regions(tensors(base[:3], base[2:], base[0]))
    assert sorted(shared.params) == ["X", "Y", "Z"]
    assert shared.size == base.nbytes
    assert regions(tensors(base[:0])) == []


def test_a_moved_view_keeps_its_place_in_the_region() -> None:
    base = np.zeros((4, 8), np.int32)
    given_ = tensors(base[::-1, 2], base)
    (region,) = regions(given_)
    view = moved(given_["X"].view, region, 0x1000)
    assert view.address == 0x1000 + 4 * (3 * 8 + 2)
    assert view.strides == (-8,)
