"""EXEC bookkeeping, branches, modes, clocks, and instructions without visible effect."""

from collections.abc import Callable

import numpy as np
import pytest
from emulated import CHIPS, Wave

from examples import examples
from hkc.backend.codegen import Generated
from hkc.emulate import Fault, run
from hkc.emulate.decode import decode
from hkc.support import worker

FULL = (1 << 64) - 1
EXEC, VALUE = 0xFFFF0000FFFF0000, 0x123456789ABCDEF0

SAVED: dict[str, Callable[[int, int], int]] = {
    "and": lambda s, e: s & e, "or": lambda s, e: s | e, "xor": lambda s, e: s ^ e, "andn2": lambda s, e: s & ~e,
    "orn2": lambda s, e: s | ~e, "nand": lambda s, e: ~(s & e), "nor": lambda s, e: ~(s | e),
    "xnor": lambda s, e: ~(s ^ e), "andn1": lambda s, e: ~s & e, "orn1": lambda s, e: ~s | e,
}  # fmt: skip


def pair(wave: Wave, register: int) -> int:
    return wave.s(register) | wave.s(register + 1) << 32


def exec_of(wave: Wave) -> int:
    return sum(int(bit) << i for i, bit in enumerate(wave.state.exec_mask[0]))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", SAVED)
def test_exec_is_saved_and_combined(arch: str, name: str) -> None:
    wave = Wave(arch)
    wave.active(EXEC)
    wave.pair(4, VALUE)
    wave.step(examples(arch)[f"s_{name}_saveexec_b64"])
    wanted = SAVED[name](VALUE, EXEC) & FULL
    assert (pair(wave, 16), exec_of(wave), bool(wave.state.scc[0])) == (EXEC, wanted, wanted != 0)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", ("andn1", "andn2"))
def test_exec_is_written_to_both(arch: str, name: str) -> None:
    wave = Wave(arch)
    wave.active(EXEC)
    wave.pair(4, VALUE)
    wave.step(examples(arch)[f"s_{name}_wrexec_b64"])
    wanted = SAVED[name](VALUE, EXEC) & FULL
    assert (pair(wave, 16), exec_of(wave)) == (wanted, wanted)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("branch", "setup", "taken"), [
    ("s_cbranch_vccz", "s_mov_b64 vcc, 0", True), ("s_cbranch_vccz", "s_mov_b64 vcc, 4", False),
    ("s_cbranch_vccnz", "s_mov_b64 vcc, 4", True), ("s_cbranch_vccnz", "s_mov_b64 vcc, 0", False),
    ("s_cbranch_execz", "s_mov_b64 exec, 0", True), ("s_cbranch_execnz", "s_mov_b64 exec, 0", False),
    ("s_cbranch_scc1", "s_cmp_eq_u32 0, 0", True), ("s_cbranch_scc0", "s_cmp_eq_u32 0, 0", False),
    ("s_cbranch_cdbgsys", "s_nop 0", False), ("s_cbranch_cdbguser", "s_nop 0", False),
    ("s_cbranch_cdbgsys_or_user", "s_nop 0", False), ("s_cbranch_cdbgsys_and_user", "s_nop 0", False),
])  # fmt: skip
def test_branches(arch: str, branch: str, setup: str, taken: bool) -> None:
    wave = Wave(arch)
    wave.run("s_mov_b32 s0, 1", setup, f"{branch} 1", "s_mov_b32 s0, 2", "s_nop 0")
    assert wave.s(0) == (1 if taken else 2)


@pytest.mark.parametrize("arch", CHIPS)
def test_calls_and_returns(arch: str) -> None:
    wave = Wave(arch)
    wave.run("s_mov_b32 s8, 0", "s_getpc_b64 s[0:1]", "s_add_u32 s0, s0, 16", "s_addc_u32 s1, s1, 0",
             "s_swappc_b64 s[2:3], s[0:1]", "s_branch 2", "s_add_u32 s8, s8, 5", "s_setpc_b64 s[2:3]",
             "s_nop 0")  # fmt: skip
    assert wave.s(8) == 5


@pytest.mark.parametrize("arch", CHIPS)
def test_the_end(arch: str) -> None:
    wave = Wave(arch)
    wave.run("s_mov_b32 s0, 1", "s_endpgm", "s_mov_b32 s0, 2")
    assert wave.s(0) == 1


@pytest.mark.parametrize("arch", CHIPS)
def test_relative_vector_registers(arch: str) -> None:
    wave = Wave(arch)
    for i in range(8):
        wave.vector(i, np.full(64, 100 + i))
    wave.run("s_mov_b32 s0, 3", "s_set_gpr_idx_on s0, gpr_idx(SRC0)", "v_mov_b32_e32 v20, v2", "s_set_gpr_idx_off",
             "s_set_gpr_idx_on s0, gpr_idx(DST)", "v_mov_b32_e32 v20, v1", "s_set_gpr_idx_off")  # fmt: skip
    assert (wave.v(20)[0], wave.v(23)[0]) == (105, 101)


