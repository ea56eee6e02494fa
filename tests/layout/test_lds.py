"""LDS maps: bijective, inverted exactly, and unable to serve an access that they would tear apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hkc.layout import LdsMap
from hkc.support.errors import HkcError


@st.composite
def lds_maps(draw):
    rank = draw(st.integers(1, 3))
    itemsize = draw(st.sampled_from([1, 2, 4]))
    block = tuple(1 << draw(st.integers(0, 3)) for _ in range(rank))
    shape = tuple(b * draw(st.integers(1, 3)) for b in block)
    bits = (int(np.prod(block)) * itemsize).bit_length() - 1
    low = itemsize.bit_length() - 1
    pairs = [(i, j) for j in range(bits) for i in range(low, j)]
    xor = tuple(draw(st.lists(st.sampled_from(pairs), unique=True, max_size=4))) if pairs else ()
    order = tuple(draw(st.permutations(range(rank))))
    plain = LdsMap.swizzled(shape, itemsize, block, xor, order=order)
    interval, pad = (plain.granule * draw(st.integers(1, 9)), itemsize * draw(st.integers(0, 5)))
    return LdsMap.swizzled(shape, itemsize, block, xor, order=order, interval=interval if pad else 0, pad=pad)


def every(shape):
    return np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)


@given(lds_maps())
def test_bijection(lds):
    coordinates = every(lds.shape)
    offsets = lds.offset(coordinates)
    assert len(np.unique(offsets)) == offsets.size and np.all(offsets % lds.itemsize == 0)
    assert offsets.min() == 0 and offsets.max() + lds.itemsize == lds.bytes
    for byte in range(lds.itemsize):
        assert np.array_equal(lds.inverse(offsets + byte), coordinates)


@given(lds_maps())
def test_bytes_of_no_element_are_refused(lds):
    used = {int(o) + b for o in lds.offset(every(lds.shape)).ravel() for b in range(lds.itemsize)}
    for free in sorted({*range(lds.bytes + 4)} - used)[:3]:
        with pytest.raises(HkcError, match="HK412"):
            lds.inverse(free)


@given(lds_maps())
def test_text_round_trip(lds):
    assert LdsMap.parse(lds.text()) == lds


@pytest.mark.parametrize("change", [("xor", "xxor"), ("4^7", "4^"), ("1,0", "1,,0"), ("64x32", "64x"), ("+16", "")])
def test_other_text_is_refused(change):
    text = "64x32:2 block 16x32 strides 1024,1024 order 1,0 xor 4^7,5^8 pad 256+16"
    LdsMap.parse(text)
    with pytest.raises(HkcError, match="HK405"):
        LdsMap.parse(text.replace(*change))


@given(lds_maps())
def test_granule_is_exact(lds):
    """Accesses of a granule always pass; twice as much does not pass everywhere, unless it leaves the row."""
    inner = lds.order[0]
    count = lds.granule // lds.itemsize
    starts = every(lds.shape)
    lds.check_access(starts[starts[..., inner] % count == 0], count)
    wider = starts[(starts[..., inner] % (2 * count) == 0) & (starts[..., inner] + 2 * count <= lds.shape[inner])]
    if lds.interval == 0 and 2 * count <= lds.block[inner]:
        with pytest.raises(HkcError, match="HK413"):
            lds.check_access(wider, 2 * count)


def test_rows():
    plain, padded = LdsMap.row_major((64, 96), 2), LdsMap.row_major((64, 96), 2, pad=16)
    assert plain.offset([3, 5]) == 3 * 192 + 10 and plain.bytes == 64 * 192
    assert padded.offset([3, 5]) == 3 * 208 + 10 and padded.granule == 16
    columns = LdsMap.row_major((64, 96), 2, order=(0, 1))
    assert columns.offset([3, 5]) == 5 * 128 + 6 and columns.granule == 128
    assert padded.text() == "64x96:2 block 1x32 strides 208,64 order 1,0"


def test_swizzle_moves_granules_only():
    lds = LdsMap.swizzled((48, 96), 2, (16, 32), ((5, 9),))
    assert lds.granule == 32
    assert lds.offset([0, 0]) == 0 and lds.offset([8, 0]) == 512 + 32 and lds.offset([16, 32]) == 4 * 1024
    assert LdsMap.swizzled((64, 32), 2, (16, 32), ((4, 7), (5, 8)), interval=256, pad=16).text() == (
        "64x32:2 block 16x32 strides 1024,1024 order 1,0 xor 4^7,5^8 pad 256+16"
    )


def test_a_wide_read_over_a_narrow_granule_is_impossible():
    """16x16 blocks swizzled in 8-byte granules, read 16 bytes at a time: half of the lanes would get wrong rows."""
    lds = LdsMap.swizzled((64, 64), 2, (16, 16), ((3, 7), (4, 8)))
    lane = np.arange(64)
    with pytest.raises(HkcError, match=r"HK413.*keeps 8 bytes together.*takes 16"):
        lds.check_access(np.stack([lane % 16, lane // 16 * 8], -1), 8)
    lds.check_access(np.stack([lane % 16, lane // 16 * 4], -1), 4)
    with pytest.raises(HkcError, match="leaves the 64x64 tile"):
        lds.check_access([0, 62], 4)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"order": (0, 0)}, "same dims"),
        ({"itemsize": 3}, "powers of two"),
        ({"shape": (60, 64)}, "no multiples"),
        ({"strides": (512, 512)}, "overlap"),
        ({"xor": ((9, 4),)}, "higher bit"),
        ({"xor": ((4, 9), (4, 9))}, "once"),
        ({"interval": 25, "pad": 16}, "whole elements"),
        ({"interval": 64}, "positive"),
    ],
)
def test_malformed_maps_are_refused(change, why):
    good = {"shape": (64, 64), "itemsize": 2, "block": (16, 32), "strides": (2048, 1024), "order": (1, 0)}
    LdsMap(**good)
    with pytest.raises(HkcError, match=f"HK411.*{why}"):
        LdsMap(**{**good, **change})
