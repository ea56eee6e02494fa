"""Calls of `hkc.kernels`: what is given wrongly is said, and drawn products are as near as their roundings allow."""

from __future__ import annotations

import importlib.util
import sys
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix_products import CHIPS, FORMS

from hkc.kernels import gemm, gemm_block_scaled, gemm_grouped, gemm_mx
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError

Array = np.ndarray[Any, Any]
BF16, F8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
ON: dict[str, Any] = {"arch": "gfx950", "device": "emulator"}
U = 2.0**-24
"""Half a unit in the last place of f32, relative."""


def ones(*shape: int, kind: Any = BF16) -> Array:
    return np.ones(shape, kind)


def shared() -> dict[str, Any]:
    whole = ones(16, 8)
    return {"a": whole[:8], "out": whole[4:12]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"b": ones(9, 8)}, "HK505.*`a` has 8 columns, but `b` has 9 rows.*8x8, `b` 9x8"),
        ({"a": ones(2, 8, 8), "b": ones(3, 8, 8)}, "HK505.*batches 2 of `a` and 3 of `b`"),
        ({"b": ones(8, 8, kind=np.float32)}, "HK503.*`a` holds bf16 and `b` holds f32"),
        ({"a": ones(8, 8, kind=np.float64), "b": ones(8, 8, kind=np.float64)}, "HK503.*aren't multiplied"),
        ({"a": ones(8, 8, kind=np.complex64)}, "HK503.*`a` holds complex64"),
        ({"activation": "swish"}, "HK501.*no activation `swish`.*relu, gelu"),
        ({"activation": ["relu"]}, "HK501.*no activation"),
        ({"bias": ones(7)}, "HK505.*`bias` is 7, but the result has 8 columns"),
        ({"bias": ones(8, 1)}, "HK505.*`bias` is 8x1"),
        ({"residual": ones(3, 8)}, "HK505.*`residual` is 3x8, but the result is 8x8"),
        ({"row_scales": ones(9, kind=np.float32)}, "HK505.*`row_scales` is 9, but the result's rows are 8"),
        ({"row_scales": ones(8)}, "HK503.*`row_scales` holds bf16, but factors are f32"),
        ({"column_scales": ones(9, kind=np.float32)}, "HK505.*`column_scales` is 9, but the result has 8 columns"),
        ({"alpha": "two"}, "HK502.*`alpha` must be a number, not 'two'"),
        ({"alpha": "2"}, "HK502.*`alpha` must be a number, not '2'"),
        ({"out_scale": b"2"}, "HK502.*`out_scale` must be a number, not b'2'"),
        ({"alpha": 10**5000}, "HK506.*`alpha` is f32, which can't hold so large a number"),
        ({"split": 10**12}, "HK509.*no memory for 1000000000000x8x8 elements of f32"),
        ({"split": 10**30}, "HK509.*no memory for"),
        ({"beta": ones(2)}, "HK502.*`beta` must be a number"),
        ({"out": ones(9, 9)}, "HK505.*`out` is 9x9, but the product 8x8"),
        ({"out": ones(8, 8), "out_dtype": "f32"}, "HK503.*`out` holds bf16, but `out_dtype` is f32"),
        ({"out_dtype": "float32"}, "HK503.*'float32', which is no dtype of a product.*f32"),
        ({"beta": 2.0}, "HK501.*`beta` is 2.0, but there is no `out`"),
        ({"out": np.broadcast_to(ones(8), (8, 8))}, "HK508.*`out` is written, but the array is read-only"),
        ({"out": 3.0}, "HK502.*`out` is no array or tensor, but of type float"),
        (shared(), "HK508.*`out` shares memory with `a`.*pass a copy of `a`"),
        ({"a": [[1.0] * 8]}, "HK502.*`a` is no array or tensor, but of type list.*numpy.asarray"),
        ({"a": ones(8)}, "HK504.*`a` has 1 dim, but at least 2"),
        ({"split": 0}, "HK502.*`split` is a whole number from 1, not 0"),
        ({"split": 2, "a": ones(3, 8, 8), "b": ones(3, 8, 8)}, "HK501.*a batch of 3 products can't be split into 2"),
        ({"arch": "gfx90a"}, "HK422.*gfx90a.*gfx942, gfx950"),
        ({"device": "cuda"}, "HK516.*no device `cuda`"),
    ],
)  # fmt: skip
def test_mistakes_of_a_product(change: dict[str, Any], said: str) -> None:
    arguments = {"a": ones(8, 8), "b": ones(8, 8), **ON} | change
    with pytest.raises(HkcError) as refusal:
        gemm(**arguments)
    refusal.match("(?s)" + said)


