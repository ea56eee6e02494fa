"""Calls become launches, or errors that name the parameter, what it expects and what it got."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hkc.machine.abi import Entry, GlobalParam, KernelInfo, Param, ScalarParam, View
from hkc.runtime.arguments import bind, workgroups
from hkc.support.errors import HkcError

GEMM = (GlobalParam("A", "bf16", ("M", "K")), GlobalParam("B", "bf16", ("N", "K")), GlobalParam("C", "f32", ("M", "N")))
SCALE = (
    GlobalParam("X", "f32", ("N",)),
    GlobalParam("Y", "f32", ("N",)),
    ScalarParam("a", "f32"),
    ScalarParam("k", "i8"),
)
HALVES = (GlobalParam("X", "f32", ("N", 4)), GlobalParam("Y", "f32", ("cdiv(N, 2)",)))


def info(
    params: tuple[Param, ...], outputs: tuple[str, ...], inputs: tuple[str, ...] = (), waves: int = 4
) -> KernelInfo:
    return KernelInfo("kernel", "gfx942", params, ("cdiv(N, 4)",), waves, (Entry("kernel", ()),), outputs, (), inputs)


gemm = info(GEMM, ("C",), ("A", "B"))
scale = info(SCALE, ("Y",), ("X",))
halves = info(HALVES, ("Y",), ("X",))


def bf16(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, ml_dtypes.bfloat16)


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


def message(kernel: KernelInfo, *args: Any, **named: Any) -> str:
    with pytest.raises(HkcError) as failure:
        bind(kernel, args, named)
    (found,) = failure.value.diagnostics
    return f"{found.code}: {found.message}" + (f" | {found.hint}" if found.hint else "")


def test_positions_names_and_left_out_outputs_mean_the_same() -> None:
    a, b, c = bf16(5, 3), bf16(7, 3), f32(5, 7)
    for args, named in (
        ((a, b, c), {}), ((a, b), {}), ((a,), {"B": b}), ((), {"B": b, "A": a, "C": c}), ((a, b), {"M": 5}),
    ):  # fmt: skip
        bound = bind(gemm, args, named)
        assert bound.names == {"M": 5, "N": 7, "K": 3}
        (result,) = bound.results(gemm)
        assert result.shape == (5, 7)
        assert result.dtype == np.float32


def test_an_output_before_the_end_is_passed_over() -> None:
    x = f32(6)
    bound = bind(scale, (x, 2.5, 3), {})
    assert bound.scalars == {"a": 2.5, "k": 3}
    assert np.isnan(bound.results(scale)[0]).all()
    y = f32(6)
    assert bind(scale, (x, y, 2.5, 3), {}).results(scale)[0] is y


def test_what_a_kernel_also_reads_cannot_be_left_out() -> None:
    in_place = info(SCALE, ("Y",), ("X", "Y"))
    assert message(in_place, f32(6), a=1, k=1).startswith("HK501: `kernel` needs Y")


def test_dims_can_be_given_where_no_array_has_them() -> None:
    fill = info((GlobalParam("C", "i32", ("M", "N")),), ("C",))
    (made,) = bind(fill, (), {"M": 2, "N": 3}).results(fill)
    assert made.tolist() == [[0x5A5A5A5A] * 3] * 2
    assert message(fill, M=2) == "HK501: the extent `N` of `C` is not known | pass `C`, or N=…"
    assert message(fill, M=2, N=-3) == "HK505: `N` is -3; an extent is a whole number from 0"
    assert message(fill, M=2, N=3.0) == "HK502: `N` must be a whole number, not 3.0"


def test_dims_that_are_numbers_or_expressions() -> None:
    assert bind(halves, (f32(5, 4),), {}).results(halves)[0].shape == (3,)
    assert message(halves, f32(5, 3)) == "HK505: dim 1 of `X` must be 4, but it is 3"
    assert message(halves, f32(5, 4), f32(2)) == "HK505: dim 0 of `Y` must be 3 (cdiv(N, 2)), but it is 2"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((bf16(5, 3), bf16(7, 4)), "HK505: `K` is 3 in dim 1 of `A` but 4 in dim 1 of `B`"),
        ((bf16(5, 3), bf16(7, 3), f32(5, 6)), "HK505: `N` is 7 in dim 0 of `B` but 6 in dim 1 of `C`"),
        ((f32(5, 3), bf16(7, 3)), "HK503: `A` holds bf16, but the array holds f32"),
        ((bf16(5), bf16(7, 3)), "HK504: `A` is 2-d, [M, K], but the array is 1-d, [5]"),
        (([[1.0]], bf16(7, 3)), "HK502: `A` can't be a list: expected an array of bf16 | numpy.asarray(…, bfloat16)"),
        ((None, bf16(7, 3)), "HK502: `A` can't be a NoneType: expected an array of bf16"),
    ],
)
def test_arrays_that_do_not_fit(args: tuple[Any, ...], expected: str) -> None:
    assert message(gemm, *args) == expected


def test_calls_that_do_not_fit() -> None:
    signature = " | kernel(X: global[f32, N], Y: global[f32, N], a: f32, k: i8)"
    x = f32(6)
    assert message(scale, x, 1) == f"HK501: `kernel` needs k{signature}"
    assert message(scale, x, x, 1, 1, 1) == (
        f"HK501: `kernel` takes 4 arguments; this call gives 5 by position and 0 by name{signature}"
    )
    assert message(scale, x, 1, 1, b=2) == f"HK501: `kernel` has no parameter `b`{signature}"


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({"k": 128}, "HK506: `k` is i8, which can't hold 128"),
        ({"k": -129}, "HK506: `k` is i8, which can't hold -129"),
        ({"k": 1.0}, "HK502: `k` must be a whole number, not 1.0"),
        ({"k": True}, "HK502: `k` must be a whole number, not True"),
        ({"a": 1e39}, "HK506: `a` is f32, which can't hold 1e+39"),
        ({"a": 10**5000}, "HK506: `a` is f32, which can't hold a whole number of 16,610 bits"),
        ({"k": 10**5000}, "HK506: `k` is i8, which can't hold a whole number of 16,610 bits"),
        ({"a": "1"}, "HK502: `a` must be a number, not '1'"),
        ({"a": 1j}, "HK502: `a` must be a number, not 1j"),
    ],
)
def test_numbers_that_do_not_fit(named: dict[str, Any], expected: str) -> None:
    assert message(scale, f32(6), **({"a": 1.0, "k": 1} | named)) == expected


def test_numbers_that_fit() -> None:
    bound = bind(scale, (f32(6),), {"a": float("inf"), "k": np.int64(-128)})
    assert bound.scalars == {"a": float("inf"), "k": -128}
    assert bound.names == {"N": 6, "k": -128}


def test_outputs_must_be_writable_and_apart() -> None:
    frozen = f32(6)
    frozen.flags.writeable = False
    assert message(scale, f32(6), frozen, 1, 1) == "HK508: `Y` is written by the kernel, but the array is read-only"
    spread = np.broadcast_to(f32(1), (6,))
    spread.flags.writeable = True
    assert "its 6 elements along dim 0 are one" in message(scale, f32(6), spread, 1, 1)
    assert bind(scale, (spread, f32(6), 1, 1), {}).tensors["X"].view.strides == (0,)


def test_a_grid_has_limits() -> None:
    """2^32 threads would wrap in the launch packet."""
    largest = 4 * ((1 << 32) // 256 - 1)
    assert workgroups(gemm, {"N": 0}, 64) == 0
    assert workgroups(gemm, {"N": largest}, 64) == (1 << 24) - 1
    for waves, wave, n in ((4, 64, largest + 1), (1, 1, 4 << 31)):
        with pytest.raises(HkcError) as failure:
            workgroups(info(GEMM, (), waves=waves), {"N": n}, wave)
        assert failure.value.diagnostics[0].code == "HK509"
        assert f"{-(-n // 4):,} workgroups of {waves * wave} threads" in failure.value.diagnostics[0].message


def test_views_say_where_and_how() -> None:
    base = np.zeros((10, 12), np.float32)
    x = base[8:2:-2, 1]
    address = base.__array_interface__["data"][0]
    bound = bind(scale, (x, 1, 1), {})
    assert bound.tensors["X"].view == View(address + 4 * (8 * 12 + 1), (3,), (-24,), 4)
    assert bound.tensors["X"].extent == range(address + 4 * (4 * 12 + 1), address + 4 * (8 * 12 + 2))


@pytest.mark.parametrize(
    ("shape", "strides", "apart"),
    [
        ((8, 4), (8, 4), False),
        ((4, 6), (16, 4), False),
        ((2, 2), (12, 8), True),
        ((4, 1), (4, 0), True),
    ],
)
def test_elements_of_an_output_have_places_of_their_own(
    shape: tuple[int, ...], strides: tuple[int, ...], apart: bool
) -> None:
    """Windows that slide by less than their size are read, not written; strides may interleave."""
    window = np.lib.stride_tricks.as_strided(f32(64), shape, strides)
    copying = info((GlobalParam("Y", "f32", ("M", "N")),), ("Y",))
    if apart:
        assert bind(copying, (window,), {}).tensors["Y"].view.extents == shape
    else:
        assert message(copying, window) == "HK508: `Y` is written by the kernel, but some of its elements share memory"
