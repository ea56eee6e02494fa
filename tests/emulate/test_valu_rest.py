"""Vector instructions that the other tables leave out: bits by hand, or against correctly rounded formulas."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from emulated import CHIPS, NEVER, Wave

from examples import examples
from hkc.support.errors import HkcError

RNG = np.random.default_rng(21)


def f(x: float) -> int:
    return int(np.array(x, np.float32).view(np.uint32))


def h(x: float) -> int:
    return int(np.array(x, np.float16).view(np.uint16))


def doubles(wave: Wave, register: int, values: np.ndarray) -> None:
    raw = np.ascontiguousarray(values, np.float64).view(np.uint32).reshape(-1, 2)
    for i in (0, 1):
        wave.vector(register + i, raw[:, i])


def double(wave: Wave, register: int) -> np.ndarray:
    return np.stack([wave.v(register), wave.v(register + 1)], axis=-1).copy().view(np.float64)[:, 0]


HALVES = {
    "v_rcp_f16": lambda x: 1 / x, "v_rsq_f16": lambda x: 1 / np.sqrt(x), "v_sqrt_f16": np.sqrt, "v_exp_f16": np.exp2,
    "v_log_f16": np.log2, "v_sin_f16": lambda x: np.sin(2 * np.pi * x), "v_cos_f16": lambda x: np.cos(2 * np.pi * x),
}  # fmt: skip


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", HALVES)
def test_halves_are_correctly_rounded(arch: str, name: str) -> None:
    values = np.abs(RNG.standard_normal(64)).astype(np.float16)
    wave = Wave(arch)
    wave.vector(1, values.view(np.uint16))
    wave.run(f"{name}_e32 v0, v1")
    wanted = HALVES[name](values.astype(np.float64)).astype(np.float16)
    assert wave.v(0).tolist() == wanted.view(np.uint16).tolist()


@pytest.mark.parametrize("arch", CHIPS)
def test_approximations_of_f64_are_correctly_rounded(arch: str) -> None:
    values = np.abs(RNG.standard_normal(64)) + 0.1
    wave = Wave(arch)
    doubles(wave, 2, values)
    wave.run("v_rcp_f64_e32 v[4:5], v[2:3]", "v_sqrt_f64_e32 v[6:7], v[2:3]", "v_rsq_f64_e32 v[8:9], v[2:3]")
    np.testing.assert_array_equal(double(wave, 4), 1 / values)
    np.testing.assert_array_equal(double(wave, 6), np.sqrt(values))
    np.testing.assert_allclose(double(wave, 8), 1 / np.sqrt(values), rtol=2**-52)


@pytest.mark.parametrize("arch", CHIPS)
def test_bits_by_hand(arch: str) -> None:
    wave = Wave(arch)
    wave.vector(1, np.resize([f(4), 0x80000000, f(0.5)], 64))
    wave.vector(2, np.resize([8, 7, 15, 0], 64))
    doubles(wave, 4, np.resize([6.0, 0.0, -(2.0**-1074), math.inf], 64))
    doubles(wave, 6, np.resize([2.5, -0.3, 3.5, -2.5], 64))
    wave.vector(8, np.resize([h(6), 0, 1, h(math.inf)], 64))
    wave.vector(9, np.resize([h(2.5), h(-0.3), h(3.5), h(-1.5)], 64))
    wave.run("v_rcp_iflag_f32_e32 v20, v1", "v_log_legacy_f32_e32 v21, v1", "v_exp_legacy_f32_e32 v22, v1",
             "v_cvt_off_f32_i4_e32 v23, v2", "v_frexp_exp_i32_f64_e32 v24, v[4:5]", "v_rndne_f64_e32 v[26:27], v[6:7]",
             "v_frexp_exp_i16_f16_e32 v28, v8", "v_rndne_f16_e32 v29, v9")  # fmt: skip
    assert wave.v(20)[:3].tolist() == [f(0.25), 0xFF800000, f(2)]
    assert wave.v(21)[:3:2].tolist() == [f(2), f(-1)] and wave.v(22)[:2].tolist() == [f(16), f(1)]
    assert wave.v(23)[:4].tolist() == [f(-0.5), f(7 / 16), f(-1 / 16), 0]
    assert wave.v(24, np.int32)[:4].tolist() == [3, 0, -1073, 0]
    assert double(wave, 26)[:4].tolist() == [2, 0, 4, -2] and np.signbit(double(wave, 26)[1])
    assert wave.v(28)[:4].tolist() == [3, 0, -23 & 0xFFFF, 0]
    assert wave.v(29)[:4].tolist() == [h(2), 0x8000, h(4), h(-2)]


@pytest.mark.parametrize("arch", CHIPS)
def test_moves(arch: str) -> None:
    wave = Wave(arch)
    for i in range(1, 7):
        wave.vector(i, 10 * i + np.arange(64))
    wave.vector(7, np.full(64, f(3)))
    wave.vector(8, np.full(64, f(0.5)))
    wave.vector(10, np.full(64, 0xABCD0000))
    wave.run("v_swap_b32 v1, v2", "v_accvgpr_write_b32 a5, v3", "v_accvgpr_mov_b32 a6, a5",
             "v_accvgpr_read_b32 v20, a6", "v_pk_mov_b32 v[22:23], v[4:5], v[4:5] op_sel:[1,0]",
             "v_mbcnt_hi_u32_b32 v24, -1, v4",
             "v_fma_mixlo_f16 v10, v7, v8, v7", "v_div_fixup_legacy_f16 v26, v7, v8, v7")  # fmt: skip
    assert wave.v(1)[3] == 23 and wave.v(2)[3] == 13 and wave.v(20)[3] == 33
    assert (wave.v(22)[3], wave.v(23)[3]) == (53, 43)
    assert (wave.v(24)[31], wave.v(24)[32], wave.v(24)[63]) == (40 + 31, 40 + 32, 40 + 63 + 31)
    assert wave.v(10)[0] == 0xABCD0000 | h(4.5) and wave.v(26)[0] >> 16 == 0


def test_any_function_of_three_bits_in_16_bits() -> None:
    wave = Wave("gfx950")
    for i, value in enumerate((0xFF00FF, 0x0F0F0F0F, 0x33333333)):
        wave.vector(1 + i, np.full(64, value))
    wave.vector(0, np.full(64, NEVER))
    wave.run("v_bitop3_b16 v0, v1, v2, v3 bitop3:0x96")
    assert wave.v(0)[0] & 0xFFFF == (0xFF ^ 0x0F0F ^ 0x3333) & 0xFFFF


@pytest.mark.parametrize("arch", CHIPS)
def test_bf8_conversions(arch: str) -> None:
    kind = ml_dtypes.float8_e5m2fnuz if arch == "gfx942" else ml_dtypes.float8_e5m2
    codes = np.arange(64, dtype=np.uint8) * 2
    wave = Wave(arch)
    wave.vector(1, codes.astype(np.uint32) << 8 | codes[::-1])
    values = (RNG.standard_normal(64) * 20).astype(np.float32)
    wave.vector(2, values)
    wave.vector(5, np.zeros(64, np.int64))
    wave.vector(6, np.full(64, 0x11223344))
    wave.vector(7, np.full(64, 0xAABBCCDD))
    wave.run("v_cvt_f32_bf8_sdwa v3, v1 src0_sel:BYTE_1", "v_cvt_pk_f32_bf8_e32 v[10:11], v1",
             "v_cvt_pk_bf8_f32 v6, v2, v2",
             "v_cvt_sr_bf8_f32 v7, v2, v5 op_sel:[0,0,0,1]")  # fmt: skip
    wanted = codes.view(kind).astype(np.float32)
    np.testing.assert_array_equal(wave.v(3, np.float32), wanted)
    np.testing.assert_array_equal(wave.v(10, np.float32), wanted[::-1])
    np.testing.assert_array_equal(wave.v(11, np.float32), wanted)
    rounded = values.astype(kind).view(np.uint8).astype(np.uint32)
    assert (wave.v(6) == (0x11220000 | rounded << 8 | rounded)).all()
    down = (wave.v(7) >> 16 & 0xFF).astype(np.uint8).view(kind).astype(np.float32)  # no random bits: towards zero
    near = rounded.astype(np.uint8).view(kind).astype(np.float32)
    assert (np.abs(down) <= np.abs(values)).all() and (np.abs(near - down) <= np.abs(near) / 4).all()
    assert (wave.v(7) & 0xFF00FFFF == 0xAA00CCDD).all()


@pytest.mark.parametrize("arch", CHIPS)
def test_bits_of_two_over_pi(arch: str) -> None:
    wave = Wave(arch)
    doubles(wave, 2, np.resize([1.0, 2.0**100], 64))
    wave.run(*[f"v_trig_preop_f64 v[{10 + 2 * i}:{11 + 2 * i}], v[2:3], {i}" for i in range(3)])
    total = sum(Fraction(double(wave, 10 + 2 * i)[0]) for i in range(3))
    # 2 / pi to 60 digits (OEIS A060294)
    exact = Fraction(636619772367581343075535053490057448137838582961825794990669, 10**60)
    assert 0 <= exact - total < Fraction(1, 2**158)
    # an exponent of 100 leaves out the first 100 - 54 bits
    rest = exact * 2**46 % 1
    assert Fraction(double(wave, 10)[1]) == Fraction(rest * 2**53 // 1, 2 ** (53 + 46))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("kind", ("f32", "f64"))
def test_division_steps_give_correctly_rounded_quotients(arch: str, kind: str) -> None:
    """The sequence that compilers emit for a / b, on ordinary, huge, tiny and denormal operands."""
    single = kind == "f32"
    power = 120 if single else 900
    a = RNG.standard_normal(64) * 2.0 ** RNG.integers(-power, power, 64)
    b = RNG.standard_normal(64) * 2.0 ** RNG.integers(-power // 8, power // 8, 64)
    if not single:
        a[1::3] = RNG.standard_normal(21) * 2.0**-1010
        b[1::3] = RNG.standard_normal(21) * 2.0 ** RNG.integers(20, 60, 21)  # denormal quotients
    b[::3] = a[::3] * (1 + RNG.standard_normal(22)[: len(a[::3])] / 4)
    if single:
        a, b = a.astype(np.float32), b.astype(np.float32)
    wave = Wave(arch)
    r = (lambda n: f"v{n}") if single else (lambda n: f"v[{n}:{n + 1}]")
    for register, values in ((2, a), (4, b)):
        if single:
            wave.vector(register, values)
        else:
            doubles(wave, register, values)
    suffix = "_e32" if single else ""
    wave.run(
        f"v_div_scale_{kind} {r(6)}, s[0:1], {r(4)}, {r(4)}, {r(2)}",
        f"v_div_scale_{kind} {r(8)}, vcc, {r(2)}, {r(4)}, {r(2)}",
        f"v_rcp_{kind}_e32 {r(10)}, {r(6)}",
        f"v_fma_{kind} {r(12)}, -{r(6)}, {r(10)}, 1.0",
        f"v_fma_{kind} {r(10)}, {r(12)}, {r(10)}, {r(10)}",
        f"v_mul_{kind}{suffix} {r(14)}, {r(8)}, {r(10)}",
        f"v_fma_{kind} {r(16)}, -{r(6)}, {r(14)}, {r(8)}",
        f"v_fma_{kind} {r(14)}, {r(16)}, {r(10)}, {r(14)}",
        f"v_fma_{kind} {r(16)}, -{r(6)}, {r(14)}, {r(8)}",
        f"v_div_fmas_{kind} {r(14)}, {r(16)}, {r(10)}, {r(14)}",
        f"v_div_fixup_{kind} {r(18)}, {r(14)}, {r(4)}, {r(2)}",
    )
    found = wave.v(18, np.float32) if single else double(wave, 18)
    np.testing.assert_array_equal(found, a / b)


@pytest.mark.parametrize("arch", CHIPS)
def test_scale_of_a_division_by_hand(arch: str) -> None:
    """A quotient near the largest number: the denominator is scaled up by 2^64 and the flag set."""
    wave = Wave(arch)
    wave.vector(4, np.full(64, f(2.0**-60)))
    wave.vector(6, np.full(64, f(2.0**-60)))
    wave.vector(10, np.full(64, f(2.0**60)))
    wave.step(examples(arch)["v_div_scale_f32"])
    assert wave.v(8)[0] == f(16.0)


PAIRS = {
    "v_pk_add_f32 v[10:11], v[2:3], 1.0 op_sel_hi:[1,0]": (2 + 1, 3 + 1),
    "v_pk_mul_f32 v[10:11], -4.0, v[2:3] op_sel_hi:[0,1]": (-8, -12),
    "v_pk_mul_f32 v[10:11], -4.0, v[2:3] op_sel:[0,1] op_sel_hi:[0,0]": (-12, -8),
    "v_pk_fma_f32 v[10:11], v[2:3], 0.5, 2.0 op_sel_hi:[1,0,0] neg_lo:[0,0,1] neg_hi:[1,0,0]": (1 - 2, -1.5 + 2),
    "v_pk_add_f32 v[10:11], v[2:3], s[4:5]": (2 + 10, 3 + 20),
    "v_pk_add_f32 v[10:11], v[2:3], s[4:5] op_sel:[0,1] op_sel_hi:[1,0]": (2 + 20, 3 + 10),
    "v_pk_mul_f32 v[10:11], s[4:5], v[2:3] op_sel:[1,1] op_sel_hi:[1,1]": (20 * 3, 20 * 3),
    "v_pk_mov_b32 v[10:11], 1.0, 2.0": (1, 2),
    "v_pk_mov_b32 v[10:11], s[4:5], v[2:3] op_sel:[1,0]": (20, 2),
}


@pytest.mark.parametrize("arch", CHIPS)
def test_pairs_with_scalars_and_immediates(arch: str) -> None:
    """op_sel chooses the words of a scalar pair as of a vector pair; of an immediate there is a lower word only."""
    for line, wanted in PAIRS.items():
        wave = Wave(arch)
        for register, value in ((2, 2), (3, 3)):
            wave.vector(register, np.full(64, value, np.float32))
        for register, value in ((4, 10), (5, 20)):
            wave.scalar(register, np.float32(value))
        wave.run(line)
        assert (wave.v(10, np.float32)[0], wave.v(11, np.float32)[0]) == wanted, line
    for line in (
        "v_pk_add_f32 v[10:11], v[2:3], 1.0",
        "v_pk_mul_f32 v[10:11], 2.0, v[2:3] op_sel:[1,0] op_sel_hi:[0,1]",
    ):
        with pytest.raises(HkcError, match=r"HK702.*upper word of the immediate"):
            wave.run(line)
