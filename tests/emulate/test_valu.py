"""Vector instructions, one at a time: bits derived by hand from the ISA guides, and random operands against formulas.

In a table row the operands of lane i are the i-th case; sources are v1, v2, v3 (pairs: v[2:3], v[4:5], v[6:7])."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from emulated import CHIPS, NEVER, Wave, assembled

from hkc.support.errors import HkcError


def f(x: float) -> int:
    return int(np.array(x, np.float32).view(np.uint32))


def h(x: float) -> int:
    return int(np.array(x, np.float16).view(np.uint16))


INF, NAN, SNAN, TINY = 0x7F800000, 0x7FC00000, 0x7F800001, 0x00000001
ONE, TWO, MINUS = f(1), f(2), 1 << 31

Row = tuple[str, list[tuple[int, ...]]]
ROWS: list[Row] = [
    # floats: the default NaN is positive; zeros keep their signs; signalling NaNs come out quiet
    ("v_add_f32_e32 v0, v1, v2", [(INF, INF | MINUS, NAN), (ONE, ONE, TWO), (TINY, TINY, 2), (MINUS, MINUS, MINUS),
     (SNAN, ONE, 0x7FC00001)]),
    ("v_sub_f32_e32 v0, v1, v2", [(ONE, ONE, 0), (INF, INF, NAN), (f(3), ONE, TWO)]),
    ("v_subrev_f32_e32 v0, v1, v2", [(ONE, f(3), TWO)]),
    ("v_mul_f32_e32 v0, v1, v2", [(0, INF, NAN), (f(1.5), f(-2), f(-3)), (0x00800000, f(0.5), 0x00400000)]),
    ("v_mul_legacy_f32 v0, v1, v2", [(0, INF, 0), (TWO, f(3), f(6))]),
    ("v_mul_f32_e64 v0, v1, v2 clamp", [(TWO, TWO, ONE), (f(-2), TWO, 0), (NAN, ONE, 0), (f(0.5), ONE, f(0.5))]),
    ("v_add_f32_e64 v0, -|v1|, v2", [(TWO, ONE, f(-1)), (f(-2), ONE, f(-1))]),
    # a product that f64 arithmetic rounds twice: (1 + 2^-12)² + 2^-60 is just above the tie at 1 + 2^-11 + 2^-24
    ("v_fma_f32 v0, v1, v2, v3", [(f(1 + 2**-12), f(1 + 2**-12), f(2.0**-60), f(1 + 2**-11 + 2**-23)),
     (f(1 + 2**-12), f(1 + 2**-12), 0, f(1 + 2**-11))]),
    ("v_fmac_f32_e32 v0, v1, v2", [(TWO, f(3), f(6))]),
    ("v_fmamk_f32 v0, v1, 0x40000000, v2", [(f(3), ONE, f(7))]),
    ("v_fmaak_f32 v0, v1, v2, 0x40000000", [(f(3), ONE, f(5))]),
    ("v_min_f32_e32 v0, v1, v2", [(MINUS, 0, MINUS), (0, MINUS, MINUS), (NAN, ONE, ONE), (ONE, NAN, ONE),
     (SNAN, ONE, 0x7FC00001)]),
    ("v_max_f32_e32 v0, v1, v2", [(MINUS, 0, 0), (NAN, ONE, ONE), (TWO, ONE, TWO), (NAN, NAN, NAN)]),
    ("v_med3_f32 v0, v1, v2, v3", [(ONE, f(3), TWO, TWO), (f(3), TWO, ONE, TWO), (NAN, TWO, ONE, ONE)]),
    ("v_max3_f32 v0, v1, v2, v3", [(ONE, f(3), TWO, f(3)), (NAN, TWO, ONE, TWO)]),
    ("v_min3_f32 v0, v1, v2, v3", [(ONE, f(3), TWO, ONE)]),
    ("v_floor_f32_e32 v0, v1", [(f(-1.5), f(-2)), (f(1.5), ONE), (f(-0.0), MINUS)]),
    ("v_ceil_f32_e32 v0, v1", [(f(-0.5), MINUS), (f(1.5), TWO)]),
    ("v_trunc_f32_e32 v0, v1", [(f(-1.5), f(-1)), (f(-0.5), MINUS)]),
    ("v_rndne_f32_e32 v0, v1", [(f(0.5), 0), (f(1.5), TWO), (f(2.5), TWO), (f(-2.5), f(-2))]),
    ("v_fract_f32_e32 v0, v1", [(f(-0.25), f(0.75)), (f(-(2.0**-30)), 0x3F7FFFFF)]),
    ("v_ldexp_f32 v0, v1, v2", [(ONE, 3, f(8)), (ONE, -149 & 0xFFFFFFFF, TINY), (ONE, 400, INF)]),
    ("v_frexp_mant_f32_e32 v0, v1", [(f(6), f(0.75)), (INF, INF), (TINY, f(0.5))]),
    ("v_frexp_exp_i32_f32_e32 v0, v1", [(f(6), 3), (INF, 0), (0, 0), (TINY, -148 & 0xFFFFFFFF)]),
    ("v_rcp_f32_e32 v0, v1", [(f(4), f(0.25)), (0, INF), (MINUS, INF | MINUS), (INF, 0), (TINY, INF)]),
    ("v_rsq_f32_e32 v0, v1", [(f(4), f(0.5)), (0, INF), (f(-1), NAN)]),
    ("v_sqrt_f32_e32 v0, v1", [(f(9), f(3)), (f(-1), NAN)]),
    ("v_exp_f32_e32 v0, v1", [(f(3), f(8)), (f(-200), 0), (f(200), INF), (INF | MINUS, 0)]),
    ("v_log_f32_e32 v0, v1", [(f(8), f(3)), (0, INF | MINUS), (f(-1), NAN), (TINY, INF | MINUS)]),
    ("v_sin_f32_e32 v0, v1", [(f(0.25), ONE), (f(100.75), f(-1)), (INF, NAN)]),
    ("v_cos_f32_e32 v0, v1", [(0, ONE), (f(0.5), f(-1))]),
    ("v_div_fixup_f32 v0, v1, v2, v3", [(ONE, 0, ONE, INF), (ONE, 0, 0, NAN | MINUS), (ONE, INF, ONE, 0),
     (ONE, f(-1), INF, INF | MINUS)]),
    # conversions saturate; NaN is 0
    ("v_cvt_i32_f32_e32 v0, v1", [(f(-1.7), 0xFFFFFFFF), (f(3e9), 0x7FFFFFFF), (NAN, 0), (f(-3e9), 0x80000000)]),
    ("v_cvt_u32_f32_e32 v0, v1", [(f(-1), 0), (f(5e9), 0xFFFFFFFF), (f(2.9), 2)]),
    ("v_cvt_f32_i32_e32 v0, v1", [(0xFFFFFFFF, f(-1)), (16777217, f(16777216)), (16777219, f(16777220))]),
    ("v_cvt_f32_u32_e32 v0, v1", [(0xFFFFFFFF, f(2.0**32))]),
    ("v_cvt_f16_f32_e32 v0, v1", [(f(65519), h(65504)), (f(65520), h(math.inf)), (f(2.0**-25), 0),
     (f(1.5 * 2.0**-25), 1)]),
    ("v_cvt_f32_f16_e32 v0, v1", [(h(1.5), f(1.5)), (1, f(2.0**-24))]),
    ("v_cvt_pkrtz_f16_f32 v0, v1, v2", [(f(65519), f(-1.0009), h(-1) << 16 | h(65504)),
     (f(1e6), INF, h(math.inf) << 16 | h(65504))]),
    ("v_cvt_f32_ubyte2_e32 v0, v1", [(0x00FE0000, f(254))]),
    ("v_cvt_rpi_i32_f32_e32 v0, v1", [(f(0.5), 1), (f(-0.5), 0)]),
    ("v_cvt_flr_i32_f32_e32 v0, v1", [(f(-0.5), 0xFFFFFFFF)]),
    ("v_cvt_pk_u8_f32 v0, v1, v2, v3", [(f(300), 1, 0x11223344, 0x1122FF44), (f(2.5), 0, 0, 2)]),
    ("v_cvt_pk_i16_i32 v0, v1, v2", [(70000, -70000 & 0xFFFFFFFF, 0x80007FFF)]),
    ("v_cvt_pk_u16_u32 v0, v1, v2", [(70000, 5, 0x0005FFFF)]),
    ("v_cvt_pknorm_i16_f32 v0, v1, v2", [(ONE, f(-2), 0x80017FFF)]),
    # integers
    ("v_add_u32_e64 v0, v1, v2 clamp", [(0xFFFFFFFF, 2, 0xFFFFFFFF), (1, 2, 3)]),
    ("v_sub_u32_e64 v0, v1, v2 clamp", [(1, 2, 0), (5, 2, 3)]),
    ("v_add_i32 v0, v1, v2 clamp", [(0x7FFFFFFF, 1, 0x7FFFFFFF), (0x80000000, 0xFFFFFFFF, 0x80000000)]),
    ("v_mul_u32_u24_e32 v0, v1, v2", [(0x01000003, 2, 6)]),
    ("v_mul_i32_i24_e32 v0, v1, v2", [(0x00FFFFFF, 2, 0xFFFFFFFE)]),
    ("v_mad_i32_i24 v0, v1, v2, v3", [(0x00FFFFFF, 2, 5, 3)]),
    ("v_mul_hi_i32 v0, v1, v2", [(0xFFFFFFFF, 2, 0xFFFFFFFF)]),
    ("v_bfe_u32 v0, v1, v2, v3", [(0x12345678, 8, 8, 0x56), (0x12345678, 28, 8, 1), (7, 0, 0, 0)]),
    ("v_bfe_i32 v0, v1, v2, v3", [(0x12348678, 8, 8, 0xFFFFFF86), (0x80000000, 28, 8, 0xFFFFFFF8), (7, 0, 0, 0)]),
    ("v_bfi_b32 v0, v1, v2, v3", [(0x0000FFFF, 0x11112222, 0x33334444, 0x33332222)]),
    ("v_bfm_b32 v0, v1, v2", [(8, 4, 0xFF0)]),
    ("v_perm_b32 v0, v1, v2, v3", [(0x33221100, 0x77665544, 0x07060100, 0x33225544),
     (0x80000000, 0, 0x0D0C0B08, 0xFF00FF00)]),
    ("v_perm_b32 v0, v1, v2, s0", [(0x33221100, 0x77665544, 0x33225544), (1, 2, 2)]),
    ("v_alignbit_b32 v0, v1, v2, v3", [(0x1, 0x80000000, 31, 3)]),
    ("v_alignbyte_b32 v0, v1, v2, v3", [(0x44332211, 0x88776655, 1, 0x11887766)]),
    ("v_bcnt_u32_b32 v0, v1, v2", [(0xF0F, 10, 18)]),
    ("v_ffbl_b32_e32 v0, v1", [(0, 0xFFFFFFFF), (8, 3)]),
    ("v_ffbh_u32_e32 v0, v1", [(0, 0xFFFFFFFF), (1, 31), (0x80000000, 0)]),
    ("v_ffbh_i32_e32 v0, v1", [(0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFE, 31), (1, 31)]),
    ("v_bfrev_b32_e32 v0, v1", [(1, 0x80000000)]),
    ("v_sad_u8 v0, v1, v2, v3", [(0x01020304, 0x04030201, 10, 18)]),
    ("v_mbcnt_lo_u32_b32 v0, v1, v2", [(0xFFFFFFFF, 5, 5), (0xFFFFFFFF, 5, 6), (0xFFFFFFFF, 5, 7)]),
    ("v_med3_i32 v0, v1, v2, v3", [(0xFFFFFFFF, 5, 1, 1)]),
    # halves
    ("v_add_f16_e32 v0, v1, v2", [(h(1) | 0xABCD0000, h(2), h(3))]),
    ("v_fma_f16 v0, v1, v2, v3 op_sel:[0,1,0,1]", [(h(2), h(3) << 16, h(1), h(7) << 16 | 0xDEAD)]),
    ("v_sub_i16 v0, v1, v2 op_sel:[1,0,1]", [(0x00050000, 7, 0xFFFEDEAD)]),
    ("v_pack_b32_f16 v0, v1, v2", [(0x1234, 0x5678, 0x56781234)]),
    ("v_lshlrev_b16_e32 v0, v1, v2", [(4, 0xF00F, 0x00F0)]),
    ("v_ashrrev_i16_e32 v0, v1, v2", [(4, 0xF00F, 0xFF00)]),
    ("v_mul_lo_u16_e32 v0, v1, v2", [(0xFFFF, 2, 0xFFFE)]),
    ("v_mad_u16 v0, v1, v2, v3", [(3, 4, 5, 17 | 0x7FC00000)]),
    # packed
    ("v_pk_add_f16 v0, v1, v2", [(h(1) | h(2) << 16, h(3) | h(4) << 16, h(4) | h(6) << 16)]),
    ("v_pk_fma_f16 v0, v1, v2, v3 op_sel_hi:[0,1,1] neg_lo:[1,0,0]",
     [(h(2), h(3) | h(4) << 16, h(1) | h(1) << 16, h(-5) | h(9) << 16)]),
    ("v_pk_max_i16 v0, v1, v2", [(0xFFFF0001, 0x00010000, 0x00010001)]),
    ("v_pk_add_u16 v0, v1, v2 clamp", [(0xFFFF0001, 0x00010001, 0xFFFF0002)]),
    ("v_pk_lshlrev_b16 v0, v1, v2", [(0x00040008, 0x0F0F0F0F, 0xF0F00F00)]),
    ("v_pk_mul_lo_u16 v0, v1, v2 op_sel_hi:[1,0]", [(0x00030002, 0x00070005, 0x000F000A)]),
    ("v_fma_mix_f32 v0, v1, v2, v3 op_sel:[0,1,0] op_sel_hi:[1,1,0]", [(h(2), h(3) << 16, f(0.5), f(6.5))]),
    ("v_fma_mixhi_f16 v0, v1, v2, v3", [(f(2), f(3), f(0.5), h(6.5) << 16 | 0xDEAD)]),
    ("v_pk_fmac_f16 v0, v1, v2", [(h(2) | h(3) << 16, h(4) | h(5) << 16, h(8) | h(15) << 16)]),
    ("v_sad_u16 v0, v1, v2, v3", [(0x00050001, 0x00010004, 10, 17)]),
    ("v_dot2_f32_f16 v0, v1, v2, v3", [(h(2) | h(3) << 16, h(4) | h(5) << 16, ONE, f(24))]),
    ("v_dot4_i32_i8 v0, v1, v2, v3", [(0xFF010203, 0x02010101, 10, 14)]),
    ("v_dot8_u32_u4 v0, v1, v2, v3", [(0x11111111, 0x22222222, 1, 17)]),
    # SDWA
    ("v_add_u32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1",
     [(0x0000FF00, 0x00010000, 0x100)]),
    ("v_mov_b32_sdwa v0, sext(v1) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3", [(0x80000000, 0xFFFFFF80)]),
    ("v_and_b32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD",
     [(0xFF, 0x3C, NEVER & 0xFFFF00FF | 0x3C00)]),
    ("v_and_b32_sdwa v0, v1, v2 dst_sel:WORD_0 dst_unused:UNUSED_SEXT src0_sel:DWORD src1_sel:DWORD",
     [(0xFFFF, 0x8001, 0xFFFF8001)]),
    ("v_add_f16_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:WORD_0",
     [(h(2) << 16, h(3), h(5) << 16)]),
]  # fmt: skip

NEW_ROWS: list[Row] = [
    ("v_prng_b32_e32 v0, v1", [(0x80000001, 0xC7), (1, 2)]),
    ("v_bitop3_b32 v0, v1, v2, v3 bitop3:0xca", [(0x0000FFFF, 0x11112222, 0x33334444, 0x33332222)]),
    ("v_cvt_pk_bf16_f32 v0, v1, v2", [(f(1.00390625), f(-2), 0xC0003F80), (f(1.01171875), NAN, 0x7FC03F82)]),
    ("v_cvt_pk_f16_f32 v0, v1, v2", [(ONE, TWO, h(2) << 16 | h(1))]),
    ("v_maximum3_f32 v0, v1, v2, v3", [(ONE, NAN, TWO, NAN), (ONE, TWO, 0, TWO)]),
    ("v_minimum3_f32 v0, v1, v2, v3", [(ONE, MINUS, 0, MINUS)]),
    ("v_dot2_f32_bf16 v0, v1, v2, v3", [(0x40003F80, 0x40404000, ONE, f(9))]),
    ("v_ashr_pk_i8_i32 v0, v1, v2, v3", [(0x1000, 0xFFFFF000, 4, 0x7FC0807F)]),
]  # fmt: skip


def check(arch: str, rows: list[Row], number: int) -> None:
    line, cases = rows[number]
    wave = Wave(arch)
    columns = list(zip(*cases, strict=True))
    for i, column in enumerate(columns[:-1]):
        wave.vector(1 + i, np.resize(np.array(column, np.int64), 64))
    wave.scalar(0, 0x07060100)
    if "fmac" in line:
        wave.vector(0, np.zeros(64, np.int64))
    wave.step(assembled(tuple(row[0] for row in rows), arch)[number])
    found = wave.v(0)[: len(cases)]
    assert [f"{x:#010x}" for x in found] == [f"{x & 0xFFFFFFFF:#010x}" for x in columns[-1]]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("number", range(len(ROWS)), ids=[f"{r[0].split()[0]}-{i}" for i, r in enumerate(ROWS)])
def test_bits_by_hand(arch: str, number: int) -> None:
    check(arch, ROWS, number)


@pytest.mark.parametrize("number", range(len(NEW_ROWS)), ids=[r[0].split()[0] for r in NEW_ROWS])
def test_bits_by_hand_of_the_newer_chip(number: int) -> None:
    check("gfx950", NEW_ROWS, number)


@pytest.mark.parametrize("line", [line for line, _ in NEW_ROWS])
def test_the_older_chip_refuses_what_it_lacks(line: str) -> None:
    from hkc.emulate.decode import decode
    from hkc.emulate.isa import load
    from hkc.emulate.registry import Context, bind

    with pytest.raises(HkcError, match="gfx942 has no such instruction: 0x10: v_"):
        bind(decode(0x10, bytes(8), line), Context(0, load("gfx942")))


U = np.uint64
RANDOM: dict[str, Callable[..., Any]] = {
    "v_add_u32_e32 v0, v1, v2": lambda a, b, c: a + b,
    "v_sub_u32_e32 v0, v1, v2": lambda a, b, c: a - b,
    "v_subrev_u32_e32 v0, v1, v2": lambda a, b, c: b - a,
    "v_add3_u32 v0, v1, v2, v3": lambda a, b, c: a + b + c,
    "v_lshl_add_u32 v0, v1, v2, v3": lambda a, b, c: (a << b % 32) + c,
    "v_add_lshl_u32 v0, v1, v2, v3": lambda a, b, c: (a + b) << c % 32,
    "v_lshl_or_b32 v0, v1, v2, v3": lambda a, b, c: a << b % 32 | c,
    "v_and_or_b32 v0, v1, v2, v3": lambda a, b, c: a & b | c,
    "v_or3_b32 v0, v1, v2, v3": lambda a, b, c: a | b | c,
    "v_xad_u32 v0, v1, v2, v3": lambda a, b, c: (a ^ b) + c,
    "v_xnor_b32_e32 v0, v1, v2": lambda a, b, c: ~(a ^ b),
    "v_not_b32_e32 v0, v1": lambda a, b, c: ~a,
    "v_lshrrev_b32_e32 v0, v1, v2": lambda a, b, c: b >> a % 32,
    "v_ashrrev_i32_e32 v0, v1, v2": lambda a, b, c: signed(b) >> a % 32,
    "v_mul_lo_u32 v0, v1, v2": lambda a, b, c: a * b,
    "v_mul_hi_u32 v0, v1, v2": lambda a, b, c: a * b >> 32,
    "v_mul_hi_i32 v0, v1, v2": lambda a, b, c: signed(a) * signed(b) >> 32,
    "v_mad_u32_u24 v0, v1, v2, v3": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_max_i32_e32 v0, v1, v2": lambda a, b, c: max(signed(a), signed(b)),
    "v_min_u32_e32 v0, v1, v2": min,
    "v_max3_u32 v0, v1, v2, v3": max,
    "v_med3_u32 v0, v1, v2, v3": lambda a, b, c: sorted((a, b, c))[1],
}
RANDOM["v_min_u32_e32 v0, v1, v2"] = lambda a, b, c: min(a, b)


def signed(x: int) -> int:
    return x - (1 << 32) if x >> 31 else x


@pytest.mark.parametrize("arch", CHIPS)
def test_integer_instructions_on_random_operands(arch: str) -> None:
    rng = np.random.default_rng(11)
    for line, formula in RANDOM.items():
        a, b, c = rng.integers(0, 1 << 32, (3, 64))
        wave = Wave(arch)
        for i, values in enumerate((a, b, c)):
            wave.vector(1 + i, values)
        wave.run(line)
        wanted = [formula(int(x), int(y), int(z)) & 0xFFFFFFFF for x, y, z in zip(a, b, c, strict=True)]
        assert wave.v(0).tolist() == wanted, line


@pytest.mark.parametrize("arch", CHIPS)
def test_carries_and_wide_products(arch: str) -> None:
    rng = np.random.default_rng(5)
    a, b, c, d = (rng.integers(0, 1 << 32, 64) for _ in range(4))
    wave = Wave(arch)
    for i, values in enumerate((a, b, c, d)):
        wave.vector(4 + i, values)
    wave.run(
        "v_add_co_u32_e32 v0, vcc, v4, v6", "v_addc_co_u32_e32 v1, vcc, v5, v7, vcc",
        "v_sub_co_u32_e64 v2, s[2:3], v4, v6", "v_subb_co_u32_e64 v3, s[4:5], v5, v7, s[2:3]",
        "v_mad_u64_u32 v[10:11], s[6:7], v4, v5, v[6:7]", "v_lshlrev_b64 v[12:13], 5, v[4:5]",
        "v_lshl_add_u64 v[14:15], v[4:5], 3, v[6:7]", "v_cmp_lt_u64_e32 vcc, v[4:5], v[6:7]",
    )  # fmt: skip
    for i in range(64):
        x, y = (int(low[i]) | int(high[i]) << 32 for low, high in ((a, b), (c, d)))
        assert wide(wave, 0, i) == (x + y) % 2**64
        assert wide(wave, 2, i) == (x - y) % 2**64
        assert wave.s(4 + i // 32) >> i % 32 & 1 == (y > x)
        assert wide(wave, 10, i) == (int(a[i]) * int(b[i]) + y) % 2**64
        assert wave.s(6 + i // 32) >> i % 32 & 1 == (int(a[i]) * int(b[i]) + y >> 64)
        assert wide(wave, 12, i) == (x << 5) % 2**64
        assert wide(wave, 14, i) == ((x << 3) + y) % 2**64
        assert wave.s(106 + i // 32) >> i % 32 & 1 == (x < y)


def wide(wave: Wave, register: int, lane: int) -> int:
    return int(wave.v(register)[lane]) | int(wave.v(register + 1)[lane]) << 32


@pytest.mark.parametrize("arch", CHIPS)
def test_fused_multiply_add_is_rounded_once(arch: str) -> None:
    rng = np.random.default_rng(9)
    a, b = rng.standard_normal((2, 64)).astype(np.float32)
    c = (-(a.astype(np.float64) * b) * (1 + 2.0**-24 * rng.standard_normal(64))).astype(np.float32)
    x, y = rng.standard_normal((2, 64))
    z = -(x * y)
    wave = Wave(arch)
    for i, values in enumerate((a, b, c)):
        wave.vector(1 + i, values)
    for i, doubles in enumerate((x, y, z)):
        for j in range(2):
            wave.vector(10 + 2 * i + j, np.ascontiguousarray(doubles).view(np.uint32).reshape(64, 2)[:, j])
    wave.run("v_fma_f32 v0, v1, v2, v3", "v_fma_f64 v[4:5], v[10:11], v[12:13], v[14:15]")
    for i in range(64):
        exact = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
        assert wave.v(0, np.float32)[i] == np.float32(float(exact))  # so close to 0 that f64 holds it exactly
        double = Fraction(x[i]) * Fraction(y[i]) + Fraction(z[i])
        assert np.array(wide(wave, 4, i), np.uint64).view(np.float64) == float(double)


@pytest.mark.parametrize("arch", CHIPS)
def test_denormals_follow_the_mode_register(arch: str) -> None:
    wave = Wave(arch)
    wave.vector(1, np.full(64, 1, np.int64))
    wave.vector(2, np.full(64, 0x3C000001, np.int64))
    wave.run(
        "v_add_f32_e32 v3, v1, v1", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0", "v_add_f32_e32 v4, v1, v1",
        "v_add_f16_e32 v5, v1, v1", "v_mov_b32_e32 v6, v1", "v_mul_f32_e64 v7, v2, 1.0 mul:2",
    )  # fmt: skip
    assert wave.v(3)[0] == 2 and wave.v(4)[0] == 0 and wave.v(5)[0] == 2 and wave.v(6)[0] == 1
    assert wave.v(7)[0] == 0x3C800001


@pytest.mark.parametrize("arch", CHIPS)
def test_comparisons_give_0_for_inactive_lanes(arch: str) -> None:
    wave = Wave(arch)
    wave.vector(1, np.arange(64))
    wave.vector(2, np.where(np.arange(64) % 3 == 0, np.nan, 1).astype(np.float32))
    wave.active(0xFF00FF)
    wave.run(
        "v_cmp_gt_u32_e64 s[0:1], v1, 3", "v_cmp_u_f32_e32 vcc, v2, v2", "v_cndmask_b32_e64 v3, 0, 1, vcc",
        "s_movk_i32 s10, 0x100", "v_cmp_class_f32_e64 s[4:5], v2, s10", "v_cmp_nlt_f32_e64 s[6:7], v2, 2.0",
        "v_cmpx_eq_u32_e32 vcc, 17, v1", "s_mov_b64 s[8:9], exec",
    )  # fmt: skip
    assert wave.s(0) == 0xFF00F0 and wave.s(1) == 0
    thirds = sum(1 << i for i in range(0, 64, 3)) & 0xFF00FF
    assert wave.v(3)[:8].tolist() == [1, 0, 0, 1, 0, 0, 1, 0] and wave.v(3)[8] == 0x7FC0DEAD
    assert wave.s(4) == 0xFF00FF & ~thirds and wave.s(6) == thirds
    assert wave.s(8) == 1 << 17


def test_unknown_instructions_stop_with_name_address_and_bytes() -> None:
    from hkc.emulate.decode import decode
    from hkc.emulate.isa import load
    from hkc.emulate.registry import Context, bind

    with pytest.raises(
        HkcError, match=r"HK701.*unknown instruction at 0x40: v_frobnicate_b32 v0, v1 \(encoding 01 02 03 04\)"
    ):
        bind(decode(0x40, bytes([1, 2, 3, 4]), "v_frobnicate_b32 v0, v1"), Context(0, load("gfx950")))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("mnemonic", ["v_mad_u64_u32", "v_mad_i64_i32"])
def test_a_wide_sum_whose_upper_addend_is_undefined_has_a_defined_lower_word(arch: str, mnemonic: str) -> None:
    wave = Wave(arch)
    for register in (4, 5, 6):
        wave.vector(register, np.arange(64))
    wave.run(f"{mnemonic} v[10:11], s[6:7], v4, v5, v[6:7]", "v_readfirstlane_b32 s8, v10")
    assert wave.found == ()
    assert wave.v(10).tolist() == [i * i + i for i in range(64)]
    wave.run("v_readfirstlane_b32 s8, v11")
    assert [f.kind for f in wave.found] == ["uninitialised"]
