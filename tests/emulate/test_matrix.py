"""Summation rules of the matrix units, bit by bit."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hkc.emulate import matrix
from hkc.emulate.narrow import FORMATS

VECTORS = np.load(Path(__file__).with_name("mmasim.npz"))
"""`name/kind/{a,b,c,d}`: bit patterns of operands and result of `mmasim.amd.sim.MFMA("CDNA3", name)`, package mmasim
2.1.1. Kinds: `normal` Gaussian numbers, `wild` with exponents all over the range, `bits` random bit patterns."""

CASES = sorted({key.rsplit("/", 1)[0] for key in VECTORS.files})
TYPES: dict[str, tuple[Any, int]] = {
    "f16": (np.float16, -14), "bf16": (ml_dtypes.bfloat16, -126), "xf32": (np.float32, -126),
    "fp8": (ml_dtypes.float8_e4m3fnuz, FORMATS["f8e4m3fnuz"].least),
    "bf8": (ml_dtypes.float8_e5m2fnuz, FORMATS["f8e5m2fnuz"].least),
}  # fmt: skip


def side(raw: np.ndarray, kind: str) -> matrix.Operand:
    dtype, least = TYPES[kind]
    values = raw.view(dtype).astype(np.float32)
    if kind == "xf32":
        values = (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return matrix.Operand(values[None], matrix.powers_of(values, least)[None])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", CASES)
def test_equal_bits_with_mmasim(case: str) -> None:
    a, b, c, d = (VECTORS[f"{case}/{x}"] for x in "abcd")
    kinds = case.split("/")[0].split("_")
    small = kinds[-1] in ("fp8", "bf8")
    kind_a, kind_b = (kinds[-2], kinds[-1]) if small else (kinds[-1], kinds[-1])
    length = 16 if small else 4 if kind_a == "xf32" else 8
    found = matrix.aligned_sums(
        side(a, kind_a), side(np.ascontiguousarray(b.T), kind_b), c.view(np.float32)[None], length, small
    )[0]
    # mmasim 2.1.1 takes the exponent of a NaN accumulator for 0 and may drop it beside large products
    wanted = np.where(np.isnan(c.view(np.float32)), np.nan, d.view(np.float32))
    numbers = ~np.isnan(wanted)
    assert (np.isnan(found) == ~numbers).all()
    np.testing.assert_array_equal(found.view(np.uint32)[numbers], wanted.view(np.uint32)[numbers])


def test_the_rule_differs_from_one_rounding() -> None:
    """A product that is cut at the 24th bit below the largest one, which exact summation would keep."""
    a = matrix.Operand(*[np.array([[[1.0, 2.0**-25]]], np.float32)] * 2)
    b = matrix.Operand(*[np.array([[[1.0, 1.0]]], np.float32)] * 2)
    c = np.array([[[-1.0]]], np.float32)
    assert matrix.aligned_sums(a, b, c, 8, False).item() == 0.0
    exact = Fraction(1) + Fraction(2) ** -25 - 1
    assert float(exact) == 2.0**-25


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fused_chain_rounds_once_per_step(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((1, 3, 4)).astype(dtype) for _ in range(2))
    c = rng.standard_normal((1, 3, 3)).astype(dtype)
    found = matrix.fused_chain(a, b, c)
    for i in range(3):
        for j in range(3):
            total = c[0, i, j]
            for k in range(4):
                total = dtype(
                    nearest(Fraction(float(a[0, i, k])) * Fraction(float(b[0, j, k])) + Fraction(float(total)), dtype)
                )
            assert found[0, i, j] == total


def nearest(exact: Fraction, dtype: Any) -> float:
    """The number of `dtype` nearest to `exact`, found among the neighbours of a first guess."""
    guess = dtype(float(exact))
    around = [np.nextafter(guess, dtype(-np.inf)), guess, np.nextafter(guess, dtype(np.inf))]
    return float(
        min(around, key=lambda x: (abs(Fraction(float(x)) - exact), int(np.array(x).view(f"u{guess.itemsize}")) & 1))
    )


def test_integer_sums_wrap_or_clamp() -> None:
    a = np.full((1, 1, 2), -128, np.int8)
    c = np.full((1, 1, 1), 2**31 - 1, np.int32)
    assert matrix.integer_sums(a, a, c).item() == -(2**31) + 2 * 128 * 128 - 1
    assert matrix.integer_sums_clamped(a, a, c).item() == 2**31 - 1
