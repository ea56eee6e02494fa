"""`emulate.run`: code objects of all versions, globals, relocations, dynamic LDS; arguments that fit or don't."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from emulated import CHIPS, compile_ir

import hkc
from hkc import emulate
from hkc.machine.codeobject import CodeObject
from hkc.support.errors import HkcError, HkcUsageError

IR = """
@table = addrspace(1) global [4 x i32] [i32 10, i32 20, i32 30, i32 40], align 4
@counter = addrspace(1) global i32 5, align 4
@where = addrspace(1) global ptr addrspace(1) getelementptr (i8, ptr addrspace(1) @table, i64 8), align 8
@zeros = addrspace(1) global [64 x i32] zeroinitializer, align 4
@tile = external addrspace(3) global [0 x i32], align 16
define amdgpu_kernel void @read_table(ptr addrspace(1) %out) {
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %j = and i32 %i, 3
 %p = getelementptr [4 x i32], ptr addrspace(1) @table, i32 0, i32 %j
 %x = load i32, ptr addrspace(1) %p
 %o = getelementptr i32, ptr addrspace(1) %out, i32 %i
 store i32 %x, ptr addrspace(1) %o
 ret void
}
define amdgpu_kernel void @count(ptr addrspace(1) %out) {
 %w = load ptr addrspace(1), ptr addrspace(1) @where
 %x = load i32, ptr addrspace(1) %w
 %n = atomicrmw add ptr addrspace(1) @counter, i32 %x monotonic
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %z = getelementptr i32, ptr addrspace(1) @zeros, i32 %i
 %y = load i32, ptr addrspace(1) %z
 %s = add i32 %y, %n
 %o = getelementptr i32, ptr addrspace(1) %out, i32 %i
 store i32 %s, ptr addrspace(1) %o
 ret void
}
define amdgpu_kernel void @reverse(ptr addrspace(1) %a, i32 %n) {
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %p = getelementptr i32, ptr addrspace(1) %a, i32 %i
 %x = load i32, ptr addrspace(1) %p
 %l = getelementptr i32, ptr addrspace(3) @tile, i32 %i
 store i32 %x, ptr addrspace(3) %l
 fence syncscope("workgroup") release
 call void @llvm.amdgcn.s.barrier()
 fence syncscope("workgroup") acquire
 %k = sub i32 %n, %i
 %m = getelementptr i32, ptr addrspace(3) @tile, i32 %k
 %y = load i32, ptr addrspace(3) %m
 store i32 %y, ptr addrspace(1) %p
 ret void
}
define amdgpu_kernel void @take(ptr addrspace(1) %out, half %h, float %f, double %d, i64 %l, { i16, i16 } %s) {
 %a = fpext half %h to double
 %b = fpext float %f to double
 %c = fadd double %a, %b
 %e = fadd double %c, %d
 %g = sitofp i64 %l to double
 %k = fadd double %e, %g
 %s1 = extractvalue { i16, i16 } %s, 1
 %t = sitofp i16 %s1 to double
 %u = fadd double %k, %t
 store double %u, ptr addrspace(1) %out
 ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 VERSION}
