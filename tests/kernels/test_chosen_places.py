"""Reads and writes of places that a mask or an index chooses: right at every edge, and wide where rows are chosen."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from matrix_products import CHIPS

import hkc
from hkc.api import CompiledKernel
from hkc.support.dtypes import dtype

KERNELS = {
    "gathered rows": "store(O, [p*64, q*64], gather(X, at[:, None], [q*64], shape=[64, 64], fill=FILL))",
    "scattered rows": "scatter(O, at[:, None], [q*64], load(X, [p*64, q*64], [64, 64], fill=FILL))",
    "masked rows": """seen = broadcast((at % 3 != 0)[:, None], [64, 64])
    x = load(X, [p*64, q*64], [64, 64], fill=FILL, mask=seen)
    store(O, [p*64, q*64], x, mask=broadcast(iota[64, 1](axis=0) % 2 == 0, [64, 64]))""",
}

SIZES = ((100, 72), (65, 63), (3, 40))
"""Extents that tiles fill, reach beyond in whole vectors of 16 bytes, and cut through."""


def kernel(name: str, element: str, arch: str) -> CompiledKernel:
    """Rows `at` of 64 x 64 tiles."""
    fill = {"bool": "True", "i8": "1"}.get(element, "1.5")
    text = f"""const FILL = {fill}
kernel k(X: global[{element}, M, N], I: global[i32, K], O: global[{element}, M, N]):
    p, q = tile_ids(cdiv(K, 64), cdiv(N, 64))
    at = load(I, [p*64], [64], fill=-1)
    {KERNELS[name]}
"""
    return hkc.compile(text, arch, keep=("asm",))


def expected(name: str, x: np.ndarray, at: np.ndarray, out: np.ndarray, fill: Any) -> np.ndarray:
    """What NumPy says of O."""
    wanted, inside = out.copy(), (at >= 0) & (at < len(x))
    if name == "gathered rows":
        wanted[:] = np.where(inside[:, None], x[np.where(inside, at, 0)], fill)
    elif name == "scattered rows":
        wanted[at[inside]] = x[inside]
    else:
        wanted[::2] = np.where((at % 3 != 0)[:, None], x, fill)[::2]
    return wanted


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("element", ["bf16", "i8", "bool"])
@pytest.mark.parametrize("name", KERNELS)
def test_rows_are_moved_right_and_by_16_bytes(name: str, element: str, arch: str) -> None:
    compiled = kernel(name, element, arch)
    aligned = compiled.texts["asm"].split(f"\n{compiled.info.name}__general:")[0]
    wide = re.findall(r"buffer_(load|store)_dwordx4", aligned)
    count = 64 * 64 * dtype(element).bytes // (16 * 64 * compiled.info.waves)
    assert {kind: wide.count(kind) for kind in ("load", "store")} == {"load": count, "store": count}

    rng = np.random.default_rng(5)
    entries = set()
    for rows, columns in SIZES:
        for room in (columns, -(-columns // 16) * 16, columns + 3):  # rows that lie apart by whole vectors, or don't
            x = np.zeros((rows, room), dtype(element).numpy)[:, :columns]
            x[...] = rng.integers(0, 2, x.shape) if element == "bool" else rng.integers(-9, 10, x.shape)
            at = rng.permutation(rows).astype(np.int32)
            at[rng.integers(0, 4, rows) == 0] = rng.choice([-1, rows, -(2**31), 2**31 - 1])
            out = np.full((rows, room), 0 if element == "bool" else 7).astype(x.dtype)[:, :columns]
            fill = {"bool": True, "i8": 1}.get(element, 1.5)
            wanted = expected(name, x, at, out, np.asarray(fill, x.dtype))
            entries.add(compiled.launch(compiled.bind(x, at, out), "emulator").entry)
            np.testing.assert_array_equal(out, wanted)
    assert len(entries) == 2


@pytest.mark.parametrize("arch", CHIPS)
def test_elements_chosen_one_by_one_are_read_one_by_one(arch: str) -> None:
    """Neighbours that are not chosen together can't be read together."""
    text = """kernel k(X: global[f32, M, N], O: global[f32, M, N]):
    x = load(X, [0, 0], [64, 64], mask=iota[64, 64](axis=1) % 3 != iota[64, 64](axis=0) % 2)
    store(O, [0, 0], x + gather(X, iota[64, 64](axis=1) // 2, [0], axis=1))
"""
    compiled = hkc.compile(text, arch, keep=("asm",))
    assert "buffer_load_dwordx4" not in compiled.texts["asm"]
    x = np.random.default_rng(1).integers(-9, 9, (61, 64)).astype(np.float32)
    i, j = np.ogrid[:61, :64]
    out = np.zeros_like(x)
    compiled.launch(compiled.bind(x, out), "emulator")
    np.testing.assert_array_equal(out, np.where(j % 3 != i % 2, x, 0) + x[i, j // 2])
