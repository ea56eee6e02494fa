"""Data on their way through LDS: loads from memory straight to LDS, buffers that are freed, layouts that change."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import CHIPS, Wave, assembled, run_kernel

import hkc
from hkc.emulate import Finding
from hkc.emulate.checks import CHECKS, observers
from hkc.emulate.decode import Decoded
from hkc.runtime.emulator import Emulator
from hkc.support.errors import HkcError

pytestmark = pytest.mark.parametrize("arch", CHIPS)

LOAD = ("s_mov_b32 m0, s8", "s_nop 0", "global_load_lds_dword v[0:1], off")
READ = ("ds_read_b32 v3, v2", "s_waitcnt lgkmcnt(0)")
END = "s_endpgm"


def staged(arch: str, *lines: str, other: int = 1) -> tuple[tuple[Finding, ...], Wave]:
    """Two waves load 64 words each to LDS; `other` says whether v2 is in the other's half or in their own."""
    wave = Wave(arch, waves=2, lds=512)
    at = wave.memory.allocate(512)
    wave.memory.write(at, np.arange(128, dtype=np.uint32))
    lanes = np.arange(64) * 4
    for row in (0, 1):
        address = at + 256 * row + lanes
        wave.state.registers[0][row] = address & 0xFFFFFFFF
        wave.state.registers[1][row] = address >> 32
        wave.state.registers[2][row] = lanes + 256 * (row ^ other)
    for register in (0, 1, 2):
        wave.state.flags[register] = 0
    wave.scalar(8, np.array([0, 256]))
    wave.run(*lines, END, observers=observers(CHECKS))
    return wave.found, wave


def test_wait_and_barrier(arch: str) -> None:
    findings, wave = staged(arch, *LOAD, "s_waitcnt vmcnt(0)", "s_barrier", *READ)
    assert findings == ()
    assert (wave.state.registers[3] == np.arange(128).reshape(2, 64)[::-1]).all()


def test_the_producers_wait_is_missing(arch: str) -> None:
    findings, _ = staged(arch, *LOAD, "s_barrier", *READ, "s_waitcnt vmcnt(0)")
    race = next(f for f in findings if f.kind == "lds race")
    assert "not waited for before the barrier" in race.message and race.other is not None


def test_the_barrier_is_missing(arch: str) -> None:
    findings, _ = staged(arch, *LOAD, "s_waitcnt vmcnt(0)", *READ)
    race = next(f for f in findings if f.kind == "lds race")
    assert "no barrier" in race.message and race.other is not None
    assert {race.text.split()[0], race.other.text.split()[0]} == {"global_load_lds_dword", "ds_read_b32"}


def test_a_wave_waits_for_its_own_load(arch: str) -> None:
    assert staged(arch, *LOAD, "s_waitcnt vmcnt(0)", *READ, other=0)[0] == ()
    findings, _ = staged(arch, *LOAD, *READ, "s_waitcnt vmcnt(0)", other=0)
    race = next(f for f in findings if f.kind == "lds race")
    assert race.other is not None and race.wave == race.other.wave and "wait for the load from memory" in race.message


def test_a_buffer_is_freed_by_a_wait_and_a_barrier(arch: str) -> None:
    """Before the barrier that frees a buffer, reads of it have been waited for."""
    first = (*LOAD, "s_waitcnt vmcnt(0)", "s_barrier", "ds_read_b32 v3, v2")
    again = ("s_barrier", *LOAD, "s_waitcnt vmcnt(0) lgkmcnt(0)")
    assert staged(arch, *first, "s_waitcnt lgkmcnt(0)", *again)[0] == ()
    findings, _ = staged(arch, *first, *again)
    race = next(f for f in findings if f.kind == "lds race")
    assert "not waited for before the barrier" in race.message
    findings, _ = staged(arch, *first, "s_waitcnt lgkmcnt(0)", *again[1:])
    assert [f.kind for f in findings] == ["lds race"]


WIDTHS = {"ubyte": 1, "sbyte": 1, "ushort": 2, "sshort": 2, "dword": 4, "dwordx3": 12, "dwordx4": 16}


