"""`hkc opt`, and `hkc compile` of modules: texts of every stage read back as they were, and lead to the same bytes."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hkc as hkc_
from hkc.targets.chip import names

Hkc = Callable[..., Any]

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.hk"))
CHIPS = names()
STAGES = ("tile", "wave", "rocdl")
MLIR_OPT = shutil.which("mlir-opt", path="/usr/lib/llvm-22/bin:/usr/lib/llvm-23/bin") or shutil.which("mlir-opt")

TILES = """module attributes {hkc.chip = "gfx950"} {
  func.func @f(%x: tensor<16x64xf16>) {
    %y = "hkc_tile.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<16x64xf16>) -> tensor<64x16xf16>
    return
  }
}
"""


SMALL = {"gemm": {"BM": 32, "BN": 32}, "attention": {"BM": 32, "BN": 32}}
"""Tiles that compile fast."""


@pytest.fixture(scope="module")
def compiled() -> dict[tuple[str, str], hkc_.CompiledKernel]:
    """The examples for all chips, with the text of all stages."""
    return {
        (name, chip): hkc_.compile(ROOT / "examples" / f"{name}.hk", chip, keep=STAGES, **SMALL.get(name, {}))
        for name in EXAMPLES
        for chip in CHIPS
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_printed_module_reads_back_identically(
    name: str, hkc: Hkc, compiled: dict[tuple[str, str], Any], tmp_path: Path
) -> None:
    for chip in CHIPS:
        for stage in STAGES:
            text = compiled[name, chip].texts[stage]
            (tmp_path / "x.mlir").write_text(text)
            ran = hkc("opt", tmp_path / "x.mlir", "--verify")
            assert (ran.code, ran.err) == (0, "")
            assert ran.out == text, (chip, stage)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_module_compiles_to_the_bytes_of_the_direct_line(
    name: str, compiled: dict[tuple[str, str], Any], tmp_path: Path
) -> None:
    for chip, stages in zip(CHIPS, (("wave",), ("tile", "rocdl")), strict=True):
        direct = compiled[name, chip]
        for stage in stages:
            path = tmp_path / f"x.{stage}.mlir"
            path.write_text(direct.texts[stage])
            again = hkc_.compile(path, chip)
            assert again.hsaco == direct.hsaco, (chip, stage)
            assert again.binary.info == direct.binary.info
            assert again.binary.resources == direct.binary.resources


def test_every_pass_can_be_run_one_by_one(hkc: Hkc, tmp_path: Path) -> None:
    passes = [line.split()[0] for line in hkc("opt", "--list").out.splitlines()]
    direct = hkc_.compile(ROOT / "examples/gemm.hk", CHIPS[-1], keep=["tile"], **SMALL["gemm"])
    (tmp_path / "x.mlir").write_text(direct.texts["tile"])
    for name in passes[passes.index("split_entries") :]:
        ran = hkc("opt", tmp_path / "x.mlir", "-p", name, "--verify", "-o", tmp_path / "x.mlir")
        assert (ran.code, ran.out) == (0, ""), ran.err
        assert hkc("compile", tmp_path / "x.mlir", "--arch", CHIPS[-1]).code == 0
        assert Path(f"x.{CHIPS[-1]}.hsaco").read_bytes() == direct.hsaco, name


def test_the_command_line_goes_on_from_what_it_wrote(hkc: Hkc, examples: Path) -> None:
    chip = CHIPS[0]
    assert hkc("compile", examples / "vector_add.hk", "--arch", chip, "--emit", "wave,hsaco").code == 0
    first = Path(f"vector_add.{chip}.hsaco").read_bytes()
    ran = hkc("compile", f"vector_add.{chip}.wave.mlir", "--arch", chip, "-o", "again", "--report", "json")
    assert ran.json["kernels"][0]["file"] == f"again/vector_add.{chip}.hsaco"
    assert Path(f"again/vector_add.{chip}.hsaco").read_bytes() == first


def test_a_module_runs(compiled: dict[tuple[str, str], Any], tmp_path: Path) -> None:
    import numpy as np

    path = tmp_path / "add.wave.mlir"
    path.write_text(compiled["vector_add", CHIPS[0]].texts["wave"])
    x = np.arange(100, dtype=np.float32)
    kernel = hkc_.compile(path)
    assert np.array_equal(kernel(x, x, device="emulator"), x + x)
    with pytest.raises(hkc_.HkcUsageError, match="needs the kernel's source"):
        kernel(x, x, device="reference")


def test_passes_of_mlir_run_too(hkc: Hkc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(TILES))
    ran = hkc("opt", "-", "-p", "canonicalize")
    assert ran.code == 0 and "transpose" not in ran.out and "func.func @f" in ran.out


REFUSED = {
    "parse": (TILES.replace("return", "retun"), ["x.mlir:4:5: error[HK471]", "custom op 'retun' is unknown"]),
    "verifier": (
        TILES.replace("tensor<64x16xf16>", "tensor<16x16xf16>"),
        ["x.mlir:3:10: error[HK471]", "the result should be 64x16 f16, not 16x16 f16", '3 |     %y = "hkc_tile'],
    ),
    "version": (TILES.replace("{hkc.chip", "{hkc.dialect_version = 9 : i64, hkc.chip"), ["HK472", "version 9"]),
    "unknown form": (TILES.replace("{hkc.chip", '{hkc.forms = ["good"], hkc.chip'), ["HK473", "no form `good`"]),
    "false form": (
        TILES.replace("{hkc.chip", '{hkc.forms = ["layouts"], hkc.chip'),
        ["x.mlir:2:3: error[HK473]", "form `layouts` is broken by `func.func`"],
    ),
    "no chip": (TILES.replace(' attributes {hkc.chip = "gfx950"}', ""), ["HK474", "names no chip"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_module_of_ours_is_refused_at_its_place(case: str, hkc: Hkc) -> None:
    text, said = REFUSED[case]
    Path("x.mlir").write_text(text)
    ran = hkc("opt", "x.mlir", "--verify")
    assert (ran.code, ran.out) == (1, "")
    for part in said:
        assert part in ran.err


@pytest.mark.parametrize("layout", ["16x128 r(0,1) l(0,2) w()", "rows"])
def test_verify_refuses_layouts_that_do_not_fit(layout: str, hkc: Hkc) -> None:
    tile = f'tensor<16x64xf16, #hkc_tile.layout<"{layout}">>'
    Path("x.mlir").write_text(TILES.replace("tensor<16x64xf16>", tile))
    ran = hkc("opt", "x.mlir", "--verify")
    assert ran.code == 1 and "error[HK471]" in ran.err and "layout" in ran.err, ran.err


def test_a_pass_names_the_form_that_it_misses(hkc: Hkc) -> None:
    Path("x.mlir").write_text(TILES)
    ran = hkc("opt", "x.mlir", "-p", "swizzle_lds")
    assert ran.code == 1 and "pass `swizzle_lds` needs the form `staged`\nhint: `stage_through_lds`" in ran.err


def test_calls_that_are_wrong(hkc: Hkc, examples: Path) -> None:
    Path("x.mlir").write_text(TILES)
    ran = hkc("opt", "x.mlir", "-p", "swizle_lds")
    assert ran.code == 2 and "did you mean swizzle_lds?" in ran.err
    assert hkc("opt", "x.mlir", "--arch", "gfx942").code == 1  # the module is for another chip
    assert hkc("compile", "x.mlir", "--arch", "gfx950", "--set", "A=1").code == 2
    ran = hkc("compile", "x.mlir", "--arch", "gfx950")
    assert ran.code == 1 and "HK474" in ran.err and "hkc.interface" in ran.err


@pytest.mark.skipif(MLIR_OPT is None, reason="no mlir-opt here (Debian: apt-get install mlir-22-tools)")
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_stock_mlir_opt_reads_the_tile_ir_of_every_example(name: str, compiled: dict[tuple[str, str], Any]) -> None:
    for chip in CHIPS:
        text = compiled[name, chip].texts["tile"]
        assert _mlir_opt(text).returncode == 0
        (loads, *_) = re.findall(r'"hkc_tile.load"\((%\w+), (%\w+)', text)
        broken = {
            "wrong arity": text.replace(f'"hkc_tile.load"({loads[0]}, {loads[1]}', '"hkc_tile.load"(%', 1),
            "attribute": re.sub(r'(hkc_tile.tile_id"\([^)]*\)) \{[^}]*\}', r"\1", text, count=1),
        }
        for what, other in broken.items():
            assert other != text and _mlir_opt(other).returncode != 0, what


def _mlir_opt(text: str) -> subprocess.CompletedProcess[str]:
    assert MLIR_OPT is not None
    command = [MLIR_OPT, f"--irdl-file={ROOT / 'dialects/tile.irdl'}", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_a_crash_in_a_pass_is_contained(hkc: Hkc) -> None:
    claimed = '{hkc.forms = ["entries", "lds_mapped", "numbered"], hkc.chip'
    marks = 'f(%x: tensor<16x64xf16>) attributes {hkc.kernel, hkc.entry = "aligned"} {'  # and no number of waves
    Path("x.mlir").write_text(TILES.replace("{hkc.chip", claimed).replace("f(%x: tensor<16x64xf16>) {", marks))
    ran = hkc("opt", "x.mlir", "-p", "lower_tile_to_wave")
    assert ran.code == 70 and "reproducer: " in ran.err
    (folder,) = Path().glob("hkc-bug-*")
    assert (folder / "module.mlir").read_text() == Path("x.mlir").read_text()


FAILS = """kernel total(A: global[f32, M, N], B: global[f32, M], n: i32):
    i = tile_ids(cdiv(M, 16)) * 16
    acc = zeros[f32, 16]
    for k in range(0, N, 64):
        acc += sum(load(A, [i, k], [16, 64]), axis=1)
        assert n < 3, "few"
    store(B, [i], acc)
