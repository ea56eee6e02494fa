"""Whole kernels, compiled by LLVM for both chips, against NumPy."""

import struct

import ml_dtypes
import numpy as np
import pytest
from emulated import CHIPS, run_kernel
from gemm import gemm

IDS = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
"""

ADD = (
    """
define amdgpu_kernel void @add(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, i32 %n) {
 %wi = call i32 @llvm.amdgcn.workitem.id.x()
 %wg = call i32 @llvm.amdgcn.workgroup.id.x()
 %t = mul i32 %wg, 256
 %i = add i32 %t, %wi
 %ok = icmp slt i32 %i, %n
 br i1 %ok, label %go, label %end
go:
 %pa = getelementptr float, ptr addrspace(1) %a, i32 %i
 %pb = getelementptr float, ptr addrspace(1) %b, i32 %i
 %pc = getelementptr float, ptr addrspace(1) %c, i32 %i
 %x = load float, ptr addrspace(1) %pa
 %y = load float, ptr addrspace(1) %pb
 %z = fadd float %x, %y
 store float %z, ptr addrspace(1) %pc
 br label %end
end:
 ret void
}
"""
    + IDS
)

REVERSE = (
    """
@tile = internal addrspace(3) global [1024 x i32] poison, align 16
define amdgpu_kernel void @reverse(ptr addrspace(1) %a) "amdgpu-flat-work-group-size"="1024,1024" {
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %wg = call i32 @llvm.amdgcn.workgroup.id.x()
 %base = mul i32 %wg, 1024
 %at = add i32 %base, %i
 %p = getelementptr i32, ptr addrspace(1) %a, i32 %at
 %x = load i32, ptr addrspace(1) %p
 %l = getelementptr [1024 x i32], ptr addrspace(3) @tile, i32 0, i32 %i
 store i32 %x, ptr addrspace(3) %l
 fence syncscope("workgroup") release
 call void @llvm.amdgcn.s.barrier()
 fence syncscope("workgroup") acquire
 %j = sub i32 1023, %i
 %m = getelementptr [1024 x i32], ptr addrspace(3) @tile, i32 0, i32 %j
 %y = load i32, ptr addrspace(3) %m
 store i32 %y, ptr addrspace(1) %p
 ret void
}
"""
    + IDS
)

COLLATZ = (
    """
define amdgpu_kernel void @collatz(ptr addrspace(1) %a) {
entry:
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %wg = call i32 @llvm.amdgcn.workgroup.id.x()
 %base = mul i32 %wg, 256
 %at = add i32 %base, %i
 %p = getelementptr i32, ptr addrspace(1) %a, i32 %at
 %first = load i32, ptr addrspace(1) %p
 br label %loop
loop:
 %n = phi i32 [ %first, %entry ], [ %next, %again ]
 %count = phi i32 [ 0, %entry ], [ %more, %again ]
 %done = icmp ule i32 %n, 1
 br i1 %done, label %end, label %again
again:
 %half = lshr i32 %n, 1
 %triple = mul i32 %n, 3
 %up = add i32 %triple, 1
 %bit = and i32 %n, 1
 %odd = icmp eq i32 %bit, 1
 %next = select i1 %odd, i32 %up, i32 %half
 %more = add i32 %count, 1
 br label %loop
end:
 store i32 %count, ptr addrspace(1) %p
 ret void
}
"""
    + IDS
)

DIVISIONS = (
    """
define amdgpu_kernel void @divide(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %q, ptr addrspace(1) %r) {
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %pa = getelementptr TYPE, ptr addrspace(1) %a, i32 %i
 %pb = getelementptr TYPE, ptr addrspace(1) %b, i32 %i
 %pq = getelementptr TYPE, ptr addrspace(1) %q, i32 %i
 %pr = getelementptr TYPE, ptr addrspace(1) %r, i32 %i
 %x = load TYPE, ptr addrspace(1) %pa
 %y = load TYPE, ptr addrspace(1) %pb
 %d = DIV TYPE %x, %y
 %m = REM TYPE %x, %y
 store TYPE %d, ptr addrspace(1) %pq
 store TYPE %m, ptr addrspace(1) %pr
 ret void
}
"""
    + IDS
)


INDEXED = (
    """
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {
 %t = call i32 @llvm.amdgcn.workitem.id.x()
 %i = call i32 @llvm.amdgcn.workgroup.id.x()
 %j = sub i32 15, %i
 %p = getelementptr <16 x i32>, ptr addrspace(1) %in, i32 %t
 %v = load <16 x i32>, ptr addrspace(1) %p
 %x = extractelement <16 x i32> %v, i32 %i
 %w = insertelement <16 x i32> %v, i32 %x, i32 %j
 %b = mul i32 %i, 64
 %c = add i32 %b, %t
 %q = getelementptr <16 x i32>, ptr addrspace(1) %out, i32 %c
 store <16 x i32> %w, ptr addrspace(1) %q
 ret void
}
"""
    + IDS
)


@pytest.mark.parametrize("arch", CHIPS)
def test_registers_chosen_at_run_time(arch: str) -> None:
    values = np.arange(64 * 16, dtype=np.int32).reshape(64, 16)
    (_, after), result = run_kernel(INDEXED, arch, "k", [values, np.zeros((5, 64, 16), np.int32)], grid=(5, 1, 1))
    for i in range(5):
        wanted = values.copy()
        wanted[:, 15 - i] = values[:, i]
        assert (after[i] == wanted).all()
    assert "s_set_gpr_idx_on" in result.counts and not result.findings


GLOBALS = (
    """
