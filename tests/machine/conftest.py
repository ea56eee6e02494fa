"""A code object made from LLVM IR, one per chip, with two kernels, LDS, scratch and a device function's symbols."""

from types import SimpleNamespace

import pytest

from hkc.support import worker

IR = """
@lds = internal addrspace(3) global [4096 x i8] undef, align 16
@table = constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]

define amdgpu_kernel void @copy(ptr addrspace(1) %p, i32 %n, i64 %x) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %y = call i32 @llvm.amdgcn.workgroup.id.y()
  %i = add i32 %t, %y
  %q = getelementptr float, ptr addrspace(1) %p, i32 %i
  %v = load <4 x float>, ptr addrspace(1) %q
  %l = getelementptr float, ptr addrspace(3) @lds, i32 %t
  store <4 x float> %v, ptr addrspace(3) %l
  call void @llvm.amdgcn.s.barrier()
  %w = load float, ptr addrspace(3) %l
  store float %w, ptr addrspace(1) %q
  ret void
}

define amdgpu_kernel void @sum(ptr addrspace(1) %p, <4 x float> %c) #1 {
  %z = call i32 @llvm.amdgcn.workitem.id.z()
  %stack = alloca [64 x i32], addrspace(5)
  %s = getelementptr i32, ptr addrspace(5) %stack, i32 %z
  store volatile i32 %z, ptr addrspace(5) %s
  %r = load volatile i32, ptr addrspace(5) %stack
  %m = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(float 1.0, float 2.0, <4 x float> %c, i32 0, i32 0, i32 0)
  store <4 x float> %m, ptr addrspace(1) %p
  %o = getelementptr i32, ptr addrspace(1) %p, i32 %r
  store i32 %r, ptr addrspace(1) %o
  ret void
}

attributes #0 = { "amdgpu-flat-work-group-size"="256,256" "uniform-work-group-size"="true" }
attributes #1 = { "amdgpu-flat-work-group-size"="64,64" denormal_fpenv(float: preservesign)
                  "amdgpu-agpr-alloc"="16" "amdgpu-ieee"="false" }
"""


@pytest.fixture(scope="session", params=["gfx942", "gfx950"])
def compiled(request):
    """`arch`, `hsaco`, `assembly` of the module above."""
    made = worker.call("hkc.backend.codegen:generate", IR, request.param, True)
    return SimpleNamespace(arch=request.param, hsaco=made.hsaco, assembly=made.assembly)
