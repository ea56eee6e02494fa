"""Bank conflicts: the count itself, and what is known of published swizzles, recomputed from the chips' phases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hkc.layout import LdsMap
from hkc.layout.banks import conflicts
from hkc.targets.chip import load

LANE = np.arange(64)
GROUP, IN_GROUP = LANE // 16, LANE % 16

# Register tiles of published kernels: row and column of the first element that a lane accesses. Several accesses of
# one tile differ by a constant; the first stands for all, except where a test says otherwise.
ROWS = {
    "16x32 b128": (LANE % 16, 8 * (LANE // 16)),
    "32x16 b128": (LANE % 32, 8 * (LANE // 32)),
    "16x16 b64": (LANE % 16, 4 * (LANE // 16)),
    "32x32 b64": (LANE % 32, 4 * (LANE // 32)),
    "tr 16x32": (8 * (GROUP // 2) + IN_GROUP // 4, 16 * (GROUP % 2) + 4 * (IN_GROUP % 4)),
    "tr 32x16": (8 * GROUP + IN_GROUP // 4, 4 * (IN_GROUP % 4)),
    "tr 16x16": (4 * GROUP + IN_GROUP // 4, 4 * (IN_GROUP % 4)),
}
SUBTILES = {
    "16x16": ((16, 16), ()),
    "16x16 swizzled": ((16, 16), ((3, 7), (4, 8))),
    "32x32": ((32, 32), ((5, 9), (4, 10))),
    "16x32": ((16, 32), ((5, 9),)),
    "32x16": ((32, 16), ((4, 9),)),
    "8x32": ((8, 32), ()),
    "16x32 searched": ((16, 32), ((4, 7), (5, 8))),
    "32x16 searched": ((32, 16), ((4, 7), (7, 8))),
}


def degree(chip, mnemonic, lds, rows, columns):
    """Clocks of the worst phase."""
    access = load(chip).lds.access(mnemonic)
    lds.check_access(np.stack([rows, columns], -1), access.bytes // lds.itemsize)
    offsets = lds.offset(np.stack([rows, columns], -1))
    return int(conflicts(offsets, access.bytes, access.phases, access.banks).max())


def subtile(name, swizzled=True):
    block, xor = SUBTILES[name]
    return LdsMap.swizzled((64, 64), 2, block, xor if swizzled else ())


@pytest.mark.parametrize(
    ("name", "mnemonic", "access", "with_swizzle", "without"),
    [
        # free where the published kernels use them
        ("16x32", "ds_read_b128", "16x32 b128", 1, 2),
        ("16x32", "ds_read_b64_tr_b16", "tr 16x32", 1, 1),
        ("32x32", "ds_read_b128", "32x16 b128", 1, 4),
        ("32x32", "ds_read_b64_tr_b16", "tr 16x32", 1, 1),
        ("32x16", "ds_read_b128", "32x16 b128", 1, 2),
        ("16x16 swizzled", "ds_read_b64", "16x16 b64", 1, 2),
        ("16x16 swizzled", "ds_write_b64", "16x16 b64", 1, 4),
        ("16x16 swizzled", "ds_read_b64_tr_b16", "tr 16x16", 1, 1),
        # not free
        ("16x32", "ds_write_b64", "16x16 b64", 4, 8),
        ("32x32", "ds_write_b64", "16x16 b64", 4, 8),
        ("32x16", "ds_write_b64", "16x16 b64", 4, 4),
        ("8x32", "ds_write_b64", "16x16 b64", 8, 8),
        ("32x16", "ds_read_b64_tr_b16", "tr 32x16", 2, 2),
        ("16x32", "ds_read_b64", "32x32 b64", 4, 8),
        ("8x32", "ds_read_b64", "32x32 b64", 8, 8),
        ("8x32", "ds_read_b128", "16x32 b128", 2, 2),
        ("16x16", "ds_read_b64", "32x32 b64", 4, 4),
        # found by search: at least as good everywhere, better at stores
        ("16x32 searched", "ds_read_b128", "16x32 b128", 1, 2),
        ("16x32 searched", "ds_read_b64_tr_b16", "tr 16x32", 1, 1),
        ("16x32 searched", "ds_write_b64", "16x16 b64", 2, 8),
        ("32x16 searched", "ds_read_b128", "32x16 b128", 1, 2),
        ("32x16 searched", "ds_read_b64_tr_b16", "tr 32x16", 1, 2),
        ("32x16 searched", "ds_write_b64", "16x16 b64", 2, 4),
    ],
)
def test_published_swizzles_on_gfx950(name, mnemonic, access, with_swizzle, without):
    assert degree("gfx950", mnemonic, subtile(name), *ROWS[access]) == with_swizzle
    assert degree("gfx950", mnemonic, subtile(name, swizzled=False), *ROWS[access]) == without


def test_fp8_rows_on_gfx950():
    rows, columns = LANE % 16, 16 * (LANE // 16)
    swizzled = LdsMap.swizzled((16, 128), 1, (16, 128), ((4, 8), (5, 9), (6, 10)))
    raw = LdsMap.swizzled((16, 128), 1, (16, 128))
    for column in (columns, columns + 64):
        assert degree("gfx950", "ds_read_b128", swizzled, rows, column) == 1
        assert degree("gfx950", "ds_read_b128", raw, rows, column) == 4


@pytest.mark.parametrize("slab", [16, 32, 64])
def test_column_slabs_on_gfx942(slab):
    """Slabs of 32, 64 and 128 bytes: bit 3 ^= 7, 4 ^= 8, … below the size of 16 rows; both 8-byte reads and writes."""
    top = (16 * slab * 2).bit_length() - 1
    xor = tuple((i, i + 4) for i in range(3, top - 4))
    swizzled, raw = (LdsMap.swizzled((64, 64), 2, (64, slab), x) for x in (xor, ()))
    for mnemonic in ("ds_read_b64", "ds_write_b64"):
        assert degree("gfx942", mnemonic, swizzled, *ROWS["16x16 b64"]) == 1
        assert degree("gfx942", mnemonic, raw, *ROWS["16x16 b64"]) == {16: 4, 32: 8, 64: 16}[slab]


def brute_force(addresses, width, phases, banks, active):
    """The rule, word for word."""
    result = []
    for phase in phases:
        words = {(int(addresses[lane]) + b) // 4 for lane in phase if active[lane] for b in range(width)}
        result.append(max((sum(w % banks == bank for w in words) for bank in range(banks)), default=0))
    return result


@given(
    st.lists(st.integers(0, 2047), min_size=64, max_size=64), st.sampled_from([1, 2, 4, 8, 12, 16]),
    st.sampled_from([32, 64]), st.sampled_from([8, 16, 32, 64]), st.integers(0, 2**64 - 1),
)  # fmt: skip
def test_count_equals_the_rule(addresses, width, banks, size, mask):
    phases = [range(i, i + size) for i in range(0, 64, size)]
    active = np.array([mask >> lane & 1 for lane in range(64)], bool)
    one = conflicts(np.array(addresses), width, phases, banks, active)
    assert one.tolist() == brute_force(addresses, width, phases, banks, active)
    both = conflicts(np.array([addresses, addresses[::-1]]), width, phases, banks)
    assert both.shape == (2, len(phases)) and both[0].tolist() == brute_force(addresses, width, phases, banks, [1] * 64)


def test_same_dword_is_free_and_no_lane_costs_nothing():
    phases = [range(32), range(32, 64)]
    assert conflicts(np.zeros(64), 4, phases, 32).tolist() == [1, 1]
    assert conflicts(LANE * 128, 4, phases, 32).tolist() == [32, 32]
    assert conflicts(LANE * 128, 4, phases, 32, np.zeros(64, bool)).tolist() == [0, 0]
