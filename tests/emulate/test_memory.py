"""Memory: widths, clamping, faults, atomics, scratch, and when things happen."""

import numpy as np
import pytest
from emulated import CHIPS, NEVER, Wave, run_kernel

from hkc.emulate import Memory
from hkc.support.errors import HkcError

LANE = np.arange(64)


def pointer(wave: Wave, register: int, addresses: np.ndarray) -> None:
    wave.vector(register, addresses & 0xFFFFFFFF)
    wave.vector(register + 1, addresses >> 32)


def buffer(wave: Wave, nbytes: int, content: np.ndarray | None = None, register: int = 8) -> int:
    base = wave.memory.allocate(nbytes, "buffer")
    if content is not None:
        wave.memory.write(base, content)
    wave.pair(register, base)
    wave.scalar(register + 2, nbytes)
    wave.scalar(register + 3, 0x00027000)
    return base


@pytest.mark.parametrize("arch", CHIPS)
def test_global_loads_and_stores_of_every_width(arch: str) -> None:
    wave = Wave(arch)
    content = np.random.default_rng(0).integers(0, 256, 64 * 16 + 16).astype(np.uint8)
    base = wave.memory.allocate(content.size, "source")
    wave.memory.write(base, content)
    out = wave.memory.allocate(64 * 16, "target")
    pointer(wave, 2, base + LANE * 16)
    pointer(wave, 4, out + LANE * 16)
    wave.vector(30, np.full(64, 0x1234ABCD))
    wave.vector(31, np.full(64, 0x1234ABCD))
    wave.run(
        "global_load_ubyte v10, v[2:3], off offset:1", "global_load_sbyte v11, v[2:3], off offset:1",
        "global_load_ushort v12, v[2:3], off offset:2", "global_load_sshort v13, v[2:3], off offset:2",
        "global_load_dwordx3 v[14:16], v[2:3], off offset:4", "global_load_dwordx4 v[20:23], v[2:3], off",
        "global_load_dword v24, v[2:3], off offset:3", "global_load_short_d16 v30, v[2:3], off",
        "global_load_short_d16_hi v31, v[2:3], off", "s_waitcnt vmcnt(0)",
        "global_store_dwordx3 v[4:5], v[14:16], off", "global_store_byte v[4:5], v10, off offset:12",
        "global_store_short v[4:5], v12, off offset:14", "s_waitcnt vmcnt(0)",
    )  # fmt: skip
    rows = content[:1024].reshape(64, 16)
    assert (wave.v(10) == rows[:, 1]).all() and (wave.v(11, np.int32) == rows[:, 1].view(np.int8)).all()
    halves = rows.view(np.uint16)
    assert (wave.v(12) == halves[:, 1]).all() and (wave.v(13, np.int32) == halves[:, 1].view(np.int16)).all()
    for i in range(3):
        assert (wave.v(14 + i) == rows.view(np.uint32)[:, 1 + i]).all()
    assert (wave.v(24) == content[3:1027].reshape(64, 16)[:, :4].copy().view(np.uint32)[:, 0]).all()
    assert (wave.v(30) == (0x12340000 | halves[:, 0].astype(np.uint32))).all()
    assert (wave.v(31) == (0xABCD | halves[:, 0].astype(np.uint32) << 16)).all()
    stored = np.frombuffer(wave.memory.read(out, 1024), np.uint8).reshape(64, 16)
    assert (stored[:, :12] == rows[:, 4:]).all() and (stored[:, 12] == rows[:, 1]).all() and not stored[:, 13].any()
    assert (stored[:, 14:] == rows[:, 2:4]).all()
    assert not wave.found


@pytest.mark.parametrize("arch", CHIPS)
def test_buffers_clamp_each_dword_by_bytes(arch: str) -> None:
    wave = Wave(arch)
    base = buffer(wave, 64 * 4, LANE.astype(np.uint32))
    wave.scalar(10, 250)  # the last dword is cut
    wave.vector(1, LANE * 8)
    wave.vector(2, np.full(64, -4))
    wave.vector(3, np.full(64, 0x55))
    wave.run(
        "buffer_load_dwordx2 v[4:5], v1, s[8:11], 0 offen", "buffer_load_dword v6, v2, s[8:11], 0 offen offset:8",
        "buffer_load_ushort v7, v1, s[8:11], 0 offen", "s_mov_b32 s12, 240",
        "buffer_load_dword v8, v1, s[8:11], s12 offen", "buffer_load_dword v9, off, s[8:11], 0 offset:16",
        "buffer_store_dword v3, v1, s[8:11], 0 offen", "s_waitcnt vmcnt(0)",
    )  # fmt: skip
    inside = LANE * 8 + 4 <= 250
    assert (wave.v(4) == np.where(inside, 2 * LANE, 0)).all()
    assert (wave.v(5) == np.where(LANE * 8 + 8 <= 250, 2 * LANE + 1, 0)).all()
    assert (wave.v(6) == 1).all()  # -4 + 8: vector and immediate offset add up in 32 bits
    assert (wave.v(8) == np.where(LANE * 8 + 244 <= 250, 60 + 2 * LANE, 0)).all()
    assert (wave.v(9) == 4).all()
    after = np.frombuffer(wave.memory.read(base, 256), np.uint32)
    assert (after[::2] == np.where(np.arange(32) * 8 + 4 <= 250, 0x55, np.arange(0, 64, 2))).all()


