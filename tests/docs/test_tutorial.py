"""The tutorial runs, block after block."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import hkc

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)[ ]?(.*)\n((?:.*\n)*?)^```$", re.MULTILINE)


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    session: dict[str, object] = {}
    told = ""
    kinds = []
    for kind, options, text in BLOCK.findall(PAGE.read_text("utf-8")):
        kinds.append(kind)
        if kind == "hk":
            name = text.split("\n")[0].removeprefix("# ")
            Path(name).write_text(text, "utf-8")
            if options == "error":
                with pytest.raises(hkc.HkcError) as caught:
                    hkc.compile(name, arch="gfx950")
                told = str(caught.value)
        elif options.startswith("file="):
            Path(options.removeprefix("file=")).write_text(text, "utf-8")
        elif kind == "python":
            exec(compile(text, str(PAGE), "exec"), session)
        else:
            assert told == text.rstrip("\n")
    assert {"hk", "python", "text"} <= set(kinds)
    sys.modules.pop("add", None)
