"""`hkc.kernels` on inputs on which matrix products elsewhere went wrong; all answers are small whole numbers."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from matrix_products import CHIPS

import hkc
from hkc.emulate.checks import CHECKS, observers
from hkc.kernels import gemm, gemm_block_scaled, path
from hkc.kernels.choose import BATCHED, FORMS, TABLE, Tiles, extents
from hkc.kernels.epilogue import Epilogue
from hkc.kernels.files import compiled
from hkc.kernels.regenerate import WIDTHS
from hkc.machine.abi import View
from hkc.runtime.emulator import Emulator
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError

Array = np.ndarray[Any, Any]
BF16 = ml_dtypes.bfloat16

DEPTHS = (1, 2, 3, 4, 7, 8, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63, 65, 96, 100)
SIZES = (1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 100)


def pattern(m: int, n: int, k: int, kind: str) -> tuple[Array, Array]:
    """Small whole numbers of which no two rows or columns next to each other are alike."""
    i, j = np.ogrid[:m, :k]
    p, q = np.ogrid[:k, :n]
    element = dtype(kind).numpy
    return ((i + j) % 3 - 1).astype(element), ((2 * p + q) % 5 - 2).astype(element)


def exact(a: Array, b: Array) -> Array:
    return a.astype(np.float64) @ b.astype(np.float64)


def run(name: str, chip: str, tiles: Tiles, a: Array, b: Array, **constants: Any) -> Array:
    """A product in chosen tiles, which may be such as the rule never takes."""
    m, n = a.shape[-2], b.shape[-1]
    form = next(f for f, file in FORMS.items() if file == name)
    stored = [np.ascontiguousarray(x.T) if f == "T" else x for x, f in zip((a, b), form, strict=True)]
    kernel = compiled(name, chip, tiles.aligned, WAVES=tiles.waves, **extents(tiles), **constants)
    return kernel(*stored, **Epilogue().arguments((m, n), a), device="emulator")


def ragged(chip: str, kind: str, tiles: Tiles, count: int) -> None:
    """Every depth with `count` pairs of sizes: ones, whose products are K, and a pattern."""
    name, total = "gemm_nn", {"TA": kind, "TB": kind, "OUT": "f32", "TR": "f32"}
    for number, k in enumerate(DEPTHS):
        for step in range(count):
            m, n = SIZES[(number + step) % len(SIZES)], SIZES[(3 * number + 5 * step) % len(SIZES)]
            a, b = pattern(m, n, k, kind)
            ones = run(name, chip, tiles, np.ones_like(a), np.ones_like(b), **total)
            assert np.array_equal(ones, np.full((m, n), k)), (m, n, k)
            assert np.array_equal(run(name, chip, tiles, a, b, **total), exact(a, b)), (m, n, k)


@pytest.mark.parametrize("chip", CHIPS)
def test_ragged_products(chip: str) -> None:
    ragged(chip, "bf16", Tiles(32, 32, 32), 1)


@pytest.mark.long
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("tiles", [Tiles(32, 32, 32), Tiles(64, 64, 32), Tiles(64, 64, 32, waves=2)])
def test_many_ragged_products(tiles: Tiles, kind: str, chip: str) -> None:
    ragged(chip, kind, tiles, len(SIZES))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("depth", [24, 40, 48])
def test_steps_that_no_matrix_instruction_divides(depth: int, chip: str) -> None:
    """Right, or refused with the reason."""
    a, b = pattern(33, 65, 100, "bf16")
    try:
        found = run("gemm_nn", chip, Tiles(32, 32, depth), a, b, OUT="f32", TR="f32")
    except HkcError as refusal:
        assert refusal.diagnostics[0].code in ("HK431", "HK451", "HK452"), refusal
    else:
        assert np.array_equal(found, exact(a, b))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("depth", [32, 100, 256])
def test_shares_of_any_number(depth: int, chip: str) -> None:
    """A K of 100 has fewer steps than 8 shares: some are empty."""
    for m, split in itertools.product((1, 2, 17), (1, 2, 3, 4, 5, 8)):
        a, b = np.ones((m, depth), BF16), np.ones((depth, 33), BF16)
        c = np.full((m, 33), np.nan, np.float32)
        assert np.array_equal(gemm(a, b, out=c, split=split, arch=chip, device="emulator"), np.full((m, 33), depth))


@pytest.mark.parametrize("chip", CHIPS)
def test_the_waves_order_changes_no_byte(chip: str) -> None:
    """Twenty runs, each with its waves in another order and all checkers on, of sums that depend on their order."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s).astype(BF16) for s in ((65, 300), (300, 70)))
    for split in (1, 3):
        found = set()
        for seed in range(20):
            device: Any = Emulator(seed, observers(CHECKS))
            found.add(gemm(a, b, out_dtype="f32", split=split, arch=chip, device=device).tobytes())
        assert len(found) == 1, split


