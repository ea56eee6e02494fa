"""`hkc emulate`: arguments, lists, outputs, and what can be wrong with a file or a call."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hkc.cli.values import parse
from hkc.support.errors import HkcError

Command = Callable[..., Any]
DATA = Path(__file__).parents[1] / "emulate" / "data"
ADD = DATA / "triton-add.gfx942.hsaco"
REST = ("f32[2000]", "i32:2000", "null", "null")


def test_add(hkc: Command) -> None:
    np.save("y.npy", np.full(2000, 0.5, np.float32))
    words = ("emulate", ADD, "--grid", 2, "--args", "f32[2000]=iota", "@y.npy", *REST, "--output", "2=out/c.npy")
    ran = hkc(*words)
    assert (ran.code, ran.err) == (0, "")
    first, *buffers, last = ran.out.splitlines()
    assert first == "add for gfx942"
    assert buffers[2] == "  2: f32[2000], 0.5 to 1999.5, 0 NaN"
    assert last.endswith(" wave-instructions")
    assert np.load("out/c.npy").tolist() == (np.arange(2000) + 0.5).tolist()
    document = hkc(*words, "--json").json
    assert list(document) == [
        "kernel", "arch", "workgroups", "interleavings", "seconds", "instructions", "counts", "buffers", "differing",
        "findings",
    ]  # fmt: skip
    assert document["counts"]["s_endpgm"] == 8 and document["findings"] == []
    assert document["instructions"] == sum(document["counts"].values())


def test_findings_are_shown_and_fail_a_check_only(hkc: Command) -> None:
    ran = hkc("emulate", ADD, "--grid", 2, "--args", "f32[2000]=1", "f32[2000]", *REST)
    assert ran.code == 0
    assert ran.err.startswith("error[HK722]: uninitialised")
    assert "load of never-written memory" in ran.err


def test_other_orders_of_waves_give_the_same(hkc: Command) -> None:
    for seed in (0, 3):
        words = ("--args", "f32[2000]=rand:1", "f32[2000]=rand:2", *REST, "--grid", "2,1,1", "--block", 256)
        assert hkc("emulate", ADD, *words, "--seed", seed, "--output", f"2={seed}.npy").code == 0
    assert (np.load("0.npy") == np.load("3.npy")).all()


def test_list(hkc: Command) -> None:
    ran = hkc("emulate", ADD, "--list")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[1].startswith("add: up to 256 threads, ")
    assert "  3: (unnamed), by_value, 4 bytes at 24" in ran.out.splitlines()
    (kernel,) = hkc("emulate", ADD, "--list", "--json").json["kernels"]
    assert (kernel["name"], len(kernel["args"]), kernel["lds"]) == ("add", 6, 0)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nothing.hsaco",), 1, "HK713"),
        (("--list", "nothing.hsaco"), 1, "HK713"),
        (("empty.hsaco",), 1, "error[HK601]: not an ELF file: it is empty"),
        (("cut.hsaco",), 1, "HK603"),
        (("other.hsaco",), 1, "error[HK706]: the emulator does not know the chip gfx900"),
        ((ADD, "--kernel", "ad"), 2, "did you mean `add`?"),
        ((ADD, "--args", "f32[4]"), 2, "error[HK712]: `add` takes 6 arguments, not 1"),
        ((ADD, "--args", "f32[4]=x"), 2, "error[HK522]: `x` is no value of f32"),
        ((ADD, "--args", "f33[4]"), 2, "error[HK522]: there is no dtype `f33`"),
        ((ADD, "--args", "huh"), 2, "error[HK522]: `huh` is no argument such as"),
        ((ADD, "--args", "@no.npy"), 1, "HK520"),
        ((ADD, "--args", "f32[4]", "--output", "1=x.npy"), 2, "argument 1, which x.npy is for, is no buffer"),
        ((ADD, "--output", "x.npy"), 2, "N=FILE.npy is needed"),
        ((ADD, "--grid", "0x"), 2, "a whole number is needed"),
        ((ADD, "--grid", "1,1,1,1"), 2, "up to three extents"),
        ((ADD, "--grid", "20000000", "--args", *["null"] * 3, "i32:1", "null", "null"), 1, "at most 4294967295"),
        ((ADD, "--block", "512", "--args", *["null"] * 3, "i32:1", "null", "null"), 1, "HK711"),
        ((ADD, "--args", *["null"] * 3, "i32:1", "null", "null"), 1, "HK704"),
        ((ADD, "--limit", "5", "--args", *["null"] * 3, "i32:0", "null", "null"), 1, "HK709"),
    ],
)
def test_what_can_be_wrong(hkc: Command, words: tuple[object, ...], code: int, message: str) -> None:
    content = ADD.read_bytes()
    Path("empty.hsaco").write_bytes(b"")
    Path("cut.hsaco").write_bytes(content[:3000])
    Path("other.hsaco").write_bytes(content.replace(b"unknown-gfx942", b"unknown-gfx900"))
    ran = hkc("emulate", *words)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert (words[0] != ADD) <= ran.err.count("hint: ") <= 1  # files that are none have one


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i32[2,3]=iota", np.arange(6, dtype=np.int32).reshape(2, 3)),
        ("bf16[3]=1.5", np.full(3, 1.5, ml_dtypes.bfloat16)),
        ("f8e4m3fn[2]=ones", np.ones(2, ml_dtypes.float8_e4m3fn)),
        ("u8[2]=zeros", np.zeros(2, np.uint8)),
        ("f64[2]=nan", np.full(2, np.nan)),
        ("f16[100]=rand:5", np.random.default_rng([5]).standard_normal(100).astype(np.float32).astype(np.float16)),
    ],
)
def test_buffers(text: str, expected: np.ndarray[Any, Any]) -> None:
    found = parse(text).array
    assert found is not None and found.dtype == expected.dtype
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


def test_random_buffers() -> None:
    arrays = [parse(text, number).array for text, number in (("i8[1000]=rand", 0), ("i8[1000]=rand", 1))]
    assert arrays[0] is not None and arrays[1] is not None
    assert (arrays[0].min(), arrays[0].max()) == (-8, 8) and (arrays[0] != arrays[1]).any()
    bits = parse("bf16[5000]=bits:1").array
    assert bits is not None and len(np.unique(bits.view(np.uint16))) > 4000


@pytest.mark.parametrize(
    ("text", "value"),
    [("i32:-5", np.int32(-5)), ("u8:0xff", np.uint8(255)), ("f32:0.5", np.float32(0.5)), ("hex:0a0b", b"\n\x0b")],
)
def test_numbers(text: str, value: Any) -> None:
    found = parse(text).value
    assert type(found) is type(value) and found == value


@pytest.mark.parametrize(
    "text", ["i32:1.5", "u8:256", "u8:-1", "hex:0", "f32[]", "f32[-1]", "f4e2m1[2]", "f32[2]=rand:x"]
)
def test_arguments_that_are_none(text: str) -> None:
    with pytest.raises(HkcError, match="HK522"):
        parse(text)


def test_files_with_other_bits(tmp_path: Path) -> None:
    path = tmp_path / "b.npy"
    np.save(path, np.array([1, 2], ml_dtypes.bfloat16))
    found = parse(f"bf16@{path}").array
    assert found is not None and found.astype(float).tolist() == [1, 2]
    with pytest.raises(HkcError, match="have 2 bytes, not f32's"):
        parse(f"f32@{path}")


def test_a_code_object_out_of_a_bundle(hkc: Command) -> None:
    codes = [(arch, ADD.with_name(f"triton-add.{arch}.hsaco").read_bytes()) for arch in ("gfx942", "gfx950")]
    table, content = b"__CLANG_OFFLOAD_BUNDLE__" + (2).to_bytes(8, "little"), b""
    for arch, code in codes:
        name = f"hipv4-amdgcn-amd-amdhsa--{arch}".encode()
        table += struct.pack("<QQQ", 4096 + len(content), len(code), len(name)) + name
        content += code
    Path("add.o").write_bytes(table.ljust(4096, b"\0") + content)
    words = ("add.o", "--grid", 2, "--args", "f32[2000]=1", "f32[2000]=2", *REST)
    for arch, _ in codes:
        assert hkc("emulate", *words, "--arch", arch, "--json").json["arch"] == arch
        assert hkc("emulate", "--list", "add.o", "--arch", arch, "--json").json["arch"] == arch
    ran = hkc("emulate", *words)
    assert ran.code == 2 and "error[HK608]: no chip was named; the bundle holds code for gfx942, gfx950" in ran.err
    ran = hkc("emulate", ADD, "--arch", "gfx950", "--args", "f32[4]")
    assert ran.code == 2 and "no code object for gfx950; this one is for gfx942" in ran.err


def test_several_orders_of_waves(hkc: Command) -> None:
    words = ("emulate", ADD, "--grid", 2, "--args", "f32[2000]=1", "f32[2000]=2", *REST, "--check")
    document = hkc(*words, "--interleavings", 3, "--json").json
    assert (document["interleavings"], document["differing"], document["findings"]) == (3, [], [])
    assert document["bank_conflicts"] == []
    assert "3 orders of waves" in hkc(*words, "--interleavings", 3).out


def test_an_order_that_changes_the_result_is_told(hkc: Command, tmp_path: Path) -> None:
    """Sixteen waves of one workgroup write the same element, each its own number."""
    from hkc.support import worker

    ir = """
    define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
      %t = call i32 @llvm.amdgcn.workitem.id.x()
      %w = lshr i32 %t, 6
      %r = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %w)
      %z = icmp eq i32 %r, 3
      br i1 %z, label %a, label %b
    a:
      call void @llvm.amdgcn.s.sleep(i32 1)
      br label %b
    b:
      store i32 %t, ptr addrspace(1) %p
      ret void
    }
    attributes #0 = { "amdgpu-flat-work-group-size"="1024,1024" }
    """
    Path("k.hsaco").write_bytes(worker.call("hkc.backend.codegen:generate", ir, "gfx942").hsaco)
    ran = hkc("emulate", "k.hsaco", "--args", "i32[1]", "--interleavings", 6)
    assert ran.code == 0 and "0: other orders of the waves give other contents" in ran.out


def test_places_in_the_source(hkc: Command, examples: Path) -> None:
    """From the table beside a code object as from that inside; that of another code object tells nothing."""
    name, size = "vector_add.gfx942.hsaco", ("i64:100", "i64:1")
    buffers = [word for fill in ("=1", "=2", "") for word in (f"f32[{90 if fill == '=1' else 100}]{fill}", *size)]
    words = ("emulate", name, "--kernel", "vector_add__general", "--args", *buffers)
    said = []
    for more in (("-g",), ()):
        assert hkc("compile", examples / "vector_add.hk", "--arch", "gfx942", *more).code == 0
        said.append(hkc(*words, "--check").err)
        assert "wave 0 of workgroup 0" in hkc(*words, "--break", 8).err
        Path("vector_add.gfx942.lines.json").write_text("{}" if more else '{"code": "", "columns": [], "rows": []}')
        said.append(hkc(*words, "--check").err)
    for err, known in zip(said, (True, True, True, False), strict=True):
        assert "error[HK726]: out of bounds" in err
        assert ("vector_add.hk:7:9: error" in err) is known


def test_an_empty_grid_and_a_fault_under_check(hkc: Command) -> None:
    ran = hkc("emulate", ADD, "--grid", 0, "--args", "f32[2000]=1", "f32[2000]=2", *REST)
    assert ran.code == 0 and "the grid holds no workgroups, so nothing was executed" in ran.out
    assert hkc("emulate", ADD, "--grid", "0,3", "--args", "f32[1]", "f32[1]", *REST, "--check", "--json").code == 0
    words = ("emulate", ADD, "--grid", 2, "--args", "f32[2000]", "f32[2000]=2", *REST, "--limit", "40")
    ran = hkc(*words)
    assert ran.code == 1 and ran.out == "" and "HK709" in ran.err
    ran = hkc(*words, "--check", "--json")
    checks = [f["check"] for f in ran.json["findings"]]
    assert ran.code == 1 and checks[-1] == "endless-loop" and ran.json["instructions"] is None


KERNELS = """
@dynamic = external addrspace(3) global [0 x i32]
@scale = addrspace(1) global i32 3

