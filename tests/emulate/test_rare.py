"""Instructions that compilers hardly emit: relative registers, skipping, fork and join, global wave sync, others."""

from __future__ import annotations

import re

import numpy as np
import pytest
from emulated import CHIPS, Wave, run_kernel

from hkc.emulate import Fault

pytestmark = pytest.mark.parametrize("arch", CHIPS)

LANES = np.arange(64)


def counted(arch: str, waves: int = 1) -> Wave:
    """v0 to v31 hold 100 + their number."""
    wave = Wave(arch, waves=waves)
    for register in range(32):
        wave.vector(register, np.full(64, 100 + register))
    return wave


@pytest.mark.parametrize(
    ("mode", "line", "register", "value"),
    [
        ("SRC0", "v_mov_b32_e32 v20, v2", 20, 105),
        ("DST", "v_mov_b32_e32 v20, v1", 23, 101),
        ("SRC0", "v_add_u32_e32 v20, v2, v4", 20, 105 + 104),
        ("SRC1", "v_add_u32_e32 v20, v2, v4", 20, 102 + 107),
        ("SRC0,SRC1,DST", "v_sub_u32_e32 v20, v9, v4", 23, 112 - 107),
        ("SRC2", "v_mad_u32_u24 v20, v2, v4, v6", 20, 102 * 104 + 109),
        ("DST", "v_mad_u32_u24 v20, v2, 3, 5", 23, 311),
        ("SRC1", "v_addc_co_u32_e32 v20, vcc, v2, v4, vcc", 20, 102 + 107 + 1),
        ("SRC0", "v_lshlrev_b64 v[20:21], v0, v[2:3]", 20, 102 << 39 & 0xFFFFFFFF),
        ("SRC1", "v_lshlrev_b64 v[20:21], 4, v[2:3]", 21, 106 << 4),
    ],
)  # fmt: skip
def test_relative_registers(arch: str, mode: str, line: str, register: int, value: int) -> None:
    """By 3; the number that nobody asked to be moved stays, and so does everything after the mode is off."""
    wave = counted(arch)
    wave.run("s_mov_b64 vcc, -1", "s_mov_b32 s0, 3", f"s_set_gpr_idx_on s0, gpr_idx({mode})", line,
             "s_set_gpr_idx_off", "v_mov_b32_e32 v31, v2", "s_endpgm")  # fmt: skip
    assert int(wave.v(register)[0]) == value and int(wave.v(31)[0]) == 102 and wave.found == ()


def test_index_and_mode_alone(arch: str) -> None:
    wave = counted(arch)
    wave.run("s_mov_b32 s0, 3", "s_set_gpr_idx_on s0, gpr_idx(SRC0)", "s_mov_b32 s1, 0x105", "s_set_gpr_idx_idx s1",
             "v_mov_b32_e32 v20, v2", "s_set_gpr_idx_mode gpr_idx(DST)", "v_mov_b32_e32 v20, v2", "s_mov_b32 s2, m0",
             "s_set_gpr_idx_off", "s_endpgm")  # fmt: skip
    assert (int(wave.v(20)[0]), int(wave.v(25)[0])) == (107, 102)
    assert wave.s(2) & 0xF0FF == 0x8005


def test_waves_with_different_indices(arch: str) -> None:
    """A loop, in which the second turn is relative and the first is not."""
    wave = counted(arch, waves=2)
    wave.scalar(0, np.array([1, 4]))
    wave.run("s_mov_b32 s1, 0", "v_add_u32_e32 v20, v2, v20", "s_set_gpr_idx_on s0, gpr_idx(SRC0)",
             "s_add_u32 s1, s1, 1", "s_cmp_lt_u32 s1, 2", "s_cbranch_scc1 65531", "s_endpgm")  # fmt: skip
    assert wave.state.registers[20][:, 0].tolist() == [120 + 102 + 103, 120 + 102 + 106]


