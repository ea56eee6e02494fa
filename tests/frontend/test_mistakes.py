"""One file per mistake, with the exact text beside it. `HKC_UPDATE=1` rewrites the texts; read the difference."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hkc.frontend.check import check
from hkc.frontend.codes import CODES
from hkc.frontend.parse import parse, read
from hkc.support.errors import HkcError, Source

FILES = sorted((Path(__file__).parents[1] / "mistakes").glob("*.hk"))


def explain(path: Path) -> str:
    """What the author of this file is told."""
    with pytest.raises(HkcError) as caught:
        check(parse(Source(path.name, read(path).text)))
    return f"{caught.value}\n"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_text_is_exact(path: Path) -> None:
    wanted = path.with_suffix(".txt")
    if os.environ.get("HKC_UPDATE"):
        wanted.write_text(explain(path), "utf-8")
    assert explain(path) == wanted.read_text("utf-8")


def test_every_code_is_explained_and_shown() -> None:
    shown = set(re.findall(r"error\[(HK\d+)\]", "".join(p.with_suffix(".txt").read_text("utf-8") for p in FILES)))
    elsewhere = {"HK121", "HK200", "HK305", "HK433"}  # tested on their own
    assert (
        shown == {code for code in CODES if not code.startswith(("HK45", "HK47"))} - elsewhere
    )  # HK45x: mistakes that passes find; HK47x: of modules, not of sources


def test_no_text_without_a_mistake() -> None:
    assert [p.stem for p in FILES] == sorted(p.stem for p in FILES[0].parent.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_error_says_what_to_do(path: Path) -> None:
    text = path.with_suffix(".txt").read_text("utf-8")
    assert text.count("\nhint: ") == len(re.findall(r"error\[HK\d+\]", text))
