"""`hkc.kernels`: products of every dtype, transposition and epilogue are exact, or as near as their sums can be."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from matrix_products import CHIPS, FORMS

import hkc
from hkc.cli import main
from hkc.kernels import gemm, gemm_block_scaled, gemm_grouped, gemm_mx, path
from hkc.kernels.choose import FORMS as FILES
from hkc.kernels.choose import TABLE, ranked
from hkc.kernels.epilogue import Epilogue
from hkc.kernels.files import compiled
from hkc.kernels.regenerate import lines
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError

Array = np.ndarray[Any, Any]
BF16 = ml_dtypes.bfloat16


def whole(shape: tuple[int, ...], kind: str, seed: int = 0) -> Array:
    """Small whole numbers without symmetry."""
    return np.random.default_rng(seed + sum(shape)).integers(-3, 4, shape).astype(dtype(kind).numpy)


def exact(a: Array, b: Array) -> Array:
    return a.astype(np.float64) @ b.astype(np.float64)


def on(chip: str) -> dict[str, Any]:
    return {"arch": chip, "device": "emulator"}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    ("form", "a", "b"),
    [
        ("NN", "bf16", "bf16"),
        ("NT", "f16", "f16"),
        ("TN", "i8", "i8"),
        ("TT", "f32", "f32"),
        ("NT", "f8e4m3fn", "f8e5m2"),
        ("NN", "f8e4m3fnuz", "f8e5m2fnuz"),
        *(
            pytest.param(form, kind, kind, marks=pytest.mark.long)
            for form in FORMS
            for kind in ("bf16", "f16", "f32", "i8", "f8e4m3fn", "f8e5m2fnuz")
        ),
    ],
)
def test_every_dtype_and_transposition(form: str, a: str, b: str, chip: str) -> None:
    for m, n, k in ((70, 50, 40), (1, 1, 1), (64, 130, 161)):
        left, right = whole((m, k), a), whole((k, n), b)
        stored = [np.asfortranarray(x) if f == "T" else x for x, f in zip((left, right), form, strict=True)]
        total = "i32" if a == "i8" else "f32"
        assert np.array_equal(gemm(*stored, out_dtype=total, **on(chip)), exact(left, right)), (m, n, k)


@pytest.mark.parametrize("chip", CHIPS)
def test_sums_of_i8_are_exact_beyond_floats(chip: str) -> None:
    a, b = np.full((17, 2048), 127, np.int8), np.full((2048, 33), 127, np.int8)
    a[:, 5] = 126
    found = gemm(a, b, **on(chip))
    assert found.dtype == np.int32 and (found == 2048 * 127 * 127 - 127).all()


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("size", [(0, 8, 8), (8, 0, 8), (8, 8, 0), (0, 0, 0), (1, 2, 1)])
def test_empty_products_and_factors_of_zero(chip: str, size: tuple[int, int, int]) -> None:
    m, n, k = size
    a, b, c = whole((m, k), "bf16"), whole((k, n), "bf16"), np.full((m, n), np.nan, np.float32)
    assert gemm(a, b, out=c, **on(chip)) is c
    assert np.array_equal(c, exact(a, b))
    assert np.array_equal(gemm(a, b, out=c, beta=2.0, **on(chip)), 3 * exact(a, b))
    a[...], b[...] = np.nan, np.nan
    assert np.array_equal(gemm(a, b, alpha=0.0, out_dtype="f32", **on(chip)), np.zeros((m, n)))


@pytest.mark.parametrize("chip", CHIPS)
def test_split_k(chip: str) -> None:
    for m, k, split in ((1, 100, 8), (2, 256, 3), (17, 32, 5), (17, 100, 2), (1, 256, 4)):
        a, b = np.ones((m, k), BF16), np.ones((k, 33), BF16)
        c = np.full((m, 33), np.nan, np.float32)
        assert np.array_equal(gemm(a, b, out=c, split=split, **on(chip)), np.full((m, 33), k))
    b = np.repeat(((3 * np.arange(256) % 11) / 8).astype(BF16)[:, None], 33, axis=1)
    found = [gemm(np.ones((17, 256), BF16), b, split=s, **on(chip)) for s in (1, 2, 8)]
    assert all((f.astype(np.float64) == 159.0).all() and f.dtype == BF16 for f in found), "159.25, rounded once"


@pytest.mark.parametrize("chip", CHIPS)
def test_a_fixed_split_gives_the_same_bytes(chip: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s).astype(BF16) for s in ((17, 300), (300, 33)))
    assert len({gemm(a, b, out_dtype="f32", split=3, **on(chip)).tobytes() for _ in range(5)}) == 1


@pytest.mark.parametrize("chip", CHIPS)
def test_sums_are_as_near_as_f32_can_be(chip: str) -> None:
    """k products, each exact in f32, and k additions: an error of at most ((1 + u)^k - 1) times the magnitudes."""
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(s).astype(BF16) for s in ((33, 200), (200, 47)))
    bound = ((1 + 2.0**-24) ** 200 - 1) * exact(abs(a), abs(b))
    assert (abs(gemm(a, b, out_dtype="f32", **on(chip)) - exact(a, b)) <= bound).all()


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("split", [1, 2])
def test_what_follows_the_sums(chip: str, split: int) -> None:
    a, b, bias = whole((35, 64), "bf16"), whole((64, 50), "bf16"), whole((50,), "f32")
    r = whole((35, 50), "f32", 7)
    relu = np.maximum(0.5 * exact(a, b) + bias, 0) + r
    found = gemm(a, b, bias=bias, activation="relu", residual=r, alpha=0.5, out_dtype="f32", split=split, **on(chip))
    assert np.array_equal(found, relu)
    c = r.copy()
    assert np.array_equal(gemm(a, b, out=c, beta=-2.0, split=split, **on(chip)), exact(a, b) - 2 * r)


@pytest.mark.parametrize("chip", CHIPS)
def test_narrow_results_saturate(chip: str) -> None:
    a, b = np.full((16, 64), 100, np.int8), np.ones((64, 16), np.int8)
    a[3] = -100
    found = gemm(a, b, alpha=0.01, out_dtype="i8", **on(chip))
    assert (found[3] == -64).all() and (found[4] == 64).all()
    whole = np.arange(-32, 32, dtype=np.int8).reshape(4, 16)
    quarters = gemm(whole, np.eye(16, dtype=np.int8), out_scale=0.25, out_dtype="i8", **on(chip))
    assert np.array_equal(quarters, np.rint(whole / 4)), "to the nearest, and the even one of two"
    assert (gemm(a, b, out_dtype="i8", **on(chip))[:, 0] == np.where(np.arange(16) == 3, -128, 127)).all()


@pytest.mark.parametrize("chip", CHIPS)
def test_batches_broadcast(chip: str) -> None:
    a, b = whole((2, 1, 33, 40), "bf16"), whole((3, 40, 20), "bf16")
    assert np.array_equal(gemm(a, b, out_dtype="f32", **on(chip)), exact(a, b))
    turned = np.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2)
    assert np.array_equal(gemm(a[0], turned, out_dtype="f32", **on(chip)), exact(a[0], b))
    assert np.array_equal(gemm(a, b[0], out_dtype="f32", **on(chip)), exact(a, b[0]))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((0, 5, 16), (0, 16, 6)), ((2, 0, 16), (16, 6)), ((3, 0, 5, 16), (16, 6)), ((2, 3, 0), (0, 4)),
        ((2, 3, 0), (2, 0, 4)), ((0, 4), (4, 0)), ((1, 3, 16), (5, 16, 4)),
    ],
)  # fmt: skip
def test_batches_of_nothing(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = whole(a, "bf16"), whole(b, "bf16")
    found = gemm(x, y, out_dtype="f32", **on("gfx950"))
    assert found.shape == (x @ y).shape and np.array_equal(found, exact(x, y))


@pytest.mark.parametrize("chip", CHIPS)
def test_everything_that_follows_the_sums(chip: str) -> None:
    """Factors per row and column, beta beside a residual, one more factor; in batches and groups, too."""
    a, b, r, c = whole((35, 64), "bf16"), whole((64, 50), "bf16"), whole((35, 50), "f32", 7), whole((35, 50), "f32", 8)
    rows, columns, bias = whole((35,), "f32"), whole((50,), "f32"), whole((50,), "bf16")
    factors = {"alpha": 0.5, "row_scales": rows, "column_scales": columns, "out_scale": 0.25}
    scaled = 0.5 * rows[:, None] * columns * exact(a, b)
    for split in (1, 2):
        out = c.copy()
        given = {"bias": bias, "activation": "relu", "residual": r, "beta": -2.0, "out": out, "split": split}
        assert gemm(a, b, **factors, **given, **on(chip)) is out
        assert np.array_equal(out, (np.maximum(scaled - 2.0 * c + bias.astype(np.float64), 0) + r) / 4)
    batch = gemm(np.stack([a, 2 * a]), np.stack([b, b]), **factors, residual=r, out_dtype="f32", **on(chip))
    assert np.array_equal(batch, np.stack([scaled + r, 2 * scaled + r]) / 4)
    w, biases, sizes = whole((3, 20, 64), "bf16"), whole((3, 20), "f32"), np.array([0, 30, 5], np.int32)
    of = np.repeat(np.arange(3), sizes)
    sums = rows[:, None] * np.einsum("mk,mnk->mn", a.astype(np.float64), w[of].astype(np.float64)) + biases[of]
    by_columns = np.ascontiguousarray(w.swapaxes(1, 2)).swapaxes(1, 2)
    for stored in (w, by_columns):
        given = {"bias": biases, "activation": "relu", "row_scales": rows, "out_dtype": "f32"}
        assert np.array_equal(gemm_grouped(a, stored, sizes, **given, **on(chip)), np.maximum(sums, 0))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("sizes", [[20, 0, 50], [0, 0, 0], [70, 0, 0], [1, 64, 5], [0, 65, 3]])
def test_groups_of_rows(chip: str, sizes: list[int]) -> None:
    a, b = whole((70, 40), "bf16"), whole((3, 24, 40), "bf16")
    found = gemm_grouped(a, b, np.array(sizes, np.int32), out_dtype="f32", **on(chip))
    rows = np.repeat(np.arange(3), sizes)
    wanted = np.einsum("mk,mnk->mn", a[: len(rows)].astype(np.float64), b[rows].astype(np.float64))
    assert np.array_equal(found[: len(rows)], wanted)
    assert not found[len(rows) :].any(), "rows of no group are 0 where no `out` was given"


@pytest.mark.parametrize("chip", CHIPS)
def test_scales_per_block(chip: str) -> None:
    """K of two scale groups: 384 times the row's scale, where one scale for all would give 256 or 512."""
    a, b = (np.ones((m, 256), ml_dtypes.float8_e4m3fn) for m in (40, 130))
    rows = np.arange(1, 41, dtype=np.float32)[:, None]
    groups = rows * np.array([[1, 2]], np.float32)
    squares = np.array([[1, 1], [3, 3]], np.float32)
    found = gemm_block_scaled(a, groups, b, squares, out_dtype="f32", **on(chip))
    assert np.array_equal(found, rows * 384 * np.where(np.arange(130) < 128, 1, 3))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("f8e4m3fn", "f8e5m2"), ("f6e2m3", "f6e2m3"), ("f4e2m1", "f4e2m1"),
        ("f8e4m3fn", "f4e2m1"), ("f6e3m2", "f8e5m2"), ("f4e2m1", "f6e2m3"),
    ],
)  # fmt: skip
def test_microscaling_formats(left: str, right: str) -> None:
    rng = np.random.default_rng(3)
    a, b = whole((40, 160), left), whole((30, 160), right)
    powers = [2.0 ** rng.integers(-2, 3, (len(x), 5)) for x in (a, b)]
    scales = [p.astype(ml_dtypes.float8_e8m0fnu) for p in powers]
    found = gemm_mx(a, scales[0], b, scales[1], out_dtype="f32", **on("gfx950"))
    scaled = [x.astype(np.float64) * np.repeat(p, 32, axis=1) for x, p in zip((a, b), powers, strict=True)]
    assert np.array_equal(found, scaled[0] @ scaled[1].T)
    with pytest.raises(HkcError, match="HK451"):
        gemm_mx(a, scales[0], b, scales[1], **on("gfx942"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"b": np.ones((9, 8), BF16)}, "HK505.*`a` has 8 columns, but `b` has 9 rows"),
        ({"b": np.ones((8, 8), np.float32)}, "HK503.*`a` holds bf16 and `b` holds f32"),
        ({"activation": "swish"}, "HK501.*no activation `swish`"),
        ({"out": np.ones((9, 9), BF16)}, "HK505.*`out` is 9x9, but the product 8x8"),
        ({"a": 3}, "HK502.*`a` is no array or tensor, but of type int"),
        ({"arch": 5}, "HK514.*named by a text, not 5"),
        ({"arch": ["gfx950"]}, "HK514.*named by a text"),
        ({"a": np.ones(8, BF16)}, "HK504.*`a` has 1 dim, but at least 2"),
    ],
)
def test_mistakes_of_a_call(change: dict[str, Any], said: str) -> None:
    given = {"a": np.ones((8, 8), BF16), "b": np.ones((8, 8), BF16), **on("gfx950")} | change
    with pytest.raises(HkcError, match=said):
        gemm(given.pop("a"), given.pop("b"), **given)