"""


def program(version: int = 5, arch: str = "gfx942") -> emulate.Program:
    return emulate.Program.load(compile_ir(IR.replace("VERSION", f"{version}00"), arch))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("version", [4, 5, 6])
def test_globals_relocations_and_several_kernels(version: int, arch: str) -> None:
    code = program(version, arch)
    assert (code.code.version, len(code.code.kernels), len(code.code.relocations)) == (version, 4, 5)
    out = np.zeros(64, np.int32)
    emulate.run(code, out, kernel="read_table", block=64)
    assert out.tolist() == [10, 20, 30, 40] * 16
    emulate.run(code, out, kernel="count", block=64)
    assert sorted(out.tolist()) == [5 + 30 * i for i in range(64)]


def test_the_module_can_be_called(tmp_path: Path) -> None:
    path = tmp_path / "k.hsaco"
    path.write_bytes(
        compile_ir(
            "define amdgpu_kernel void @k(ptr addrspace(1) %p) { store i32 7, ptr addrspace(1) %p\n ret void }",
            "gfx942",
        )
    )
    out = np.zeros(1, np.int32)
    result = hkc.emulate(path, hkc.emulate.Output(out), block=64)  # type: ignore[operator]
    assert isinstance(result, hkc.emulate.Result) and out[0] == 7


def test_globals_live_as_long_as_the_memory() -> None:
    code, memory = program(), emulate.Memory()
    out = memory.allocate(256)
    first = []
    for _ in range(2):
        arguments = out.to_bytes(8, "little")
        emulate.launch(code, "count", workgroups=(1, 1, 1), threads=(64, 1, 1), kernarg=arguments, memory=memory)
        first.append(int(np.frombuffer(memory.read(out, 256), np.int32).min()))
    assert first == [5, 5 + 64 * 30]


def test_dynamic_lds() -> None:
    a = np.arange(256, dtype=np.int32)
    result = emulate.run(program(), a, 255, kernel="reverse", block=256, dynamic_lds=1024)
    assert (a.tolist(), result.findings) == (list(range(255, -1, -1)), ())
    result = emulate.run(program(), a, 255, kernel="reverse", block=256, dynamic_lds=512)
    assert {f.kind for f in result.findings} == {"out of bounds"}
    with pytest.raises(HkcError, match="65540 bytes of LDS; a workgroup has at most 65536"):
        emulate.run(program(), a, 255, kernel="reverse", block=256, dynamic_lds=65540)


def test_numbers_and_structs() -> None:
    out = np.zeros(1)
    struct = np.array([1000, -7], np.int16).tobytes()
    for half in (0.5, np.float16(0.5), ml_dtypes.bfloat16(1).view(np.float16) * 0 + np.float16(0.5)):
        emulate.run(program(), emulate.Output(out), half, 0.25, np.float64(2), -(2**40), struct, kernel="take", block=1)
        assert out[0] == 0.75 + 2 - 2**40 - 7


def test_an_output_keeps_what_the_kernel_does_not_write() -> None:
    out = np.full(100, 7, np.int32)
    result = emulate.run(program(), emulate.Output(out), kernel="read_table", block=64)
    assert out.tolist() == [10, 20, 30, 40] * 16 + [7] * 36
    assert result.findings == ()


def test_reading_an_output_is_found() -> None:
    a = np.zeros(64, np.int32)
    result = emulate.run(program(), emulate.Output(a), 63, kernel="reverse", block=64, dynamic_lds=256)
    assert "uninitialised" in {f.kind for f in result.findings}


def test_the_same_array_twice_is_one_buffer_and_read_only_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "k.hsaco"
    path.write_bytes(compile_ir(IR.replace("VERSION", "500"), "gfx942"))
    frozen = np.full(64, 3, np.int32)
    frozen.flags.writeable = False
    emulate.run(path, frozen, kernel="read_table", block=64)
    assert (frozen == 3).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "`take` takes 6 arguments, not 0"),
        ((None, 1.0, 1.0, 1.0, 1, b"123"), "argument 5 is 3 bytes, which doesn't fit (s: 4 bytes)"),
        ((None, 1.0, 1.0, 1.0, 2**64, b"1234"), "argument 4 is 18446744073709551616"),
        ((None, 1.0, np.float64(1), 1.0, 1, b"1234"), "argument 2 is 8 bytes"),
        ((1.5, 1.0, 1.0, 1.0, 1, b"1234"), "argument 0 is 1.5, which doesn't fit (out: buffer)"),
        ((np.zeros(8)[::2], 1.0, 1.0, 1.0, 1, b"1234"), "argument 0 is an array that isn't contiguous"),
        ((None, None, 1.0, 1.0, 1, b"1234"), "argument 1 is None"),
    ],
)
def test_arguments_that_do_not_fit(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(HkcUsageError) as caught:
        emulate.run(program(), *arguments, kernel="take", block=1)
    assert caught.value.diagnostics[0].code == "HK712"
    assert message in caught.value.diagnostics[0].message


def test_a_null_pointer_faults_and_too_many_threads_are_refused() -> None:
    for arguments, options, code in (
        ((None,), {"block": 64}, "HK704"),
        ((np.zeros(64, np.int32),), {"block": 2048}, "HK711"),
        ((np.zeros(64, np.int32),), {"block": 0}, "HK711"),
        ((np.zeros(64, np.int32),), {"block": 64, "limit": 3}, "HK709"),
    ):
        with pytest.raises(HkcError) as caught:
            emulate.run(program(), *arguments, kernel="read_table", **options)
        assert caught.value.diagnostics[0].code == code


def test_unreadable_files_and_unknown_kernels() -> None:
    with pytest.raises(HkcError, match="HK713"):
        emulate.run("no/such.hsaco")
    with pytest.raises(HkcUsageError, match="did you mean `reverse`"):
        emulate.run(program(), kernel="revers")
    assert CodeObject.parse(compile_ir(IR.replace("VERSION", "600"), "gfx950")).version == 6


SIZES = """
define amdgpu_kernel void @sizes(ptr addrspace(1) %out) "amdgpu-flat-work-group-size"="1,1024" {
 %packet = call ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
 %ps = getelementptr i8, ptr addrspace(4) %packet, i64 4
 %size = load i16, ptr addrspace(4) %ps
 %pg = getelementptr i8, ptr addrspace(4) %packet, i64 12
 %grid = load i32, ptr addrspace(4) %pg
 %wide = zext i16 %size to i32
 store i32 %wide, ptr addrspace(1) %out
 %o1 = getelementptr i32, ptr addrspace(1) %out, i64 1
 store i32 %grid, ptr addrspace(1) %o1
 %implicit = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
 IMPLICIT
 ret void
}
declare ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 VERSION}
"""
COUNTS = """
 %count = load i32, ptr addrspace(4) %implicit
 %q = getelementptr i8, ptr addrspace(4) %implicit, i64 12
 %group = load i16, ptr addrspace(4) %q
 %wg = zext i16 %group to i32
 %o2 = getelementptr i32, ptr addrspace(1) %out, i64 2
 store i32 %count, ptr addrspace(1) %o2
 %o3 = getelementptr i32, ptr addrspace(1) %out, i64 3
 store i32 %wg, ptr addrspace(1) %o3
