"""Instructions: sizes, texts, operands and modifiers, and bytes that are none."""

import random
from itertools import accumulate

import pytest

from hkc.machine.codeobject import CodeObject
from hkc.machine.disassemble import Instruction, disassemble
from hkc.support import worker
from hkc.support.errors import HkcUsageError

# Every other instruction stands before the plain and before the scaled form of the same matrix instruction: a decoder
# that takes an 8-byte neighbour for the first half of the 16-byte form goes wrong here.
NEIGHBOURS = (
    "v_fma_f32 v0, v1, v2, v3",
    "v_mul_f32_e64 v0, |v1|, v2",
    "ds_read_b128 v[0:3], v1 offset:32",
    "global_load_dwordx4 v[0:3], v1, s[0:1]",
    "buffer_load_dwordx4 v1, s[4:7], 0 offen lds",
    "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel_hi:[0,1,1]",
    "v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], v[0:3]",
    "s_load_dwordx2 s[0:1], s[2:3], 0x0",
    "v_add_f32_e32 v0, 0x42280000, v1",
    "s_mov_b32 s0, 0x12345678",
    "v_accvgpr_read_b32 v0, a1",
    "v_accvgpr_write_b32 a1, v0",
    "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
    "v_permlane32_swap_b32_e32 v0, v1",
)
PLAIN = "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3]"
SCALED = "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3], v20, v21 op_sel_hi:[0,0,0]"

INLINE = """
define amdgpu_kernel void @k() #0 {{
  call void asm sideeffect "{}", ""()
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,64" }}
"""


def assemble(arch: str, *lines: str) -> tuple[bytes, int]:
    """Machine code of these lines, without what the compiler puts around it, and its address."""
    made = worker.call("hkc.backend.codegen:generate", INLINE.format("\\0A".join(lines)), arch)
    code = CodeObject.parse(made.hsaco)
    return code.code(code.kernel())[:-4], code.kernel().entry


def one(text: str) -> Instruction:
    return Instruction(0, 4, b"", text)


def test_every_kernel_decodes_without_gaps(compiled):
    code = CodeObject.parse(compiled.hsaco)
    for kernel in code.kernels:
        content = code.code(kernel)
        found = disassemble(content, code.arch, kernel.entry)
        assert b"".join(i.encoding for i in found) == content
        assert [i.address for i in found] == list(accumulate((i.size for i in found[:-1]), initial=kernel.entry))
        assert not [i for i in found if i.text.startswith(".")]
        assert found[-1].text == "s_endpgm"
    assert "v_mfma_f32_16x16x4_f32" in {i.mnemonic for i in found}


def test_plain_and_scaled_matrix_instructions_after_any_neighbour():
    lines = [line for n in NEIGHBOURS for line in (n, PLAIN, n, SCALED)]
    content, base = assemble("gfx950", *lines)
    found = disassemble(content, "gfx950", base)
    assert [i.text for i in found] == lines
    assert {i.size for i in found if i.text == SCALED} == {16}
    assert {i.size for i in found if i.text == PLAIN} == {8}
    for i in found:
        alone = disassemble(content[i.address - base :], "gfx950", i.address)[0]
        assert (alone.text, alone.size) == (i.text, i.size)


def test_the_same_bytes_differ_between_chips():
    content, base = assemble("gfx950", PLAIN)
    assert disassemble(content, "gfx942", base)[0].text.startswith(".long")


def test_data_between_instructions():
    content = bytes.fromhex("000080bf ffffffff 000081bf ffffff")
    assert [(i.address, i.text) for i in disassemble(content, "gfx942", 0x100)] == [
        (0x100, "s_nop 0"),
        (0x104, ".long 0xffffffff"),
        (0x108, "s_endpgm"),
        (0x10C, ".byte 0xff, 0xff, 0xff"),
    ]
    assert disassemble(b"", "gfx942", 0) == ()


