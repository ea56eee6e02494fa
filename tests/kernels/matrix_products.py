"""Matrix products as kernels, and how to run them exactly on the emulator."""

from __future__ import annotations

import functools

import numpy as np

import hkc
from hkc.api import CompiledKernel
from hkc.emulate.bank_conflicts import BankObserver
from hkc.runtime.device import LaunchResult
from hkc.runtime.emulator import Emulator
from hkc.support.dtypes import dtype
from hkc.targets.chip import load

CHIPS = ("gfx942", "gfx950")

FORMS = ("NN", "NT", "TN", "TT")
"""Which of A and B is stored transposed: T of A is K x M, T of B is N x K."""


def gemm(form: str) -> str:
    """The text of C = A @ B with operands as `form` says."""
    a, rows, load_a = ("M, K", "A", "load(A, [m*BM, k], [BM, BK])")
    b, columns, load_b = ("K, N", "B", "load(B, [k, n*BN], [BK, BN])")
    if form[0] == "T":
        a, rows, load_a = ("K, M", "A.T", "load(A, [k, m*BM], [BK, BM]).T")
    if form[1] == "T":
        b, columns, load_b = ("N, K", "B.T", "load(B, [n*BN, k], [BN, BK]).T")
    return f"""
const T = bf16
const OUT = f32
const SUM = f32
tune BM = 64, BN = 64, BK = 32

kernel gemm(A: global[T, {a}], B: global[T, {b}], C: global[OUT, M, N]):
    m, n = tile_ids(cdiv(M, BM), cdiv(N, BN))
    acc = zeros[SUM, BM, BN]
    for k in range(0, K, BK):
        acc += dot({load_a}, {load_b})
    store(C, [m*BM, n*BN], cast(acc, OUT))

example M = 256, N = 256, K = 64
reference C = {rows} @ {columns}
"""


@functools.cache
def compiled(form: str, arch: str, hints: str = "", **constants: str | int) -> CompiledKernel:
    """A product, compiled once per test run."""
    text = gemm(form)
    return hkc.compile(text.replace("N]):", f"N]) with {hints}:") if hints else text, arch, **constants)


def operands(form: str, kind: str, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A and B as `form` wants them, of small whole numbers without symmetry, and the exact product."""
    rng = np.random.default_rng(m + n + k)
    a, b = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (k, n))
    element = dtype(kind).numpy
    stored = [x.T if letter == "T" else x for x, letter in zip((a, b), form, strict=True)]
    return (*(np.ascontiguousarray(x).astype(element) for x in stored), a @ b)


def run(kernel: CompiledKernel, *arrays: np.ndarray, seed: int = 0) -> tuple[np.ndarray, LaunchResult, BankObserver]:
    """The output of a launch on the emulator, with waves in the order drawn from `seed`, and what happened."""
    observer = BankObserver(load(kernel.arch))
    arguments = kernel.bind(*arrays)
    happened = kernel.launch(arguments, Emulator(seed, [observer]))
    return arguments.results(kernel.info)[0], happened, observer
