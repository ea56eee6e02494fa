"""Scalar instructions: results and the condition bit, by hand."""

import pytest
from emulated import CHIPS, Wave, assembled

# (line, s2 or s[2:3], s4 or s[4:5], result in s0 or s[0:1], condition bit or None)
Row = tuple[str, int, int, int, int | None]
ROWS: list[Row] = [
    ("s_add_u32 s0, s2, s4", 0xFFFFFFFF, 1, 0, 1),
    ("s_addc_u32 s0, s2, s4", 0xFFFFFFFF, 0, 0, 1),
    ("s_sub_u32 s0, s2, s4", 1, 2, 0xFFFFFFFF, 1),
    ("s_subb_u32 s0, s2, s4", 5, 2, 2, 0),
    ("s_add_i32 s0, s2, s4", 0x7FFFFFFF, 1, 0x80000000, 1),
    ("s_sub_i32 s0, s2, s4", 0x80000000, 1, 0x7FFFFFFF, 1),
    ("s_addk_i32 s0, 0xffff", 0, 0, 6, 0),
    ("s_mulk_i32 s0, 0xffff", 0, 0, -7 & 0xFFFFFFFF, None),
    ("s_mul_i32 s0, s2, s4", 0x10000, 0x10001, 0x10000, None),
    ("s_mul_hi_u32 s0, s2, s4", 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE, None),
    ("s_mul_hi_i32 s0, s2, s4", 0xFFFFFFFF, 2, 0xFFFFFFFF, None),
    ("s_abs_i32 s0, s2", 0xFFFFFFFB, 0, 5, 1),
    ("s_absdiff_i32 s0, s2, s4", 3, 0xFFFFFFFF, 4, 1),
    ("s_lshl2_add_u32 s0, s2, s4", 0x40000001, 3, 7, 1),
    ("s_min_i32 s0, s2, s4", 0xFFFFFFFF, 1, 0xFFFFFFFF, 1),
    ("s_max_u32 s0, s2, s4", 0xFFFFFFFF, 1, 0xFFFFFFFF, 1),
    ("s_cselect_b32 s0, s2, s4", 1, 2, 1, None),
    ("s_cselect_b64 s[0:1], s[2:3], s[4:5]", 1 << 40, 2, 1 << 40, None),
    ("s_mov_b64 s[0:1], -2", 0, 0, (1 << 64) - 2, None),
    ("s_mov_b64 s[0:1], 1.0", 0, 0, 0x3FF0000000000000, None),
    ("s_mov_b32 s0, 0.5", 0, 0, 0x3F000000, None),
    ("s_movk_i32 s0, 0x8000", 0, 0, 0xFFFF8000, None),
    ("s_and_b64 s[0:1], s[2:3], s[4:5]", 0xF0F0 << 32, 0xFF << 32, 0xF0 << 32, 1),
    ("s_andn2_b32 s0, s2, s4", 0xFF, 0x0F, 0xF0, 1),
    ("s_orn2_b32 s0, s2, s4", 0, 0xFFFFFFFF, 0, 0),
    ("s_nand_b32 s0, s2, s4", 0xFFFFFFFF, 0xFFFFFFFF, 0, 0),
    ("s_xnor_b64 s[0:1], s[2:3], s[4:5]", 5, 5, (1 << 64) - 1, 1),
    ("s_not_b32 s0, s2", 0xFFFFFFFF, 0, 0, 0),
    ("s_brev_b32 s0, s2", 1, 0, 0x80000000, None),
    ("s_brev_b64 s[0:1], s[2:3]", 1, 0, 1 << 63, None),
    ("s_bcnt1_i32_b64 s0, s[2:3]", (1 << 40) - 1, 0, 40, 1),
    ("s_bcnt0_i32_b32 s0, s2", 0xFFFFFFFF, 0, 0, 0),
    ("s_ff1_i32_b32 s0, s2", 0, 0, 0xFFFFFFFF, None),
    ("s_ff1_i32_b64 s0, s[2:3]", 1 << 35, 0, 35, None),
    ("s_ff0_i32_b32 s0, s2", 7, 0, 3, None),
    ("s_flbit_i32_b32 s0, s2", 1, 0, 31, None),
    ("s_flbit_i32_b64 s0, s[2:3]", 1, 0, 63, None),
    ("s_flbit_i32 s0, s2", 0xFFFFFFFE, 0, 31, None),
    ("s_wqm_b64 s[0:1], s[2:3]", 0x100000000000010, 0, 0xF000000000000F0, 1),
    ("s_quadmask_b64 s[0:1], s[2:3]", 0x100000000000010, 0, 0x4002, 1),
    ("s_bitreplicate_b64_b32 s[0:1], s2", 0x80000005, 0, 0xC000000000000033, None),
    ("s_lshl_b32 s0, s2, s4", 3, 33, 6, 1),
    ("s_lshr_b64 s[0:1], s[2:3], s4", 1 << 63, 63, 1, 1),
    ("s_ashr_i32 s0, s2, s4", 0x80000000, 31, 0xFFFFFFFF, 1),
    ("s_ashr_i64 s[0:1], s[2:3], s4", 1 << 63, 60, (1 << 64) - 8, 1),
    ("s_sext_i32_i8 s0, s2", 0x1FF, 0, 0xFFFFFFFF, None),
    ("s_sext_i32_i16 s0, s2", 0x18000, 0, 0xFFFF8000, None),
    ("s_bfe_u32 s0, s2, s4", 0x12345678, 0x80008, 0x56, 1),
    ("s_bfe_i32 s0, s2, s4", 0x12348678, 0x80008, 0xFFFFFF86, 1),
    ("s_bfe_i32 s0, s2, s4", 0x80000000, 0x8001C, 0xFFFFFFF8, 1),
    ("s_bfe_u64 s[0:1], s[2:3], s4", 0xABCDEF0123456789, 0x100030, 0xABCD, 1),
    ("s_bfe_i64 s[0:1], s[2:3], s4", 1 << 63, 0x10003F, (1 << 64) - 1, 1),
    ("s_bfe_u32 s0, s2, s4", 0xFFFFFFFF, 0, 0, 0),
    ("s_bfm_b32 s0, s2, s4", 4, 8, 0xF00, None),
    ("s_bfm_b64 s[0:1], s2, s4", 4, 40, 0xF << 40, None),
    ("s_bitset1_b32 s0, s2", 3, 0, 15, None),
    ("s_bitset0_b32 s0, s2", 1, 0, 5, None),
    ("s_pack_ll_b32_b16 s0, s2, s4", 0x12345678, 0x9ABCDEF0, 0xDEF05678, None),
    ("s_pack_lh_b32_b16 s0, s2, s4", 0x12345678, 0x9ABCDEF0, 0x9ABC5678, None),
    ("s_pack_hh_b32_b16 s0, s2, s4", 0x12345678, 0x9ABCDEF0, 0x9ABC1234, None),
    ("s_cmp_lt_i32 s2, s4", 0xFFFFFFFF, 1, 7, 1),
    ("s_cmp_lt_u32 s2, s4", 0xFFFFFFFF, 1, 7, 0),
    ("s_cmp_eq_u64 s[2:3], s[4:5]", 1 << 50, 1 << 50, 7, 1),
    ("s_cmpk_lt_i32 s2, 0xffff", 0xFFFFFFFE, 0, 7, 1),
    ("s_cmpk_gt_u32 s2, 0xffff", 0x10000, 0, 7, 1),
    ("s_bitcmp1_b32 s2, s4", 4, 34, 7, 1),
    ("s_bitcmp0_b64 s[2:3], s4", 1 << 40, 40, 7, 0),
    ("s_and_saveexec_b64 s[0:1], s[2:3]", 0xFF, 0, (1 << 64) - 1, 1),
    ("s_andn2_saveexec_b64 s[0:1], s[2:3]", 0xFF, 0, (1 << 64) - 1, 0),
    ("s_getreg_b32 s0, hwreg(HW_REG_MODE, 4, 4)", 0, 0, 0xF, None),
    ("s_cmov_b32 s0, s2", 9, 0, 9, None),
]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("number", range(len(ROWS)), ids=[f"{r[0].split()[0]}-{i}" for i, r in enumerate(ROWS)])
def test_bits_by_hand(arch: str, number: int) -> None:
    line, a, b, wanted, condition = ROWS[number]
    wave = Wave(arch)
    wave.pair(0, 7)
    wave.pair(2, a)
    wave.pair(4, b)
    wave.state.scc[:] = True
    wave.step(assembled(tuple(row[0] for row in ROWS), arch)[number])
    width = 64 if "s[0:1]" in line else 32
    found = wave.s(0) | (wave.s(1) << 32 if width == 64 else 0)
    assert hex(found) == hex(wanted)
    assert bool(wave.state.scc[0]) == (True if condition is None else bool(condition))


@pytest.mark.parametrize("arch", CHIPS)
def test_calls_and_jumps(arch: str) -> None:
    wave = Wave(arch)
    wave.run(
        "s_mov_b32 s0, 0", "s_call_b64 s[4:5], 3", "s_add_u32 s0, s0, 0x100", "s_branch 4",  # calls the line below
        "s_add_u32 s0, s0, 1", "s_getpc_b64 s[6:7]", "s_nop 0", "s_setpc_b64 s[4:5]", "s_mov_b32 s1, s0",
    )  # fmt: skip
    assert wave.s(1) == 0x101


@pytest.mark.parametrize("arch", CHIPS)
def test_waves_of_a_group_part_and_meet_again(arch: str) -> None:
    wave = Wave(arch, waves=4)
    wave.scalar(0, [0, 1, 2, 3])
    wave.scalar(1, 0)
    wave.run("s_cmp_lt_u32 s0, 2", "s_cbranch_scc1 2", "s_add_u32 s1, s1, 10", "s_branch 1", "s_add_u32 s1, s1, 1",
             "s_barrier", "s_add_u32 s1, s1, 100")  # fmt: skip
    assert wave.state.scalar[1].tolist() == [101, 101, 110, 110]
