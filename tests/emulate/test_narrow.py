"""8-, 6- and 4-bit floats: every bit pattern, and rounding, against ml_dtypes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from emulated import CHIPS, Wave

from hkc.emulate.narrow import FORMATS, round_stochastic, round_to

PEERS: dict[str, Any] = {
    "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f6e2m3": ml_dtypes.float6_e2m3fn, "f6e3m2": ml_dtypes.float6_e3m2fn,
    "f4e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
EIGHT = [name for name in PEERS if name.startswith("f8")]


@pytest.mark.parametrize("name", PEERS)
def test_every_bit_pattern(name: str) -> None:
    codes = np.arange(1 << FORMATS[name].bits, dtype=np.uint8)
    np.testing.assert_array_equal(FORMATS[name].values, codes.view(PEERS[name]).astype(np.float64))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", EIGHT)
def test_rounding_of_all_halves_and_of_random_floats(name: str) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 18, np.uint32).view(np.float32)
    near = (np.random.default_rng(1).standard_normal(1 << 16) * 100).astype(np.float32)
    values = np.concatenate([halves, bits, near])
    found = round_to(FORMATS[name], values.astype(np.float64), False)
    wanted = values.astype(PEERS[name]).view(np.uint8)
    numbers = ~np.isnan(values)
    np.testing.assert_array_equal(found[numbers], wanted[numbers])
    assert np.isnan(FORMATS[name].values[found[~numbers]]).all()


@pytest.mark.parametrize("name", EIGHT)
def test_saturation_and_stochastic_rounding(name: str) -> None:
    form = FORMATS[name]
    huge = np.array([1e6, -1e6, np.inf])
    assert form.values[round_to(form, huge, True)].tolist() == [form.largest, -form.largest, form.largest]
    third = np.full(1 << 12, 1 + 2.0**-form.fraction / 4, np.float32)
    seeds = np.random.default_rng(2).integers(0, 1 << 32, third.size, np.uint32)
    rounded = form.values[round_stochastic(form, third, seeds, False)]
    assert set(rounded.tolist()) == {1.0, 1 + 2.0**-form.fraction}
    assert abs((rounded > 1).mean() - 0.25) < 0.03


@pytest.mark.parametrize("arch", CHIPS)
def test_conversion_instructions_use_the_encoding_of_the_chip(arch: str) -> None:
    kind = ml_dtypes.float8_e4m3fnuz if arch == "gfx942" else ml_dtypes.float8_e4m3fn
    values = np.linspace(-300, 300, 64).astype(np.float32)
    wave = Wave(arch)
    wave.vector(1, values)
    wave.vector(0, np.full(64, 0x11223344))
    wave.run("v_cvt_pk_fp8_f32 v0, v1, 1.0 op_sel:[0,0,1]", "v_cvt_f32_fp8_sdwa v2, v0 src0_sel:BYTE_2",
             "v_cvt_pk_f32_fp8_sdwa v[4:5], v0 src0_sel:WORD_1")  # fmt: skip
    with np.errstate(all="ignore"):
        codes = values.astype(kind)
    assert (wave.v(0) & 0xFFFF == 0x3344).all()
    assert (wave.v(0) >> 16 & 255 == codes.view(np.uint8)).all()
    np.testing.assert_array_equal(wave.v(2, np.float32), codes.astype(np.float32))
    np.testing.assert_array_equal(wave.v(4, np.float32), codes.astype(np.float32))
    assert (wave.v(5, np.float32) == 1).all()


@pytest.mark.parametrize("arch", CHIPS)
def test_stochastic_conversions_write_the_chosen_byte(arch: str) -> None:
    wave = Wave(arch)
    wave.vector(0, np.full(64, 0x11223344))
    wave.vector(1, np.ones(64, np.float32))
    wave.vector(2, np.full(64, 0xFFFFFFFF))
    lines = [f"v_cvt_sr_fp8_f32 v0, v1, v2 op_sel:[0,0,{byte & 1},{byte >> 1}]" for byte in (1, 2)]
    wave.run(*lines)
    one = 0x40 if arch == "gfx942" else 0x38
    assert (wave.v(0) == 0x11000044 | one << 8 | one << 16).all()