@pytest.mark.parametrize("chip", CHIPS)
def test_large_products_take_large_tiles(chip: str) -> None:
    """What the rule chooses, without running it: it may take the largest tiles only where operands are aligned."""
    kinds = ("bf16", "bf16", "f32")
    best = ranked(chip, "NT", (4096, 4096, 4096), kinds, aligned=True)[0]
    assert (best.rows, best.columns, best.waves, best.splits) == (256, 256, 8, 1)
    assert not any(t.aligned for t in ranked(chip, "NT", (4096, 4096, 4096), kinds, aligned=False))
    assert ranked(chip, "NT", (64, 64, 1 << 16), kinds, aligned=True)[0].splits > 1


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["f32", "bf16", "i8"])
def test_some_tiles_fit_operands_that_are_not_aligned(kind: str, form: str, chip: str) -> None:
    kinds = (kind, kind, "i32" if kind == "i8" else "f32")
    assert ranked(chip, form, (33, 33, 33), kinds, aligned=False, split=1)


@pytest.mark.long
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("waves", [8, 4])
def test_the_largest_tiles(waves: int, form: str, chip: str) -> None:
    a, b = whole((264, 208), "bf16"), whole((208, 520), "bf16")
    stored = [np.ascontiguousarray(x.T if f == "T" else x) for x, f in zip((a, b), form, strict=True)]
    kinds = ("bf16", "bf16", "f32")
    shipped = ranked(chip, form, (4096, 4096, 4096), kinds, aligned=True)
    if not any((t.rows, t.waves) == (256, waves) for t in shipped):
        pytest.skip("its registers would spill")
    unused = Epilogue().arguments((264, 520), a)
    kernel = compiled(FILES[form], chip, aligned=True, OUT="f32", TR="f32", BM=256, BN=256, BK=64, WAVES=waves)
    assert np.array_equal(kernel(*stored, **unused, device="emulator"), exact(a, b))


@pytest.mark.long
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", sorted(p.stem for p in path("gemm").parent.glob("*.hk") if p.stem != "epilogues"))
def test_no_shipped_kernel_spills(name: str, chip: str) -> None:
    try:
        kernel = hkc.compile(path(name), chip)
    except HkcError as refusal:
        assert refusal.diagnostics[0].code == "HK451" and name == "gemm_mx"
        return
    assert not [symbol for symbol, taken in kernel.resources.items() if taken.spills]


@pytest.mark.long
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", sorted(p.stem for p in path("gemm").parent.glob("*.hk") if p.stem != "epilogues"))
def test_the_checkers_find_nothing(name: str, chip: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["check", str(path(name)), "--arch", chip, "--interleavings", "8"])
    said = capsys.readouterr()
    assert code == 0 or (name == "gemm_mx" and "HK451" in said.err), said.out + said.err


@pytest.mark.long
def test_the_table_is_fresh() -> None:
    """`python -m hkc.kernels.regenerate` writes it."""
    assert TABLE.read_text("utf-8").splitlines() == list(lines())
