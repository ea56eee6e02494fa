"""Products of operands with scales per block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hkc.kernels.arrays import as_array, dtype_of, empty, expect, is_aligned, shown
from hkc.kernels.epilogue import Constants
from hkc.kernels.files import compiled, first_without_spills
from hkc.kernels.products import check_apart, result, sum_of
from hkc.support.dtypes import dtype
from hkc.support.errors import error

TRIED = ((128, 128, 128), (128, 128, 64), (64, 64, 128), (64, 64, 32))
"""Rows and columns of tiles of C for operands with scales, and steps along K: the first that spill nothing serve."""


def gemm_block_scaled(
    a: Any,
    scale_a: Any,
    b: Any,
    scale_b: Any,
    *,
    group: int = 128,
    out: Any = None,
    out_dtype: str | None = None,
    arch: str | None = None,
    device: str | None = None,
) -> Any:
    """`(a * scale_a) @ (b * scale_b).T` of 8-bit floats with f32 scales per block.

    a, scale_a   MxK, and MxcdivK(group): `group` elements of a row share a scale
    b, scale_b   NxK, and cdivN(group) x cdivK(group): squares of `group` share a scale
    group        a power of two from 32

    Returns MxN, bf16 unless said otherwise. Raises `HkcError`.
    """
    if isinstance(group, bool) or not isinstance(group, int) or group < 32 or group & (group - 1):
        raise error("HK502", f"`group` is a power of two from 32, not {group!r}")
    a, b = as_array("a", a, 2), as_array("b", b, 2)
    kinds = dtype_of("a", a), dtype_of("b", b)
    _same_depth(a, b)
    if any(dtype(kind).bits != 8 or sum_of(kind, kind) != "f32" for kind in kinds):
        raise error("HK503", f"`a` holds {kinds[0]} and `b` {kinds[1]}, but 8-bit floats have scales per block")
    (m, k), n = a.shape, b.shape[0]
    along = -(-k // group)
    _scales("scale_a", scale_a, "f32", (m, along), f"{group} elements of a row of `a`, {shown(a.shape)}, share one")
    squares = f"squares of {group} of `b`, {shown(b.shape)}, share one"
    _scales("scale_b", scale_b, "f32", (-(-n // group), along), squares)
    tiles = [{"BM": bm, "BN": min(bn, group), "BK": min(bk, group)} for bm, bn, bk in TRIED]
    given = a, scale_a, b, scale_b
    constants: Constants = {"TA": kinds[0], "TB": kinds[1], "GROUP": group}
    return _scaled("gemm_block_scaled", given, constants, tiles, out, out_dtype, arch, device)


def gemm_mx(
    a: Any,
    scale_a: Any,
    b: Any,
    scale_b: Any,
    *,
    out: Any = None,
    out_dtype: str | None = None,
    arch: str | None = None,
    device: str | None = None,
) -> Any:
    """`(a * scale_a) @ (b * scale_b).T` in microscaling formats, on chips with scaled matrix instructions.

    a, b               MxK and NxK of f8e4m3fn, f8e5m2, f6e2m3, f6e3m2 or f4e2m1 (each element a byte)
    scale_a, scale_b   Mx(K/32) and Nx(K/32) of e8m0; K is a multiple of 32

    Returns MxN, bf16 unless said otherwise. Raises `HkcError`, HK451 where the chip lacks the instructions.
    """
    a, b = as_array("a", a, 2), as_array("b", b, 2)
    _same_depth(a, b)
    if a.shape[1] % 32:
        raise error(
            "HK505", f"K is {a.shape[1]}, no multiple of the 32 elements that share a scale", hint="pad `a` and `b`"
        )
    for name, scales, array in (("scale_a", scale_a, a), ("scale_b", scale_b, b)):
        of = f"32 elements of a row of `{name[-1]}`, {shown(array.shape)}, share one"
        _scales(name, scales, "e8m0", (array.shape[0], array.shape[1] // 32), of)
    tiles = [{"BM": bm, "BN": bn, "BK": bk} for bm, bn, bk in TRIED if bk == 128]
    constants: Constants = {"TA": dtype_of("a", a), "TB": dtype_of("b", b)}
    return _scaled("gemm_mx", (a, scale_a, b, scale_b), constants, tiles, out, out_dtype, arch, device)


def _scaled(
    name: str,
    given: tuple[Any, ...],
    constants: Constants,
    tiles: Sequence[dict[str, int]],
    out: Any,
    kind: str | None,
    arch: str | None,
    device: str | None,
) -> Any:
    """Launch the kernel `name` with the first tiles that spill nothing."""
    from hkc import api

    a, scale_a, b, scale_b = given
    out = result(out, kind, (a.shape[0], b.shape[0]), "bf16", a)
    check_apart(out, dict(zip(("a", "scale_a", "b", "scale_b"), given, strict=True)))
    kind = dtype_of("out", out)
    finish: Constants = {"OUT": kind, "SATURATE": dtype(kind).bits <= 8}
    chip = api.chip_name(arch)
    aligned = all(map(is_aligned, (a, b, out)))
    if aligned:
        given = a, _padded("scale_a", scale_a), b, _padded("scale_b", scale_b)
    _, kernel = first_without_spills(lambda t: compiled(name, chip, aligned, **t, **constants, **finish), tiles)
    return kernel(*given, out, device=device)


def _padded(what: str, scales: Any) -> Any:
    """The same scales in rows that begin at multiples of 16 bytes: for want of these, a kernel would take all that it
    reads for unaligned."""
    kind, (rows, columns) = dtype_of(what, scales), scales.shape
    if is_aligned(scales) or 0 in (rows, columns):
        return scales
    made = empty((rows, columns + -columns % (16 // dtype(kind).bytes)), kind, scales)[:, :columns]
    made[...] = scales
    return made


def _scales(what: str, scales: Any, kind: str, shape: tuple[int, ...], meaning: str) -> None:
    expect(what, as_array(what, scales, 2), shape, meaning)
    if dtype_of(what, scales) != kind:
        raise error("HK503", f"`{what}` holds {dtype_of(what, scales)}, but these scales are {kind}", hint="convert it")


def _same_depth(a: Any, b: Any) -> None:
    expect("a", a, tuple(a.shape[-2:]), "a matrix")
    expect("b", b, (b.shape[0], a.shape[1]), f"as many columns as `a`, {shown(a.shape)}")
