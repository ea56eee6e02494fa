"""Sums of products as the matrix units form them.

Three rules. f32 and f64: one fused multiply-add after the other along k. f16, bf16, xf32: groups of `length` products
are aligned at the largest product exponent, cut to 24 bits below it and added exactly; the accumulator joins with its
own alignment, everything is rounded down to 31 bits and then to nearest f32. 8-bit and smaller floats: the same with
groups of 16 whose even and odd products are added apart.

Source: `MMA_TR_FDPA` and `MMA_GTR_FDPA` of the package mmasim 2.1.1, whose authors compared them with a CDNA3 device;
tests hold vectors made with it. For the chip after it the same rule is assumed: inferred, not measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.floats import fma32, fma64

F64 = NDArray[np.float64]
F32 = NDArray[np.float32]

CUT, DEEP = 24, 31
"""Bits kept below the largest exponent among products, and after the accumulator joined."""

_CHUNK = 1 << 15
"""Results worked on at a time, so that intermediates stay in the cache."""

_MOST_THREADS = 8
"""More only wait for each other: between two NumPy calls each needs Python's lock."""


@dataclass(frozen=True)
class Operand:
    """Values and the powers of two of their exponents (denormals: that of the format's smallest normal), 0 for zeros.

    Arrays [blocks, rows, k], of f32 where everything fits, else f64.
    """

    values: NDArray[Any]
    powers: NDArray[Any]


def powers_of(values: F32, least: int) -> F32:
    """2^exponent of each value, not below 2^least; 0 for zeros."""
    powers = (values.view(np.uint32) & np.uint32(0x7F80_0000)).view(np.float32)
    return np.where(values == 0, np.float32(0), np.maximum(powers, np.float32(2.0**least)))


def aligned_sums(a: Operand, b: Operand, c: F32, length: int, paired: bool) -> F32:
    """c + a · bᵀ by the aligned rule: a [g, m, k], b [g, n, k], c [g, m, n]. `paired`: even and odd products apart."""
    groups, m, k = a.values.shape
    n = b.values.shape[1]
    step = max(1, _CHUNK // (m * n))
    result = np.empty((groups, m, n), np.float32)
    narrow = _narrow(a, b)
    parts = [slice(start, start + step) for start in range(0, groups, step)]

    def add(parts: list[slice]) -> None:
        with np.errstate(all="ignore"):
            for part in parts:
                sides = [_along_k(x, part, narrow) for x in (a, b)]
                total = c[part]
                for first in range(0, k, length):
                    last = min(first + length, k)
                    total = _group(sides[0], sides[1], total, range(first, last), paired, narrow)
                result[part] = total

    _share(add, parts)
    return result


def _share(work: Callable[[list[slice]], None], parts: list[slice]) -> None:
    """Do the parts on all cores: NumPy lets go of Python's lock. Threads last for one call, so forks find none."""
    threads = min(len(os.sched_getaffinity(0)), _MOST_THREADS, len(parts) // 2)
    if threads < 2:
        work(parts)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, (parts[i::threads] for i in range(threads))))


def _narrow(a: Operand, b: Operand) -> bool:
    """Can all products and their scaling be done in f32 without leaving its range?"""
    if a.values.dtype != np.float32 or b.values.dtype != np.float32:
        return False
    highest = float(a.powers.max()) * float(b.powers.max())
    lowest = float(_lowest(a.powers)) * float(_lowest(b.powers))
    finite = bool(np.isfinite(a.values).all() and np.isfinite(b.values).all())
    return finite and highest < 2.0**100 and lowest > 2.0**-90


def _lowest(powers: NDArray[Any]) -> Any:
    return np.where(powers == 0, powers.dtype.type(1), powers).min()


