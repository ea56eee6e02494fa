"""Casts, exhaustively where that is possible: the oracle is NumPy with ml_dtypes, or bits written down by hand."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from contract import CHIPS
from program import along, bits

from hkc.frontend.check import check
from hkc.frontend.parse import parse
from hkc.support import worker
from hkc.support.dtypes import DTYPES
from hkc.support.errors import Source
from hkc.targets.chip import load

EIGHT = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
SMALL = ("f6e2m3", "f6e3m2", "f4e2m1")
LONG = pytest.mark.long
CAST = '%r = "hkc_tile.cast"(%x0) {{{{{}}}}} : ({{x0}}) -> {{r}}'


def kind(name: str) -> Any:
    return DTYPES[name].numpy


def cast(arch: str, x: Any, name: str, words: str = "") -> Any:
    return along(arch, CAST.format(words), kind(name), x)


def codes(name: str) -> Any:
    return np.arange(2 ** DTYPES[name].bits, dtype=np.uint8).view(kind(name))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("wide", ["f32", *(pytest.param(n, marks=LONG) for n in ("f16", "bf16", "f64"))])
@pytest.mark.parametrize("name", [*EIGHT, *SMALL, "e8m0"])
def test_every_code_is_decoded(name: str, wide: str, arch: str) -> None:
    found = cast(arch, codes(name), wide)
    with np.errstate(all="ignore"):
        wanted = codes(name).astype(np.float32).astype(kind(wide))
    np.testing.assert_array_equal(bits(found), bits(wanted))


ANCHORS = {0x38: (1, 0.5, 0.5, 0.25), 0x7F: (np.nan, 240, np.nan, 57344), 0x80: (-0.0, np.nan, -0.0, np.nan)}


@pytest.mark.parametrize("arch", CHIPS)
def test_anchors_of_decoding(arch: str) -> None:
    for i, name in enumerate(EIGHT):
        found = cast(arch, codes(name), "f32")
        for code, values in ANCHORS.items():
            np.testing.assert_array_equal(bits(found[code]), bits(np.float32(values[i])))
    assert cast(arch, codes("f8e5m2"), "f32")[0x7C] == np.inf


def halves() -> Any:
    return np.arange(65536, dtype=np.uint16).view(np.float16)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", [*EIGHT, *SMALL])
def test_every_f16_is_encoded(name: str, saturate: bool, arch: str) -> None:
    x = halves()
    found = cast(arch, x, name, "saturate = true" if saturate else "")
    top = float(ml_dtypes.finfo(kind(name)).max)
    with np.errstate(all="ignore"):
        wanted = (np.clip(x.astype(np.float32), -top, top) if saturate else x).astype(kind(name))
    known = ~np.isnan(x) if name in SMALL else slice(None)
    np.testing.assert_array_equal(bits(found[known]), bits(wanted[known]))


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", EIGHT)
def test_cutting_digits_gives_the_neighbour_towards_zero(name: str, arch: str) -> None:
    x = halves()[np.isfinite(halves())]
    found = cast(arch, x, name, 'rounding = "toward_zero"').astype(np.float64)
    grid = np.unique(codes(name).astype(np.float64)[np.isfinite(codes(name).astype(np.float64))])
    positive = grid[grid >= 0]
    wanted = positive[np.searchsorted(positive, np.abs(x.astype(np.float64)), side="right") - 1]
    np.testing.assert_array_equal(np.abs(found), wanted)


BF16 = {
    0x3F808000: 0x3F80, 0x3F818000: 0x3F82, 0x3F808001: 0x3F81, 0x3F807FFF: 0x3F80, 0x7F7FFFFF: 0x7F80,
    0x7F800001: None, 0x7FFF8C22: None, 0x00018000: 0x0002, 0x80000000: 0x8000,
}  # fmt: skip
"""f32 bits and the bf16 bits that they round to; None is NaN."""


@pytest.mark.parametrize("arch", CHIPS)
def test_bf16_rounds_to_nearest_even(arch: str) -> None:
    x = np.array(list(BF16), np.uint32).view(np.float32)
    found = cast(arch, x, "bf16")
    for value, wanted in zip(found, BF16.values(), strict=True):
        assert np.isnan(value.astype(np.float32)) if wanted is None else value.view(np.uint16) == wanted
    numbers = np.array([259, -259, 33000], np.int32)
    assert cast(arch, numbers, "bf16").astype(int).tolist() == [260, -260, 33024]


@pytest.mark.parametrize("arch", CHIPS)
def test_bf16_does_not_drift(arch: str) -> None:
    rng = np.random.default_rng(2)
    exact = rng.standard_normal(1024)
    r = exact.astype(kind("bf16"))
    for _ in range(6):
        d = (rng.standard_normal(1024) * 0.05).astype(np.float32)
        exact = exact + d
        r = cast(arch, r.astype(np.float32) + d, "bf16")
    assert abs(np.linalg.norm(r.astype(float)) / np.linalg.norm(exact) - 1) < 2e-3


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", EIGHT)
def test_some_f16_are_encoded(name: str, saturate: bool, arch: str) -> None:
    ends = np.float16([448, 464, 480, 240, 248, 57344, np.inf, np.nan, -np.inf, -0.0])
    x = np.concatenate([halves()[:31744:37], ends])
    found = cast(arch, x, name, "saturate = true" if saturate else "")
    top = float(ml_dtypes.finfo(kind(name)).max)
    with np.errstate(all="ignore"):
        wanted = (np.clip(x.astype(np.float32), -top, top) if saturate else x).astype(kind(name))
    np.testing.assert_array_equal(bits(found), bits(wanted))


def borders(name: str) -> Any:
    """f32 on both sides of every place at which the nearest code changes: between two codes, at the largest, at 0.
    Rounding is monotonic, so what is right here is right everywhere."""
    values = np.unique(codes(name).astype(np.float64)[np.isfinite(codes(name).astype(np.float64))])
    step = values[-1] - values[-2]
    values = np.concatenate([[values[0] - step], values, [values[-1] + step]])
    middles = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    near = [np.nextafter(middles, np.float32(end)) for end in (-np.inf, np.inf)]
    rest = np.float32([0.0, -0.0, 1e-45, -1e-45, 1e30, -1e30, np.inf, -np.inf, np.nan, -np.nan])
    return np.concatenate([middles, *near, values.astype(np.float32), rest])


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", EIGHT)
def test_f32_around_every_border_between_codes(name: str, saturate: bool, arch: str) -> None:
    x = borders(name)
    found = cast(arch, x, name, "saturate = true" if saturate else "")
    top = float(ml_dtypes.finfo(kind(name)).max)
    with np.errstate(all="ignore"):
        wanted = (np.clip(x, -top, top) if saturate else x).astype(kind(name))
    np.testing.assert_array_equal(bits(found), bits(wanted))


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", EIGHT)
def test_a_million_f32_are_encoded(name: str, saturate: bool, arch: str) -> None:
    rng = np.random.default_rng(23)
    x = np.concatenate([
        rng.integers(0, 1 << 32, 1 << 20, np.uint32).view(np.float32),
        (rng.standard_normal(1 << 18) * 300).astype(np.float32),
    ])  # fmt: skip
    top = float(ml_dtypes.finfo(kind(name)).max)
    for part in np.split(x, 5):
        found = cast(arch, part, name, "saturate = true" if saturate else "")
        with np.errstate(all="ignore"):
            wanted = (np.clip(part, -top, top) if saturate else part).astype(kind(name))
        np.testing.assert_array_equal(bits(found), bits(wanted))


@pytest.mark.parametrize("arch", CHIPS)
def test_the_chip_converts_what_it_knows(arch: str) -> None:
    """Its own 8-bit floats take an instruction for two elements each way, bf16 one where the chip has it."""
    kernel = """kernel k(X: global[f32, M], Y: global[{0}, M], Z: global[f32, M]):
    i = tile_ids(cdiv(M, 1024))
    y = cast(load(X, [i * 1024], [1024]), {0})
    store(Y, [i * 1024], y)
    store(Z, [i * 1024], cast(y, f32))