@pytest.mark.parametrize("arch", CHIPS)
def test_structured_buffers_multiply_the_index_by_the_stride(arch: str) -> None:
    wave = Wave(arch)
    base = buffer(wave, 64 * 8, np.arange(128, dtype=np.uint32))
    wave.scalar(9, base >> 32 | 8 << 16)
    wave.scalar(10, 32)
    wave.vector(2, LANE)
    wave.vector(3, np.full(64, 4))
    wave.run("buffer_load_dword v4, v[2:3], s[8:11], 0 idxen offen", "s_waitcnt vmcnt(0)")
    assert (wave.v(4) == np.where(LANE < 32, 2 * LANE + 1, 0)).all()


@pytest.mark.parametrize(("arch", "width"), [("gfx942", 1), ("gfx950", 1), ("gfx950", 3), ("gfx950", 4)])
def test_direct_to_lds(arch: str, width: int) -> None:
    wave = Wave(arch, lds=4096)
    buffer(wave, 64 * 16, np.arange(256, dtype=np.uint32))
    wave.vector(1, (63 - LANE) * 16)
    wave.scalar(124, 256)
    wave.vector(2, LANE * 4 * width + 256)
    suffix = "" if width == 1 else f"x{width}"
    wave.run(f"buffer_load_dword{suffix} v1, s[8:11], 0 offen lds", "s_waitcnt vmcnt(0)", "ds_read_b32 v4, v2",
             "s_waitcnt lgkmcnt(0)")  # fmt: skip
    rows = wave.state.lds.data[:4096].view(np.uint32)[64 : 64 + 64 * width].reshape(64, width)
    assert (rows == (63 - LANE)[:, None] * 4 + np.arange(width)).all()
    assert (wave.v(4) == rows[:, 0]).all()


@pytest.mark.parametrize("arch", CHIPS)
def test_lds_widths_pairs_and_atomics(arch: str) -> None:
    wave = Wave(arch, lds=8192)
    wave.vector(1, LANE * 16)
    for i in range(4):
        wave.vector(4 + i, LANE * 10 + i)
    wave.vector(2, np.zeros(64, np.int64))
    wave.vector(3, np.ones(64, np.int64))
    wave.run(
        "ds_write_b128 v1, v[4:7] offset:16", "ds_read2_b32 v[10:11], v1 offset0:4 offset1:7",
        "ds_read_b64 v[12:13], v1 offset:24",
        "ds_read_u16 v15, v1 offset:16", "ds_write2st64_b32 v2, v3, v3 offset0:8 offset1:9",
        "ds_add_rtn_u32 v16, v2, v3 offset:2048", "ds_cmpst_rtn_b32 v17, v2, v4, v5 offset:2304",
        "s_waitcnt lgkmcnt(0)",
    )  # fmt: skip
    assert (wave.v(10) == LANE * 10).all() and (wave.v(11) == LANE * 10 + 3).all()
    assert (wave.v(12) == LANE * 10 + 2).all() and (wave.v(15) == LANE * 10 & 0xFFFF).all()
    assert wave.v(16).tolist() == list(range(1, 65))
    assert wave.v(17)[0] == 1 and not wave.found


@pytest.mark.parametrize("arch", CHIPS)
def test_global_atomics_on_one_address(arch: str) -> None:
    wave = Wave(arch)
    base = wave.memory.allocate(64, "counter")
    wave.memory.write(base, np.zeros(16, np.uint32))
    pointer(wave, 2, np.full(64, base))
    wave.vector(4, LANE)
    wave.vector(5, LANE.astype(np.float32))
    wave.vector(6, np.full(64, 0x3C003C00))
    wave.run("global_atomic_add v7, v[2:3], v4, off sc0", "global_atomic_add_f32 v[2:3], v5, off offset:4",
             "global_atomic_smax v[2:3], v4, off offset:8", "global_atomic_pk_add_f16 v[2:3], v6, off offset:12",
             "s_waitcnt vmcnt(0)")  # fmt: skip
    after = np.frombuffer(wave.memory.read(base, 16), np.uint32)
    assert after[0] == 2016 and after[1:2].view(np.float32)[0] == 2016 and after[2] == 63
    assert after[3:].view(np.float16).tolist() == [64, 64]
    assert wave.v(7).tolist() == (np.cumsum(LANE) - LANE).tolist()


