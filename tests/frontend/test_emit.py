"""Tile IR against `CHECK` lines that stand in the kernels themselves, as comments."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser

from hkc.frontend.check import check
from hkc.frontend.parse import parse, read
from hkc.support.errors import Source
from hkc.support.worker import call

TESTS = Path(__file__).parents[1]
EXAMPLES = sorted((TESTS.parent / "examples").glob("*.hk"))


def tile_ir(path: Path, locations: bool = False) -> str:
    """The verified tile IR of a file, under its bare name."""
    checked = check(parse(Source(path.name, read(path).text)))
    return str(call("hkc.frontend.emit:text", checked, locations))


@pytest.mark.parametrize("path", sorted((TESTS / "golden" / "frontend").glob("*.hk")), ids=lambda p: p.stem)
def test_golden(path: Path) -> None:
    options = Options(str(path))
    ir = tile_ir(path, locations=True)
    told = io.StringIO()
    with redirect_stderr(told), redirect_stdout(told):
        failed = Matcher(options, FInput("tile IR", ir), Parser.from_opts(options)).run()
    assert not failed, f"{told.getvalue()}\n{ir}"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_every_op_has_a_place_in_the_source(path: Path) -> None:
    ir = tile_ir(path, locations=True)
    assert "loc(unknown)" not in ir
    rows = read(path).text.split("\n")
    places = [(int(a), int(b)) for a, b in re.findall(rf'loc\("{path.name}":(\d+):(\d+)\)', ir)]
    assert places and all(1 <= line <= len(rows) and 1 <= column <= len(rows[line - 1]) + 1 for line, column in places)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_the_same_text_gives_the_same_ir(path: Path) -> None:
    text = read(path).text
    other = check(parse(Source("elsewhere.hk", "# moved\n\n" + text)))
    assert call("hkc.frontend.emit:text", other) == tile_ir(path)
