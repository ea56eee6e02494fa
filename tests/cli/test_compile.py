"""`hkc compile`: files, reports, stages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hkc import api
from hkc.handover import Resources
from hkc.kernels import path
from hkc.machine.codeobject import CodeObject

Command = Callable[..., Any]
KEYS = "arch file symbol vgpr agpr sgpr vgpr_spills sgpr_spills scratch lds_bytes waves args".split()
CHIPS = ["gfx942", "gfx950"]


def test_two_chips_with_a_report(hkc: Command, examples: Path) -> None:
    ran = hkc("compile", examples / "gemm.hk", "--arch", "gfx942,gfx950", "-o", "out", "--report", "json")
    assert (ran.code, ran.err) == (0, "")
    assert list(ran.json) == ["kernels"]
    assert [k["arch"] for k in ran.json["kernels"]] == CHIPS
    for kernel in ran.json["kernels"]:
        assert list(kernel) == [*KEYS, "lds", "choices", "requires", "audit"]
        accesses = [access for buffer in kernel["lds"] for access in buffer["accesses"]]
        assert accesses and all(a["cycles"] == a["lower_bound"] == a["minimum"] for a in accesses)
        assert kernel["file"] == f"out/gemm.{kernel['arch']}.hsaco"
        code = CodeObject.parse(Path(kernel["file"]).read_bytes())
        metadata = code.kernel(kernel["symbol"]).metadata
        assert (code.arch, metadata.vgprs, metadata.lds) == (kernel["arch"], kernel["vgpr"], kernel["lds_bytes"])
        assert (kernel["vgpr_spills"], kernel["sgpr_spills"], kernel["scratch"], kernel["waves"]) == (0, 0, 0, 4)
        assert kernel["args"][1] == {"name": "A.extent.0", "kind": "extent", "offset": 8, "bytes": 8}
    names = [f"gemm.{chip}.{end}" for chip in CHIPS for end in ("hsaco", "lines.json")]
    assert sorted(p.name for p in Path("out").iterdir()) == names


def test_without_a_report_the_paths_are_printed(hkc: Command, examples: Path) -> None:
    ran = hkc("compile", examples / "vector_add.hk", "--arch", "gfx942", "--set", "T=f16,BLOCK=256")
    assert (ran.code, ran.out, ran.err) == (0, "vector_add.gfx942.hsaco\nvector_add.gfx942.lines.json\n", "")
    assert all(Path(line).is_file() for line in ran.out.splitlines())


def test_the_text_report_has_the_same_columns(hkc: Command, examples: Path) -> None:
    ran = hkc("compile", examples / "vector_add.hk", "--arch", "gfx942", "--report", "text")
    heading, row, chip, *decisions = ran.out.splitlines()
    assert chip == "gfx942:" and any("registers: " in line for line in decisions)
    assert heading.split() == KEYS
    assert row.split()[:3] == ["gfx942", "vector_add.gfx942.hsaco", "vector_add"]
    assert row.endswith("72 B")


def test_every_stage(hkc: Command, examples: Path) -> None:
    stages = "tile,wave,rocdl,llvm,asm,hsaco"
    ran = hkc("compile", examples / "vector_add.hk", "--arch", "gfx942", "--emit", stages)
    ends = ["tile.mlir", "wave.mlir", "rocdl.mlir", "ll", "s", "hsaco", "lines.json"]
    assert ran.out.splitlines() == [f"vector_add.gfx942.{end}" for end in ends]
    for end, sign in zip(ends, ["hkc_tile.load", "hkc_wave.", "rocdl.", "define ", "global_", "", "rows"], strict=True):
        assert sign.encode() in Path(f"vector_add.gfx942.{end}").read_bytes()
    assert hkc("compile", examples / "vector_add.hk", "--arch", "gfx942", "--emit", "asm", "-o", "s").out.split() == [
        "s/vector_add.gfx942.s"
    ]


def test_a_line_table_inside_on_request(hkc: Command, examples: Path) -> None:
    hkc("compile", examples / "vector_add.hk", "--arch", "gfx942")
    plain = Path("vector_add.gfx942.hsaco").read_bytes()
    hkc("compile", examples / "vector_add.hk", "--arch", "gfx942", "-g")
    with_lines = Path("vector_add.gfx942.hsaco").read_bytes()
    assert b".debug_line" not in plain
    assert b".debug_line" in with_lines


def _say(monkeypatch: pytest.MonkeyPatch, symbol: str, taken: Resources) -> None:
    """Let every kernel that is built say that an entry takes so much."""
    build = api.build

    def saying(*args: Any) -> Any:
        kernel = build(*args)
        kernel.resources[symbol] = taken
        return kernel

    monkeypatch.setattr(api, "build", saying)


def test_spills_are_reported_and_refused(hkc: Command, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _say(monkeypatch, "vector_add__general", Resources(256, 0, 100, 7, 2, 64, 0))
    text = "`vector_add__general` for gfx942 spills 7 VGPRs and 2 SGPRs (64 B scratch)"
    call = ("compile", examples / "vector_add.hk", "--arch", "gfx942")
    refused = hkc(*call, "--fail-on-spill")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"error[HK518]: {text}\nhint: ")
    assert not list(Path().iterdir())
    warned = hkc(*call)
    assert (warned.code, warned.err) == (0, f"warning: {text}\n")


def test_kernels_of_hkc_itself_must_not_spill(hkc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    _say(monkeypatch, "sum_splits", Resources(64, 0, 100, 0, 1, 0, 0))
    call = ("compile", path("sum_splits"), "--arch", "gfx942")
    refused = hkc(*call)
    assert (refused.code, "HK518" in refused.err, refused.out) == (1, True, "")
    warned = hkc(*call, "--no-fail-on-spill")
    assert (warned.code, "warning: `sum_splits` for gfx942 spills 0 VGPRs and 1 SGPRs" in warned.err) == (0, True)


def test_layouts_are_explained(hkc: Command, examples: Path) -> None:
    ran = hkc("compile", examples / "gemm.hk", "--arch", "gfx942", "-o", "out", "--explain", "layouts")
    assert ran.code == 0
    dot, *buffers = ran.out.split("gfx942:\n")[1].splitlines()[:3]
    assert dot.startswith("line 10: dot: v_mfma_f32_") and "next best" in dot
    assert all(line.startswith("line 10: LDS: ") and "free of conflicts" in line for line in buffers)


@pytest.mark.parametrize("kernel", ["gemm", "attention"])
def test_the_runner_up_differs_from_the_choice(hkc: Command, examples: Path, kernel: str) -> None:
    ran = hkc("compile", examples / f"{kernel}.hk", "--arch", "gfx950", "--explain", "layouts")
    lines = [line for line in ran.out.splitlines() if line.partition(": ")[2].startswith(("dot", "LDS"))]
    assert lines and all("; next best, at " in line for line in lines)
    for line in lines:
        chosen, other = line.split(": ", 2)[2].split("; next best, at ")
        assert chosen.rpartition(", at ")[0] != other.partition(": ")[2]


def test_all_files_or_none(hkc: Command, examples: Path) -> None:
    Path("out/gemm.gfx950.hsaco").mkdir(parents=True)
    ran = hkc("compile", examples / "gemm.hk", "--arch", "gfx942,gfx950", "-o", "out")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error[HK517]: can't write `out/gemm.gfx950.hsaco`")
    assert [path.name for path in Path("out").iterdir()] == ["gemm.gfx950.hsaco"]
