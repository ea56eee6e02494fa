"""Kernels written by hand in assembly, with the mistakes that hands make: each ends in a finding that names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hkc.support import worker

Command = Callable[..., Any]
pytestmark = pytest.mark.parametrize("arch", ["gfx942", "gfx950"])

TEXT = """
.text
.globl k
.p2align 8
.type k,@function
k:
{body}
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 16
  .amdhsa_accum_offset 8
  .amdhsa_group_segment_fixed_size 512
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{arch}
amdhsa.kernels:
  - {{.name: k, .symbol: k.kd, .kernarg_segment_size: 8, .group_segment_fixed_size: 512, .wavefront_size: 64,
     .private_segment_fixed_size: 0, .kernarg_segment_align: 8, .sgpr_count: 16, .vgpr_count: 8,
     .max_flat_workgroup_size: 128,
     .args: [{{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}}]}}
...
.end_amdgpu_metadata
"""
EXCHANGE = """  v_lshlrev_b32_e32 v1, 2, v0
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  {barrier}
  v_xor_b32_e32 v2, 0x100, v1
  ds_read_b32 v3, v2
  s_load_dwordx2 s[2:3], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v3, s[2:3]"""
"""The two waves of a workgroup exchange their numbers through LDS."""


def assembled(body: str, arch: str) -> Path:
    lines = TEXT.format(body=body, arch=arch).splitlines()
    ir = "\n".join(f'module asm "{line}"' for line in lines)
    path = Path("k.hsaco")
    path.write_bytes(worker.call("hkc.backend.codegen:generate", ir, arch).hsaco)
    return path


def test_a_race(hkc: Command, arch: str) -> None:
    ran = hkc("emulate", assembled(EXCHANGE.format(barrier="s_nop 0"), arch), "--args", "u32[128]", "--check")
    assert ran.code == 1 and ran.err.count("error[") == 1
    assert "error[HK723]: lds race: LDS byte 0x100 is read, and was written by wave 1: there is no barrier" in ran.err
    assert ": ds_read_b32 v3, v2 (wave 0" in ran.err and ": ds_write_b32 v1, v0 (wave 1)" in ran.err
    ran = hkc("emulate", assembled(EXCHANGE.format(barrier="s_barrier"), arch), "--args", "u32[128]", "--check")
    assert (ran.code, ran.err) == (0, "")


def test_a_loop_without_end(hkc: Command, arch: str) -> None:
    loop = "  s_mov_b32 s4, 0\nL:\n  s_add_u32 s4, s4, 1\n  s_branch L"
    words = ("emulate", assembled(loop, arch), "--args", "u32[128]", "--limit", 5000)
    for more in ((), ("--check",)):
        ran = hkc(*words, *more)
        assert ran.code == 1 and ran.err.count("error[HK709]: ") == ran.err.count("error[") == 1
        assert "the program runs for too long; most of the time goes by from " in ran.err
        assert ": s_add_u32 s4, s4, 1 to " in ran.err


def test_the_wrong_kind_of_file(hkc: Command, arch: str) -> None:
    """A source where machine code is wanted, and the other way round."""
    path = assembled("  s_nop 0", arch)
    ran = hkc("check", path)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "error[HK121]: `k.hsaco` is a binary file, not a kernel\n"
        "hint: `hkc emulate k.hsaco --check` is for machine code\n"
    )
    Path("k.hk").write_text("kernel k():\n")
    ran = hkc("emulate", "k.hk")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "error[HK601]: not an ELF file: it begins with 6b 65 72 6e 65 6c 20 6b\n"
        "hint: name a code object: a .hsaco file\n"
    )
