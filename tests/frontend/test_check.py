from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hkc.dialects.types import TileType, Type
from hkc.frontend.check import check, check_file
from hkc.frontend.parse import parse
from hkc.frontend.program import Checked, Loop, Op
from hkc.machine.abi import GlobalParam, ScalarParam
from hkc.support.errors import HkcError, HkcUsageError, Source

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.hk"))
HEAD = "kernel k(A: global[f32, M, N], s: f32, n: i32):\n    a = load(A, [0, 0], [16, 32])\n"


def checked(text: str, **overrides: str) -> Checked:
    return check(parse(Source("x.hk", text)), overrides)


def ops(body: Sequence[Op | Loop]) -> Iterator[Op]:
    """All ops, those in loops included."""
    for op in body:
        if isinstance(op, Loop):
            yield from ops(op.block.body)
        else:
            yield op


def type_of(expression: str) -> Type:
    """The type of an expression over `a`, `s`, `n`, `M`, `N`, which must compute something."""
    kernel = checked(HEAD + f"    y = {expression}\n").kernels[0]
    return list(ops(kernel.body))[-1].results[0].type


def codes(text: str) -> list[str]:
    with pytest.raises(HkcError) as caught:
        checked(text)
    return [d.code for d in caught.value.diagnostics]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_say_all_that_a_run_needs(path: Path) -> None:
    file = check_file(path)
    (kernel,) = file.kernels
    outputs = {r.name.name for r in file.references}
    assert {n for n, _ in file.examples} == {*kernel.dims, *kernel.scalars}
    assert outputs & {p.name for p in kernel.params}


def test_the_interface_of_a_kernel() -> None:
    kernel = checked(
        "const D = 64\n"
        "kernel k(Q: global[bf16, B, H, S, D], alpha: f32, n: i32, O: global[f32, S, 2*D]) with waves=8:\n"
        "    b, h = tile_ids(B * H, cdiv(S + n, D))\n    x = 1\n"
    ).kernels[0]
    assert kernel.params == (
        GlobalParam("Q", "bf16", ("B", "H", "S", 64)),
        ScalarParam("alpha", "f32"),
        ScalarParam("n", "i32"),
        GlobalParam("O", "f32", ("S", 128)),
    )
    assert kernel.grid == ("B * H", "cdiv((S + n), 64)")
    assert (kernel.dims, kernel.scalars, kernel.hints) == (("B", "H", "S"), ("alpha", "n"), (("waves", 8),))


def test_a_kernel_without_ids_has_one_workgroup() -> None:
    assert checked(HEAD).kernels[0].grid == ("1",)


@pytest.mark.parametrize(
    ("extent", "text"),
    [
        ("M", "M"),
        ("M + 1 - n", "(M + 1) - n"),
        ("(M * 2) // (N % 3)", "(M * 2) // (N % 3)"),
        ("min(min(M, N), 8)", "min(min(M, N), 8)"),
        ("-(-M // 4)", "0 - ((0 - M) // 4)"),
        ("2 * 3", "6"),
    ],
)
def test_the_grid_is_kept_as_text(extent: str, text: str) -> None:
    from hkc.support.extents import evaluate

    (grid,) = checked(HEAD + f"    i = tile_ids({extent})\n").kernels[0].grid
    assert grid == text
    values = {"M": 37, "N": 11, "n": 5}
    assert evaluate(grid, values) == evaluate(extent, values)


