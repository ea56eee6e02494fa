"""`gemm`: a matrix product of arrays, in the kernel that fits how they lie in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hkc.kernels.arrays import as_array, by_columns, empty, is_aligned, spread, transposed, unread
from hkc.kernels.choose import FORMS, Tiles, ranked
from hkc.kernels.files import SPILLS, compiled, dtype_of
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError, error

ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4}
"""What `activation` may be, and its number in the kernels."""

DEEP = 128
"""Bytes of a step along K where the table has no say."""


def gemm(
    a: Any,
    b: Any,
    *,
    bias: Any = None,
    activation: str | None = None,
    residual: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Any = None,
    out_dtype: str | None = None,
    split: int | None = None,
    arch: str | None = None,
    device: str | None = None,
) -> Any:
    """`activation(alpha * a @ b + beta * out + bias) + residual`, rounded once to the dtype of the result.

    a           …xMxK of f32, f16, bf16, i8 or an 8-bit float, with any strides; a NumPy array, a PyTorch tensor, or
                what shares memory by DLPack
    b           …xKxN of the same dtype (8-bit floats: of any); a transposed view is read as it lies
    bias        N numbers
    activation  "relu", "gelu", "gelu_tanh" or "silu"
    residual    …xMxN
    out         …xMxN, written and returned; with `beta` read as well
    out_dtype   a dtype's name; by default that of `a`, for 8-bit operands that of the sums (f32; i32 for i8). Narrow
                results saturate
    split       shares that K is split into, whose sums are added in order; by default what the rule in
                `hkc.kernels.choose` says
    arch        the chip, by default that of the GPU here
    device      see `hkc.api.DEVICES`

    Sums are f32, exact i32 for i8. The same call gives the same bytes. Raises `HkcError` HK501 to HK518.
    """
    from hkc import api

    p = _Product(as_array("a", a, 2), as_array("b", b, 2), arch or api.gpu_arch(), device)
    p.result(out, out_dtype)
    p.finish(bias, activation, residual, alpha, beta)
    if alpha == 0.0:
        p.a, p.b = p.a[..., :0], p.b[..., :0, :]
    return p.batched() if len(p.batch) else p.single(split or 0)


@dataclass
class _Product:
    """A product on its way: operands of 2 dims (or 3, of a batch), the result, and what comes after the sums."""

    a: Any
    b: Any
    arch: str
    device: str | None
    batch: tuple[int, ...] = ()
    out: Any = None
    kind: str = ""
    constants: dict[str, str | int | bool] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    added: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        self.kinds = dtype_of("a", self.a), dtype_of("b", self.b)
        self.total = _sum_of(*self.kinds)
        if self.a.shape[-1] != self.b.shape[-2]:
            raise error("HK505", f"`a` has {self.a.shape[-1]} columns, but `b` has {self.b.shape[-2]} rows")
        self.shape = (*_broadcast(self.a.shape[:-2], self.b.shape[:-2]), self.a.shape[-2], self.b.shape[-1])
        if len(self.b.shape) == 2:
            self.a = self.a.reshape(-1, self.a.shape[-1]) if len(self.a.shape) > 2 else self.a
        elif self.shape[:-2]:
            self.batch = (math.prod(self.shape[:-2]),)
            self.a, self.b = (
                spread(x, (*self.shape[:-2], *x.shape[-2:])).reshape(self.batch + tuple(x.shape[-2:]))
                for x in (self.a, self.b)
            )

    @property
    def flat(self) -> tuple[int, ...]:
        """The extents of the result as the kernel sees it."""
        return (*self.batch, self.a.shape[-2], self.b.shape[-1])

    def result(self, out: Any, kind: str | None) -> None:
        """Take `out`, or make it."""
        own = self.total if dtype(self.kinds[0]).bytes == 1 else self.kinds[0]
        self.kind = kind or (dtype_of("out", out) if out is not None else own)
        if out is None:
            out = empty(self.shape, self.kind, self.a)
        elif tuple(out.shape) != tuple(self.shape):
            raise error("HK505", f"`out` is {tuple(out.shape)}, but the product {tuple(self.shape)}")
        elif dtype_of("out", out) != self.kind:
            raise error("HK503", f"`out` holds {dtype_of('out', out)}, not {self.kind}")
        self.given, self.out = out, self._flat(out)

    def _flat(self, array: Any) -> Any:
        """A tensor of the result's extents as the kernel sees it, without a copy."""
        return array if len(array.shape) == len(self.flat) else array.reshape(self.flat)

    def finish(self, bias: Any, activation: str | None, residual: Any, alpha: float, beta: float) -> None:
        """What follows the sums, as constants and arguments."""
        if activation not in ACTIVATIONS:
            known = ", ".join(a for a in ACTIVATIONS if a)
            raise error("HK501", f"there is no activation `{activation}`", hint=known)
        if residual is not None and beta:
            raise error("HK501", "`residual` and `beta` both add a matrix; a call has one of them")
        added = self.out if beta else None if residual is None else self._flat(as_array("residual", residual, 2))
        narrow = dtype(self.kind).bits <= 8
        self.constants = {
            "OUT": self.kind, "SUM": self.total, "SCALED": alpha != 1.0, "SATURATE": narrow,
            "ACT": ACTIVATIONS[activation], "ADD": 0 if added is None else 1 if beta else 2,
            "BIASED": bias is not None,
            "TR": self.kind if added is None else dtype_of("residual", added),
            "TBIAS": "f32" if bias is None else dtype_of("bias", bias),
        }  # fmt: skip
        self.added = tuple(x for x in (added, bias) if x is not None)
        columns = self.flat[-1:]
        self.inputs = {
            "BIAS": unread(columns, "f32", self.a) if bias is None else bias,
            "R": unread(self.flat, self.kind, self.a) if added is None else added,
            "alpha": alpha,
            "beta": beta,
        }

    def single(self, split: int) -> Any:
        """One product."""
        turned = [by_columns(x) for x in (self.a, self.b)]
        letters = "".join("T" if t else "N" for t in turned)
        stored = [transposed(x) if t else x for x, t in zip((self.a, self.b), turned, strict=True)]
        (m, k), n = self.a.shape, self.b.shape[1]
        aligned = all(map(is_aligned, (*stored, self.out, *self.added)))
        for tiles in ranked(self.arch, letters, (m, n, k), (*self.kinds, self.total), aligned, split):
            try:
                return self._in_tiles(letters, stored, tiles)
            except HkcError as refusal:
                last = refusal
                if refusal.diagnostics[0].code != SPILLS:
                    raise
        raise last

    def _in_tiles(self, form: str, stored: list[Any], tiles: Tiles) -> Any:
        if tiles.splits > 1:
            return self._shares(form, stored, tiles)
        constants = self._operands() | _extents(tiles) | self.constants
        constants |= {"WAVES": tiles.waves, "aligned": tiles.aligned}
        return self._run(FORMS[form], constants, A=stored[0], B=stored[1])

    def batched(self) -> Any:
        """Products of a batch, in the kernel for operands with K as their last dim; others are read as they lie."""
        depth = DEEP // max(dtype(kind).bytes for kind in self.kinds)
        tiles = _extents(Tiles(64, 64, depth))
        return self._run("gemm_batched", self._operands() | tiles | self.constants, A=self.a, B=transposed(self.b))

    def _operands(self) -> dict[str, str | int | bool]:
        return {"TA": self.kinds[0], "TB": self.kinds[1]}

    def _shares(self, form: str, stored: list[Any], tiles: Tiles) -> Any:
        """Two launches: shares of K, each with its own sums, then the sums of these."""
        shares = empty((tiles.splits, *self.flat), self.total, self.a)
        constants = self._operands() | _extents(tiles) | {"SUM": self.total}
        compiled(f"split_{form.lower()}", self.arch, **constants)(*stored, shares, device=self.device)
        return self._run("sum_splits", self.constants, P=shares)

    def _run(self, name: str, constants: Mapping[str, Any], **arrays: Any) -> Any:
        compiled(name, self.arch, **constants)(**arrays, **self.inputs, C=self.out, device=self.device)
        return self.given


def _extents(tiles: Tiles) -> dict[str, str | int | bool]:
    return {"BM": tiles.rows, "BN": tiles.columns, "BK": tiles.depth}


def _sum_of(a: str, b: str) -> str:
    """The dtype of sums of products. Raises `HkcError` HK503 for dtypes that aren't multiplied."""
    from hkc.dialects.tile.dot import EIGHT_BIT_FLOATS, SUMS

    if a not in SUMS or a == "f64" or (a != b and not {a, b} <= set(EIGHT_BIT_FLOATS)):
        hint = "f32, f16, bf16, i8, or any two 8-bit floats"
        raise error("HK503", f"`a` holds {a} and `b` holds {b}, which aren't multiplied", hint=hint)
    return SUMS[a]


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    import numpy as np

    try:
        return tuple(np.broadcast_shapes(tuple(a), tuple(b)))
    except ValueError:
        raise error("HK505", f"the batches {tuple(a)} of `a` and {tuple(b)} of `b` don't broadcast") from None
