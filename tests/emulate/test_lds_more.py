"""Rarer LDS instructions, lane by lane against plain Python over a dictionary of words."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulated import CHIPS, Wave

from hkc.emulate.narrow import unpack_bits

MASK = 0xFFFFFFFF
RNG = np.random.default_rng(4)
WORDS = RNG.integers(0, 1 << 32, (4, 64))


def f32(bits: int) -> float:
    return float(np.array(bits, np.uint32).view(np.float32))


ATOMICS: dict[str, Callable[[int, int, int], int]] = {
    "ds_mskor_rtn_b32": lambda old, a, b: old & ~a | b,
    "ds_cmpst_rtn_f32": lambda old, a, b: b if f32(old) == f32(a) else old,
    "ds_wrap_rtn_b32": lambda old, a, b: old - a if old >= a else old + b,
}


def filled(arch: str, contents: Any) -> Wave:
    """A wave whose LDS starts with `contents`, whose v0 holds 4 · lane, v10 to v13 random words."""
    wave = Wave(arch, lds=4096)
    wave.state.lds.fill(0, np.ascontiguousarray(contents).astype(np.uint32).ravel().view(np.uint8))
    wave.vector(0, 4 * np.arange(64))
    for i in range(4):
        wave.vector(10 + i, WORDS[i])
    return wave


def lds(wave: Wave, count: int) -> list[int]:
    return wave.state.lds.data[: 4 * count].view(np.uint32).tolist()


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_with_two_operands(name: str, arch: str) -> None:
    start = WORDS[3].copy()
    start[::3] = WORDS[0][::3]
    start[6] = 0x80000000
    wave = filled(arch, start)
    first = WORDS[0].copy()
    first[6] = 0  # as floats, -0 equals +0
    wave.vector(10, first)
    wave.run(f"{name} v20, v0, v10, v11")
    wanted = [ATOMICS[name](int(o), int(a), int(b)) & MASK for o, a, b in zip(start, first, WORDS[1], strict=True)]
    assert lds(wave, 64) == wanted and wave.v(20).tolist() == start.tolist()
    if name != "ds_wrap_rtn_b32":
        again = filled(arch, start)
        again.vector(10, first)
        assert lds(again.run(f"{name.replace('_rtn', '')} v0, v10, v11"), 64) == wanted


@pytest.mark.parametrize("arch", CHIPS)
def test_wide_forms_of_atomics_with_two_operands(arch: str) -> None:
    old = RNG.integers(0, 1 << 32, (64, 2))
    wave = filled(arch, old)
    wave.vector(0, 8 * np.arange(64))
    wave.run("ds_mskor_rtn_b64 v[20:21], v0, v[10:11], v[12:13]")
    new = [[int(o[i]) & ~int(WORDS[i][n]) & MASK | int(WORDS[2 + i][n]) for i in (0, 1)] for n, o in enumerate(old)]
    assert np.reshape(lds(wave, 128), (64, 2)).tolist() == new
    doubles = np.resize([1.0, -0.0, np.nan, 3.5], 64)
    wave = filled(arch, doubles.view(np.uint32))
    wave.vector(0, 8 * np.arange(64))
    for i, values in enumerate((np.resize([1.0, 0.0, np.nan, 3.25], 64), np.full(64, 7.0))):
        for half in (0, 1):
            wave.vector(30 + 2 * i + half, values.view(np.uint32)[half::2])
    wave.run("ds_cmpst_f64 v0, v[30:31], v[32:33]")
    after = wave.state.lds.data[:32].view(np.float64)
    assert after[:2].tolist() == [7.0, 7.0] and np.isnan(after[2]) and after[3] == 3.5
    wave = filled(arch, doubles.view(np.uint32))
    wave.vector(0, 8 * np.arange(64))
    wave.run("ds_mskor_b64 v0, v[10:11], v[12:13]", "ds_cmpst_rtn_f64 v[20:21], v0, v[10:11], v[12:13]")
    low = int(doubles.view(np.uint32)[0]) & ~int(WORDS[0][0]) & MASK | int(WORDS[2][0])
    assert wave.v(20)[0] == low


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("wide", (False, True))
@pytest.mark.parametrize("step", ("", "st64"))
def test_exchanges_of_pairs(arch: str, wide: bool, step: str) -> None:
    """Each lane swaps at its own element and at the one `far` elements on."""
    size, far = (2 if wide else 1), (64 if step else 1)
    wave = filled(arch, np.arange(1000, 2000))
    place = np.arange(64) * size * (1 if step else 2)
    wave.vector(0, 4 * place)
    target, data, kind = ("v[20:23]", "v[10:11], v[12:13]", "b64") if wide else ("v[20:21]", "v10, v12", "b32")
    wave.run(f"ds_wrxchg2{step}_rtn_{kind} {target}, v0, {data} offset0:1")
    words = np.array(lds(wave, 1000))
    for part in range(size):
        assert wave.v(20 + part).tolist() == (1000 + place + size * far + part).tolist()
        assert wave.v(20 + size + part).tolist() == (1000 + place + part).tolist()
        assert words[place + size * far + part].tolist() == WORDS[part].tolist()
        assert words[place + part].tolist() == WORDS[2 + part].tolist()


@pytest.mark.parametrize("arch", CHIPS)
def test_conditional_exchange(arch: str) -> None:
    old = np.arange(128)
    wave = filled(arch, old)
    wave.vector(0, 8 * np.arange(64))
    wave.vector(10, np.resize([0x80000055, 0x55], 64))
    wave.vector(11, np.resize([0x66, 0x80000066], 64))
    wave.run("ds_condxchg32_rtn_b64 v[20:21], v0, v[10:11]")
    assert lds(wave, 4) == [0x55, 1, 2, 0x66] and wave.v(20)[:2].tolist() == [0, 2] and wave.v(21)[1] == 3


@pytest.mark.parametrize("arch", CHIPS)
def test_counters_and_lane_addresses(arch: str) -> None:
    wave = filled(arch, np.arange(256))
    wave.scalar(124, 0x8)
    wave.active(0xFF0F)
    wave.run("ds_append v20 offset:4", "s_waitcnt lgkmcnt(0)", "ds_consume v21 offset:4", "s_waitcnt lgkmcnt(0)",
             "ds_append v22 offset:4", "ds_read_addtid_b32 v23 offset:256", "ds_write_addtid_b32 v10 offset:512",
             "ds_nop")  # fmt: skip
    assert wave.v(20)[0] == 3 and wave.v(21)[15] == 15 and wave.v(22)[0] == 3 and lds(wave, 4)[3] == 15
    assert wave.v(20)[4] == 0x7FC0DEAD
    assert wave.v(23)[:4].tolist() == [66, 67, 68, 69]
    assert lds(wave, 256)[130 + 9] == WORDS[0][9] and lds(wave, 256)[130 + 5] == 135


def test_transposed_read_of_6_bits() -> None:
    """Lane l's element n is element l % 16 of what lane n of its group of 16 points at."""
    raw = RNG.integers(0, 1 << 32, (64, 4))
    wave = filled("gfx950", raw)
    wave.vector(0, 16 * np.arange(64))
    wave.run("ds_read_b96_tr_b6 v[20:22], v0")
    source = unpack_bits(np.ascontiguousarray(raw[:, :3].astype(np.uint32)), 6)
    found = unpack_bits(np.stack([wave.v(20 + i) for i in range(3)], axis=-1), 6)
    for lane in range(64):
        assert found[lane].tolist() == [source[lane // 16 * 16 + n][lane % 16] for n in range(16)]


def test_transposed_read_of_4_bits() -> None:
    """As with 6 bits: 16 lanes hold 16 x 16 elements (what AMD's test of rocRoller finds on the chip)."""
    raw = RNG.integers(0, 1 << 32, (64, 2))
    wave = filled("gfx950", raw)
    wave.vector(0, 8 * np.arange(64))
    wave.run("ds_read_b64_tr_b4 v[20:21], v0")
    source = unpack_bits(np.ascontiguousarray(raw.astype(np.uint32)), 4)
    found = unpack_bits(np.stack([wave.v(20 + i) for i in range(2)], axis=-1), 4)
    for lane in range(64):
        assert found[lane].tolist() == [source[lane // 16 * 16 + n][lane % 16] for n in range(16)]
