"""The example in every pass's docstring does what it says, on both chips."""

from __future__ import annotations

import inspect
import io
from typing import Any

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from pass_examples import as_kernel, blocks, directives

from hkc.support import worker

CHIPS = ("gfx942", "gfx950")
ORDER: list[Any] = worker.call("pass_examples:pass_order")


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("module", "name", "doc"), [p[1:4] for p in ORDER], ids=[p[2] for p in ORDER])
def test_the_example_becomes_what_the_docstring_says(module: str, name: str, doc: str, arch: str) -> None:
    found = blocks(inspect.cleandoc(doc))
    assert found.get("Before") and found.get("After"), f"{name} shows no example"
    text = as_kernel(found["Before"])
    after = worker.call("pass_examples:run_pass", module, name, text, arch)
    options = Options(match_filename=name)
    checks = io.StringIO(directives(found["After"]))
    assert Matcher(options, FInput(name, after), Parser(options, checks, *pattern_for_opts(options))).run() == 0, after


def test_the_matcher_tells_names_apart() -> None:
    lines = directives(["%x = arith.addf %a, %a", "arith.mulf %x, %x"])
    options = Options(match_filename="-")

    def match(text: str) -> int:
        return Matcher(
            options, FInput("-", text), Parser(options, io.StringIO(lines), *pattern_for_opts(options))
        ).run()

    assert match("%0 = arith.addf %arg0, %arg0 : f32\n%1 = arith.mulf %0, %0 : f32\n") == 0
    assert match("%0 = arith.addf %arg0, %arg0 : f32\n%1 = arith.mulf %0, %arg0 : f32\n") != 0