COUNTS = np.array([3, 5], np.int32)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"b": ones(2, 6, 9)}, "HK505.*`b` is 2x6x9, but 2x6x4 is needed: matrices with as many columns as `a`, 8x4"),
        ({"a": ones(1, 8, 4)}, "HK505.*`a` is 1x8x4, but 8x4 is needed"),
        ({"b": ones(6, 4)}, "HK504.*`b` has 2 dims, but at least 3"),
        ({"sizes": COUNTS[:1]}, "HK505.*`sizes` is 1, but 2 is needed: one for each matrix of `b`, 2x6x4"),
        ({"sizes": np.array([4, 5], np.int32)}, "HK506.*`sizes` are 4, 5, but `a` has 8 rows to share out"),
        ({"sizes": np.array([-1, 4], np.int32)}, "HK506.*`sizes` are -1, 4"),
        ({"sizes": np.full(2, 2**31 - 1, np.int32)}, "HK506.*`sizes` are 2147483647, 2147483647"),
        ({"sizes": COUNTS.astype(np.int64)}, "HK503.*`sizes` holds i64, but counts are i32"),
        ({"bias": ones(6, kind=np.float32)}, "HK504.*`bias` has 1 dim"),
        ({"bias": ones(3, 6)}, "HK505.*`bias` is 3x6, but 2x6 is needed"),
        ({"activation": "tanh"}, "HK501.*no activation `tanh`"),
    ],
)
def test_mistakes_of_groups(change: dict[str, Any], said: str) -> None:
    arguments = {"a": ones(8, 4), "b": ones(2, 6, 4), "sizes": COUNTS, **ON} | change
    with pytest.raises(HkcError) as refusal:
        gemm_grouped(**arguments)
    refusal.match("(?s)" + said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"a": ones(4, 256), "b": ones(6, 256)}, "HK503.*`a` holds bf16 and `b` bf16, but 8-bit floats"),
        ({"b": ones(6, 128, kind=F8)}, "HK505.*`b` is 6x128, but 6x256 is needed: as many columns as `a`, 4x256"),
        ({"scale_a": ones(4, 3, kind=np.float32)}, "HK505.*`scale_a` is 4x3, but 4x2 is needed: 128 elements of a row"),
        ({"scale_b": ones(6, 2, kind=np.float32)}, "HK505.*`scale_b` is 6x2, but 1x2 is needed: squares of 128"),
        ({"scale_a": ones(4, 2)}, "HK503.*`scale_a` holds bf16, but these scales are f32"),
        ({"group": 100}, "HK502.*`group` is a power of two from 32, not 100"),
    ],
)
def test_mistakes_of_blocks_with_scales(change: dict[str, Any], said: str) -> None:
    scales = {"scale_a": ones(4, 2, kind=np.float32), "scale_b": ones(1, 2, kind=np.float32)}
    arguments = {"a": ones(4, 256, kind=F8), "b": ones(6, 256, kind=F8), **scales, **ON} | change
    with pytest.raises(HkcError) as refusal:
        gemm_block_scaled(**arguments)
    refusal.match("(?s)" + said)


@pytest.mark.parametrize(
    ("shape", "scales", "said"),
    [
        ((4, 40), (4, 1), "HK505.*K is 40, no multiple of the 32"),
        ((4, 64), (4, 1), "HK505.*`scale_a` is 4x1, but 4x2 is needed: 32 elements of a row of `a`, 4x64"),
    ],
)
def test_mistakes_of_microscaling(shape: tuple[int, int], scales: tuple[int, int], said: str) -> None:
    a, s = ones(*shape, kind=F8), ones(*scales, kind=ml_dtypes.float8_e8m0fnu)
    with pytest.raises(HkcError) as refusal:
        gemm_mx(a, s, a, s, **ON)
    refusal.match("(?s)" + said)