@pytest.mark.parametrize(
    ("expression", "shape", "dtype"),
    [
        ("a + 1", (16, 32), "f32"),
        ("2.5 / a", (16, 32), "f32"),
        ("a * s", (16, 32), "f32"),
        ("a.T", (32, 16), "f32"),
        ("a - sum(a, axis=1, keepdims=True)", (16, 32), "f32"),
        ("a + sum(a, axis=0)", (16, 32), "f32"),
        ("min(a, axis=-1)", (16,), "f32"),
        ("dot(a, a.T)", (16, 16), "f32"),
        ("dot(cast(a, f16).T, cast(a, f16))", (32, 32), "f32"),
        ("cast(a, A.dtype) < s", (16, 32), "bool"),
        ("where(a > 0.0, a, -inf)", (16, 32), "f32"),
        ("where(s > 0.0, a, 1)", (16, 32), "f32"),
        ("where(sum(a, axis=0) > 0.0, 1.0, a)", (16, 32), "f32"),
        ("where(a > 0.0, a < 1.0, False)", (16, 32), "bool"),
        ("iota[16, 1](axis=0) + iota[32]", (16, 32), "i32"),
        ("full[bf16, 16, 16](nan)", (16, 16), "bf16"),
        ("zeros[i8, 48] // 3", (48,), "i8"),
        ("abs(iota[96])", (96,), "i32"),
        ("maximum(a, 0)", (16, 32), "f32"),
    ],
)
def test_types(expression: str, shape: tuple[int, ...], dtype: str) -> None:
    assert type_of(expression) == TileType(shape, dtype)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("n + 1", "an index"),
        ("M - n", "an index"),
        ("-n", "an index"),
        ("cast(n - 1, i32) * 3", "i32"),
        ("n + cast(M, i32)", "i32"),
        ("where(s > 0.0, n, 0)", "an index"),
        ("where(s > 0.0, cast(M, i64), 0)", "i64"),
        ("s * 2", "f32"),
        ("n < M", "bool"),
    ],
)
def test_single_numbers(expression: str, kind: str) -> None:
    assert str(type_of(expression)) == kind


def test_an_index_and_a_converted_number_do_not_mix() -> None:
    assert codes(HEAD + "    x = M + cast(n - 1, i32)\n") == ["HK204"]
    assert codes(HEAD + "    x = cast(M, i32) // 0\n") == ["HK213"]


def test_what_a_kernel_reads_and_writes() -> None:
    kernel = check_file(Path(__file__).parents[2] / "examples" / "gemm.hk").kernels[0]
    assert (kernel.inputs, kernel.outputs) == (("A", "B"), ("C",))


def test_numbers_fold_as_tiles_compute() -> None:
    text = """const A = max(1.0, nan)
const B = min(nan, 1.0)
const C = -0.0
const D = -7 // 2
const E = -7 % 4
const F = cdiv(7, 2)
const G = 0.5 * exp2(3)
const H = abs(-3) < 4
kernel k(X: global[f32, M]):
    x = 1
"""
    assert [str(v) for _, v in checked(text).constants] == ["nan", "nan", "-0.0", "-4", "1", "4", "4.0", "True"]


def test_accumulation_is_one_op() -> None:
    body = checked(HEAD + "    c = zeros[f32, 16, 16]\n    c += dot(a, a.T)\n").kernels[0].body
    named = [op.name for op in ops(body)]
    assert named.count("hkc_tile.dot") == 1 and "arith.addf" not in named


def test_a_loop_carries_what_it_changes_and_nothing_else() -> None:
    text = """
    t = zeros[f32, 16, 32]
    i = 0
    for k in range(0, N, 32):
        b = load(A, [i, k], [16, 32])
        for j in range(4):
            i += j
        t = t + b * s
    store(A, [i, 0], t)
"""
    body = checked(HEAD + text).kernels[0].body
    (loop,) = [op for op in body if isinstance(op, Loop)]
    assert [str(v.type) for v in loop.carried] == ["an index", "16x32 f32"]
    (inner,) = [op for op in loop.block.body if isinstance(op, Loop)]
    assert len(inner.carried) == 1 and loop.block.yields[0] is inner.results[0]
    store = body[-1]
    assert isinstance(store, Op) and store.operands[0] is loop.results[1] and store.operands[2] is loop.results[0]


def test_names_of_a_loop_can_be_used_again() -> None:
    text = HEAD + "    for k in range(4):\n        b = a\n    for k in range(4):\n        b = a + 1.0\n    b = 3\n"
    assert checked(text).kernels


def test_kernels_do_not_see_each_others_names() -> None:
    two = "kernel one(A: global[f32, M]):\n    x = 1\nkernel two(B: global[f32, K]):\n    y = "
    assert len(checked(two + "K\n").kernels) == 2
    assert codes(two + "x\n") == codes(two + "M\n") == codes(two + "A\n") == ["HK301"]


