"""The command line, called in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hkc.cli import main


@dataclass
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


@pytest.fixture
def hkc(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Runs `hkc` with these words in an empty folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run(*words: object) -> Outcome:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def examples() -> Path:
    return Path(__file__).parents[2] / "examples"