def views() -> dict[str, Array]:
    """Matrices of 24 x 40 that lie in memory in all kinds of ways."""

    def numbers(*shape: int) -> Array:
        return (np.arange(np.prod(shape)).reshape(shape) * 7 % 11 - 5).astype(BF16)

    return {
        "contiguous": numbers(24, 40),
        "transposed": numbers(40, 24).T,
        "every second row": numbers(48, 40)[::2],
        "every third column": numbers(24, 120)[:, ::3],
        "backwards": numbers(24, 40)[::-1],
        "columns backwards": numbers(24, 40)[:, ::-1],
        "one row": np.broadcast_to(numbers(40), (24, 40)),
        "one column": np.broadcast_to(numbers(24, 1), (24, 40)),
        "a head of three": numbers(24, 3, 56)[:, 1, :40],
        "permuted": numbers(40, 2, 24).transpose(1, 2, 0)[1],
        "1 element on": numbers(24 * 40 + 1)[1:].reshape(24, 40),
        "3 elements on, odd rows": numbers(24 * 41 + 3)[3:].reshape(24, 41)[:, :40],
        "in guards": numbers(40, 72)[8:32, 16:56],
    }  # fmt: skip


@pytest.mark.parametrize("chip", CHIPS)
def test_operands_and_results_that_are_views(chip: str) -> None:
    right = np.asfortranarray(np.arange(40 * 16).reshape(40, 16) % 5 - 2).astype(BF16)
    outs = {
        "rows of 19": np.full((24, 19), np.nan, np.float32)[:, :16],
        "by columns": np.full((16, 24), np.nan, np.float32).T,
        "upside down": np.full((24, 16), np.nan, np.float32)[::-1],
        "1 element on": np.full(24 * 16 + 1, np.nan, np.float32)[1:].reshape(24, 16),
    }
    for number, (what, left) in enumerate(views().items()):
        name = list(outs)[number % len(outs)]
        found = gemm(left, right, out=outs[name], arch=chip, device="emulator")
        assert found is outs[name] and np.array_equal(found, exact(left, right)), (what, name)
        assert np.array_equal(gemm(right.T, left.T, out_dtype="f32", arch=chip, device="emulator"), found.T), what


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("stride", "offset"), [(17, 0), (33, 1), (769, 2), (17389, 3)])
def test_rows_and_bases_that_are_not_aligned(stride: int, offset: int, chip: str) -> None:
    whole = np.full(5 * stride + offset, np.nan, np.float16)
    a = np.lib.stride_tricks.as_strided(whole[offset:], (5, stride - 1), (stride * 2, 2))
    a[...] = np.arange(5 * (stride - 1)).reshape(5, -1) % 3 - 1
    b = np.ones((stride - 1, 3), np.float16)
    assert np.array_equal(gemm(a, b, out_dtype="f32", arch=chip, device="emulator"), exact(a, b))


@pytest.mark.parametrize("chip", CHIPS)
def test_aligned_products_read_16_bytes_at_a_time(chip: str) -> None:
    kernel = compiled("gemm", chip, keep=("asm",))
    start = kernel.texts["asm"].index(f"\n{kernel.symbol}:")
    code = kernel.texts["asm"][start : kernel.texts["asm"].index("s_endpgm", start)].split("s_cbranch")
    loop = max(code, key=lambda block: block.count("v_mfma"))
    fetches = [line.split()[0] for line in loop.splitlines() if "buffer_load" in line]
    assert fetches and set(fetches) == {"buffer_load_dwordx4"}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("depth", [64, 128, 256])