@one = internal addrspace(1) global [4 x i32] [i32 1, i32 2, i32 3, i32 4]
@two = internal addrspace(1) global [4 x i32] [i32 10, i32 20, i32 30, i32 40]
@both = addrspace(1) global [2 x ptr addrspace(1)] [ptr addrspace(1) @one, ptr addrspace(1) @two]
define i32 @pick(ptr addrspace(1) %table, i32 %i) noinline {
 %p = load ptr addrspace(1), ptr addrspace(1) %table
 %q = getelementptr i32, ptr addrspace(1) %p, i32 %i
 %x = load i32, ptr addrspace(1) %q
 ret i32 %x
}
define amdgpu_kernel void @lookup(ptr addrspace(1) %out) {
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %low = and i32 %i, 3
 %bit = lshr i32 %i, 2
 %which = and i32 %bit, 1
 %t = getelementptr ptr addrspace(1), ptr addrspace(1) @both, i32 %which
 %x = call i32 @pick(ptr addrspace(1) %t, i32 %low)
 %p = getelementptr i32, ptr addrspace(1) %out, i32 %i
 store i32 %x, ptr addrspace(1) %p
 ret void
}
"""
    + IDS
)


@pytest.mark.parametrize("arch", CHIPS)
def test_device_globals_relocations_and_a_called_function(arch: str) -> None:
    (after,), result = run_kernel(GLOBALS, arch, "lookup", [np.zeros(64, np.int32)])
    assert after.tolist() == [1, 2, 3, 4, 10, 20, 30, 40] * 8
    assert not result.findings


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("n", [0, 1, 63, 64, 1000])
def test_vector_add_writes_nothing_beyond_its_end(arch: str, n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, 1024)).astype(np.float32)
    (_, _, c), result = run_kernel(ADD, arch, "add", [a, b, np.zeros_like(a)], struct.pack("<i", n), (4, 1, 1), 256)
    assert (c[:n] == (a + b)[:n]).all() and not c[n:].any()
    assert not result.findings


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_reversal_through_lds(arch: str, seed: int) -> None:
    a = np.arange(3 * 1024, dtype=np.int32)
    (after,), result = run_kernel(REVERSE, arch, "reverse", [a], grid=(3, 1, 1), threads=1024, seed=seed)
    assert (after.reshape(3, -1) == a.reshape(3, -1)[:, ::-1]).all()
    assert not result.findings


@pytest.mark.parametrize("arch", CHIPS)
def test_waves_that_leave_a_loop_at_different_times(arch: str) -> None:
    def steps(n: int) -> int:
        count = 0
        while n > 1:
            n, count = (3 * n + 1 if n & 1 else n // 2), count + 1
        return count

    a = np.random.default_rng(3).integers(1, 2000, 1024).astype(np.int32)
    (after,), _ = run_kernel(COLLATZ, arch, "collatz", [a], grid=(4, 1, 1), threads=256)
    assert after.tolist() == [steps(int(n)) for n in a]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("kind", ["i32", "u32", "i64", "u64", "f32", "f64"])
def test_division_as_the_compiler_expands_it(arch: str, kind: str) -> None:
    rng = np.random.default_rng(7)
    dtype = np.dtype({"i": "int", "u": "uint", "f": "float"}[kind[0]] + kind[1:])
    if kind[0] == "f":
        a, b = (rng.standard_normal((2, 256)) * 10.0 ** rng.integers(-30, 30, (2, 256))).astype(dtype)
        a[:6], b[:6] = [0, 1, -1, np.inf, 1, 0], [0, 0, np.inf, np.inf, -0.0, 5]
        ops = ("fdiv", "fadd")
        with np.errstate(all="ignore"):
            quotient, rest = a / b, a + b
    else:
        info = np.iinfo(dtype)
        a = rng.integers(info.min, info.max, 256, dtype, endpoint=True)
        b = rng.integers(info.min, info.max, 256, dtype, endpoint=True) >> rng.integers(0, info.bits - 1, 256, dtype)
        b[b == 0] = 3
        ops = ("sdiv", "srem") if kind[0] == "i" else ("udiv", "urem")
        exact = [int(abs(int(x)) // abs(int(y))) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)]
        quotient = np.array([e & (1 << info.bits) - 1 for e in exact], np.uint64).astype(f"uint{info.bits}").view(dtype)
        rest = a - quotient * b
    llvm = {"f32": "float", "f64": "double"}.get(kind, f"i{kind[1:]}")
    ir = DIVISIONS.replace("TYPE", llvm).replace("DIV", ops[0]).replace("REM", ops[1])
    (_, _, q, r), result = run_kernel(ir, arch, "divide", [a, b, np.zeros_like(a), np.zeros_like(a)], threads=256)
    np.testing.assert_array_equal(q, quotient)
    np.testing.assert_array_equal(r, rest)
    assert not result.findings


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("seed", [0, 5])
def test_matrix_product_through_lds_and_matrix_instructions(arch: str, seed: int) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, 256, 128)).astype(ml_dtypes.bfloat16)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    buffers = [a.view(np.uint16), b.view(np.uint16), np.zeros((256, 256), np.float32)]
    (_, _, c), result = run_kernel(gemm(arch, 256, 128), arch, "gemm", buffers, grid=(2, 2, 1), threads=256, seed=seed)
    # every sum of 8 products loses at most 2^-23 of what it has added up so far
    bound = 16 * 2.0**-23 * (np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)).T)
    assert (np.abs(c - exact) < bound).all()
    assert any("mfma" in mnemonic for mnemonic in result.counts)
    assert not result.findings