@pytest.mark.parametrize("arch", CHIPS)
def test_scratch_belongs_to_the_lane(arch: str) -> None:
    wave = Wave(arch, waves=2, scratch=64)
    wave.vector(1, LANE + 1000)
    wave.vector(2, np.full(64, 8))
    wave.run(
        "scratch_store_dword off, v1, off offset:4", "scratch_load_dword v4, v2, off offset:-4", "s_waitcnt vmcnt(0)"
    )
    assert (wave.v(4) == LANE + 1000).all()
    with pytest.raises(HkcError, match=r"(?s)scratch byte 0x40.*the kernel has 64 bytes per lane"):
        wave.run("scratch_load_dword v4, off, off offset:64", "s_waitcnt vmcnt(0)")


@pytest.mark.parametrize("arch", CHIPS)
def test_faults_name_instruction_address_and_nearest_allocation(arch: str) -> None:
    wave = Wave(arch)
    base = wave.memory.allocate(256, "weights")
    pointer(wave, 2, base + LANE * 8)
    with pytest.raises(
        HkcError,
        match=r"(?s)8-byte access to .*lane 32.*global_load_dwordx2 v\[4:5\], v\[2:3\], off.*256 bytes into `weights`",
    ):
        wave.run("global_load_dwordx2 v[4:5], v[2:3], off", "s_waitcnt vmcnt(0)")


@pytest.mark.parametrize("arch", CHIPS)
def test_the_end_of_an_access_does_not_wrap_around(arch: str) -> None:
    """Lanes in two allocations, and one whose bytes go beyond the last address of all."""
    wave = Wave(arch, scratch=64)
    first, second = wave.memory.allocate(256, "first"), wave.memory.allocate(256, "second")
    pointer(wave, 2, np.where(LANE == 7, np.uint64((1 << 64) - 4), np.where(LANE % 2, first, second).astype(np.uint64)))
    with pytest.raises(HkcError, match=r"8-byte access to 0xfffffffffffffffc \(lane 7\), outside every allocation"):
        wave.run("global_load_dwordx2 v[4:5], v[2:3], off", "s_waitcnt vmcnt(0)")
    wave = Wave(arch, scratch=64)
    wave.scalar(4, 0xFFFFFFFE)
    with pytest.raises(HkcError, match=r"access to scratch byte 0x[0-9a-f]+ \(lane 0\)"):
        wave.run("scratch_load_dword v4, off, s4", "s_waitcnt vmcnt(0)")


def test_memory_is_sparse() -> None:
    memory = Memory()
    far = memory.allocate(1 << 40, "huge")
    memory.write(far + (1 << 39), b"abc")
    assert memory.read(far + (1 << 39) - 1, 5) == b"\0abc\0"
    with pytest.raises(HkcError, match="not inside one allocation"):
        memory.read(far + (1 << 40) - 1, 2)


# when things happen


@pytest.mark.parametrize("arch", CHIPS)
def test_a_load_is_poison_until_its_wait(arch: str) -> None:
    wave = Wave(arch)
    base = wave.memory.allocate(512, "data")
    wave.memory.write(base, np.arange(128, dtype=np.uint32))
    pointer(wave, 2, base + LANE * 4)
    wave.run("global_load_dword v4, v[2:3], off", "global_load_dword v5, v[2:3], off offset:256", "s_waitcnt vmcnt(1)",
             "v_mov_b32_e32 v6, v4", "v_mov_b32_e32 v7, v5", "s_waitcnt vmcnt(0)", "v_mov_b32_e32 v8, v5")  # fmt: skip
    assert (wave.v(6) == LANE).all() and (wave.v(7) == NEVER).all() and (wave.v(8) == LANE + 64).all()
    assert [(f.kind, f.text) for f in wave.found] == [("missing wait", "v_mov_b32_e32 v7, v5")]


@pytest.mark.parametrize("arch", CHIPS)
def test_scalar_loads_need_a_full_wait(arch: str) -> None:
    wave = Wave(arch)
    base = wave.memory.allocate(64, "data")
    wave.memory.write(base, np.arange(16, dtype=np.uint32))
    wave.pair(2, base)
    wave.run("s_load_dwordx4 s[8:11], s[2:3], 0x8", "s_mov_b32 s12, s9", "s_waitcnt lgkmcnt(0)", "s_mov_b32 s13, s9")
    assert wave.s(12) == NEVER and wave.s(13) == 3
    assert [f.kind for f in wave.found] == ["missing wait"]


