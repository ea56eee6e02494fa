"""Products of groups of rows, and of operands with scales per block."""

from __future__ import annotations

from typing import Any

from hkc.kernels.arrays import as_array, empty
from hkc.kernels.files import compiled, dtype_of
from hkc.kernels.products import ACTIVATIONS, DEEP
from hkc.support.dtypes import dtype
from hkc.support.errors import error


def gemm_grouped(
    a: Any,
    b: Any,
    sizes: Any,
    *,
    activation: str | None = None,
    out_dtype: str | None = None,
    arch: str | None = None,
    device: str | None = None,
) -> Any:
    """`a[rows of g] @ b[g].T` for every group g: the experts of a mixture.

    a       MxK, its rows sorted by group
    b       GxNxK
    sizes   G numbers of i32: how many rows each group has, from 0; rows beyond their sum are not computed

    Returns MxN; other arguments as in `gemm`. Raises `HkcError`.
    """
    from hkc import api

    a, b = as_array("a", a, 2), as_array("b", b, 3)
    kinds = dtype_of("a", a), dtype_of("b", b)
    constants = _constants(kinds, out_dtype) | {"ACT": ACTIVATIONS[activation], "BM": 64, "BN": 64}
    constants["GROUPS"] = max(16, 1 << (b.shape[0] - 1).bit_length())
    out = empty((a.shape[0], b.shape[1]), str(constants["OUT"]), a)
    kernel = compiled("gemm_grouped", arch or api.gpu_arch(), **constants)
    return kernel(a, b, sizes, out, device=device)


def gemm_block_scaled(
    a: Any,
    scale_a: Any,
    b: Any,
    scale_b: Any,
    *,
    group: int = 128,
    out_dtype: str = "bf16",
    arch: str | None = None,
    device: str | None = None,
) -> Any:
    """`(a * scale_a) @ (b * scale_b).T` of 8-bit floats with f32 scales per block.

    a, scale_a   MxK, and MxcdivK(group): `group` elements of a row share a scale
    b, scale_b   NxK, and cdivN(group) x cdivK(group): squares of `group` share a scale

    Returns MxN. Raises `HkcError`.
    """
    from hkc import api

    constants = {"TA": dtype_of("a", a), "TB": dtype_of("b", b), "OUT": out_dtype, "GROUP": group}
    constants |= {"BM": 64, "BN": min(64, group), "BK": min(32, group)}
    out = empty((a.shape[0], b.shape[0]), out_dtype, a)
    kernel = compiled("gemm_block_scaled", arch or api.gpu_arch(), **constants)
    return kernel(a, scale_a, b, scale_b, out, device=device)


def gemm_mx(
    a: Any,
    scale_a: Any,
    b: Any,
    scale_b: Any,
    *,
    out_dtype: str = "bf16",
    arch: str | None = None,
    device: str | None = None,
) -> Any:
    """`(a * scale_a) @ (b * scale_b).T` in microscaling formats, on chips with scaled matrix instructions.

    a, b               MxK and NxK of f8e4m3fn, f8e5m2, f6e2m3, f6e3m2 or f4e2m1 (each element a byte)
    scale_a, scale_b   Mx(K/32) and Nx(K/32) of e8m0; K is a multiple of 32

    Returns MxN. Raises `HkcError`, HK451 where the chip lacks the instructions.
    """
    from hkc import api

    if a.shape[-1] % 32:
        raise error("HK505", f"K is {a.shape[-1]}, no multiple of the 32 elements that share a scale")
    constants = {"TA": dtype_of("a", a), "TB": dtype_of("b", b), "OUT": out_dtype, "BM": 64, "BN": 64, "BK": 128}
    out = empty((a.shape[0], b.shape[0]), out_dtype, a)
    kernel = compiled("gemm_mx", arch or api.gpu_arch(), **constants)
    return kernel(a, scale_a, b, scale_b, out, device=device)


def _constants(kinds: tuple[str, str], out_dtype: str | None) -> dict[str, str | int | bool]:
    from hkc.dialects.tile.dot import SUMS

    total = SUMS[kinds[0]]
    own = total if dtype(kinds[0]).bytes == 1 else kinds[0]
    return {
        "TA": kinds[0], "TB": kinds[1], "SUM": total, "OUT": out_dtype or own,
        "BK": DEEP // max(dtype(kind).bytes for kind in kinds),
    }  # fmt: skip
