"""Block scales: a tensor with fewer columns than the loop visits is masked, one with enough of them never."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from matrix_products import CHIPS

import hkc
from hkc.api import CompiledKernel
from hkc.kernels import path
from hkc.machine.codeobject import CodeObject
from hkc.machine.control import hot_loop
from hkc.machine.disassemble import listing

TEXT = """
kernel scaled(A: global[f16, M, K], S: global[f32, M, G], C: global[f32, M, N]):
    m, n = tile_ids(cdiv(M, 32), cdiv(N, 32))
    acc = zeros[f32, 32, 32]
    for k in range(0, K, 32):
        part = dot(load(A, [m*32, k], [32, 32]), load(A, [n*32, k], [32, 32]).T)
        acc = acc + part * load(S, [m*32, k // 64], [32, 1])
    store(C, [m*32, n*32], acc)
"""


@functools.cache
def compiled(arch: str) -> CompiledKernel:
    return hkc.compile(TEXT, arch)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("groups", [0, 1, 2, 3, 4, 8])
@pytest.mark.parametrize("depth", [192, 160, 32, 8])
def test_as_many_groups_as_there_are(depth: int, groups: int, arch: str) -> None:
    """Rows are 16 bytes or a multiple apart, and behind a row's last scale stands one that must not be read."""
    rng = np.random.default_rng(depth + groups)
    a = rng.integers(-2, 3, (40, depth)).astype(np.float16)
    held = rng.integers(1, 5, (40, 16)).astype(np.float32)
    held[:, groups:] = np.nan
    found = compiled(arch)(a, held[:, :groups], N=40, device="emulator")
    scale = np.where(np.arange(16) < groups, held, 0).repeat(64, axis=1)[:, :depth].astype(np.float64)
    assert np.array_equal(found, (a.astype(np.float64) * scale) @ a.astype(np.float64).T)


@pytest.mark.parametrize(("name", "arch", "element"), [
    ("gemm_mx", "gfx950", "f8e4m3fn"), ("gemm_block_scaled", "gfx950", "f8e4m3fn"),
    ("gemm_block_scaled", "gfx942", "f8e4m3fnuz"),
])  # fmt: skip
def test_nothing_is_masked_in_the_loop(name: str, arch: str, element: str) -> None:
    parsed = CodeObject.parse(hkc.compile(path(name), arch, TA=element, TB=element).hsaco)
    loop = hot_loop(listing(parsed, parsed.kernel(name)))
    assert loop is not None
    assert (loop.count(r"s_cbranch"), loop.count(r"v_cmp"), loop.count(r"v_cndmask")) == (1, 0, 0)
