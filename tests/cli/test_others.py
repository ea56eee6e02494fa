"""The smaller commands, and the page about all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hkc as package
from hkc.backend import doctor
from hkc.backend.doctor import Check
from hkc.cli.explain import all_codes
from hkc.cli.manual import made
from hkc.emulate import codes as emulation
from hkc.frontend import codes as language
from hkc.machine import codes as objects
from hkc.runtime import codes as calls

Command = Callable[..., Any]
ROOT = Path(__file__).parents[2]


def test_version_and_help(hkc: Command) -> None:
    assert (hkc("--version").code, hkc("--version").out) == (0, f"hkc {package.__version__}\n")
    ran = hkc("--help")
    assert ran.code == 0
    for command in ("compile", "run", "emulate", "check-syntax", "explain", "doctor"):
        assert re.search(rf"^ +{command}\b", ran.out, re.MULTILINE)
        assert hkc(command, "--help").code == 0


def test_check_syntax_goes_on_after_a_mistake(hkc: Command, examples: Path) -> None:
    Path("bad.hk").write_text("kernel\n")
    ran = hkc("check-syntax", "bad.hk", examples / "gemm.hk")
    assert (ran.code, ran.out) == (1, f"{examples / 'gemm.hk'}: ok\n")
    assert ran.err.startswith("bad.hk:1:")
    assert hkc("check-syntax", examples / "gemm.hk", examples / "softmax.hk").code == 0


def test_explain(hkc: Command) -> None:
    assert hkc("explain", "hk203").out == f"HK203  {language.CODES['HK203']}\n"
    everything = hkc("explain").out.splitlines()
    assert [line[:5] for line in everything] == sorted(all_codes())


def test_every_code_that_is_raised_anywhere_is_explained() -> None:
    folders = ("hkc", "frontend", "dialects", "passes", "targets")
    sources = {path for folder in folders for path in (ROOT / folder).rglob("*.py") if path.name != "codes.py"}
    raised = {code for path in sources for code in re.findall(r'"(HK\d{3})"', path.read_text())}
    assert raised == set(all_codes())


def test_every_code_of_calls_is_raised_and_explained() -> None:
    sources = [
        *ROOT.glob("hkc/runtime/*.py"),
        *ROOT.glob("hkc/reference/*.py"),
        *ROOT.glob("hkc/cli/*.py"),
        *ROOT.glob("hkc/figures/*.py"),
        ROOT / "hkc/api.py",
        ROOT / "hkc/support/files.py",
    ]
    raised = {
        code for path in sources if path.name != "codes.py" for code in re.findall(r'"(HK5\d\d)"', path.read_text())
    }
    assert raised == set(calls.CODES)


@pytest.mark.parametrize(
    ("folder", "pattern", "codes"),
    [("hkc/machine", r'"(HK60\d)"', objects.CODES), ("hkc/emulate", r'"(HK7\d\d)"', emulation.CODES)],
)
def test_every_code_of_code_objects_is_raised_and_explained(folder: str, pattern: str, codes: dict[str, str]) -> None:
    sources = [path for path in (ROOT / folder).rglob("*.py") if path.name != "codes.py"]
    assert {code for path in sources for code in re.findall(pattern, path.read_text())} == set(codes)


def test_doctor(hkc: Command) -> None:
    ran = hkc("doctor", "--json")
    names = [check["name"] for check in ran.json["checks"]]
    assert (ran.code, ran.json["ok"], ran.err) == (0, True, "")
    assert names[:3] == ["Python", "MLIR bindings", "LLVM"]
    assert names[-2:] == ["code for gfx942", "code for gfx950"]


def test_doctor_says_what_is_missing(hkc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [Check("Python", True, "3.11", "/bin/python"), Check("linker", False, note="install lld")]
    checks.append(Check("numba", False, note="not installed; hkc does without it", required=False))
    monkeypatch.setattr(doctor, "diagnose", lambda: list(checks))
    monkeypatch.setattr(doctor, "prove", lambda arch: Check(f"code for {arch}", True))
    ran = hkc("doctor")
    assert ran.code == 1
    assert [line.split()[:2] for line in ran.out.splitlines()[:3]] == [
        ["ok", "Python"],
        ["MISSING", "linker"],
        ["-", "numba"],
    ]
    checks[1] = Check("linker", True)
    assert hkc("doctor").code == 0


def test_the_pages_are_fresh() -> None:
    stale = [str(path) for path, text in made().items() if not path.exists() or path.read_text() != text]
    assert not stale, "run `python -m hkc.cli.manual`"
