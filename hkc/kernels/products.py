"""`gemm`: a matrix product of arrays, in the kernel that fits how they lie in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hkc.kernels.arrays import (
    address,
    as_array,
    by_columns,
    dtype_of,
    empty,
    flat,
    is_aligned,
    is_writable,
    overlap,
    rows_of,
    same_memory,
    shown,
    spread,
    transposed,
)
from hkc.kernels.choose import BATCHED, FORMS, PERSISTENT, Tiles, extents, ranked
from hkc.kernels.epilogue import Constants, Epilogue, result_dtype
from hkc.kernels.files import compiled, first_without_spills
from hkc.support.dtypes import dtype
from hkc.support.errors import error


def gemm(
    a: Any,
    b: Any,
    *,
    bias: Any = None,
    activation: str | None = None,
    residual: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    row_scales: Any = None,
    column_scales: Any = None,
    out_scale: float = 1.0,
    out: Any = None,
    out_dtype: str | None = None,
    split: int | None = None,
    workgroups: int | None = None,
    arch: str | None = None,
    device: str | None = None,
) -> Any:
    """`(activation(alpha * row_scales * column_scales * (a @ b) + beta * out + bias) + residual) * out_scale`, computed
    in f32 and rounded once to the dtype of the result.

    a              …xMxK of f32, f16, bf16, i8 or an 8-bit float, with any strides; a NumPy array, a PyTorch tensor, or
                   what shares memory by DLPack
    b              …xKxN of the same dtype (8-bit floats: of any); a transposed view is read as it lies
    bias           N numbers
    activation     "relu", "gelu", "gelu_tanh" or "silu"
    residual       …xMxN, or what broadcasts to it
    alpha, beta    numbers; with alpha = 0 neither `a` nor `b` is read, with beta = 0 `out` isn't
    row_scales     M numbers of f32 (…xM where `b` is one matrix); column_scales, N of them
    out            …xMxN, written and returned; it may be the residual, else it shares no memory with the operands
    out_dtype      a dtype's name; by default that of `out`, else of `a`, for 8-bit operands that of the sums (f32; i32
                   for i8). Narrow results saturate
    split          shares that K is split into, whose sums are added in order; by default what the rule in
                   `hkc.kernels.choose` says
    workgroups     how many take all tiles of the result, one after another; by default each tile has one of its own
    arch           the chip, by default that of the GPU here
    device         see `hkc.api.DEVICES`

    Sums are f32, exact i32 for i8. The same call gives the same bytes. Raises `HkcError` HK501 to HK518.
    """
    from hkc import api

    arrays = {"a": as_array("a", a, 2), "b": as_array("b", b, 2)}
    epilogue = Epilogue(bias, activation, residual, alpha, beta, row_scales, column_scales, out_scale)
    product = _product(arrays["a"], arrays["b"], epilogue, out, out_dtype)
    check_apart(product.given, arrays | product.epilogue.arrays)
    split = shares(split, product.flat)
    return product.run(api.chip_name(arch), device, split, _few(workgroups, split, product.flat))


@dataclass(frozen=True)
class _Product:
    """Operands of 2 dims (or 3, of a batch), the result as the caller and as the kernel see it (a copy where the batch
    can't be seen as one dim), the dtype of the sums, and what comes after these."""

    a: Any
    b: Any
    given: Any
    out: Any
    kinds: tuple[str, str, str]
    epilogue: Epilogue

    @property
    def flat(self) -> tuple[int, ...]:
        """The extents of the result as the kernel sees it."""
        return tuple(self.out.shape)

    def run(self, arch: str, device: str | None, split: int, workgroups: int) -> Any:
        """Choose, compile, launch."""
        turned = [by_columns(x) for x in (self.a, self.b)]
        form = "".join("T" if t else "N" for t in turned)
        stored = [transposed(x) if t else x for x, t in zip((self.a, self.b), turned, strict=True)]
        *batch, m, n = self.flat
        arrays = (*stored, self.out, *self.epilogue.arrays.values())
        candidates = ranked(
            arch, form, (m, n, self.a.shape[-1]), self.kinds, all(map(is_aligned, arrays)), split, math.prod(batch)
        )
        files = PERSISTENT if workgroups else BATCHED if batch else FORMS
        few: Constants = {"WORKGROUPS": workgroups} if workgroups else {}
        tiles, kernel = first_without_spills(
            lambda t: compiled(_shares_of(form) if t.splits > 1 else files[form], arch, **self._constants(t), **few),
            [t for t in candidates if t.splits == 1 or not (batch or workgroups)],
        )
        arguments = self.epilogue.arguments(self.flat, self.a)
        if tiles.splits == 1:
            kernel(*stored, **arguments, C=self.out, device=device)
        else:
            parts = empty((tiles.splits, *self.flat), self.kinds[2], self.a)
            kernel(*stored, parts, device=device)
            last = compiled("sum_splits", arch, **self._finish())
            last(parts, **arguments, C=self.out, device=device)
        if address(self.out) != address(self.given):
            self.given[...] = self.out.reshape(tuple(self.given.shape))
        return self.given

    def _finish(self) -> Constants:
        return self.epilogue.constants(dtype_of("out", self.out), self.kinds[2])

    def _constants(self, tiles: Tiles) -> Constants:
        made: Constants = {"TA": self.kinds[0], "TB": self.kinds[1], "SUM": self.kinds[2]}
        made |= extents(tiles)
        return made if tiles.splits > 1 else made | self._finish() | {"WAVES": tiles.waves, "aligned": tiles.aligned}


def _shares_of(form: str) -> str:
    """The kernel of the first phase where K is split."""
    return f"split_{form.lower()}"


def _product(a: Any, b: Any, epilogue: Epilogue, out: Any, kind: str | None) -> _Product:
    kinds = dtype_of("a", a), dtype_of("b", b)
    total = sum_of(*kinds)
    if a.shape[-1] != b.shape[-2]:
        message = f"`a` has {a.shape[-1]} columns, but `b` has {b.shape[-2]} rows"
        raise error("HK505", message, hint=f"`a` is {shown(a.shape)}, `b` {shown(b.shape)}; `b.T` swaps its dims")
    batch = _batch(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    shape = (*batch, a.shape[-2], b.shape[-1])
    stacked = len(b.shape) == 2
    epilogue = epilogue.checked(shape, stacked)
    given = result(out, kind, shape, total if dtype(kinds[0]).bytes == 1 else kinds[0], a, epilogue.beta)
    if stacked:
        seen: tuple[int, ...] = (rows_of(shape), shape[-1])
        a = flat(a, (seen[0], a.shape[-1]))
    else:
        count = math.prod(batch)
        a, b = (flat(spread(x, (*batch, *x.shape[-2:])), (count, *x.shape[-2:])) for x in (a, b))
        seen = (count, *shape[-2:])
    if epilogue.alpha == 0.0:
        a, b = a[..., :0], b[..., :0, :]
    return _Product(a, b, given, flat(given, seen), (*kinds, total), epilogue)


def result(out: Any, kind: str | None, shape: tuple[int, ...], own: str, like: Any, beta: float = 0.0) -> Any:
    """`out`, or memory for a result of a shape and a dtype: `kind`, that of `out`, or `own`. Raises `HkcError`."""
    if out is None:
        if beta:
            raise error("HK501", f"`beta` is {beta}, but there is no `out` to be multiplied by it", hint="pass `out`")
        return empty(shape, own if kind is None else result_dtype(kind), like)
    out = as_array("out", out, len(shape))
    if tuple(out.shape) != shape:
        raise error("HK505", f"`out` is {shown(out.shape)}, but the product {shown(shape)}")
    found = dtype_of("out", out)
    if kind is not None and found != result_dtype(kind):
        raise error("HK503", f"`out` holds {found}, but `out_dtype` is {kind}", hint="leave `out_dtype` out")
    result_dtype(found)
    if not is_writable(out):
        raise error("HK508", "`out` is written, but the array is read-only", hint="pass a copy")
    return out


def check_apart(out: Any, arrays: dict[str, Any]) -> None:
    """Raise `HkcError` HK508 where the result shares memory with what is read; the residual may be the result itself,
    since each element is read before it is written."""
    for name, array in arrays.items():
        if overlap(out, array) and not (name == "residual" and same_memory(out, array)):
            hint = f"pass a copy of `{name}`"
            raise error("HK508", f"`out` shares memory with `{name}`, which is read while it is written", hint=hint)


def shares(split: int | None, shape: tuple[int, ...]) -> int:
    """How many shares of K a call asks for, 0 for none in particular. Raises `HkcError`."""
    if split is None:
        return 0
    if isinstance(split, bool) or not isinstance(split, int) or split < 1:
        raise error("HK502", f"`split` is a whole number from 1, not {split!r}", hint="leave it out")
    if split > 1 and len(shape) > 2:
        hint = "leave `split` out, or multiply the matrices one by one"
        raise error("HK501", f"the K of a batch of {shape[0]} products can't be split into {split} shares", hint=hint)
    return split


def _few(workgroups: int | None, split: int, shape: tuple[int, ...]) -> int:
    """How many workgroups a call asks for, 0 for one per tile. Raises `HkcError`."""
    if workgroups is None:
        return 0
    if isinstance(workgroups, bool) or not isinstance(workgroups, int) or workgroups < 1:
        hint = "leave it out"
        raise error("HK502", f"`workgroups` is a whole number from 1, not {workgroups!r}", hint=hint)
    if split > 1 or len(shape) > 2:
        what = f"{split} shares of K" if split > 1 else f"a batch of {shape[0]} products"
        hint = "leave `workgroups` out"
        raise error("HK501", f"{workgroups} workgroups can't take the tiles of {what} one after another", hint=hint)
    return workgroups


def sum_of(a: str, b: str) -> str:
    """The dtype of sums of products. Raises `HkcError` HK503 for dtypes that aren't multiplied."""
    from hkc.dialects.tile.dot import EIGHT_BIT_FLOATS, SUMS

    if a not in SUMS or a == "f64" or (a != b and not {a, b} <= set(EIGHT_BIT_FLOATS)):
        hint = "f32, f16, bf16, i8, or any two 8-bit floats"
        raise error("HK503", f"`a` holds {a} and `b` holds {b}, which aren't multiplied", hint=hint)
    return SUMS[a]


def _batch(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    import numpy as np

    try:
        return tuple(np.broadcast_shapes(a, b))
    except ValueError:
        raise error("HK505", f"the batches {shown(a)} of `a` and {shown(b)} of `b` don't broadcast") from None