def test_steps_wider_than_a_group_of_scales(depth: int, chip: str) -> None:
    """A scale of 1, then of 2: 384 times the row's own, where one for the whole step would give 256 or 512."""
    a, b = np.ones((5, 256), ml_dtypes.float8_e4m3fn), np.ones((9, 256), ml_dtypes.float8_e4m3fn)
    scales = np.arange(1, 6, dtype=np.float32)[:, None] * np.array([[1, 2]], np.float32)
    squares = np.ones((1, 2), np.float32)
    constants = {"BM": 64, "BN": 64, "BK": depth, "OUT": "f32"}
    if depth > 128:
        with pytest.raises(HkcError, match="HK313"):
            hkc.compile(path("gemm_block_scaled"), chip, **constants)
        return
    kernel = hkc.compile(path("gemm_block_scaled"), chip, **constants)
    wanted = 384 * np.arange(1, 6)[:, None] * np.ones((1, 9))
    assert np.array_equal(kernel(a, scales, b, squares, device="emulator"), wanted)
    assert np.array_equal(
        gemm_block_scaled(a, scales, b, squares, out_dtype="f32", arch=chip, device="emulator"), wanted
    )


@pytest.mark.parametrize("chip", CHIPS)
def test_offsets_beyond_31_bits(chip: str) -> None:
    """Rows that lie 2^31 elements apart: memory that is never touched costs nothing."""
    view = View(0, (3, 16), (1 << 31, 1), 1)
    assert view.span == 2 * (1 << 31) + 16
    kernel = compiled("gemm", chip, TA="i8", TB="i8", SUM="i32", OUT="i32", keep=("llvm",))
    views = {p: View(0, (16, 16), (16, 1), 4) for p in ("BIAS", "R", "C", "RS", "CS", "B")} | {"A": view}
    assert kernel.info.entry(views).symbol == f"{kernel.symbol}__general"
    fast, general = (kernel.texts["llvm"].split(f"@{e.symbol}(")[1].split("\n}")[0] for e in kernel.info.entries)
    assert "mul i64" in general or "mul nsw i64" in general
    assert "mul i64" not in fast.split("mfma")[1], "no 64-bit arithmetic between matrix instructions"
    whole = np.zeros((1 << 32) + 4096, np.int8)
    a = np.lib.stride_tricks.as_strided(whole, (3, 16), (1 << 31, 1))
    a[...] = 10 * np.arange(3)[:, None] + np.arange(16) % 3
    b = np.eye(16, dtype=np.int8)
    assert np.array_equal(gemm(a, b, arch=chip, device="emulator"), a)


def table() -> list[tuple[str, str, str, Tiles]]:
    rows = [line.split(",") for line in TABLE.read_text("utf-8").splitlines()[1:]]
    return [(r[0], r[1], r[2], Tiles(*map(int, r[3:7]), aligned=r[7] == "aligned")) for r in rows]


def agrees(chip: str, name: str, width: str, tiles: Tiles) -> None:
    kind = WIDTHS[int(width)]
    total = "i32" if kind == "i8" else "f32"
    constants = {"TA": kind, "TB": kind, "SUM": total, "OUT": total, "TR": "f32"}
    a, b = pattern(80, 272, 208, kind) if tiles.aligned else pattern(65, 100, 97, kind)
    assert np.array_equal(run(name, chip, tiles, a, b, **constants), exact(a, b))


@pytest.mark.parametrize(("chip", "name", "width", "tiles"), table()[3::40])
def test_some_tiles_agree(chip: str, name: str, width: str, tiles: Tiles) -> None:
    agrees(chip, name, width, tiles)


@pytest.mark.long
@pytest.mark.parametrize(("chip", "name", "width", "tiles"), table())
def test_all_tiles_agree(chip: str, name: str, width: str, tiles: Tiles) -> None:
    """Every row of the table gives the same whole numbers."""
    agrees(chip, name, width, tiles)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", [*FORMS.values(), *BATCHED.values()])
def test_large_batches_are_as_fast_as_matrices(name: str, chip: str) -> None:
    """Tiles come in ahead of time, on the same way as those of one matrix."""
    kernel = compiled(name, chip, BM=64, BN=64, BK=64)
    assert any("tiles come in 1 trip(s) ahead" in c.chosen for c in kernel.binary.choices)
    big = View(0, (500, 1024, 1024), (1 << 20, 1024, 1), 2)
    flat = View(0, big.extents[1:], big.strides[1:], 2)
    batched = name in BATCHED.values()
    views = dict.fromkeys(("A", "B", "C", "R"), big if batched else flat)
    views |= {p: View(0, (1024,), (1,), 4) for p in ("RS", "CS", "BIAS")}
    assert kernel.info.entry(views).symbol == kernel.symbol