@pytest.mark.parametrize("kind", ("buffer", "global"))
@pytest.mark.parametrize("name", WIDTHS)
def test_loads_to_lds_of_every_width(arch: str, kind: str, name: str) -> None:
    """To m0 + offset + lane · max(4, width); inactive lanes leave their places alone, lanes out of bounds write 0."""
    width, wave = WIDTHS[name], Wave(arch, lds=2048)
    memory = wave.memory.allocate(2048)
    content = np.random.default_rng(3).integers(0, 256, 2048, np.uint8)
    wave.memory.write(memory, content)
    wave.state.lds.fill(0, np.full(2048, 0xEE, np.uint8))
    wave.pair(8, memory)
    wave.scalar(10, 16 + 20 * 40)  # the last lanes' bytes lie behind the end of the buffer
    wave.scalar(11, 0x27000)
    wave.vector(1, 20 * np.arange(64))
    wave.vector(2, memory + 20 * np.arange(64))
    wave.vector(3, np.full(64, memory >> 32))
    wave.active(~0xF0 & (1 << 64) - 1)
    lines = {"buffer": f"buffer_load_{name} v1, s[8:11], 0 offen offset:16 lds",
             "global": f"global_load_lds_{name} v[2:3], off offset:16"}  # fmt: skip
    if width > 4 and arch == CHIPS[0]:
        with pytest.raises(HkcError, match="HK703"):
            wave.step(*lds_load(arch, lines[kind]))
        return
    wave.run("s_mov_b32 m0, 64", "s_nop 0", lines[kind], "s_waitcnt vmcnt(0)", "s_endpgm")
    place = max(width, 4)
    found = wave.state.lds.data[80 : 80 + 64 * place].reshape(64, place)
    for lane in range(64):
        read = content[16 + 20 * lane : 16 + 20 * lane + width].tobytes()
        whole = int.from_bytes(read, "little", signed=name[0] == "s").to_bytes(place, "little", signed=name[0] == "s")
        inside = kind == "global" or 16 + 20 * lane + width <= 16 + 20 * 40
        wanted = b"\xee" * place if 4 <= lane < 8 else whole if inside else bytes(place)
        assert found[lane].tobytes() == wanted, lane
    assert (wave.state.lds.data[:80] == 0xEE).all() and (wave.state.lds.data[80 + 64 * place : 2048] == 0xEE).all()


def lds_load(arch: str, line: str) -> tuple[Decoded, ...]:
    """A load that an assembler for the older chip refuses, as the newer one has it."""
    return assembled((line,), CHIPS[1])


