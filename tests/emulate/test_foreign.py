"""Code objects that others compiled, run as they are and compared with NumPy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"

sys.path.insert(0, str(ROOT / "bench"))

import foreign_kernels  # noqa: E402
import hot_loops  # noqa: E402
from peers import environment  # noqa: E402

LONG = "attention_d128"  # 6 million wave-instructions, which `bench/emulator.py` also runs


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=[pytest.mark.long] * (LONG in p.stem)) for p in sorted(DATA.glob("*.json"))],
)
def test_a_foreign_kernel_is_within_its_bound(path: Path) -> None:
    row = foreign_kernels.run(path)
    assert (row.ok, row.problem, row.findings) == (True, "", 0), foreign_kernels.text(row)
    assert row.instructions is not None and row.instructions > 500


@pytest.mark.parametrize("change", [lambda v: v + 1, lambda v: v * float("nan")])
def test_a_wrong_result_is_noticed(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    right = foreign_kernels.case

    def wrong(facts: dict[str, Any]) -> Any:
        case = right(facts)
        checks = tuple(replace(check, expected=change(check.expected)) for check in case.checks)
        return replace(case, checks=checks)

    monkeypatch.setattr(foreign_kernels, "case", wrong)
    assert not foreign_kernels.run(DATA / "iree-reduction.gfx942.json").ok


@pytest.fixture
def benchmark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.delenv("HKC_PEERS", raising=False)

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["foreign_kernels.py", *map(str, words)])
        return foreign_kernels.main(), *capsys.readouterr()

    return call


def test_the_benchmark_prints_json(benchmark: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = benchmark("--from", DATA, "--only", "add", "--json")
    rows = json.loads(out)["rows"]
    assert (code, [r["chip"] for r in rows]) == (0, ["gfx942", "gfx950"])
    assert all(r["ok"] and r["error"] == 0 for r in rows)


def test_the_benchmark_says_what_is_missing(
    benchmark: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a word it makes an environment, or leaves nothing behind."""
    calls: list[Any] = []

    def run(words: list[Any], check: bool) -> None:
        calls.append(words)
        (tmp_path / "peers").mkdir(exist_ok=True)
        if "install" in words:
            raise subprocess.CalledProcessError(1, words)

    monkeypatch.setattr(environment, "DEFAULT", tmp_path / "peers")
    monkeypatch.setattr(environment.subprocess, "run", run)
    with pytest.raises(SystemExit, match="the peers can't be installed"):
        benchmark()
    assert len(calls) == 2 and not (tmp_path / "peers").exists()
    monkeypatch.undo()
    code, _, err = benchmark("--env", tmp_path, "--peer", "iree")
    assert code == 1 and f"missing: iree is not installed in {tmp_path}" in err


def test_rows_of_peers_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=f"triton is not installed in {tmp_path}; iree is not installed"):
        list(hot_loops.live(tmp_path))