def test_relative_registers_that_the_kernel_lacks(arch: str) -> None:
    with pytest.raises(Fault, match=r"HK716.*v257"):
        counted(arch).run("s_mov_b32 s0, 255", "s_set_gpr_idx_on s0, gpr_idx(SRC0)", "v_mov_b32_e32 v20, v2")


def test_vector_instructions_are_skipped(arch: str) -> None:
    """By those waves alone that ask for it; scalar instructions are not."""
    wave = counted(arch, waves=2)
    wave.scalar(0, np.array([0, 1 << 5]))
    wave.run("s_mov_b32 s1, 37", "s_setvskip s0, s1", "v_mov_b32_e32 v1, 7", "v_cmpx_eq_u32_e32 v1, v2",
             "s_mov_b32 s2, 8", "s_setvskip 0, 0", "v_mov_b32_e32 v3, 9", "s_endpgm")  # fmt: skip
    assert wave.state.registers[1][:, 0].tolist() == [7, 101]
    assert wave.state.registers[3][:, 0].tolist() == [103, 9]  # EXEC is 0 where the comparison was made
    assert wave.state.scalar[2].tolist() == [8, 8]


FORK = (
    "s_mov_b32 s20, 0",
    "s_mov_b64 s[22:23], exec",
    "{fork}",
    "v_add_u32_e32 v1, 1, v1",
    "s_branch 1",
    "v_add_u32_e32 v1, 16, v1",
    "s_cbranch_join s20",
    "s_mov_b64 exec, s[22:23]",
    "v_add_u32_e32 v2, 1, v2",
    "s_endpgm",
)


@pytest.mark.parametrize("mask", [0, 0xFF, (1 << 64) - 1, (1 << 60) - 1], ids=["none", "few", "all", "most"])
@pytest.mark.parametrize("kind", ["i", "g"])
def test_fork_and_join(arch: str, mask: int, kind: str) -> None:
    """Lanes of the mask add 16, all others 1, and the program goes on once; EXEC is then what the program makes it."""
    wave = counted(arch)
    wave.pair(16, mask)
    if kind == "i":
        wave.run(*[line.format(fork="s_cbranch_i_fork s[16:17], 2") for line in FORK])
    else:
        lines = [line.format(fork="s_cbranch_g_fork s[16:17], s[18:19]") for line in FORK]
        wave.run("s_getpc_b64 s[18:19]", "s_add_u32 s18, s18, 28", "s_addc_u32 s19, s19, 0", *lines)
    taken = np.array([mask >> i & 1 for i in range(64)])
    assert (wave.v(1) == 101 + np.where(taken, 16, 1)).all() and (wave.v(2) == 103).all()
    assert wave.state.exec_mask.all() and wave.state.mode[0] >> 29 == 0


def test_waves_fork_on_their_own(arch: str) -> None:
    wave = counted(arch, waves=3)
    wave.scalar(16, np.array([0, 0xF, 0xFFFFFFFF]))
    wave.scalar(17, np.array([0, 0, 0xFFFFFFFF]))
    wave.run(*[line.format(fork="s_cbranch_i_fork s[16:17], 2") for line in FORK])
    wanted = 101 + np.stack([np.where(n > LANES, 16, 1) for n in (0, 4, 64)])
    assert (wave.state.registers[1] == wanted).all() and (wave.state.registers[2] == 103).all()


@pytest.mark.parametrize("line", ["s_sendmsghalt sendmsg(MSG_INTERRUPT)", "s_sethalt 1"])
def test_who_halts_is_not_woken(arch: str, line: str) -> None:
    with pytest.raises(Fault, match=r"HK717.*halts in wave 0.*" + re.escape(line.split()[0])):
        Wave(arch).run(line, "s_endpgm")
    Wave(arch).run("s_sethalt 0", "s_endpgm")