"""


@pytest.mark.parametrize("places", [(), ("-g",)], ids=["plain", "with places"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_module_knows_its_lines_and_assertions(stage: str, places: tuple[str, ...], hkc: Hkc) -> None:
    """Those of the module's own text, or with -g those of the kernel that it comes from."""
    import numpy as np

    Path("t.hk").write_text(FAILS)
    assert hkc("compile", "t.hk", "--arch", CHIPS[0], "--emit", f"{stage},hsaco", *places).code == 0
    name = f"t.{CHIPS[0]}.{stage}.mlir"
    printed = Path(name).read_text()
    assert hkc("opt", name, "--verify", *places).out == printed
    assert hkc("compile", name, "--arch", CHIPS[0], "-o", "again").code == 0
    direct, again = (json.loads(Path(d, f"t.{CHIPS[0]}.lines.json").read_text()) for d in (".", "again"))
    assert again["source"] == ("t.hk" if places else name) and len(again["rows"]) > 5
    assert (again["rows"] == direct["rows"]) is bool(places)
    with pytest.raises(hkc_.HkcError) as caught:
        hkc_.compile(name)(np.ones((3, 100), np.float32), n=4, device="emulator")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("HK720", "assertion failed: few")
    at = diagnostic.spans[0]
    assert at.source.name == again["source"]
    assert (at.line, at.column) == (6, 9) if places else "trap" in printed.splitlines()[at.line - 1] or stage == "tile"