"""
OFFSETS = """
 %offset = load i64, ptr addrspace(4) %implicit
 %o2 = getelementptr i32, ptr addrspace(1) %out, i64 2
 store i64 %offset, ptr addrspace(1) %o2
"""


@pytest.mark.parametrize(
    ("version", "implicit", "expected"),
    [(4, OFFSETS, [96, 480, 0, 0]), (5, COUNTS, [96, 480, 5, 96]), (6, COUNTS, [96, 480, 5, 96])],
)
def test_what_a_kernel_learns_of_its_launch(version: int, implicit: str, expected: list[int]) -> None:
    """As clang's builtins read it: from the dispatch packet, and from the hidden arguments of each version."""
    ir = SIZES.replace("IMPLICIT", implicit).replace("VERSION", f"{version}00")
    out = np.full(4, -1, np.int32)
    emulate.run(compile_ir(ir, "gfx942"), out, grid=5, block=96)
    assert out.tolist() == expected


def test_the_header_and_the_metadata_name_the_same_chip() -> None:
    hsaco = compile_ir(IR.replace("VERSION", "500"), "gfx942")
    (flags,) = struct.unpack_from("<I", hsaco, 48)
    for machine, message in (
        (0x4F, r"error\[HK607\]: the ELF header is for gfx950, but the metadata for gfx942"),
        (0x33, r"error\[HK607\]: the ELF header is for processor 0x33, which is none that is known, but"),
    ):
        patched = hsaco[:48] + struct.pack("<I", flags & ~0xFF | machine) + hsaco[52:]
        with pytest.raises(HkcError, match=message):
            emulate.Program.load(patched)
    other = hsaco.replace(b"amdhsa--gfx942", b"amdhsa--gfx90a")
    with pytest.raises(HkcError, match=r"(?s)HK706.*does not know the chip gfx90a.*it knows gfx942, gfx950"):
        emulate.Program.load(other)


