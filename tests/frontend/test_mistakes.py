"""One file per mistake, with the exact text beside it. `HKC_UPDATE=1` rewrites the texts; read the difference."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hkc.frontend.parse import parse, read
from hkc.support.errors import HkcError, Source

FILES = sorted((Path(__file__).parents[1] / "mistakes").glob("*.hk"))


def explain(path: Path) -> str:
    """What the author of this file is told."""
    with pytest.raises(HkcError) as caught:
        parse(Source(path.name, read(path).text))
    return f"{caught.value}\n"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_text_is_exact(path: Path) -> None:
    wanted = path.with_suffix(".txt")
    if os.environ.get("HKC_UPDATE"):
        wanted.write_text(explain(path), "utf-8")
    assert explain(path) == wanted.read_text("utf-8")