def _along_k(x: Operand, part: slice, narrow: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    kind = np.float32 if narrow else np.float64
    moved = [np.ascontiguousarray(np.moveaxis(v[part], -1, 0), kind) for v in (x.values, x.powers)]
    return moved[0], moved[1]


def _group(
    a: tuple[NDArray[Any], NDArray[Any]],
    b: tuple[NDArray[Any], NDArray[Any]],
    c: F32,
    ks: range,
    paired: bool,
    narrow: bool,
) -> F32:
    if not paired:
        dot, power = _cut_sum(a, b, ks, narrow)
        return _join(dot, power, c, False)
    halves = [_cut_sum(a, b, ks[i::2], narrow) for i in (0, 1)]
    power = np.maximum(halves[0][1], halves[1][1])
    unit = np.where(power == 0, 1.0, power) * 2.0**-CUT
    dot = sum((np.floor(half / unit) * unit for half, _ in halves), np.zeros(()))
    return _join(dot, power, c, True)


def _cut_sum(
    a: tuple[NDArray[Any], NDArray[Any]], b: tuple[NDArray[Any], NDArray[Any]], ks: range, narrow: bool
) -> tuple[F64, F64]:
    """The sum of products, each cut below 2^-24 of the largest exponent; and the power of that exponent (0: none)."""
    power = a[1][ks[0], :, :, None] * b[1][ks[0], :, None, :]
    other = np.empty_like(power)
    for k in ks[1:]:
        np.multiply(a[1][k, :, :, None], b[1][k, :, None, :], out=other)
        np.maximum(power, other, out=power)
    kind = power.dtype.type
    scale = kind(2.0**CUT) / np.where(power == 0, kind(1), power)
    total: NDArray[Any] = np.zeros(power.shape, np.int32 if narrow else np.float64)
    cut = np.empty(power.shape, np.int32)
    for k in ks:
        np.multiply(a[0][k, :, :, None], b[0][k, :, None, :], out=other)
        if narrow:
            other *= scale
            np.copyto(cut, other, casting="unsafe")
            total += cut
        else:
            beyond = np.abs(other) >= 2.0**128
            product = np.where(beyond, np.copysign(np.inf, other), other)
            total += np.trunc(product * scale)
    wide = power.astype(np.float64)
    return total * (wide * 2.0**-CUT), wide


def _join(dot: F64, power: F64, c: F32, drop: bool) -> F32:
    """Add the accumulator and round: down to 31 bits, then to nearest even in f32."""
    old = c.astype(np.float64)
    own = _power(old)
    top = np.maximum(power, own)
    unit = top * 2.0**-CUT
    addend = np.floor(old / unit) * unit
    if drop:
        addend[own < unit * 0.5] = 0.0
    fine = top * 2.0 ** -(DEEP + 1)
    total = np.floor(dot / fine) * fine + addend
    last = _power(total) * 2.0**-DEEP
    result = np.floor(total / last) * last
    finite = np.isfinite(dot + old)
    if not finite.all():
        result = np.where(finite, result, dot + old)
    return result.astype(np.float32)


def _power(values: F64) -> F64:
    """2^exponent, not below the smallest normal f32."""
    powers = (values.view(np.uint64) & np.uint64(0x7FF0_0000_0000_0000)).view(np.float64)
    return np.maximum(powers, 2.0**-126)


def fused_chain(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    """c + a · bᵀ, one fused multiply-add after the other: a [g, m, k], b [g, n, k], c [g, m, n], all f32 or all f64."""
    fma: Any = fma32 if c.dtype == np.float32 else fma64
    for k in range(a.shape[-1]):
        c = fma(a[:, :, None, k], b[:, None, :, k], c)
    return c


def integer_sums(a: NDArray[np.int8], b: NDArray[np.int8], c: NDArray[np.int32]) -> NDArray[np.int32]:
    """c + a · bᵀ modulo 2^32. The products of at most 1024 pairs stay exact in f32."""
    exact = a.astype(np.float32) @ b.astype(np.float32).swapaxes(-1, -2)
    result: NDArray[np.int32] = c + exact.astype(np.int32)
    return result


def integer_sums_clamped(a: NDArray[np.int8], b: NDArray[np.int8], c: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same with the sum clamped to the range of i32."""
    exact = (a.astype(np.float32) @ b.astype(np.float32).swapaxes(-1, -2)).astype(np.int64)
    result: NDArray[np.int32] = np.clip(exact + c, -(1 << 31), (1 << 31) - 1).astype(np.int32)
    return result