"""
    chip = load(arch)
    for name, dtype in chip.eight_bits.items():
        text = assembly(kernel.format(dtype), arch)
        assert f"v_cvt_pk_{name}_f32" in text and f"v_cvt_pk_f32_{name}" in text and "v_rndne" not in text
    if chip.has("bf16_convert"):
        assert "v_cvt_pk_bf16_f32" in assembly(kernel.format("bf16"), arch)


def assembly(text: str, arch: str) -> str:
    checked = check(parse(Source("cast.hk", text)))
    return str(worker.call("hkc.pipeline:compile_kernel", checked, arch, ("asm",)).texts["asm"])


INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64")


def corners(name: str) -> Any:
    low, high = int(np.iinfo(kind(name)).min), int(np.iinfo(kind(name)).max)
    near = [v for p in range(64) for s in (-1, 1) for d in (-1, 0, 1) if low <= (v := s * 2**p + d) <= high]
    rng = np.random.default_rng(5)
    return np.array([low, high, 0, *near, *(int(v) for v in rng.integers(low, high, 200))], kind(name))


def signless(x: Any) -> Any:
    return x.view(f"i{x.itemsize}") if x.dtype.kind == "u" else x


def words(source: str, target: str, *more: str) -> str:
    named = [*more, *(f"{u}_unsigned = true" for u, n in (("from", source), ("to", target)) if n.startswith("u"))]
    return ", ".join(named)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_integers(source: str, target: str, arch: str) -> None:
    x = corners(source)
    out = target.replace("u", "i")
    wrapped = cast(arch, signless(x), out, words(source, target))
    np.testing.assert_array_equal(wrapped.view(kind(target)), x.astype(kind(target)))
    clamped = cast(arch, signless(x), out, words(source, target, "saturate = true"))
    limits = np.iinfo(kind(target))
    wanted = np.array([min(max(int(v), int(limits.min)), int(limits.max)) for v in x], kind(target))
    np.testing.assert_array_equal(clamped.view(kind(target)), wanted)


def nearest(values: Any, name: str) -> Any:
    """Whole numbers as floats, rounded once: by searching for the two neighbours."""
    near = np.array([float(int(v)) for v in values]).astype(kind(name))
    if name == "f64":
        return near
    step = near.view(np.dtype(f"u{near.itemsize}"))
    best = near.copy()
    for shift in (-1, 1):
        other = np.where(near == 0, step, step + step.dtype.type(shift % 2**16)).astype(step.dtype).view(near.dtype)
        for i, v in enumerate(values):
            own, rival = (abs(int(v) - int(float(c))) if np.isfinite(float(c)) else 2**80 for c in (best[i], other[i]))
            if rival < own or (rival == own and int(other[i].view(step.dtype)) % 2 == 0):
                best[i] = other[i]
    return best


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("target", ["f64", "f32", "bf16"])
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_floats_round_once(source: str, target: str, arch: str) -> None:
    x = corners(source)
    found = cast(arch, signless(x), target, words(source, target))
    np.testing.assert_array_equal(bits(found), bits(nearest(x, target) if target != "f32" else x.astype(np.float32)))


@pytest.mark.parametrize("arch", CHIPS)
def test_i64_to_bf16_rounds_once(arch: str) -> None:
    x = np.array([2**40 + 2**32 + 1, 2**40 + 2**32, -(2**62) - 2**54 - 1, 2**62 + 2**54], np.int64)
    wanted = np.array([0x5381, 0x5380, 0xDE81, 0x5E80], np.uint16)
    np.testing.assert_array_equal(cast(arch, x, "bf16").view(np.uint16), wanted)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", ["f64", "f32", "f16", "bf16", "f8e4m3fn"])
def test_floats_to_integers(source: str, target: str, arch: str) -> None:
    limits = np.iinfo(kind(target))
    rng = np.random.default_rng(3)
    ends = [0.5, 1.5, -0.5, -1.5, 2.5, 127.5, -128.75, np.inf, -np.inf, np.nan, 1e30, -1e30, 255.5, 65535.75]
    with np.errstate(all="ignore"):
        x = np.concatenate([ends, rng.standard_normal(200) * float(limits.max) / 3]).astype(kind(source))
    wide = x.astype(np.float64)

    def clamp(v: float) -> int:
        if np.isnan(v):
            return 0
        whole = int(np.clip(v, -(2.0**70), 2.0**70))
        return min(max(whole, int(limits.min)), int(limits.max))

    out = target.replace("u", "i")
    for rounding, rounded in (("", np.trunc(wide)), ("nearest_even", np.rint(wide))):
        rule = [f'rounding = "{rounding}"'] if rounding else []
        found = cast(arch, x, out, words(source, target, "saturate = true", *rule)).view(kind(target))
        np.testing.assert_array_equal(found, np.array([clamp(v) for v in rounded], kind(target)))
        inside = np.array([np.isfinite(v) and limits.min <= v <= limits.max for v in rounded])
        fitting = np.where(inside, x, np.zeros((), x.dtype)).astype(x.dtype)
        plain = cast(arch, fitting, out, words(source, target, *rule))
        np.testing.assert_array_equal(plain.view(kind(target))[inside], found[inside])


def nearest_code(x: Any, name: str) -> Any:
    """The codes of the finite values of a narrow float that lie nearest to x, an even code at a tie: by looking at all
    of them, since ml_dtypes rounds float64 by way of float32 before version 0.7."""
    values = codes(name).astype(np.float64)
    known = np.flatnonzero(np.isfinite(values) & ~((values == 0) & np.signbit(values)))
    distance = np.abs(values[known] - np.asarray(x, np.float64)[:, None])
    order = np.lexsort((np.broadcast_to(known & 1, distance.shape), distance), axis=-1)
    return known[order[:, 0]].astype(np.uint8)


@pytest.mark.parametrize("arch", CHIPS)
def test_f64_to_narrow_floats_rounds_once(arch: str) -> None:
    grid = codes("f8e4m3fn").astype(np.float64)
    grid = np.unique(grid[np.isfinite(grid)])
    middle = (grid[:-1] + grid[1:]) / 2
    x = np.concatenate([middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)])
    x = x[x != 0]
    wanted = codes("f8e4m3fn")[nearest_code(x, "f8e4m3fn")]
    np.testing.assert_array_equal(cast(arch, x, "f8e4m3fn").astype(np.float64), wanted.astype(np.float64))


@pytest.mark.parametrize("arch", CHIPS)
def test_scales_are_the_nearest_powers_of_two(arch: str) -> None:
    x = np.exp2(np.linspace(-149, 127.4, 900)).astype(np.float32)
    x = np.concatenate([x, np.float32([1.25, 1.75, 2.0**-127])])
    np.testing.assert_array_equal(cast(arch, x, "e8m0").view(np.uint8), nearest_code(x, "e8m0"))
    odd = np.float32([1.5, 3, np.inf, np.nan, -1, 0])  # ties go up: there is no even one
    np.testing.assert_array_equal(cast(arch, odd, "e8m0").view(np.uint8), odd.astype(kind("e8m0")).view(np.uint8))