@pytest.mark.parametrize("half", ["ff7436b5", "000080bf"])  # LLVM crashes on the first, comments the second
def test_matrix_instructions_with_illegal_registers_are_data(half):
    found = disassemble(bytes.fromhex("000080bf 1482add3" + half + "000080bf 000081bf"), "gfx950", 0)
    assert [i.text for i in found[:2]] == ["s_nop 0", ".long 0xd3ad8214"]
    assert [i.text for i in found[-2:]] == ["s_nop 0", "s_endpgm"]


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_any_bytes_decode(arch):
    content = random.Random(7).randbytes(20_003)
    found = disassemble(content, arch, 0x1000)
    assert b"".join(i.encoding for i in found) == content
    assert [i.address for i in found] == list(accumulate((i.size for i in found[:-1]), initial=0x1000))


def test_an_unknown_chip_is_named():
    with pytest.raises(HkcUsageError, match="gfx000"):
        disassemble(b"\0\0\0\0", "gfx000", 0)


@pytest.mark.parametrize(
    ("text", "operands", "modifiers"),
    [
        ("s_endpgm", (), {}),
        ("s_waitcnt vmcnt(0) lgkmcnt(3)", (), {"vmcnt": "0", "lgkmcnt": "3"}),
        ("s_cbranch_scc1 65490", ("65490",), {}),
        ("buffer_wbl2 sc0 sc1", (), {"sc0": "", "sc1": ""}),
        ("v_mul_f32_e64 v0, |v1|, -v2 clamp mul:2", ("v0", "|v1|", "-v2"), {"clamp": "", "mul": "2"}),
        ("v_cmp_gt_f32_e64 s[0:1], -|v1|, 1.0", ("s[0:1]", "-|v1|", "1.0"), {}),
        (
            "buffer_load_dwordx4 v1, s[4:7], 0 offen offset:16 sc0 lds",
            ("v1", "s[4:7]", "0"),
            {"offen": "", "offset": "16", "sc0": "", "lds": ""},
        ),
        ("global_load_dword v1, v[2:3], off offset:-4 nt", ("v1", "v[2:3]", "off"), {"offset": "-4", "nt": ""}),
        ("ds_read2_b64 v[0:3], v1 offset0:1 offset1:2", ("v[0:3]", "v1"), {"offset0": "1", "offset1": "2"}),
        (
            "ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM, 0, 1, 2, 3)",
            ("v0", "v1"),
            {"offset": "swizzle(QUAD_PERM, 0, 1, 2, 3)"},
        ),
        (
            "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0x3 bound_ctrl:0",
            ("v0", "v1"),
            {"quad_perm": "[1,0,3,2]", "row_mask": "0xf", "bank_mask": "0x3", "bound_ctrl": "0"},
        ),
        ("v_add_f32_dpp v0, v1, v2 row_shr:1 row_mask:0xf", ("v0", "v1", "v2"), {"row_shr": "1", "row_mask": "0xf"}),
        (
            "v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD src0_sel:BYTE_1",
            ("v0", "sext(v1)", "v2"),
            {"dst_sel": "DWORD", "src0_sel": "BYTE_1"},
        ),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3", ("hwreg(HW_REG_MODE, 0, 4)", "3"), {}),
        (
            "v_mfma_f32_16x16x128_f8f6f4 a[0:3], v[4:11], v[12:19], a[0:3] cbsz:1 blgp:2",
            ("a[0:3]", "v[4:11]", "v[12:19]", "a[0:3]"),
            {"cbsz": "1", "blgp": "2"},
        ),
        (
            "v_pk_fma_f32 v[0:1], v[2:3], s[4:5], v[6:7] op_sel:[0,1,0] op_sel_hi:[0,1,1] neg_lo:[1,0,0]",
            ("v[0:1]", "v[2:3]", "s[4:5]", "v[6:7]"),
            {"op_sel": "[0,1,0]", "op_sel_hi": "[0,1,1]", "neg_lo": "[1,0,0]"},
        ),
        (".long 0xffffffff", ("0xffffffff",), {}),
    ],
)
def test_anatomy(text, operands, modifiers):
    instruction = one(text)
    assert instruction.mnemonic == text.split()[0]
    assert instruction.operands == operands
    assert dict(instruction.modifiers) == modifiers
