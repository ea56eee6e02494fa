"""Tiles of which a lane holds one 64-bit number, made in one block and used in another."""

from __future__ import annotations

import numpy as np
import pytest

import hkc

CHIPS = ("gfx942", "gfx950")
KERNEL = """
kernel k(A: global[KIND, N], OUT: global[KIND, N], n: i32) with waves=WAVES:
    p = tile_ids(cdiv(N, TILE))
    x = load(A, [p * TILE], [TILE])
    y = x
    for i in range(n):
        y = y * 3
    store(OUT, [p * TILE], BODY)
"""
INTEGERS = ("(y & 15) + 1", "(y & 15) - 1", "(y & 15) * 5", "((y ^ x) & 7) + (x & 1)", "(y >> 60) + 1", "(y << 33) + 7")
FLOATS = ("abs(y) + 1.0", "-abs(y) * 2.0", "cast(cast(y, i64) & 15, f64) + 1.0")


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("tile", "waves"), [(64, 1), (256, 4), (128, 1)])
@pytest.mark.parametrize(("kind", "body"), [*(("i64", b) for b in INTEGERS), *(("f64", b) for b in FLOATS)])
def test_sums_of_known_bits(kind: str, body: str, tile: int, waves: int, arch: str) -> None:
    """LLVM's instruction selection has no end for `<1 x i64>` sums of masked values from another block."""
    text = KERNEL
    for name, value in (("BODY", body), ("WAVES", waves), ("TILE", tile), ("KIND", kind)):
        text = text.replace(name, str(value))
    kernel = hkc.compile(text, arch=arch)
    a = np.random.default_rng(7).integers(-(2**40), 2**40, 300).astype(np.int64 if kind == "i64" else np.float64)
    for n in (0, 2):
        given = {"abs": np.abs, "cast": lambda v, t: v.astype(t), "i64": np.int64, "f64": np.float64}
        wanted = eval(body, given | {"x": a, "y": a * 3**n})
        out = np.zeros_like(a)
        kernel(A=a, OUT=out, n=n, device="emulator")
        np.testing.assert_array_equal(out, wanted)