LOOP = """
define amdgpu_kernel void @spin(ptr addrspace(1) %p) {
  br label %loop
loop:
  %v = load volatile i32, ptr addrspace(1) %p
  %c = icmp eq i32 %v, 1
  br i1 %c, label %done, label %loop
done:
  ret void
}
"""


def test_an_endless_loop_is_named() -> None:
    hsaco = compile_ir(LOOP, "gfx942")
    with pytest.raises(emulate.Fault) as caught:
        emulate.run(hsaco, np.zeros(1, np.int32), block=128, limit=2000)
    fault, program = caught.value, emulate.Program.load(hsaco)
    load = next(i for i in program.instructions if i.base == "global_load_dword")
    branch = next(i for i in program.instructions if i.base.startswith("s_cbranch"))
    (found,) = re.findall(r"goes by from (0x\w+): .* to (0x\w+): .*; wave 0 is at (0x\w+): ", str(fault))
    first, last, at = (int(text, 16) for text in found)
    assert first <= load.address <= at <= last == branch.address
    assert (fault.address, fault.wave, fault.diagnostics[0].code) == (at, 0, "HK709")


def test_code_that_does_not_end() -> None:
    """The last instruction of the segment is no end of the program."""
    hsaco = compile_ir("define amdgpu_kernel void @k() { ret void }", "gfx942")
    program = emulate.Program.load(hsaco)
    content = next(s.content for s in program.code.segments if s.executable)
    at = hsaco.index(content)
    nops = bytes.fromhex("000080bf") * (len(content) // 4)
    with pytest.raises(emulate.Fault, match=r"HK708.*control gets to 0x.*, where there is no instruction, after 0x"):
        emulate.run(hsaco[:at] + nops + hsaco[at + len(nops) :], block=64)


def test_a_fault_tells_its_wave_and_lane_and_what_was_found_before() -> None:
    """The third wave of the second workgroup reads beyond the array; all read what was never written."""
    ir = """
    define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %q) #0 {
      %t = call i32 @llvm.amdgcn.workitem.id.x()
      %g = call i32 @llvm.amdgcn.workgroup.id.x()
      %b = shl i32 %g, 8
      %i = or i32 %b, %t
      %a = getelementptr i32, ptr addrspace(1) %p, i32 %i
      %v = load volatile i32, ptr addrspace(1) %a
      %c = getelementptr i32, ptr addrspace(1) %q, i32 %i
      store volatile i32 %v, ptr addrspace(1) %c
      ret void
    }
    attributes #0 = { "amdgpu-flat-work-group-size"="256,256" }
    """
    beyond = 256 + 2 * 64 + 17
    with pytest.raises(emulate.Fault) as caught:
        emulate.run(
            compile_ir(ir, "gfx950"), emulate.Output(np.zeros(512, np.int32)), np.zeros(beyond, np.int32), grid=2
        )
    fault = caught.value
    assert (fault.wave, fault.lane, fault.workgroup) == (6, 17, 1) and fault.text.startswith("global_store_dword")
    (before,) = {f.kind for f in fault.before}
    assert before == "uninitialised" and "of `argument 0`" not in fault.before[0].message
    assert "load of never-written memory at 0x" in fault.before[0].message
    assert "0 bytes into `argument 0` (2048 bytes at" in fault.before[0].message