@pytest.mark.parametrize("arch", CHIPS)
def test_mode_register_in_parts(arch: str) -> None:
    wave = Wave(arch)
    wave.run("s_getreg_b32 s0, hwreg(HW_REG_MODE)", "s_mov_b32 s1, 0xffff", "s_setreg_b32 hwreg(HW_REG_MODE, 8, 2), s1",
             "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 0x5", "s_getreg_b32 s2, hwreg(HW_REG_MODE)",
             "s_getreg_b32 s3, hwreg(HW_REG_MODE, 4, 4)")  # fmt: skip
    assert (wave.s(0), wave.s(2), wave.s(3)) == (0x3F0, 0x350, 5)


@pytest.mark.parametrize("arch", CHIPS)
def test_clocks_go_on(arch: str) -> None:
    wave = Wave(arch)
    wave.run("s_memtime s[0:1]", "s_waitcnt lgkmcnt(0)", "s_memrealtime s[2:3]", "s_waitcnt lgkmcnt(0)",
             "s_memtime s[4:5]", "s_waitcnt lgkmcnt(0)")  # fmt: skip
    assert 0 < pair(wave, 0) < pair(wave, 2) < pair(wave, 4)


@pytest.mark.parametrize("arch", CHIPS)
def test_relative_scalar_registers(arch: str) -> None:
    wave = Wave(arch)
    for i in range(8):
        wave.scalar(20 + i, 100 + i)
    wave.run("s_mov_b32 m0, 2", "s_movrels_b32 s0, s20", "s_movrels_b64 s[2:3], s[20:21]", "s_movreld_b32 s30, s27",
             "s_movreld_b64 s[40:41], s[20:21]")  # fmt: skip
    assert [wave.s(i) for i in (0, 2, 3, 32, 42, 43)] == [102, 102, 103, 107, 100, 101]


SILENT = ("s_nop", "s_sleep", "s_setprio", "s_sethalt", "s_sendmsg", "s_wakeup", "s_icache_inv", "s_incperflevel",
          "s_decperflevel", "s_ttracedata", "s_dcache_inv", "s_dcache_wb", "s_dcache_inv_vol", "s_dcache_wb_vol",
          "s_atc_probe", "s_atc_probe_buffer", "buffer_inv", "buffer_wbl2", "v_nop", "v_clrexcp", "s_set_gpr_idx_off",
          "s_waitcnt", "ds_nop")  # fmt: skip


@pytest.mark.parametrize("arch", CHIPS)
def test_instructions_without_visible_effect(arch: str) -> None:
    wave = Wave(arch)
    scalars, vectors = wave.state.scalar.copy(), wave.state.vector.copy()
    wave.step(*[examples(arch)[name] for name in SILENT])
    assert np.array_equal(wave.state.scalar, scalars) and np.array_equal(wave.state.vector, vectors)
    assert wave.found == ()


TRAPS = """
declare void @llvm.trap()
declare void @llvm.debugtrap()
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 !dbg !3 {
 call void @llvm.debugtrap(), !dbg !6
 %i = call i32 @llvm.amdgcn.workitem.id.x(), !dbg !6
 %bad = icmp eq i32 %i, 70, !dbg !6
 br i1 %bad, label %stop, label %on, !dbg !6
stop:
 call void @llvm.trap(), !dbg !7
 unreachable, !dbg !7
on:
 ret void, !dbg !6
}
attributes #0 = { "amdgpu-flat-work-group-size"="128,128" }
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "asserts.hk", directory: "/")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "k", file: !1, line: 1, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DILocation(line: 2, column: 3, scope: !3)
!7 = !DILocation(line: 9, column: 5, scope: !3)
"""


@pytest.mark.parametrize("arch", CHIPS)
def test_a_trap_is_a_fault_with_its_place(arch: str) -> None:
    """Of 64 x 2 lanes one gives up; the breakpoint before is passed by."""
    text = r"asserts.hk:9:5: error\[HK717\]: .*wave 1, lane 6 at 0x[0-9a-f]+: s_trap 2"
    generated: Generated = worker.call("hkc.backend.codegen:generate", TRAPS, arch, False, True)
    with pytest.raises(Fault, match=text) as found:
        run(generated.hsaco, None, block=128)
    assert (found.value.wave, found.value.lane) == (1, 6)
    assert found.value.line is not None and found.value.line.line == 9 and found.value.address > 0


@pytest.mark.parametrize("arch", CHIPS)
def test_traps_are_faults_but_for_breakpoints(arch: str) -> None:
    Wave(arch).step(decode(0x100, bytes.fromhex("030092bf"), "s_trap 3"))
    with pytest.raises(Fault, match=r"HK717.*s_trap 4"):
        Wave(arch).step(examples(arch)["s_trap"])