@pytest.mark.parametrize("arch", CHIPS)
def test_an_lds_store_is_not_seen_by_others_before_its_wait(arch: str) -> None:
    def found(wait: str) -> list[str]:
        wave = Wave(arch, waves=2, lds=64)
        wave.state.lds.fill(0, np.zeros(64, np.uint8))
        wave.scalar(0, [0, 1])
        wave.vector(1, np.zeros(64, np.int64))
        wave.vector(2, np.full(64, 9))
        wave.run("s_cmp_eq_u32 s0, 0", "s_cbranch_scc0 5", "ds_write_b32 v1, v2", wait, "s_barrier", "s_branch 4",
                 "s_barrier", "ds_read_b32 v3, v1", "s_waitcnt lgkmcnt(0)", "s_barrier")  # fmt: skip
        return [hex(int(x)) for x in wave.state.registers[3][1, :1]]

    assert found("s_waitcnt lgkmcnt(0)") == ["0x9"]
    assert found("s_nop 0") == ["0x0"]


@pytest.mark.parametrize("arch", CHIPS)
def test_never_written_values_are_reported_where_they_matter(arch: str) -> None:
    wave = Wave(arch, lds=256)
    base = wave.memory.allocate(256, "data")
    pointer(wave, 2, base + LANE * 4)
    wave.vector(5, LANE * 4)
    wave.run("v_mov_b32_e32 v9, v8", "v_add_u32_e32 v9, 1, v9", "global_store_dword v[2:3], v9, off",
             "ds_read_b32 v6, v5", "s_waitcnt lgkmcnt(0)", "v_readfirstlane_b32 s0, v20")  # fmt: skip
    assert [(f.kind, f.text.split()[0]) for f in wave.found] == [
        ("uninitialised", "global_store_dword"), ("uninitialised", "ds_read_b32"),
        ("uninitialised", "v_readfirstlane_b32"),
    ]  # fmt: skip
    assert (wave.v(6) == NEVER).all()


GRID = """
define amdgpu_kernel void @ids(ptr addrspace(1) %out) "amdgpu-flat-work-group-size"="96,96" {
 %x = call i32 @llvm.amdgcn.workitem.id.x()
 %y = call i32 @llvm.amdgcn.workitem.id.y()
 %gx = call i32 @llvm.amdgcn.workgroup.id.x()
 %gy = call i32 @llvm.amdgcn.workgroup.id.y()
 %gz = call i32 @llvm.amdgcn.workgroup.id.z()
 %implicit = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
 %count = load i32, ptr addrspace(4) %implicit
 %a = mul i32 %gz, 2
 %b = add i32 %a, %gy
 %c = mul i32 %b, %count
 %d = add i32 %c, %gx
 %e = mul i32 %d, 96
 %f = mul i32 %y, 32
 %g = add i32 %e, %f
 %i = add i32 %g, %x
 %p = getelementptr i32, ptr addrspace(1) %out, i32 %i
 store i32 %i, ptr addrspace(1) %p
 ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare i32 @llvm.amdgcn.workgroup.id.z()
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
"""


@pytest.mark.parametrize("arch", CHIPS)
def test_ids_and_hidden_arguments(arch: str) -> None:
    out = np.zeros(3 * 2 * 2 * 96, np.int32)
    (after,), result = run_kernel(GRID, arch, "ids", [out], grid=(3, 2, 2), threads=(32, 3, 1))
    assert (after == np.arange(out.size)).all() and not result.findings


@pytest.mark.parametrize("arch", CHIPS)
def test_launches_that_can_not_be(arch: str) -> None:
    out = np.zeros(12 * 96, np.int32)
    with pytest.raises(HkcError, match="128 threads per workgroup; `ids` takes 1 to 96"):
        run_kernel(GRID, arch, "ids", [out], grid=(3, 2, 2), threads=128)
    with pytest.raises(HkcError, match="`ids` takes 8 bytes of arguments, not 0"):
        run_kernel(GRID, arch, "ids", [], grid=(1, 1, 1), threads=96)
    with pytest.raises(HkcError, match="did you mean `ids`"):
        run_kernel(GRID, arch, "id", [out], threads=96)


@pytest.mark.parametrize("arch", CHIPS)
def test_waves_that_wait_for_each_other_for_ever(arch: str) -> None:
    wave = Wave(arch, waves=2)
    wave.scalar(0, [0, 1])
    with pytest.raises(HkcError, match="runs for too long; most of the time goes by from"):
        wave.run("s_branch 0xffff")


def test_progress_is_reported() -> None:
    seen: list[float] = []
    out = np.zeros(3 * 2 * 2 * 96, np.int32)
    run_kernel(
        GRID, "gfx942", "ids", [out], grid=(3, 2, 2), threads=(32, 3, 1), progress=lambda f, text: seen.append(f)
    )
    assert seen[-1] == 1.0 and seen == sorted(seen)
