"""Buffers of which two readings of the range rule differ: the scalar offset is added with a carry, or in 32 bits."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import CHIPS, Wave

pytestmark = pytest.mark.parametrize("arch", CHIPS)

LANES = np.arange(64)
SIZE = 1024


def prepared(arch: str, offset: int, scalar: int, size: int = SIZE) -> Wave:
    """The buffer s[8:11], LDS, lanes' own offsets in v1, of which lane 5's is `offset`, and s12."""
    wave = Wave(arch, lds=4096)
    base = wave.memory.allocate(SIZE, "buffer")
    wave.memory.write(base, np.arange(SIZE // 4, dtype=np.uint32))
    wave.pair(8, base)
    wave.scalar(10, size)
    wave.scalar(11, 0x00027000)
    wave.scalar(12, scalar)
    wave.vector(1, np.where(LANES == 5, offset, 4 * LANES))
    for register in range(4, 8):
        wave.vector(register, LANES)
    return wave


def found(wave: Wave) -> list[tuple[str, int, str]]:
    return [(f.kind, f.lane, f.message) for f in wave.found]


ACCESSES = [
    "buffer_load_dword v4, v1, s[8:11], s12 offen", "buffer_load_dwordx4 v[4:7], v1, s[8:11], s12 offen",
    "buffer_load_ubyte v4, v1, s[8:11], s12 offen", "buffer_load_short_d16 v4, v1, s[8:11], s12 offen",
    "buffer_store_dword v4, v1, s[8:11], s12 offen", "buffer_store_byte v4, v1, s[8:11], s12 offen",
    "buffer_atomic_add v4, v1, s[8:11], s12 offen", "buffer_atomic_add_x2 v[4:5], v1, s[8:11], s12 offen",
    "buffer_load_dword v1, s[8:11], s12 offen lds", "buffer_load_format_x v4, v1, s[8:11], s12 offen",
    "tbuffer_store_format_x v4, v1, s[8:11], s12 format:[BUF_DATA_FORMAT_32,BUF_NUM_FORMAT_UINT] offen",
]  # fmt: skip


@pytest.mark.parametrize("access", ACCESSES)
def test_a_masked_lane_that_the_scalar_offset_brings_back(arch: str, access: str) -> None:
    """-1 for lanes that should do nothing; -1 + 0x100 is 0xff. The guides' rule is what is carried out."""
    wave = prepared(arch, -1, 0x100)
    wave.scalar(11, 0x00024000 | 4)
    wave.run("s_mov_b32 m0, 0", access, "s_waitcnt vmcnt(0)")
    message = (
        "vector offset 0xffffffff with scalar offset 0x100 is out of range, but in 32 bits their sum is 0xff, which is "
        "in range: silicon may do either"
    )
    assert found(wave) == [("buffer range", 5, message)]
    (finding,) = wave.found
    assert finding.text == access or "format" in access
    if access == ACCESSES[0]:
        assert wave.v(4)[5] == 0 and (np.delete(wave.v(4), 5) == np.delete(LANES + 64, 5)).all()


@pytest.mark.parametrize(("offset", "scalar", "size", "more"), [
    (-1, 0, SIZE, ""),  # nothing to add
    (0x80000000, 0x7FFFFF00, SIZE, ""),  # out of range in any case: no carry
    (-1, SIZE + 1, SIZE, ""),  # carried, but beyond the buffer in 32 bits as well
    (-1, SIZE - 2, SIZE - 2, ""),  # its last byte is not inside
    (SIZE + 64, 64, SIZE, ""), (2 * SIZE, 0x100, SIZE, ""),  # beyond its end
    (-8, 0x100, SIZE, " offset:16"),  # vector and immediate offset add up before
])  # fmt: skip
def test_readings_that_agree(arch: str, offset: int, scalar: int, size: int, more: str) -> None:
    wave = prepared(arch, offset, scalar, size)
    wave.run(f"buffer_load_dword v4, v1, s[8:11], s12 offen{more}", "s_waitcnt vmcnt(0)")
    assert found(wave) == []


@pytest.mark.parametrize(("offset", "scalar", "size", "more", "sums"), [
    (0x10, -8, SIZE, "", (0x10, 0xFFFFFFF8, 8)),  # a negative scalar offset
    (-1, SIZE - 3, SIZE, "", (0xFFFFFFFF, SIZE - 3, SIZE - 4)),  # the last dword
    (-16, 0x100, SIZE, " offset:12", (0xFFFFFFFC, 0x100, 0xFC)),
])  # fmt: skip
def test_readings_that_differ(
    arch: str, offset: int, scalar: int, size: int, more: str, sums: tuple[int, int, int]
) -> None:
    wave = prepared(arch, offset, scalar, size)
    wave.active(1 << 5)
    wave.run(f"buffer_load_dword v4, v1, s[8:11], s12 offen{more}", "s_waitcnt vmcnt(0)")
    (finding,) = wave.found
    assert all(f"{x:#x}" in finding.message for x in sums)


def test_lanes_that_are_off_and_structured_buffers_count_for_nothing(arch: str) -> None:
    load = ("buffer_load_dword v4, v1, s[8:11], s12 offen", "s_waitcnt vmcnt(0)")
    wave = prepared(arch, -1, 0x100)
    wave.active(~(1 << 5))
    assert found(wave.run(*load)) == []
    wave = prepared(arch, -1, 0x100, SIZE // 16)
    wave.scalar(9, wave.s(9) | 16 << 16)
    assert found(wave.run(*load)) == []