define amdgpu_kernel void @first(ptr addrspace(1) %p, i32 %x) {
  %s = load i32, ptr addrspace(1) @scale
  %v = mul i32 %x, %s
  store i32 %v, ptr addrspace(1) %p
  ret void
}

define amdgpu_kernel void @second(ptr addrspace(1) %p) {
  %l = getelementptr i32, ptr addrspace(3) @dynamic, i32 5
  %v = load volatile i32, ptr addrspace(3) %l
  store i32 %v, ptr addrspace(1) %p
  ret void
}
"""


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_kernels_of_a_file_globals_and_dynamic_lds(hkc: Command, arch: str) -> None:
    from hkc.support import worker

    Path("two.hsaco").write_bytes(worker.call("hkc.backend.codegen:generate", KERNELS, arch).hsaco)
    assert hkc("emulate", "two.hsaco", "--args", "i32[1]").code == 2  # which one?
    words = ("two.hsaco", "--kernel", "first", "--block", 1, "--args", "i32[1]", "i32:7", "--output", "0=o.npy")
    assert hkc("emulate", *words).code == 0 and np.load("o.npy").tolist() == [21]
    words = ("two.hsaco", "--kernel", "second", "--block", 1, "--args", "i32[1]")
    ran = hkc("emulate", *words, "--dynamic-lds", 24)
    assert "load of never-written LDS byte 0x14" in ran.err
    ran = hkc("emulate", *words, "--dynamic-lds", 16)
    assert "LDS address 0x14 is beyond the workgroup's 16 bytes" in ran.err
