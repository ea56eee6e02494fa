"""LLVM behind its C API: outputs, refusals, and what the worker contains."""

import ctypes
from pathlib import Path

import pytest

from hkc.support import elfstub, llvm, worker
from hkc.support.errors import HkcBug, HkcError

EMPTY = "define amdgpu_kernel void @k() { ret void }"
LDS = """
@lds = internal addrspace(3) global [{} x i8] undef, align 16
define amdgpu_kernel void @k(i32 %i) {{
  %p = getelementptr i8, ptr addrspace(3) @lds, i32 %i
  store volatile i32 0, ptr addrspace(3) %p
  ret void
}}
"""


@pytest.fixture(autouse=True)
def bug_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HKC_BUG_DIR", str(tmp_path))


def emit(ir: str, arch: str, *kinds: llvm.Kind, **options) -> llvm.Emission:
    found = worker.call("hkc.support.llvm:emit", ir, arch, kinds, llvm.Options(**options))
    assert isinstance(found, llvm.Emission)
    return found


def test_every_kind_comes_from_one_run():
    outputs = emit(EMPTY, "gfx942", "asm", "object", "llvm").outputs
    assert b"s_endpgm" in outputs["asm"] and b'.amdgcn_target "amdgcn-amd-amdhsa--gfx942"' in outputs["asm"]
    assert outputs["object"].startswith(b"\x7fELF")
    assert b"define amdgpu_kernel void @k()" in outputs["llvm"]


def test_the_order_of_the_kinds_changes_nothing():
    one = emit(LDS.format(64), "gfx950", "asm", "object").outputs
    other = emit(LDS.format(64), "gfx950", "object", "asm").outputs
    assert one == other == emit(LDS.format(64), "gfx950", "asm", "object").outputs


def test_module_flags_are_set_where_the_module_has_none():
    version = (("amdhsa_code_object_version", 500),)
    own = EMPTY + '\n!llvm.module.flags = !{!0}\n!0 = !{i32 1, !"amdhsa_code_object_version", i32 600}'
    assert b".amdhsa_code_object_version 5" in emit(EMPTY, "gfx942", "asm", flags=version).outputs["asm"]
    assert b".amdhsa_code_object_version 6" in emit(own, "gfx942", "asm", flags=version).outputs["asm"]


def test_features_reach_the_target():
    assert b"gfx942:xnack+" in emit(EMPTY, "gfx942", "asm", features="+xnack").outputs["asm"]


def test_remarks_are_collected():
    assert any("instructions in function" in r.message for r in emit(EMPTY, "gfx942", "object").remarks)


@pytest.mark.parametrize(
    ("ir", "words"),
    [
        ("this is no IR", "can't read its IR: kernel.ll:1:1: error: expected top-level entity"),
        ("define void @f() {\n  ret i32 0\n}", "kernel.ll:2:"),
        ("define void @f(ptr %p) { store i32 0, ptr %p, align 3\n ret void }", "align"),
        (LDS.format(1_000_000), r"local memory \(1000000\) exceeds limit \(65536\) in function 'k'"),
    ],
)
def test_bad_modules_are_our_bug_in_llvms_words(ir, words):
    with pytest.raises(HkcBug, match=words):
        emit(ir, "gfx942", "object")


def test_an_unknown_pass_is_named():
    with pytest.raises(HkcBug, match="unknown pass name 'no-such-pass'"):
        emit(EMPTY, "gfx942", "object", passes="no-such-pass")


def test_an_abort_of_llvm_is_contained():
    newer = """
        declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x32.bf16(<8 x bfloat>, <8 x bfloat>, <4 x float>, i32, i32, i32)
        define amdgpu_kernel void @k(ptr addrspace(1) %p, <8 x bfloat> %a, <4 x float> %c) {
          %d = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x32.bf16(<8 x bfloat> %a, <8 x bfloat> %a, <4 x float> %c,
                                                                    i32 0, i32 0, i32 0)
          store <4 x float> %d, ptr addrspace(1) %p
          ret void
        }"""
    assert b"v_mfma_f32_16x16x32_bf16" in emit(newer, "gfx950", "asm").outputs["asm"]
    with pytest.raises(HkcBug) as caught:
        emit(newer, "gfx942", "asm")
    assert "mfma" in caught.value.message + caught.value.details
    assert emit(EMPTY, "gfx942", "object").outputs


def test_memory_is_given_back():
    def resident() -> int:
        pid = worker.call("os:getpid")
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])

    for _ in range(20):
        emit(LDS.format(64), "gfx942", "asm", "object", "llvm")
    before = resident()
    for _ in range(200):
        emit(LDS.format(64), "gfx942", "asm", "object", "llvm")
    assert resident() - before < 2000  # pages of 4 KiB


def test_the_override_is_used_or_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("HKC_LIBLLVM", str(tmp_path / "none.so"))
    worker.shutdown()
    with pytest.raises(HkcError, match=r"no AMD LLVM that can compile kernels: .*none\.so"):
        emit(EMPTY, "gfx942", "object")
    monkeypatch.undo()
    worker.shutdown()
    assert emit(EMPTY, "gfx942", "object").outputs


@pytest.mark.parametrize("name", sorted(elfstub.SYSDEPS))
def test_stand_ins_load_and_fail_every_call(name, tmp_path):
    path = tmp_path / "stub.so"
    path.write_bytes(elfstub.shared_object("libhkc_test.so.1", elfstub.SYSDEPS[name]))
    library = ctypes.CDLL(str(path))
    assert {getattr(library, function)() for function in elfstub.SYSDEPS[name]} == {-2}


def test_stand_ins_hide_no_other_library():
    """Python's own zlib still works in the process that has loaded them."""
    assert worker.call("zlib:crc32", b"123456789") == 0xCBF43926
    assert worker.call("zlib:decompress", worker.call("zlib:compress", b"x" * 1000)) == b"x" * 1000