def test_the_residual_may_be_the_result() -> None:
    a, c = ones(5, 16), ones(5, 6, kind=np.float32)
    assert np.array_equal(gemm(a, ones(16, 6), residual=c, out=c, **ON), np.full((5, 6), 17))


def test_results_in_a_batch_that_is_no_single_dim() -> None:
    a, c = ones(2, 3, 5, 16), np.full((3, 2, 5, 6), 2, np.float32).swapaxes(0, 1)
    assert gemm(a, ones(2, 3, 16, 6), out=c, beta=2.0, **ON) is c
    assert (c == 20).all()


class Tensor:
    """As much of a tensor of PyTorch as is used, over memory of NumPy: its methods, its negatives (no `strides` or
    `itemsize` as arrays have them), and that no tensor steps backwards."""

    device = SimpleNamespace(type="cpu")

    def __init__(self, array: Array) -> None:
        assert all(s >= 0 for s in array.strides)
        self.array, self.shape, self.dtype = array, array.shape, f"torch.{array.dtype}"

    def data_ptr(self) -> int:
        return int(self.array.__array_interface__["data"][0])

    def element_size(self) -> int:
        return self.array.itemsize

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def swapaxes(self, first: int, second: int) -> Tensor:
        return Tensor(self.array.swapaxes(first, second))

    def expand(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(np.broadcast_to(self.array, shape))

    def reshape(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(self.array.reshape(shape))

    def tolist(self) -> Any:
        return self.array.tolist()

    def __getitem__(self, at: Any) -> Tensor:
        return Tensor(self.array[at])

    def __setitem__(self, at: Any, value: Tensor | int) -> None:
        self.array[at] = value.array if isinstance(value, Tensor) else value


def test_tensors_like_those_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(shape: tuple[int, ...], dtype: Any, device: Any) -> Tensor:
        return Tensor(np.empty(shape, dtype))

    kinds = {"float32": np.float32, "bfloat16": BF16, "int32": np.int32}
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Tensor, empty=empty, **kinds))
    a, w, c = ones(2, 3, 5, 16), ones(6, 16), np.zeros((3, 2, 5, 6), np.float32).swapaxes(0, 1)
    given = Tensor(c)
    assert gemm(Tensor(a), Tensor(w.T), bias=Tensor(ones(6)), out=given, **ON) is given
    assert (c == 17).all()
    batch = gemm(Tensor(a), Tensor(ones(3, 16, 6)), out_dtype="f32", **ON)
    assert isinstance(batch, Tensor) and batch.dtype == "torch.float32" and (batch.array == 16).all()
    split = gemm(Tensor(a[0, 0]), Tensor(w.T), split=2, **ON)
    assert split.dtype == "torch.bfloat16" and (split.array == 16).all()
    groups = gemm_grouped(Tensor(a[0, 0]), Tensor(ones(2, 6, 16)), Tensor(np.array([2, 3], np.int32)), **ON)
    assert isinstance(groups, Tensor) and (groups.array == 16).all()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed (pip install torch)")
def test_tensors_of_pytorch() -> None:
    import torch

    a, w = (torch.randint(-3, 4, s).to(torch.bfloat16) for s in ((35, 64), (50, 64)))
    bias, c = torch.ones(50), torch.empty(35, 50)
    assert gemm(a, w.T, bias=bias, out=c, **ON) is c
    assert torch.equal(c, a.float() @ w.float().T + bias)
    assert gemm(a, w.T, **ON).dtype == torch.bfloat16
    assert torch.equal(gemm(a[::2], w.T, out_dtype="f32", **ON), a[::2].float() @ w.float().T)


KINDS = ("bf16", "f16", "f32", "i8", "f8e4m3fn", "f8e5m2", "f8e4m3fnuz")