GATHER = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.ds.gws.init(i32, i32)
declare void @llvm.amdgcn.ds.gws.barrier(i32, i32)
define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %count) "amdgpu-flat-work-group-size"="128,128" {
entry:
 %g = call i32 @llvm.amdgcn.workgroup.id.x()
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %ready = getelementptr i32, ptr addrspace(1) %count, i32 1
 %both = or i32 %i, %g
 %leads = icmp eq i32 %both, 0
 br i1 %leads, label %set, label %spin
set:
 call void @llvm.amdgcn.ds.gws.init(i32 LESS, i32 5)
 store atomic i32 1, ptr addrspace(1) %ready syncscope("agent") release, align 4
 br label %spin
spin:
 %is = load atomic i32, ptr addrspace(1) %ready syncscope("agent") acquire, align 4
 %set.up = icmp eq i32 %is, 1
 br i1 %set.up, label %ordered, label %spin
ordered:
 %l = and i32 %i, 63
 %first = icmp eq i32 %l, 0
 br i1 %first, label %add, label %on
add:
 %old = atomicrmw add ptr addrspace(1) %count, i32 1 syncscope("agent") acq_rel
 br label %on
on:
 call void @llvm.amdgcn.ds.gws.barrier(i32 LESS, i32 5)
 %all = load atomic i32, ptr addrspace(1) %count syncscope("agent") acquire, align 4
 %w = lshr i32 %i, 6
 %w2 = shl i32 %g, 1
 %n = add i32 %w, %w2
 %o = getelementptr i32, ptr addrspace(1) %out, i32 %n
 store i32 %all, ptr addrspace(1) %o
 ret void
}
"""


def gathered(arch: str, less: int, seed: int) -> tuple[list[int], int]:
    """What each wave saw, and the count in the end. Three workgroups of two waves, a barrier of `less` + 1."""
    buffers = [np.zeros(6, np.uint32), np.zeros(2, np.uint32)]
    text = GATHER.replace("LESS", str(less))
    (out, count), _ = run_kernel(text, arch, "k", buffers, grid=(3, 1, 1), threads=128, seed=seed)
    return out.tolist(), int(count[0])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_barrier_of_the_whole_launch(arch: str, seed: int) -> None:
    """Nobody sees fewer than six arrivals."""
    assert gathered(arch, 5, seed) == ([6] * 6, 6)


def test_a_barrier_that_too_few_reach(arch: str) -> None:
    with pytest.raises(Fault, match="HK710"):
        gathered(arch, 6, 0)


def sync(arch: str, *lines: str, start: int = 0) -> Wave:
    """Three waves; v4 holds 2, v2 the start of the semaphore that the first wave sets up."""
    wave = counted(arch, waves=3)
    wave.vector(4, np.full(64, 2))
    wave.vector(2, np.full(64, start))
    wave.scalar(0, np.arange(3))
    return wave.run("s_mov_b32 m0, 0x70000", "s_nop 0", "s_cmp_lg_u32 s0, 0", "s_cbranch_scc1 2", "ds_gws_init v2 gds",
                    "s_barrier", *lines, "s_endpgm")  # fmt: skip


TAKE = ("ds_gws_sema_p gds", "s_mov_b32 s9, 1")


def test_semaphores(arch: str) -> None:
    """Two free places, and a third one that is given back; all at once; or all who wait are let go."""
    assert (sync(arch, *TAKE, start=3).state.scalar[9] == 1).all()
    assert (sync(arch, *TAKE, "ds_gws_sema_v gds", start=1).state.scalar[9] == 1).all()
    others = ("s_cmp_lg_u32 s0, 0", "s_cbranch_scc1 3")
    assert (sync(arch, *others, "ds_gws_sema_br v4 gds", "s_endpgm", *TAKE).state.scalar[9, 1:] == 1).all()
    late = ("s_cmp_eq_u32 s0, 0", "s_cbranch_scc1 4", *TAKE, "s_endpgm", "ds_gws_sema_release_all gds")
    assert (sync(arch, *late).state.scalar[9, 1:] == 1).all()
    with pytest.raises(Fault, match=r"HK710.*wait"):
        sync(arch, *TAKE, start=2)


def test_barriers_again_and_again(arch: str) -> None:
    """Who comes last sets the counter for the next time: 2, as v4 has it, for three waves."""
    barrier = ("ds_gws_barrier v4 gds", "s_add_u32 s9, s9, 1")
    wave = sync(arch, "s_mov_b32 s9, 0", *barrier, *barrier, *barrier, start=2)
    assert (wave.state.scalar[9] == 3).all() and wave.found == ()
    with pytest.raises(Fault, match=r"HK710.*wait"):
        sync(arch, "s_mov_b32 s9, 0", *barrier, start=3)


def test_scratch_to_lds(arch: str) -> None:
    names = ("ubyte", "sbyte", "ushort", "sshort", "dword")
    wave = Wave(arch, lds=2048, scratch=16)
    words = (0x80818283 + LANES).astype(np.uint32)
    wave.vector(0, words)
    wave.run("v_mov_b32_e32 v1, 4", "scratch_store_dword off, v0, off offset:4", "s_waitcnt vmcnt(0)",
             *[x for i, name in enumerate(names) for x in
               (f"s_mov_b32 m0, {256 * i}", "s_nop 0", f"scratch_load_lds_{name} v1, off offset:0")],
             "s_waitcnt vmcnt(0)", "s_endpgm")  # fmt: skip
    found = wave.state.lds.data[:1280].view(np.uint32).reshape(5, 64)
    low, high = words & 0xFF, words & 0xFFFF
    wanted = (low, low.astype(np.int8).astype(np.int32), high, high.astype(np.int16).astype(np.int32), words)
    for row, values in zip(found, wanted, strict=True):
        assert (row == values.astype(np.int64) & 0xFFFFFFFF).all()


def test_scalar_scratch(arch: str) -> None:
    """Offset registers count 64 bytes; the base is an address of memory."""
    wave = Wave(arch)
    memory = wave.memory.allocate(512)
    content = np.arange(128, dtype=np.uint32)
    wave.memory.write(memory, content)
    wave.pair(4, memory)
    wave.scalar(8, 2)
    wave.run("s_scratch_load_dword s16, s[4:5], 0x20", "s_scratch_load_dwordx2 s[18:19], s[4:5], s8",
             "s_scratch_load_dwordx4 s[20:23], s[4:5], s8 offset:0x40", "s_waitcnt lgkmcnt(0)",
             "s_scratch_store_dword s18, s[4:5], 0x0", "s_scratch_store_dwordx2 s[18:19], s[4:5], s8",
             "s_scratch_store_dwordx4 s[20:23], s[4:5], 0x100", "s_waitcnt lgkmcnt(0)", "s_endpgm")  # fmt: skip
    assert [wave.s(16), wave.s(18), wave.s(19), *[wave.s(20 + i) for i in range(4)]] == [8, 32, 33, 48, 49, 50, 51]
    content[[0, 64, 65, 66, 67]] = [32, 48, 49, 50, 51]
    assert wave.memory.read(memory, 512) == content.tobytes()


@pytest.mark.parametrize(("name", "lost"), [("s_dcache_discard", 16), ("s_dcache_discard_x2", 32)])
def test_lines_that_are_discarded_hold_nothing(arch: str, name: str, lost: int) -> None:
    wave = Wave(arch)
    memory = wave.memory.allocate(512)
    wave.memory.write(memory, bytes(512))
    wave.pair(4, memory)
    wave.vector(0, 4 * LANES)
    wave.run(f"{name} s[4:5], 0x50", "s_waitcnt lgkmcnt(0)", "global_load_dword v1, v0, s[4:5]", "s_endpgm")
    assert (wave.v(1)[:16] == 0).all() and (wave.v(1)[16 : 16 + lost] != 0).all()
    assert (wave.v(1)[16 + lost :] == 0).all()
    assert [(f.kind, f.lane) for f in wave.found] == [("uninitialised", 16)]
