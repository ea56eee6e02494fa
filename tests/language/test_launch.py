"""Grids of every shape, limits of a launch, and what parameters demand, from the text of a kernel to its launch."""

from __future__ import annotations

import numpy as np
import pytest
from interpret import MACHINE, checked, interpret

from hkc import api
from hkc.support.errors import HkcError
from hkc.targets.chip import names

IDS = """
kernel ids(OUT: global[i32, N], n: i32) with waves=1:
    {ids} = tile_ids({extents})
    store(OUT, [{index}], full[i32, 1](cast({index}, i32)))
"""


@pytest.mark.parametrize(
    ("ids", "extents", "index"),
    [
        ("i", "n", "i"),
        ("i, j", "3, n // 3", "i * (n // 3) + j"),
        ("i, j, k", "1, n, 1", "j + i + k"),
        ("i, j, k", "1, 1, n", "k + i + j"),
        ("i, j, k", "2, n // 6, 3", "(i * (n // 6) + j) * 3 + k"),
    ],
)
def test_every_workgroup_knows_its_place(ids: str, extents: str, index: str) -> None:
    n = 600
    found = interpret(IDS.format(ids=ids, extents=extents, index=index), {"OUT": np.zeros(n, np.int32)}, {"n": n})
    np.testing.assert_array_equal(found["OUT"], np.arange(n))


@pytest.mark.parametrize(("extents", "index"), [("1, n, 1", "j"), ("1, 1, n", "k")])
def test_grids_beyond_16_bits(extents: str, index: str) -> None:
    text = IDS.format(ids="i, j, k", extents=extents, index=index)
    if MACHINE[0] == "reference":
        pytest.skip("the interpreter takes workgroups one by one")
    found = interpret(text, {"OUT": np.zeros(70_000, np.int32)}, {"n": 70_000})
    np.testing.assert_array_equal(found["OUT"], np.arange(70_000))


@pytest.mark.parametrize("chip", names())
def test_what_no_launch_can_have_is_refused(chip: str) -> None:
    compiled = api.build(checked(IDS.format(ids="i", extents="cdiv(n, 1) * 64", index="i")), chip)
    out = np.full(16, 7, np.int32)
    with pytest.raises(HkcError, match=r"HK509.*137,438,953,408 workgroups"):
        compiled(OUT=out, n=2**31 - 1)
    assert (out == 7).all()


@pytest.mark.parametrize("chip", names())
def test_fewer_than_2_to_the_32_threads_are_launched(chip: str) -> None:
    """2^26 workgroups of one wave are one too many."""
    compiled = api.build(checked(IDS.format(ids="i", extents="n", index="i")), chip)
    out = np.full(16, 7, np.int32)
    with pytest.raises(HkcError, match=r"HK509.*67,108,864 workgroups"):
        compiled(OUT=out, n=2**26)
    assert (out == 7).all()
    wide = IDS.format(ids="i", extents="n", index="i").replace("waves=1", "waves=32")
    with pytest.raises(HkcError, match=r"HK307.*waves.*32"):
        checked(wide)


DEMANDING = """
kernel copy(A: global[f32, M, N](align=16, contiguous=True), OUT: global[f32, M, N]):
    i = tile_ids(M)
    store(OUT, [i, 0], load(A, [i, 0], [1, 64]))
"""


def test_declared_properties_are_checked_at_launch() -> None:
    compiled = api.build(checked(DEMANDING), names()[0])
    memory = np.arange(64 * 64 + 16, dtype=np.float32)
    start = -memory.ctypes.data // 4 % 4
    a = memory[start : start + 64 * 64].reshape(64, 64)
    np.testing.assert_array_equal(compiled(a), a)
    with pytest.raises(HkcError, match=r"HK523.*`A` is declared contiguous along dim 1"):
        compiled(a[:, ::2])
    with pytest.raises(HkcError, match=r"HK523.*`A` is declared to start at a multiple of 16 bytes"):
        compiled(a[:, 1:])
    with pytest.raises(HkcError, match=r"HK523.*`A` is declared to have strides of multiples of 16 bytes"):
        compiled(np.lib.stride_tricks.as_strided(a, (8, 16), (4, 4)))