def turned(dtype: str, width: int) -> str:
    """A 64x64 tile: each of 256 workitems moves 16 elements to LDS, `width` at a time, and takes 16 of its columns."""
    vector = f"<{width} x {dtype}>"
    body = []
    for part in range(16 // width):
        body.append(f"""
 %e{part} = add i32 %first, {part * width}
 %s{part} = getelementptr {dtype}, ptr addrspace(1) %p, i32 %e{part}
 %v{part} = load {vector}, ptr addrspace(1) %s{part}, align 4
 %d{part} = getelementptr {dtype}, ptr addrspace(3) @lds, i32 %e{part}
 store {vector} %v{part}, ptr addrspace(3) %d{part}, align 16""")
    body.append("""
 fence syncscope("workgroup") release
 call void @llvm.amdgcn.s.barrier()
 fence syncscope("workgroup") acquire""")
    for n in range(16):
        body.append(f"""
 %r{n} = add i32 %high, {n}
 %t{n} = mul i32 %r{n}, 64
 %a{n} = add i32 %t{n}, %row
 %q{n} = getelementptr {dtype}, ptr addrspace(3) @lds, i32 %a{n}
 %x{n} = load {dtype}, ptr addrspace(3) %q{n}
 %w{n} = add i32 %first, {n}
 %o{n} = getelementptr {dtype}, ptr addrspace(1) %out, i32 %w{n}
 store {dtype} %x{n}, ptr addrspace(1) %o{n}""")
    return f"""
@lds = internal addrspace(3) global [4096 x {dtype}] poison, align 16
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %out) "amdgpu-flat-work-group-size"="256,256" {{
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %first = mul i32 %i, 16
 %row = lshr i32 %i, 2
 %low = and i32 %i, 3
 %high = mul i32 %low, 16
{"".join(body)}
 ret void
}}
"""


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize(("name", "kind"), [("i32", np.uint32), ("i16", np.uint16), ("i8", np.uint8)])
def test_a_tile_turned_in_lds(arch: str, name: str, kind: type, width: int) -> None:
    """Rows in, columns out, with accesses of every width, in step and interleaved."""
    tile: np.ndarray = np.arange(64 * 64).astype(kind).reshape(64, 64)
    for seed in (0, 1):
        (_, after), result = run_kernel(
            turned(name, width), arch, "k", [tile, np.zeros_like(tile)], threads=256, seed=seed,
            observers=observers(CHECKS),
        )  # fmt: skip
        assert (after == tile.T).all()
        assert {f.kind for f in result.findings} <= {"bank conflicts", "unaligned"}


OFFSETS = """
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %out) "amdgpu-flat-work-group-size"="64,64" {
entry:
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %wide = zext i32 %i to i64
 %back = sub i64 63, %wide
 %last = getelementptr i32, ptr addrspace(1) %p, i64 960
 br label %loop
loop:
 %n = phi i32 [ 0, %entry ], [ %more, %next ]
 %base = phi ptr addrspace(1) [ %last, %entry ], [ %before, %next ]
 %left = sub i64 %back, 2
 %sum0 = add i32 0, 0
 br label %window
window:
 %w = phi i64 [ -2, %loop ], [ %w1, %skip ]
 %sum = phi i32 [ 0, %loop ], [ %sum1, %skip ]
 %at = add i64 %back, %w
 %low = icmp sge i64 %at, 0
 %high = icmp slt i64 %at, 64
 %in = and i1 %low, %high
 br i1 %in, label %take, label %skip
take:
 %q = getelementptr i32, ptr addrspace(1) %base, i64 %at
 %x = load i32, ptr addrspace(1) %q
 br label %skip
skip:
 %y = phi i32 [ 0, %window ], [ %x, %take ]
 %sum1 = add i32 %sum, %y
 %w1 = add i64 %w, 1
 %on = icmp sle i64 %w1, 2
 br i1 %on, label %window, label %next
next:
 %row = mul i32 %n, 64
 %to = add i32 %row, %i
 %o = getelementptr i32, ptr addrspace(1) %out, i32 %to
 store i32 %sum1, ptr addrspace(1) %o
 %before = getelementptr i32, ptr addrspace(1) %base, i64 -64
 %more = add i32 %n, 1
 %again = icmp slt i32 %more, 16
 br i1 %again, label %loop, label %end
end:
 ret void
}
"""


def test_negative_offsets(arch: str) -> None:
    """Backwards along a row, a pointer that steps back from row to row, and a masked window around each element."""
    x = np.arange(1024, dtype=np.uint32)
    (_, after), result = run_kernel(OFFSETS, arch, "k", [x, np.zeros_like(x)], observers=observers(CHECKS))
    rows = np.pad(x.reshape(16, 64), ((0, 0), (2, 2)))
    windows = np.sum([rows[:, i : i + 64] for i in range(5)], axis=0)
    assert (after.reshape(16, 64) == windows[::-1, ::-1]).all()
    assert result.findings == ()


CHAINED = """
kernel chained(A: global[f16, M, K], B: global[f16, N, K], D: global[f16, P, N], S: global[f16, M, N],
        C: global[f32, M, P]) with waves=WAVES:
    m = tile_ids(cdiv(M, 64)) * 64
    s = cast(dot(load(A, [m, 0], [64, 64]), load(B, [0, 0], [64, 64]).T), f16)
    store(S, [m, 0], s)
    c = dot(s, load(D, [0, 0], [64, 64]).T)
    store(C, [m, 0], c + dot(load(A, [m, 0], [64, 64]), load(B, [0, 0], [64, 64]).T))
"""


@pytest.mark.parametrize("waves", [pytest.param(1, marks=pytest.mark.long), 2, 4])
def test_the_result_of_a_product_as_operand_of_the_next(arch: str, waves: int) -> None:
    """It changes its layout on the way, and is stored, too; whole numbers, so that every element is exact."""
    kernel = hkc.compile(CHAINED.replace("WAVES", str(waves)), arch)
    rng = np.random.default_rng(46)
    a, b, d = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((100, 40), (56, 40), (64, 56)))
    wide = [x.astype(np.float64) for x in (a, b, d)]
    first = wide[0] @ wide[1].T
    assert np.abs(first).max() <= 160
    for seed in (0, 1):
        s, c = np.full((100, 56), np.nan, np.float16), np.full((100, 64), np.nan, np.float32)
        ran = kernel.launch(kernel.bind(A=a, B=b, D=d, S=s, C=c), Emulator(seed, observers(CHECKS)))
        assert {f.kind for f in ran.findings} <= {"bank conflicts"}
        assert (s == first).all()
        assert (c[:, :56] == (first @ wide[2].T)[:, :56] + first).all()
        assert (c[:, 56:] == (first @ wide[2].T)[:, 56:]).all()
