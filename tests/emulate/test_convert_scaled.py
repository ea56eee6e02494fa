"""Scaled conversions and stochastic rounding against ml_dtypes and exact arithmetic."""

import re
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from emulated import Wave

from hkc.emulate.decode import decode
from hkc.emulate.registry import table

SMALL: dict[str, Any] = {
    "fp8": (ml_dtypes.float8_e4m3fn, 8), "bf8": (ml_dtypes.float8_e5m2, 8), "fp6": (ml_dtypes.float6_e2m3fn, 6),
    "bf6": (ml_dtypes.float6_e3m2fn, 6), "fp4": (ml_dtypes.float4_e2m1fn, 4),
}  # fmt: skip
WIDE: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
FRACTION = {"f32": 23, "f16": 10, "bf16": 7, "fp8": 3, "bf8": 2, "fp6": 3, "bf6": 2, "fp4": 1}
LEAST = {"fp8": -6, "bf8": -14, "fp6": 0, "bf6": -2, "fp4": 0}
LARGEST = {"fp8": 448.0, "bf8": 57344.0, "fp6": 7.5, "bf6": 28.0, "fp4": 6.0}
NAMES = sorted(name for name in table() if name.startswith("v_cvt_scalef32_"))
TO_SMALL = [n for n in NAMES if re.search(r"_(f32|f16|bf16)$", n)]
FROM_SMALL = [n for n in NAMES if n not in TO_SMALL]
KEPT = 0x5A5A5A5A


def random_wide(kind: str, count: int, spread: int) -> np.ndarray:
    rng = np.random.default_rng(count + spread)
    values = rng.standard_normal((count, 64)) * 2.0 ** rng.integers(-spread, spread, (count, 64))
    values[0, :4] = (0.0, -0.0, np.inf, np.nan)
    values[-1, 5:8] = (1e30, -1e30, 2.0**-130)
    with np.errstate(over="ignore"):
        return values.astype(WIDE[kind])


def registers(values: np.ndarray) -> np.ndarray:
    """[elements, lanes] as words [words, lanes]."""
    flat = np.ascontiguousarray(values.T)
    if flat.dtype.itemsize == 2 and flat.shape[1] == 1:
        return flat.view(np.uint16).astype(np.uint32).T
    return flat.view(np.uint32).T


def rounded(value: float, small: str) -> int:
    """The code of a value of the small format: to nearest even, NaN where it is too large for 8 bits."""
    dtype, bits = SMALL[small]
    if small in ("fp8", "bf8"):
        return int(np.array(value).astype(dtype).view(np.uint8))
    if np.isnan(value):
        return (1 << bits - 1) - 1 | int(np.signbit(value)) << bits - 1
    return int(np.clip(np.array(value), -LARGEST[small], LARGEST[small]).astype(dtype).view(np.uint8))


def stochastic(value: float, seed: int, wide: str, small: str) -> int:
    """Exactly: the seed's upper bits added below the kept fraction, then cut."""
    if not np.isfinite(value):
        return rounded(value, small)
    exact = abs(Fraction(value))
    dropped = FRACTION[wide] - FRACTION[small]
    exponent = max(LEAST[small], int(np.frexp(value)[1]) - 1 if value else LEAST[small])
    unit = Fraction(2) ** (exponent - FRACTION[small])
    cut = (exact / unit + Fraction(seed >> 32 - dropped, 1 << dropped)) // 1 * unit
    return rounded(float(np.copysign(float(cut), value)), small)


def step_prng(seed: int) -> int:
    return (seed << 1 & 0xFFFFFFFF) ^ (0xC5 if seed >> 31 else 0)


def parts(name: str) -> tuple[bool, int, str, str]:
    pack = re.match(r"v_cvt_scalef32_(sr_)?(?:(2xpk16|pk32|pk)_)?([a-z]+\d+)_([a-z]+\d+)$", name)
    assert pack
    return bool(pack[1]), {"2xpk16": 32, "pk32": 32, "pk": 2, None: 1}[pack[2]], pack[3], pack[4]


def fields(wave: Wave, bits: int, count: int, place: int, lane: int) -> list[int]:
    whole = sum(int(wave.v(100 + i)[lane]) << 32 * i for i in range(6))
    return [whole >> place + i * bits & (1 << bits) - 1 for i in range(count)]


