"""The mode register: rounding in four directions, denormals, IEEE and DX10 bits, overflow of 8-bit results."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from emulated import CHIPS, Wave

from hkc.support.errors import HkcError

RNG = np.random.default_rng(33)
DIRECTIONS = {0: "nearest", 1: "up", 2: "down", 3: "zero"}


def exactly(exact: Fraction, kind: Any, mode: int) -> Any:
    """Rounded by bracketing the exact value between neighbours of the format."""
    near = kind(float(exact))
    if not np.isfinite(near):
        near = np.copysign(np.finfo(kind).max, near)
    low = near if Fraction(float(near)) <= exact else np.nextafter(near, kind(-np.inf))
    high = low if Fraction(float(low)) == exact else np.nextafter(low, kind(np.inf))
    if mode == 0:
        below, above = exact - Fraction(float(low)), Fraction(float(high)) - exact if np.isfinite(high) else None
        assert above is not None
        if below == above:
            return low if np.array(low).view(np.uint16 if kind is np.float16 else np.uint32) % 2 == 0 else high
        return low if below < above else high
    return {1: high, 2: low, 3: low if exact > 0 else high}[mode]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("mode", DIRECTIONS)
@pytest.mark.parametrize("kind", ("f32", "f16"))
def test_arithmetic_rounds_as_the_mode_says(arch: str, mode: int, kind: str) -> None:
    dtype: Any = np.float32 if kind == "f32" else np.float16
    a, b, c = (RNG.standard_normal((3, 64)) * 2.0 ** RNG.integers(-6, 6, (3, 64))).astype(dtype)
    b[:4] = (np.finfo(dtype).tiny, -np.finfo(dtype).tiny, 1, -1)
    wave = Wave(arch)
    for i, values in enumerate((a, b, c)):
        raw = np.ascontiguousarray(values)
        wave.vector(1 + i, raw if kind == "f32" else raw.view(np.uint16))
    bit = 0 if kind == "f32" else 2
    wave.run(f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, {bit}, 2), {mode}", f"v_add_{kind}_e32 v10, v1, v2",
             f"v_sub_{kind}_e32 v11, v1, v2", f"v_mul_{kind}_e32 v12, v1, v2", f"v_fma_{kind} v13, v1, v2, v3",
             f"v_subrev_{kind}_e32 v14, v1, v2")  # fmt: skip
    for lane in range(64):
        x, y, z = (Fraction(float(values[lane])) for values in (a, b, c))
        for register, exact in ((10, x + y), (11, x - y), (12, x * y), (13, x * y + z), (14, y - x)):
            found = wave.v(register)[lane : lane + 1]
            value = found.view(np.float32)[0] if kind == "f32" else found.astype(np.uint16).view(np.float16)[0]
            assert value == exactly(exact, dtype, mode), (register, lane)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("mode", DIRECTIONS)
def test_conversions_round_as_the_mode_says(arch: str, mode: int) -> None:
    values = (RNG.standard_normal(64) * 2.0 ** RNG.integers(-20, 14, 64)).astype(np.float32)
    numbers = RNG.integers(-(1 << 31), 1 << 31, 64)
    wide = RNG.standard_normal(64)
    wave = Wave(arch)
    wave.vector(1, values)
    wave.vector(2, numbers)
    raw = wide.view(np.uint32).reshape(64, 2)
    wave.vector(4, raw[:, 0])
    wave.vector(5, raw[:, 1])
    wave.run(f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), {mode * 5}", "v_cvt_f16_f32_e32 v10, v1",
             "v_cvt_f32_i32_e32 v11, v2", "v_cvt_f32_f64_e32 v12, v[4:5]")  # fmt: skip
    for lane in range(64):
        half = wave.v(10)[lane : lane + 1].astype(np.uint16).view(np.float16)[0]
        assert half == exactly(Fraction(float(values[lane])), np.float16, mode)
        assert wave.v(11, np.float32)[lane] == exactly(Fraction(int(numbers[lane])), np.float32, mode)
        assert wave.v(12, np.float32)[lane] == exactly(Fraction(wide[lane]), np.float32, mode)


@pytest.mark.parametrize("arch", CHIPS)
def test_overflow_and_cancellation_in_directed_modes(arch: str) -> None:
    largest = np.finfo(np.float32).max
    wave = Wave(arch)
    wave.vector(1, np.resize(np.array([largest, -largest, 1], np.float32), 64))
    wave.vector(2, np.resize(np.array([largest, -largest, -1], np.float32), 64))
    lines = [f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), {n}; v_add_f32_e32 v{10 + n}, v1, v2" for n in range(4)]
    wave.run(*[part for line in lines for part in line.split("; ")])
    found = [wave.v(10 + n, np.float32)[:3].tolist() for n in range(4)]
    inf = float("inf")
    assert found == [[inf, -inf, 0], [inf, -largest, 0], [largest, -inf, 0], [largest, -largest, 0]]
    assert [bool(np.signbit(wave.v(10 + n, np.float32)[2])) for n in range(4)] == [False, False, True, False]


@pytest.mark.parametrize("arch", CHIPS)
def test_what_can_not_follow_a_mode_is_refused(arch: str) -> None:
    for line in ("v_add_f64 v[0:1], v[2:3], v[4:5]", "v_pk_add_f16 v0, v1, v2", "v_dot2_f32_f16 v0, v1, v2, v3"):
        with pytest.raises(HkcError, match=r"HK702.*rounding mode"):
            Wave(arch).run("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 5", line)
    wave = Wave(arch)
    wave.vector(1, np.full(64, 3.0, np.float32))
    wave.run("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 15", "v_max_f32_e32 v0, 2.0, v1", "v_floor_f32_e32 v2, v1")
    assert wave.v(0, np.float32)[0] == 3 and wave.v(2, np.float32)[0] == 3


@pytest.mark.parametrize("arch", CHIPS)
def test_signalling_nans_and_clamped_nans(arch: str) -> None:
    """IEEE: a signalling NaN wins in max, quieted; without it the number wins. DX10: clamp makes 0 of NaN."""
    wave = Wave(arch)
    wave.vector(1, np.full(64, 0x7F800001))
    wave.vector(2, np.full(64, 0x7FC00000))
    wave.run("v_max_f32_e32 v10, 1.0, v1", "v_add_f32_e64 v11, v2, v2 clamp",
             "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 2), 0", "v_max_f32_e32 v12, 1.0, v1",
             "v_add_f32_e64 v13, v2, v2 clamp")  # fmt: skip
    assert [int(wave.v(i)[0]) for i in (10, 11, 12, 13)] == [0x7FC00001, 0, 0x3F800000, 0x7FC00000]


@pytest.mark.parametrize("arch", CHIPS)
def test_8_bit_results_overflow_as_the_mode_says(arch: str) -> None:
    wave = Wave(arch)
    wave.vector(1, np.full(64, 1e6, np.float32))
    wave.vector(4, np.zeros(64, np.int64))
    wave.vector(5, np.zeros(64, np.int64))
    wave.run("v_cvt_pk_fp8_f32 v4, v1, -v1", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1",
             "v_cvt_pk_fp8_f32 v5, v1, -v1")  # fmt: skip
    old, fresh = int(wave.v(4)[0]), int(wave.v(5)[0])
    assert (old, fresh) == ((0x8080, 0xFF7F) if arch == "gfx942" else (0xFF7F, 0xFE7E))
