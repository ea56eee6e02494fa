"""Rows chosen by a mask or an index go 16 bytes at a time: right at every edge, and nothing beside them is touched."""

from __future__ import annotations

import numpy as np
import pytest

import hkc
from hkc.support.dtypes import dtype
from hkc.targets.chip import names

GUARD = 4096
KERNEL = """kernel k(X: global[{0}, M, N], C: global[bool, M, N], I: global[i32, M],
         MASKED: global[{0}, M, N], LOADED: global[{0}, M, N], TAKEN: global[{0}, M, N], PUT: global[{0}, M, N]):
    i, j = tile_ids(cdiv(M, 16), cdiv(N, 64))
    i, j = i * 16, j * 64
    x = load(X, [i, j], [16, 64])
    rows = load(I, [i], [16], fill=-1)
    chosen = {1}
    store(MASKED, [i, j], x, mask=chosen)
    store(LOADED, [i, j], load(X, [i, j], [16, 64], fill=7, mask=chosen))
    taken = broadcast(rows[:, None], [16, 64])
    store(TAKEN, [i, j], gather(X, taken, [j], fill=5))
    scatter(PUT, taken, [j], x)
"""
MASKS = {
    "rows": "broadcast((rows % 2 == 0)[:, None], [16, 64])",
    "all but one column": "broadcast((iota[64] + cast(j, i32) != 66)[None, :], [16, 64])",
    "anything": "load(C, [i, j], [16, 64])",
}


def guarded(values: np.ndarray, odd: int) -> tuple[np.ndarray, np.ndarray]:
    """A copy with rows `odd` elements longer than needed, between guards; and all of that memory."""
    rows, columns = values.shape
    width = (columns + odd) * values.itemsize
    whole = np.full(2 * GUARD + rows * width, 0xA5, np.uint8)
    view = np.ndarray(values.shape, values.dtype, whole.data, GUARD, (width, values.itemsize))
    view[...] = values
    return view, whole


@pytest.mark.parametrize("arch", names())
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", ["f32", "f16", "i8"])
def test_masked_and_indexed_rows(kind: str, mask: str, arch: str) -> None:
    kernel = hkc.compile(KERNEL.format(kind, MASKS[mask]), arch)
    rng = np.random.default_rng(0)
    outputs = ("MASKED", "LOADED", "TAKEN", "PUT")
    for (m, n), odd in (((19, 64), 0), ((17, 67), 1), ((33, 130), 2), ((5, 4), 0), ((40, 72), 8), ((3, 1), 3)):
        x = rng.integers(-9, 10, (m, n)).astype(dtype(kind).numpy)
        c = rng.integers(0, 2, (m, n)).astype(bool)
        index = rng.permutation(m).astype(np.int32)
        index[::5] += m  # beyond the tensor
        given, memory = zip(*(guarded(np.full_like(x, 3), odd) for _ in outputs), strict=True)
        kernel.launch(kernel.bind(guarded(x, odd)[0], c, index, *given), "emulator")
        chosen = {"rows": (index % 2 == 0)[:, None], "all but one column": np.arange(n) != 66, "anything": c}[mask]
        inside = index < m
        put = np.full_like(x, 3)
        put[index[inside]] = x[inside]
        wanted = (
            np.where(chosen, x, 3), np.where(chosen, x, 7),
            np.where(inside[:, None], x[np.where(inside, index, 0)], 5), put,
        )  # fmt: skip
        for name, found, right, whole in zip(outputs, given, wanted, memory, strict=True):
            np.testing.assert_array_equal(found, right, f"{name} of {m}x{n}")
            found[...] = np.frombuffer(b"\xa5" * x.nbytes, x.dtype).reshape(x.shape)
            assert (whole == 0xA5).all(), f"beside {name} of {m}x{n}"
