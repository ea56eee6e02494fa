"""Global wave sync orders what race checkers see: barriers and semaphores between workgroups, with fences around."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import CHIPS, run_kernel

from hkc.emulate.checks import CHECKS, observers

pytestmark = pytest.mark.parametrize("arch", CHIPS)

SET_UP = """
@lds = internal addrspace(3) global [256 x i32] poison, align 16
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.ds.gws.init(i32, i32)
declare void @llvm.amdgcn.ds.gws.barrier(i32, i32)
declare void @llvm.amdgcn.ds.gws.sema.v(i32)
declare void @llvm.amdgcn.ds.gws.sema.p(i32)
define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %ready) "amdgpu-flat-work-group-size"="THREADS" {
entry:
 %g = call i32 @llvm.amdgcn.workgroup.id.x()
 %i = call i32 @llvm.amdgcn.workitem.id.x()
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
 br i1 %set.up, label %on, label %spin
on:
BODY
 ret void
}
"""
RELEASE, ACQUIRE = (f' fence syncscope("agent") {order}' for order in ("release", "acquire"))
BARRIER = " call void @llvm.amdgcn.ds.gws.barrier(i32 LESS, i32 5)"

NEIGHBOURS = """
 %r = shl i32 %g, 6
 %at = add i32 %r, %i
 %mine = getelementptr i32, ptr addrspace(1) %p, i32 %at
 store i32 %at, ptr addrspace(1) %mine
{}
 %flip = xor i32 %at, 64
 %other = getelementptr i32, ptr addrspace(1) %p, i32 %flip
 %x = load i32, ptr addrspace(1) %other
 %to = getelementptr i32, ptr addrspace(1) %mine, i32 128
 store i32 %x, ptr addrspace(1) %to
"""
"""Two workgroups of a wave: each writes 64 words, and reads those of the other."""

HANDED_OVER = f"""
 %second = icmp eq i32 %g, 1
 %mine = getelementptr i32, ptr addrspace(1) %p, i32 %i
 br i1 %second, label %take, label %give
give:
 store i32 7, ptr addrspace(1) %mine
{RELEASE}
 call void @llvm.amdgcn.ds.gws.sema.v(i32 5)
 br label %end
take:
 call void @llvm.amdgcn.ds.gws.sema.p(i32 5)
{ACQUIRE}
 %x = load i32, ptr addrspace(1) %mine
 %to = getelementptr i32, ptr addrspace(1) %mine, i32 128
 store i32 %x, ptr addrspace(1) %to
 br label %end
end:
"""
"""One workgroup writes, and lets the other pass the semaphore, which reads."""

MIRROR = """
 %a = getelementptr i32, ptr addrspace(3) @lds, i32 %i
 store i32 %i, ptr addrspace(3) %a
 fence syncscope("workgroup") release
{}
 fence syncscope("workgroup") acquire
 %j = xor i32 %i, 255
 %b = getelementptr i32, ptr addrspace(3) @lds, i32 %j
 %x = load i32, ptr addrspace(3) %b
 %o = getelementptr i32, ptr addrspace(1) %p, i32 %i
 store i32 %x, ptr addrspace(1) %o
"""


def races(arch: str, body: str, less: int, seed: int, groups: int = 2, threads: int = 64) -> set[str]:
    """Kinds of findings. The resource starts out at `less`."""
    text = SET_UP.replace("BODY", body).replace("LESS", str(less)).replace("THREADS", f"{threads},{threads}")
    buffers = [np.zeros(256, np.uint32), np.zeros(1, np.uint32)]
    _, result = run_kernel(
        text, arch, "k", buffers, grid=(groups, 1, 1), threads=threads, seed=seed, observers=observers(CHECKS)
    )
    return {f.kind for f in result.findings}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_barrier_orders_workgroups(arch: str, seed: int) -> None:
    """With a write-back before it and an invalidation after it; either alone is not enough."""
    assert races(arch, NEIGHBOURS.format("\n".join([RELEASE, BARRIER, ACQUIRE])), 1, seed) == set()
    for between in ([BARRIER], [RELEASE, BARRIER], [BARRIER, ACQUIRE], [RELEASE, ACQUIRE]):
        assert races(arch, NEIGHBOURS.format("\n".join(between)), 1, seed) == {"global race"}, between


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_semaphore_orders_workgroups(arch: str, seed: int) -> None:
    assert races(arch, HANDED_OVER, 0, seed) == set()
    for fence in (RELEASE, ACQUIRE):
        assert races(arch, HANDED_OVER.replace(fence, ""), 0, seed) == {"global race"}
    assert races(arch, HANDED_OVER, 1, seed) == {"global race"}, "a place was free, so nobody waited"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_barrier_of_a_whole_workgroup_orders_lds(arch: str, seed: int) -> None:
    """A semaphore that everybody passes does not."""
    assert races(arch, MIRROR.format(BARRIER), 3, seed, groups=1, threads=256) == set()
    assert races(arch, MIRROR.format(""), 3, seed, groups=1, threads=256) == {"lds race"}
    semaphore = " call void @llvm.amdgcn.ds.gws.sema.v(i32 5)\n call void @llvm.amdgcn.ds.gws.sema.p(i32 5)"
    assert races(arch, MIRROR.format(semaphore), 0, seed, groups=1, threads=256) == {"lds race"}
