"""Matrix instructions and what follows too soon: the table's distances, over branches and loops; torture in numbers."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import CHIPS, Wave, run_kernel

from hkc.emulate import Finding
from hkc.emulate.checks import CHECKS, observers
from hkc.emulate.isa import load

pytestmark = pytest.mark.parametrize("arch", CHIPS)

F16 = "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]"
F32 = "v_mfma_f32_32x32x2_f32 v[0:15], v16, v17, v[0:15]"
SMALL = "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], v[0:3]"
F64 = "v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7]"
KINDS = {F16: ("xdl", 4), F32: ("f32", 16), SMALL: ("xdl", 2)}


def hazards(arch: str, *lines: str) -> tuple[Finding, ...]:
    wave = Wave(arch, lds=256)
    for register in range(64):
        wave.vector(register, np.zeros(64, np.uint32))
    wave.run(*lines, observers=observers(["mfma-hazard"]))
    return tuple(f for f in wave.found if f.kind == "mfma hazard")


def needed(arch: str, first: str, column: int) -> int:
    kind = KINDS.get(first) or ("f64", 8 if arch == CHIPS[0] else 16)
    return load(arch).mfma_waits[kind][column]


FOLLOWERS = {
    "read": ("v_add_f32_e32 v40, v2, v41", 4),
    "stored": ("ds_write_b32 v40, v1", 5),
    "written": ("v_mov_b32_e32 v3, v41", 6),
    "loaded over": ("ds_read_b32 v0, v40", 6),
    "a factor": ("v_mfma_f32_16x16x16_f16 v[48:51], v[2:3], v[42:43], v[48:51]", 3),
    "a part of an addend": ("v_mfma_f32_16x16x16_f16 v[48:51], v[44:45], v[42:43], v[2:5]", 1),
}


@pytest.mark.parametrize("follower", FOLLOWERS)
@pytest.mark.parametrize("first", [F16, F32, SMALL, F64], ids=["f16", "f32", "4x4", "f64"])
def test_distances_of_the_table(arch: str, first: str, follower: str) -> None:
    """One instruction fewer than the table asks for is found; just enough is not."""
    second, column = FOLLOWERS[follower]
    need = needed(arch, first, column)
    nops = [f"s_nop {min(left, 16) - 1}" for left in range(need, 0, -16)]
    assert hazards(arch, first, *nops, second, "s_waitcnt lgkmcnt(0)", "s_endpgm") == ()
    if need:
        short = [f"s_nop {min(left, 16) - 1}" for left in range(need - 1, 0, -16)]
        (finding,) = hazards(arch, first, *short, second, "s_waitcnt lgkmcnt(0)", "s_endpgm")
        assert finding.kind == "mfma hazard" and "1 instructions too early" in finding.message
        assert finding.other is not None and finding.other.text.startswith(first.split()[0])


def test_an_accumulator_may_follow_at_once(arch: str) -> None:
    assert hazards(arch, F16, F16, "s_endpgm") == ()
    (finding,) = hazards(arch, SMALL, SMALL, "s_endpgm")
    assert "is added to" in finding.message
    assert hazards(arch, SMALL, "s_nop 1", SMALL, "s_endpgm") == ()


def test_operands_from_vector_instructions(arch: str) -> None:
    (finding,) = hazards(arch, "v_mov_b32_e32 v4, 0", F16, "s_endpgm")
    assert "is read by a matrix instruction" in finding.message
    assert hazards(arch, "v_mov_b32_e32 v4, 0", "s_nop 1", F16, "s_endpgm") == ()


def test_the_addend_is_read_late(arch: str) -> None:
    """Another result register, so that only reading the addend stands in the way."""
    first = "v_mfma_f32_16x16x16_f16 v[32:35], v[4:5], v[6:7], v[0:3]"
    assert hazards(arch, first, "s_nop 1", "v_mov_b32_e32 v1, v40", "s_endpgm")
    assert hazards(arch, first, "s_nop 2", "v_mov_b32_e32 v1, v40", "s_endpgm") == ()


def test_exec_before_a_matrix_instruction(arch: str) -> None:
    (finding,) = hazards(arch, "v_cmpx_eq_u32_e32 v40, v41", "s_nop 2", F16, "s_endpgm")
    assert "EXEC" in finding.message
    assert hazards(arch, "v_cmpx_eq_u32_e32 v40, v41", "s_nop 3", F16, "s_endpgm") == ()


def test_over_a_branch_and_a_loop(arch: str) -> None:
    """The distance is that of the path taken: over a jump, and from the end of a loop to its start."""
    jump = (F16, "s_branch 2", "s_nop 15", "s_nop 15", "v_mov_b32_e32 v40, v0", "s_endpgm")
    assert [f.kind for f in hazards(arch, *jump)] == ["mfma hazard"]
    loop = ("s_mov_b32 s4, 2", "v_mov_b32_e32 v40, v0", "s_nop 1", F16, "s_sub_u32 s4, s4, 1", "s_cmp_lg_u32 s4, 0")
    assert [f.kind for f in hazards(arch, *loop, "s_cbranch_scc1 65529", "s_endpgm")] == ["mfma hazard"]
    once = ("s_mov_b32 s4, 1", *loop[1:])
    assert hazards(arch, *once, "s_cbranch_scc1 65529", "s_endpgm") == ()


TORTURE = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half>, <4 x half>, <4 x float>, i32, i32, i32)
declare <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half>, <4 x half>, <16 x float>, i32, i32, i32)
declare <4 x float> @llvm.amdgcn.mfma.f32.4x4x4f16(<4 x half>, <4 x half>, <4 x float>, i32, i32, i32)
declare <4 x double> @llvm.amdgcn.mfma.f64.16x16x4f64(double, double, <4 x double>, i32, i32, i32)

define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %n) "amdgpu-flat-work-group-size"="64,64" {
entry:
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %one = insertelement <4 x half> poison, half 1.0, i32 0
 %ones = shufflevector <4 x half> %one, <4 x half> poison, <4 x i32> zeroinitializer
 %big = call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(
  <4 x half> %ones, <4 x half> %ones, <16 x float> zeroinitializer, i32 0, i32 0, i32 0)
 %b0 = extractelement <16 x float> %big, i32 0
 %wide = fpext float %b0 to double
 %dd = call <4 x double> @llvm.amdgcn.mfma.f64.16x16x4f64(
  double %wide, double 1.0, <4 x double> zeroinitializer, i32 0, i32 0, i32 0)
 %d0 = extractelement <4 x double> %dd, i32 3
 %df = fptrunc double %d0 to float
 br label %loop
loop:
 %k = phi i32 [ 0, %entry ], [ %next, %join ]
 %acc = phi <4 x float> [ zeroinitializer, %entry ], [ %sum, %join ]
 %x = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(
  <4 x half> %ones, <4 x half> %ones, <4 x float> %acc, i32 0, i32 0, i32 0)
 %odd = and i32 %k, 1
 %is = icmp eq i32 %odd, 1
 br i1 %is, label %left, label %right
left:
 %s = fadd <4 x float> %x, %x
 br label %join
right:
 %t = fptrunc <4 x float> %x to <4 x half>
 %u = call <4 x float> @llvm.amdgcn.mfma.f32.4x4x4f16(
  <4 x half> %ones, <4 x half> %t, <4 x float> %x, i32 0, i32 0, i32 0)
 br label %join
join:
 %sum = phi <4 x float> [ %s, %left ], [ %u, %right ]
 %next = add i32 %k, 1
 %more = icmp slt i32 %next, %n
 br i1 %more, label %loop, label %end
end:
 %r0 = extractelement <4 x float> %sum, i32 0
 %r1 = fadd float %r0, %df
 %o = getelementptr float, ptr addrspace(1) %p, i32 %i
 store float %r1, ptr addrspace(1) %o
 ret void
}
"""


def test_torture(arch: str) -> None:
    """Results that go to vector instructions, stores and other matrix instructions, over branches and a loop."""
    for n in (1, 2, 3):
        value = 0.0
        for k in range(n):
            x = value + 16
            value = x + x if k & 1 else x + 4 * x
        out = np.zeros(64, np.float32)
        (after,), result = run_kernel(
            TORTURE, arch, "k", [out], scalars=n.to_bytes(4, "little"), observers=observers(CHECKS)
        )
        assert result.findings == ()
        assert (after == value + 8 * 4).all()