def test_one_mistake_is_told_once() -> None:
    assert codes(
        HEAD + "    b = dot(a, a)\n    c = b + 1.0\n    for k in range(4):\n        b += c\n    d = dot(c, b)\n"
    ) == ["HK203"]
    assert codes(HEAD + "    i = q\n    j = q + 1\n") == ["HK301"]


def test_mistakes_come_in_the_order_of_the_text() -> None:
    text = (
        "const X = 1 // 0\n"
        + HEAD
        + "    b = dot(a, a)\n    store(A, [0], a)\n    c = a.t\n\nexample Q = 1\nreference Z = 1\n"
    )
    with pytest.raises(HkcError) as caught:
        checked(text)
    lines = [d.spans[0].line for d in caught.value.diagnostics]
    assert lines == sorted(lines) == [1, 4, 5, 6, 8, 9]


CONSTANTS = "const T = f32\nconst SCALE = 0.5\nconst CAUSAL = False\ntune BM = 16\nconst TWO = 2 * BM\n"


def test_overrides_reach_what_is_computed_from_them() -> None:
    body = "kernel k(A: global[T, M]):\n    x = load(A, [0], [TWO])\n"
    file = checked(CONSTANTS + body, T="bf16", BM="0x20", SCALE="1e-3", CAUSAL="true")
    found = {name: str(value) for name, value in file.constants}
    assert found == {"T": "bf16", "SCALE": "0.001", "CAUSAL": "True", "BM": "32", "TWO": "64"}
    assert list(ops(file.kernels[0].body))[-1].results[0].type == TileType((64,), "bf16")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("SCALES", "16", "did you mean `SCALE`?"),
        ("M", "16", "no constant `M`"),
        ("BM", "many", "`BM` must be a whole number, not `many`"),
        ("BM", "1" * 5000, "must be a whole number"),
        ("T", "fp32", "did you mean `f32`?"),
        ("CAUSAL", "maybe", "must be true or false"),
        ("SCALE", "half", "must be a number"),
    ],
)
def test_overrides_that_do_not_fit(name: str, text: str, words: str) -> None:
    with pytest.raises(HkcUsageError) as caught:
        checked(CONSTANTS + "kernel k(A: global[T, M]):\n    x = 1\n", **{name: text})
    assert words in str(caught.value)


FITS = "127 i8, 65519.0 f16, inf f16, 3.3895e38 bf16, 3.4028235e38 f32, 1e308 f64, True bool, -1 f32"
TOO_MUCH = "-129 i8, 65520.0 f16, 3.3962e38 bf16, 3.4028236e38 f32, 1 bool, True i32, 1.0 i32, nan i32"


@pytest.mark.parametrize("number", FITS.split(", "))
def test_numbers_adopt_a_dtype_that_holds_them(number: str) -> None:
    value, dtype = number.split()
    assert type_of(f"full[{dtype}, 16]({value})") == TileType((16,), dtype)


@pytest.mark.parametrize("number", TOO_MUCH.split(", "))
def test_numbers_refuse_a_dtype_that_does_not(number: str) -> None:
    value, dtype = number.split()
    assert codes(HEAD + f"    x = full[{dtype}, 16]({value})\n") == ["HK210"]


@pytest.mark.parametrize("extent", [1, 2, 16, 48, 64, 80, 96, 160, 1024])
def test_legal_extents(extent: int) -> None:
    assert checked(HEAD + f"    x = zeros[f32, {extent}]\n").kernels


NEAREST = {0: "is 1", -4: "is 1", 3: "is 2 or 4", 20: "is 16 or 32", 33: "is 32 or 48", 100: "is 96 or 112"}


@pytest.mark.parametrize("extent", NEAREST)
def test_illegal_extents_name_the_nearest_legal_ones(extent: int) -> None:
    with pytest.raises(HkcError) as caught:
        checked(HEAD + f"    x = zeros[f32, {extent}]\n")
    (found,) = caught.value.diagnostics
    assert found.code == "HK431" and str(found.hint).endswith(NEAREST[extent])