@st.composite
def products(draw: st.DrawFn) -> dict[str, Any]:
    """A product of normally distributed numbers, and what follows it."""
    sizes = st.one_of(st.integers(1, 40), st.sampled_from([64, 65, 100, 128, 129]))
    kind = draw(st.sampled_from(KINDS))
    results = ["f32", "bf16", "f16", "i32"] if kind == "i8" else ["f32", "bf16", "f16"]
    return {
        "size": (draw(sizes), draw(sizes), draw(sizes)),
        "batch": draw(st.sampled_from([(), (), (2,), (2, 2)])),
        "form": draw(st.sampled_from(FORMS)),
        "kind": kind,
        "out_dtype": draw(st.sampled_from(results)),
        "chip": draw(st.sampled_from(CHIPS)),
        "steps": draw(st.sets(st.sampled_from(["alpha", "row_scales", "column_scales", "bias", "relu", "residual"]))),
        "split": draw(st.sampled_from([None, None, 1, 3])),
        "seed": draw(st.integers(0, 1000)),
    }


def rounded(value: Array, bound: Array, unit: float = U) -> Array:
    """The bound on the error of a value after one more rounding."""
    return bound + unit * (abs(value) + bound)


def follow(steps: dict[str, Any], value: Array, bound: Array) -> tuple[Array, Array]:
    """The steps behind the sums in float64, and how far those in f32 may be off."""
    for name, factor in (("alpha", 1.0), ("row_scales", None), ("column_scales", None)):
        if name in steps:
            x = np.float64(steps[name]) if factor else steps[name].astype(np.float64)
            x = x[:, None] if name == "row_scales" else x
            value, bound = value * x, bound * abs(x)
            bound = rounded(value, bound)
    for name in ("bias", "residual"):
        if name == "residual" and "activation" in steps:
            value = np.maximum(value, 0)
        if name in steps:
            value = value + steps[name].astype(np.float64)
            bound = rounded(value, bound)
    return value, bound


def near(p: dict[str, Any]) -> None:
    """Sums of k products: each is rounded at most once, and so is each of k + 3 additions (of shares, too)."""
    rng, (m, n, k) = np.random.default_rng(p["seed"]), p["size"]
    element = dtype(p["kind"]).numpy

    def drawn(*shape: int, kind: Any = np.float32) -> Array:
        return rng.integers(-3, 4, shape).astype(kind) if kind == np.int8 else rng.standard_normal(shape).astype(kind)

    a, b = drawn(*p["batch"], m, k, kind=element), drawn(*p["batch"], k, n, kind=element)
    stored = [
        x.swapaxes(-1, -2).copy().swapaxes(-1, -2) if f == "T" else x for x, f in zip((a, b), p["form"], strict=True)
    ]
    given = {"alpha": 0.75, "row_scales": drawn(m), "column_scales": drawn(n), "bias": drawn(n)}
    given |= {"residual": drawn(*p["batch"], m, n)}
    steps = {name: value for name, value in given.items() if name in p["steps"]}
    steps |= {"activation": "relu"} if "relu" in p["steps"] else {}
    split = None if p["batch"] else p["split"]
    out = p["out_dtype"] if not steps or p["out_dtype"] != "i32" else "f32"
    found = gemm(*stored, **steps, out_dtype=out, split=split, arch=p["chip"], device="emulator").astype(np.float64)
    a, b = a.astype(np.float64), b.astype(np.float64)
    whole = p["kind"] == "i8"
    bound = np.zeros(found.shape) if whole else ((1 + U) ** (2 * k + 3) - 1) * (abs(a) @ abs(b))
    value, bound = follow(steps, a @ b, bound)
    if out in ("bf16", "f16"):
        bound = rounded(value, bound, 2.0**-8 if out == "bf16" else 2.0**-11) + (2.0**-25 if out == "f16" else 0)
    assert (abs(found - value) <= bound).all(), float((abs(found - value) - bound).max())


@settings(max_examples=6)
@given(products())
def test_drawn_products(p: dict[str, Any]) -> None:
    near(p)


@pytest.mark.long
@settings(max_examples=150)
@given(products())
def test_many_drawn_products(p: dict[str, Any]) -> None:
    near(p)
