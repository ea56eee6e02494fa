"""Products of groups of rows."""

from __future__ import annotations

from typing import Any

from hkc.kernels.arrays import (
    as_array,
    by_columns,
    dtype_of,
    expect,
    host_numbers,
    is_aligned,
    shown,
    transposed,
    unread,
)
from hkc.kernels.choose import extents, ranked
from hkc.kernels.epilogue import Constants, Epilogue
from hkc.kernels.files import compiled, first_without_spills
from hkc.kernels.products import check_apart, result, sum_of
from hkc.support.dtypes import dtype
from hkc.support.errors import error

GROUPED = {"NN": "gemm_grouped_nn", "NT": "gemm_grouped"}
"""The kernel for each way in which the groups' matrices are stored."""


def gemm_grouped(
    a: Any,
    b: Any,
    sizes: Any,
    *,
    bias: Any = None,
    activation: str | None = None,
    alpha: float = 1.0,
    row_scales: Any = None,
    out_scale: float = 1.0,
    out: Any = None,
    out_dtype: str | None = None,
    arch: str | None = None,
    device: str | None = None,
) -> Any:
    """`activation(alpha * row_scales * (a[rows of g] @ b[g].T) + bias[g]) * out_scale` for every group g: the experts
    of a mixture.

    a       MxK, its rows sorted by group
    b       GxNxK, with any strides
    sizes   G numbers of i32, from 0: how many rows each group has, M together or fewer (which is checked unless they
            are on a GPU). Rows beyond their sum are left as they are in `out`, and 0 without it
    bias    GxN

    Returns MxN; other arguments as in `gemm`. Raises `HkcError`.
    """
    from hkc import api

    a, b, sizes = as_array("a", a, 2), as_array("b", b, 3), as_array("sizes", sizes, 1)
    kinds = dtype_of("a", a), dtype_of("b", b)
    total = sum_of(*kinds)
    counted = _check(a, b, sizes, bias)
    (m, k), n = a.shape, b.shape[1]
    epilogue = Epilogue(None, activation, None, alpha, 0.0, row_scales, None, out_scale).checked((m, n), True)
    out = _result(out, out_dtype, (m, n), total if dtype(kinds[0]).bytes == 1 else kinds[0], a, counted)
    arrays = {"a": a, "b": b, "sizes": sizes, **epilogue.arrays} | ({} if bias is None else {"bias": bias})
    check_apart(out, arrays)
    constants = _constants(kinds, epilogue.constants(dtype_of("out", out), total), b.shape[0], bias)
    given = epilogue.arguments((m, n), a)
    if epilogue.alpha == 0.0:
        a, b = a[:, :0], b[..., :0]
    form, stored = ("NN", transposed(b)) if by_columns(b) else ("NT", b)
    chip, aligned = api.chip_name(arch), all(map(is_aligned, (a, stored, out)))
    _, kernel = first_without_spills(
        lambda t: compiled(GROUPED[form], chip, aligned=t.aligned, WAVES=t.waves, **extents(t), **constants),
        ranked(chip, form, (m, n, k), (*kinds, total), aligned, split=1),
    )
    biases = unread(b.shape[:2], "f32", a) if bias is None else bias
    numbers = {"alpha": given["alpha"], "scale": given["scale"]}
    return kernel(a, stored, sizes, given["RS"], biases, out, **numbers, device=device)


def _result(out: Any, kind: str | None, shape: tuple[int, ...], own: str, like: Any, counted: int) -> Any:
    """`out`, or memory for the result, in which rows that may belong to no group are 0."""
    made = result(out, kind, shape, own, like)
    if out is None:
        made[counted:] = 0
    return made


def _check(a: Any, b: Any, sizes: Any, bias: Any) -> int:
    """How many rows surely belong to a group. Raises `HkcError` unless the extents fit."""
    expect("a", a, tuple(a.shape[-2:]), "a matrix")
    groups, n, _ = expect(
        "b", b, (*b.shape[-3:-1], a.shape[1]), f"matrices with as many columns as `a`, {shown(a.shape)}"
    )
    expect("sizes", sizes, (groups,), f"one for each matrix of `b`, {shown(b.shape)}")
    if dtype_of("sizes", sizes) != "i32":
        raise error("HK503", f"`sizes` holds {dtype_of('sizes', sizes)}, but counts are i32", hint="convert it")
    counted = host_numbers(sizes)
    if counted is not None and (min(counted, default=0) < 0 or sum(counted) > a.shape[0]):
        what = f"`sizes` are {', '.join(map(str, counted))}, but `a` has {a.shape[0]} rows to share out"
        raise error("HK506", what, hint="one number of rows from 0 for each group")
    if bias is not None:
        expect("bias", as_array("bias", bias, 2), (groups, n), f"a row for each matrix of `b`, {shown(b.shape)}")
    return sum(counted or ())


def _constants(kinds: tuple[str, str], steps: Constants, groups: int, bias: Any) -> Constants:
    made = {name: value for name, value in steps.items() if name != "TR"}
    made |= {"TA": kinds[0], "TB": kinds[1], "GROUPS": max(16, 1 << (groups - 1).bit_length())}
    return made if bias is None else made | {"BIASED": True, "TBIAS": dtype_of("bias", bias)}
