"""Flat accesses count on both counters; lanes in LDS arrive by one of them and all others by the other."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import CHIPS, Wave

from hkc.emulate.operands import PRIVATE_BASE, SHARED_BASE

pytestmark = pytest.mark.parametrize("arch", CHIPS)

READ = "v_mov_b32_e32 v8, v4"


def prepared(arch: str, shared: int) -> Wave:
    """Addresses of words 100 + lane in v[0:1]: the first `shared` lanes in LDS, others in memory; memory in v[2:3]."""
    wave = Wave(arch, lds=512)
    memory = wave.memory.allocate(512)
    words = np.arange(100, 164, dtype=np.uint32)
    wave.memory.write(memory, np.concatenate([words, words + 900]))
    wave.state.lds.fill(0, words.view(np.uint8))
    lanes = np.arange(64)
    flat = np.where(lanes < shared, SHARED_BASE, memory) + 4 * lanes
    for register, address in ((0, flat), (2, memory + 256 + 4 * lanes)):
        wave.vector(register, address & 0xFFFFFFFF)
        wave.vector(register + 1, address >> 32)
    wave.vector(9, np.full(64, 7))
    return wave


def missing(wave: Wave) -> list[int]:
    """The lanes at which a missing wait was found."""
    return [f.lane for f in wave.found if f.kind == "missing wait"]


LOAD = "flat_load_dword v4, v[0:1]"


@pytest.mark.parametrize(
    ("shared", "wait", "late"),
    [
        (64, "lgkmcnt(0)", []), (64, "vmcnt(0)", [0]), (0, "vmcnt(0)", []), (0, "lgkmcnt(0)", [0]),
        (16, "vmcnt(0)", [0]), (16, "lgkmcnt(0)", [16]), (16, "vmcnt(0) lgkmcnt(0)", []),
    ],
)  # fmt: skip
def test_which_wait_a_lane_needs(arch: str, shared: int, wait: str, late: list[int]) -> None:
    wave = prepared(arch, shared).run(LOAD, f"s_waitcnt {wait}", READ, "s_endpgm")
    assert missing(wave) == late
    if not late:
        assert (wave.v(8) == np.arange(100, 164)).all()


@pytest.mark.parametrize(
    ("shared", "first", "waits", "enough"),
    [
        (64, "global_load_dword v5, v[2:3], off", "vmcnt(1)", False),
        (64, "global_load_dword v5, v[2:3], off", "vmcnt(0)", True),
        (0, "global_load_dword v5, v[2:3], off", "vmcnt(1)", True),
        (0, "ds_read_b32 v5, v6", "lgkmcnt(1)", False),
        (0, "ds_read_b32 v5, v6", "lgkmcnt(0)", True),
    ],
)  # fmt: skip
def test_it_may_overtake_what_was_issued_before(arch: str, shared: int, first: str, waits: str, enough: bool) -> None:
    """A count of one left may be the earlier load's, since the flat one was elsewhere and is done."""
    wave = prepared(arch, shared)
    wave.vector(6, np.zeros(64, np.uint32))
    wave.run(first, LOAD, f"s_waitcnt {waits}", "v_mov_b32_e32 v8, v5", "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_endpgm")
    assert missing(wave) == ([] if enough else [0])


def test_stores_and_atomics_go_both_ways(arch: str) -> None:
    wave = prepared(arch, 16)
    add = "flat_atomic_add v4, v[0:1], v9 sc0"
    wave.run(add, "s_waitcnt vmcnt(0) lgkmcnt(0)", "flat_store_dword v[2:3], v4", "s_endpgm")
    assert (wave.v(4) == np.arange(100, 164)).all()
    memory = np.frombuffer(wave.memory.read(int(wave.v(2)[0]) - 256 | int(wave.v(3)[0]) << 32, 512), np.uint32)
    lds = wave.state.lds.data[:256].view(np.uint32)
    assert (lds == np.arange(100, 164) + 7 * (np.arange(64) < 16)).all()
    assert (memory[:64] == np.arange(100, 164) + 7 * (np.arange(64) >= 16)).all()
    assert (memory[64:] == np.arange(100, 164)).all() and not missing(wave)


def test_scratch_is_memory(arch: str) -> None:
    wave = Wave(arch, scratch=16)
    wave.vector(0, np.full(64, 4))
    wave.vector(1, np.full(64, PRIVATE_BASE >> 32))
    wave.vector(2, np.arange(64))
    wave.run("flat_store_dword v[0:1], v2", LOAD, "s_waitcnt vmcnt(0)", READ, "s_endpgm")
    assert (wave.v(8) == np.arange(64)).all() and wave.found == ()
