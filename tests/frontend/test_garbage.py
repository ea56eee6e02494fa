"""Whatever the text, the answer is a checked program or an `HkcError` whose places lie in the text."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hkc.frontend.check import check
from hkc.frontend.parse import parse, read
from hkc.support.errors import HkcError, Source

TEXTS = [read(p).text for p in sorted((Path(__file__).parents[2] / "examples").glob("*.hk"))]
WORDS = sorted(
    {w for text in TEXTS for w in re.findall(r"\w+|[^\w\s]|\n *", text)}
    | set("if for nan 1e9 -1 0 @ ** // == ( [ \t ä".split(" "))
)


def answer(text: str) -> None:
    """Parses and checks; every diagnostic must be printable, point into the text and say what to do."""
    try:
        check(parse(Source("x.hk", text)))
    except HkcError as problem:
        rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert str(problem)
        for diagnostic in problem.diagnostics:
            assert diagnostic.spans and diagnostic.hint, diagnostic
            for span in diagnostic.spans:
                assert 1 <= span.line <= len(rows) + 1
                assert 1 <= span.column <= (len(rows[span.line - 1]) if span.line <= len(rows) else 0) + 1


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    answer(text)


@given(st.lists(st.sampled_from(WORDS), max_size=60))
def test_any_words(words: list[str]) -> None:
    answer("kernel k(A: global[f32, M]):\n    " + " ".join(words))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """An example with a few of its words dropped, doubled, replaced or swapped."""
    words = re.findall(r"\w+|[^\w\s]|\s+", draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 4))):
        i, j = draw(st.integers(0, len(words) - 1)), draw(st.integers(0, len(words) - 1))
        match draw(st.sampled_from(["drop", "double", "replace", "swap"])):
            case "drop":
                words[i] = ""
            case "double":
                words[i] *= 2
            case "replace":
                words[i] = draw(st.sampled_from(WORDS))
            case "swap":
                words[i], words[j] = words[j], words[i]
    return "".join(words)


@given(mutated())
def test_mutated_examples(text: str) -> None:
    answer(text)


HEAD = "kernel k(A: global[f32, M], s: f32):\n    x = zeros[f32, 64]\n"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "    y = " + "(" * 20_000,
        HEAD + "    y = " + "-" * 20_000 + "1\n",
        HEAD + "    y = x" + ".T" * 10_000 + "\n",
        HEAD + "    y = " + "1 + " * 10_000 + "1\n",
        HEAD + "    y = " + "2 ** " * 10_000 + "1\n",
        HEAD + "    y = f" + "(1)" * 10_000 + "\n",
        HEAD + "".join(" " * (4 * i + 4) + f"for k{i} in range(4):\n" for i in range(200)),
        HEAD + "    y = 3\n" + "    y = y * y\n" * 100,
        HEAD + "    i = M\n" + "    i = i + i\n" * 100 + "    j = tile_ids(i)\n",
        HEAD + "    y = " + "9" * 10_000 + "\n",
        HEAD + "    y = x[" + "1, " * 20_000 + "]\n",
    ],
    ids=lambda t: t[len(HEAD) : len(HEAD) + 20].strip(),
)
def test_deep_and_long_input_is_refused(text: str) -> None:
    with pytest.raises(HkcError) as caught:
        check(parse(Source("x.hk", text)))
    assert len(str(caught.value)) < 2000


def test_the_deepest_legal_nesting_is_checked() -> None:
    loops = "".join(" " * (4 * i + 4) + f"for k{i} in range(4):\n" for i in range(48))
    text = HEAD + loops + " " * 200 + "x = " + "abs(" * 48 + "x" + ")" * 48 + "\n"
    assert check(parse(Source("x.hk", text))).kernels


@pytest.mark.long
def test_twenty_thousand_lines() -> None:
    assert check(parse(Source("x.hk", HEAD + "    x = x * 2.0 + s\n" * 20_000))).kernels
    with pytest.raises(HkcError) as caught:
        check(parse(Source("x.hk", HEAD + "    y = x + A\n" * 20_000)))
    assert len(caught.value.diagnostics) == 20_000


def test_thousands_of_unknown_names_are_told_in_linear_time() -> None:
    text = HEAD + "".join(f"    x{i} = y{i}\n" for i in range(5_000))
    start = time.process_time()
    with pytest.raises(HkcError) as caught:
        check(parse(Source("x.hk", text)))
    assert len(caught.value.diagnostics) == 5_000
    assert time.process_time() - start < 5
