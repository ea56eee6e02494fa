"""The line that shows how far something is: on a terminal, and nowhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hkc as package
from hkc.cli import progress

ROOT = Path(package.__file__).parents[1]
PATIENT = """
import sys
from hkc.cli import main, progress
progress._PATIENCE = 0.01
sys.exit(main(sys.argv[1:]))
"""


def on_terminal(*words: str) -> tuple[int, str, str]:
    """Exit code, what went to a pipe as stdout, and what a terminal got as stderr."""
    ours, theirs = os.openpty()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    running = subprocess.Popen(
        [sys.executable, "-c", PATIENT, *words], env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True
    )
    os.close(theirs)
    shown = b"".join(iter(lambda: read(ours), b""))
    os.close(ours)
    out, _ = running.communicate()
    return running.returncode, out, shown.decode()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nobody holds the other side
        return b""


@pytest.fixture(params=["run", "check", "emulate"])
def words(request: pytest.FixtureRequest, examples: Path, tmp_path: Path) -> Iterator[tuple[str, ...]]:
    kernel = examples / "vector_add.hk"
    if request.param == "emulate":
        code = tmp_path / "k.hsaco"
        code.write_bytes(package.compile(kernel, "gfx942").hsaco)
        n = 1 << 16
        views = [word for name in range(3) for word in (f"f32[{n}]=ones", f"i64:{n}", "i64:1")]
        yield ("emulate", str(code), "--kernel", "vector_add", "--grid", "64", "--args", *views, "--check")
    elif request.param == "run":
        yield ("run", str(kernel), "--arch", "gfx942", "--set", "N=200000")
    else:
        yield ("check", str(kernel), "--arch", "gfx942")


def test_a_terminal_sees_it_and_json_stays_json(words: tuple[str, ...]) -> None:
    code, out, shown = on_terminal(*words, "--json")
    assert code == 0, shown
    json.loads(out)
    assert "%" not in out and "\r" not in out
    *lines, last = shown.split("\r")
    assert any("[" in line and "% " in line and " s (" in line for line in lines)
    assert last == "\033[K"


def test_nothing_goes_into_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with progress.Progress("work") as shown:
        shown(0.5, "half")
    assert capsys.readouterr() == ("", "")