@pytest.mark.parametrize("name", TO_SMALL)
@pytest.mark.parametrize("selection", (0, 2, 3))
def test_to_small(name: str, selection: int) -> None:
    sr, count, small, wide = parts(name)
    bits = SMALL[small][1]
    width = bits * count
    if selection and (width > 32 or (width == 16 and selection == 3)):
        pytest.skip("nothing to select")
    values = random_wide(wide, max(count, 1), 9)
    scale = np.ldexp(np.float32(1.5), np.arange(64) % 9 - 4).astype(np.float32)
    seeds = np.random.default_rng(1).integers(0, 1 << 32, 64)
    wave = Wave("gfx950")
    for i in range(6):
        wave.vector(100 + i, np.full(64, KEPT))
    split = "2xpk16" in name or (wide == "f32" and count == 2 and not sr)
    runs = [values[0::2], values[1::2]] if split else [values]
    operands = []
    for n, run in enumerate(runs):
        words = registers(run)
        for i, word in enumerate(words):
            wave.vector(32 * n + i, word)
        operands.append(f"v[{32 * n}:{32 * n + len(words) - 1}]" if len(words) > 1 else f"v{32 * n}")
    if sr:
        wave.vector(90, seeds)
        operands.append("v90")
    wave.vector(91, scale)
    target = "v[100:105]" if width > 32 else "v100"
    chosen = (8 if selection else 0) if width == 16 else selection << 2
    code = bytes([100, chosen << 3, 0, 0xD2, 0, 0, 0, 0])
    wave.step(decode(0, code, f"{name} {target}, {', '.join(operands)}, v91"))
    place = 16 * bool(selection) if width == 16 else 8 * selection if width == 8 else 0
    for lane in range(64):
        seed, wanted = int(seeds[lane]), []
        for value in values[:count, lane].astype(np.float64) * 2.0 ** (4 - lane % 9):
            wanted.append(stochastic(value, seed, wide, small) if sr else rounded(value, small))
            seed = step_prng(seed)
        assert fields(wave, bits, count, place, lane) == wanted, lane
        if width < 32:
            outside = ~(((1 << width) - 1) << place) & 0xFFFFFFFF
            assert int(wave.v(100)[lane]) & outside == KEPT & outside


@pytest.mark.parametrize("name", FROM_SMALL)
def test_from_small(name: str) -> None:
    _, count, wide, small = parts(name)
    dtype, bits = SMALL[small]
    rng = np.random.default_rng(3)
    whole = rng.integers(0, 1 << 32, (6, 64))
    scale = np.ldexp(np.float32(1), np.resize([-126, -20, 0, 3, 9, 127], 64)).astype(np.float32)
    width = bits * count
    for selection in (0,) if width > 32 else (0, 1) if width == 16 else (0, 1, 2, 3):
        wave = Wave("gfx950")
        for i in range(6):
            wave.vector(i, whole[i])
        wave.vector(91, scale)
        total = count * (4 if wide == "f32" else 2) // 4 or 1
        target = f"v[100:{99 + total}]" if total > 1 else "v100"
        operand = "v[0:5]" if width > 32 else "v0"
        wave.vector(100, np.full(64, KEPT))
        code = bytes([100, selection << 3, 0, 0xD2, 0, 0, 0, 0])
        wave.step(decode(0, code, f"{name} {target}, {operand}, v91"))
        place = 0 if width > 32 else selection * max(width, 8)
        for lane in range(64):
            value = sum(int(whole[i, lane]) << 32 * i for i in range(6)) >> place
            codes = np.array([value >> i * bits & (1 << bits) - 1 for i in range(count)], np.uint8)
            with np.errstate(over="ignore"):
                wanted = (codes.view(dtype).astype(np.float64) * float(scale[lane])).astype(WIDE[wide])
            found = np.array([int(wave.v(100 + i)[lane]) for i in range(total)], np.uint32).view(WIDE[wide])[:count]
            assert np.array_equal(found.astype(np.float64), wanted.astype(np.float64), equal_nan=True), lane


def test_a_scale_of_all_ones_is_nan() -> None:
    wave = Wave("gfx950")
    wave.vector(0, np.full(64, 0x3838))
    wave.vector(1, np.full(64, 0x7F800000))
    wave.run("v_cvt_scalef32_pk_f32_fp8 v[2:3], v0, v1", "v_cvt_scalef32_pk_fp8_f32 v4, v0, v0, v1")
    assert np.isnan(wave.v(2, np.float32)).all() and wave.v(4)[0] & 0x7F7F == 0x7F7F


def test_16_bit_results_of_stochastic_rounding() -> None:
    """1 + 3/4 of a bf16 step: up where the seed's upper 16 bits reach a quarter. 1 + 1/2 of an f16 step likewise."""
    wave = Wave("gfx950")
    wave.vector(0, np.full(64, 0x3F80C000))
    wave.vector(1, np.resize([0, 0x3FFFFFFF, 0x40000000, 0xFFFFFFFF], 64))
    wave.vector(4, np.full(64, 0x3F801000))
    wave.vector(5, np.resize([0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], 64))
    for register in (2, 3, 6):
        wave.vector(register, np.full(64, KEPT))
    wave.run(
        "v_cvt_sr_bf16_f32 v2, v0, v1", "v_cvt_sr_bf16_f32 v3, v0, v1 op_sel:[0,0,1]", "v_cvt_sr_f16_f32 v6, v4, v5"
    )
    assert wave.v(2)[:4].tolist() == [0x5A5A3F80, 0x5A5A3F80, 0x5A5A3F81, 0x5A5A3F81]
    assert wave.v(3)[:4].tolist() == [0x3F805A5A, 0x3F805A5A, 0x3F815A5A, 0x3F815A5A]
    assert wave.v(6)[:4].tolist() == [0x5A5A3C00, 0x5A5A3C00, 0x5A5A3C01, 0x5A5A3C01]
