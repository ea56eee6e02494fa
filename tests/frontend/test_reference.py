from __future__ import annotations

import numpy as np
import pytest

from hkc.frontend.check import check
from hkc.frontend.parse import parse
from hkc.frontend.program import Checked
from hkc.frontend.reference import evaluate
from hkc.support.errors import HkcError, Source

HEAD = """const SCALE = 0.5
kernel k(A: global[f32, M, K], B: global[f32, K, N], C: global[f32, M, N], n: i32):
    x = 1
"""
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 5))
NAMES = {"A": A, "B": B, "M": 3, "K": 4, "N": 5, "n": 7}


def checked(reference: str) -> Checked:
    return check(parse(Source("x.hk", HEAD + reference)))


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("A @ B", A @ B),
        ("-A.T * SCALE + n / K", -A.T * 0.5 + 7 / 4),
        ("sum(A ** 2, axis=1, keepdims=True)", np.sum(A**2, axis=1, keepdims=True)),
        ("max(A) - min(B, axis=0)", np.max(A) - np.min(B, axis=0)),
        ("where(A > 0, exp(A), log(abs(A)))", np.where(A > 0, np.exp(A), np.log(abs(A)))),
        ("maximum(A, 0) + minimum(A, inf)", np.maximum(A, 0) + A),
        ("sqrt(A // 1 % 3) == prod(A * 0, axis=0)", np.sqrt(A // 1 % 3) == 0),
    ],
)
def test_formulas(formula: str, value: np.ndarray) -> None:
    outputs = evaluate(checked(f"reference C = {formula}\n"), NAMES)
    assert outputs["C"].dtype == np.float64
    np.testing.assert_array_equal(outputs["C"], np.asarray(value, np.float64))


def test_a_block_has_intermediate_values_and_several_outputs() -> None:
    file = checked("reference:\n    half = A * 0.5\n    C = half @ B\n    B = half.T\n")
    outputs = evaluate(file, NAMES)
    assert set(outputs) == {"C", "B"}
    np.testing.assert_array_equal(outputs["C"], (A * 0.5) @ B)


def test_an_unused_intermediate_is_a_mistake() -> None:
    with pytest.raises(HkcError, match="no kernel has a tensor `half`"):
        checked("reference:\n    half = A\n    C = A @ B\n")


@pytest.mark.parametrize(
    "formula", ["A[0]", "A.real", "(A)(B)", "open(A)", "exp(A, B)", "exp(A, out=B)", "sum(A, dtype=n)", "[A]", "D"]
)
def test_nothing_else_is_a_formula(formula: str) -> None:
    with pytest.raises(HkcError, match=r"x\.hk:4:\d+: error\[HK(211|301|310)\]"):
        checked(f"reference C = {formula}\n")


@pytest.mark.parametrize(("formula", "column"), [("1 + A @ A", 19), ("sum(A, axis=n)", 15), ("A + Q", 19)])
def test_what_cannot_be_evaluated_is_located(formula: str, column: int) -> None:
    text = HEAD.replace("n: i32", "n: i32, Q: global[f32, M]") + f"reference C = {formula}\n"
    with pytest.raises(HkcError, match=rf"x\.hk:4:{column}: error\[HK310\]"):
        evaluate(check(parse(Source("x.hk", text))), NAMES)
