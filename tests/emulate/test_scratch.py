"""Scratch takes along what was never written: a spill of it is no use, what is done with it later is."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import CHIPS, NEVER, Wave

from hkc.emulate.operands import PRIVATE_BASE

pytestmark = pytest.mark.parametrize("arch", CHIPS)

LANES = np.arange(64)
LOW = (1 << 32) - 1
WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"
REACH = {"immediate": ("off, off", 64), "vector": ("v0, off", 0), "scalar": ("off, s4", 0), "flat": ("v[0:1]", 0)}
"""Ways to byte 64 of the lane's scratch, as `prepared` makes them: operands and offset."""


def prepared(arch: str) -> Wave:
    """Memory at v[2:3], 4 bytes per lane; 64 in v0 and s4; byte 64 of scratch is v[0:1]."""
    wave = Wave(arch, lds=256, scratch=128)
    memory = wave.memory.allocate(256, "out")
    wave.memory.write(memory, bytes(256))
    wave.vector(0, np.full(64, 64))
    wave.vector(1, np.full(64, PRIVATE_BASE >> 32))
    wave.vector(2, (memory + 4 * LANES) & 0xFFFFFFFF)
    wave.vector(3, (memory + 4 * LANES) >> 32)
    wave.scalar(4, 64)
    return wave


def store(reach: str, width: str, data: str) -> str:
    operands, offset = REACH[reach]
    vector, _, scalar = operands.partition(",")
    segment = "scratch" if scalar else "flat"
    return f"{segment}_store_{width} {vector}, {data}{scalar and ','}{scalar} offset:{offset}"


def load(reach: str, width: str, data: str) -> str:
    operands, offset = REACH[reach]
    return f"{'scratch' if ',' in operands else 'flat'}_load_{width} {data}, {operands} offset:{offset}"


def out(register: int) -> str:
    return f"global_store_dword v[2:3], v{register}, off"


def found(wave: Wave) -> list[tuple[str, int]]:
    """Instruction and lane of each finding; all are of one kind."""
    assert {f.kind for f in wave.found} <= {"uninitialised"}
    return [(f.text, f.lane) for f in wave.found]


@pytest.mark.parametrize("reach", REACH)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_group_of_which_some_registers_hold_nothing(arch: str, reach: str, count: int) -> None:
    wave = prepared(arch)
    wave.vector(10, LANES)
    if count > 2:
        wave.vector(12, LANES + 100)
    width, last = "dword" if count == 1 else f"dwordx{count}", count - 1
    before, after = (f"v[{r}:{r + last}]" if last else f"v{r}" for r in (10, 20))
    wave.run(store(reach, width, before), load(reach, width, after), WAIT, out(20), "v_mov_b32_e32 v30, v21", out(30))
    assert (wave.v(20) == LANES).all()
    assert found(wave) == [("global_store_dword v[2:3], v30, off", 0)]
    if count > 2:
        assert (wave.v(22) == LANES + 100).all()


@pytest.mark.parametrize("reach", REACH)
@pytest.mark.parametrize(("stored", "loaded"), [
    ("byte", "ubyte"), ("byte", "sbyte"), ("short", "ushort"), ("short", "sshort"), ("dword", "dword"),
])  # fmt: skip
def test_a_register_that_some_lanes_wrote(arch: str, reach: str, stored: str, loaded: str) -> None:
    """Loaded again, only lanes that nobody wrote are a finding, and only if they are used."""
    wave = prepared(arch)
    move = (f"s_mov_b64 exec, {LOW:#x}", "v_mov_b32_e32 v10, 5", "s_mov_b64 exec, -1")
    wave.run(*move, store(reach, stored, "v10"), load(reach, loaded, "v20"), WAIT, f"s_mov_b64 exec, {LOW:#x}",
             out(20), "s_mov_b64 exec, -1", "v_add_u32_e32 v20, 1, v20", out(20))  # fmt: skip
    assert (wave.v(20)[:32] == 6).all()
    assert found(wave) == [("global_store_dword v[2:3], v20, off", 32)]


@pytest.mark.parametrize("use", [
    "global_store_dword v[2:3], v20, off", "global_load_dword v22, v20, s[6:7]", "v_readfirstlane_b32 s8, v20",
    "v_cmp_eq_u32_e32 vcc, 0, v20", "scratch_store_dword v20, v0, off", "ds_write_b32 v20, v0",
    "ds_write_b32 v4, v20",
])  # fmt: skip
def test_bytes_that_nothing_stored(arch: str, use: str) -> None:
    """To load, move and compute with them is no finding, any use is."""
    wave = prepared(arch)
    wave.pair(6, wave.memory.allocations[0].base)
    wave.vector(4, 4 * LANES)
    quiet = ("scratch_load_dword v20, off, off offset:16", WAIT, "v_mov_b32_e32 v21, v20", "v_and_b32_e32 v20, 0, v20")
    wave.run(*quiet, use, WAIT)
    assert (wave.v(21) == NEVER).all()
    assert found(wave) == [(use, 0)]


def test_what_is_stored_last_counts(arch: str) -> None:
    """Never-written over written and the other way round; the neighbours stay as they were."""
    wave = prepared(arch)
    wave.vector(10, LANES)
    wave.vector(11, LANES)
    read = ("scratch_load_dword v20, off, off", "scratch_load_dword v21, off, off offset:4", WAIT, out(20), out(21))
    wave.run("scratch_store_dwordx2 off, v[10:11], off", "scratch_store_byte off, v12, off offset:6", *read)
    assert found(wave) == [("global_store_dword v[2:3], v21, off", 0)]
    again = prepared(arch)
    again.vector(11, LANES)
    again.vector(14, LANES)
    again.run("scratch_store_dwordx2 off, v[12:13], off", "scratch_store_dwordx2 off, v[10:11], off",
              "scratch_store_dword off, v14, off", *read)  # fmt: skip
    assert found(again) == []


def test_lanes_of_a_flat_store_elsewhere_are_findings(arch: str) -> None:
    """The first half of the lanes stores to scratch, the others to memory."""
    wave = prepared(arch)
    for low, own in ((0, 2), (1, 3)):
        wave.vector(low, np.where(LANES < 32, wave.v(low), wave.v(own)))
    wave.run("flat_store_dword v[0:1], v10", "flat_load_dword v20, v[0:1]", WAIT, out(20))
    assert found(wave) == [("flat_store_dword v[0:1], v10", 32), ("global_store_dword v[2:3], v20, off", 0)]


def test_half_a_register_from_scratch(arch: str) -> None:
    """It goes beside a half that stays, so the register as a whole counts as written and the load is a finding."""
    wave = prepared(arch)
    wave.vector(20, LANES)
    wave.run("scratch_load_short_d16 v20, off, off", WAIT, out(20))
    assert found(wave) == [("scratch_load_short_d16 v20, off, off", 0)]


def test_from_scratch_to_lds(arch: str) -> None:
    """What LDS gets, other waves may read: that is a use, and it is scratch that is named."""
    wave = Wave(arch, lds=512, scratch=16)
    wave.vector(1, np.full(64, 4))
    wave.run("s_mov_b32 m0, 0", "s_nop 0", "scratch_load_lds_dword v1, off offset:4", WAIT)
    assert [(f.kind, f.message) for f in wave.found] == [("uninitialised", "load of never-written scratch byte 0x8")]
