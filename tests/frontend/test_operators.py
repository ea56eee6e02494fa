"""Operators bind as in Python, whose parser is the judge; long texts are read in time that grows with their length."""

from __future__ import annotations

import ast

import hypothesis
from hypothesis import strategies as st

from hkc.frontend import syntax
from hkc.frontend.parse import parse
from hkc.frontend.python_syntax import Converter
from hkc.support.errors import Source

BINARY = ("or", "and", "|", "^", "&", "<<", ">>", "+", "-", "*", "/", "//", "%", "@", "**")
PREFIX = ("not ", "-", "~", "+")


@st.composite
def texts(draw: st.DrawFn, depth: int = 3) -> str:
    """An expression without brackets around every part, as Python's grammar has it."""
    if depth == 0:
        return draw(st.sampled_from(["a", "b.T", "f(c)", "1", "t[0]"]))
    left, right = draw(texts(depth - 1)), draw(texts(depth - 1))
    form = draw(st.sampled_from(["binary", "binary", "compare", "prefix", "brackets", "choice"]))
    if form == "binary":
        return f"{left} {draw(st.sampled_from(BINARY))} {right}"
    if form == "compare":
        return f"({left}) {draw(st.sampled_from(['==', '<', '>=']))} ({right})"
    if form == "choice":
        return f"({left} if a else {right})"
    return f"({left})" if form == "brackets" else f"{draw(st.sampled_from(PREFIX))}{right}"


@hypothesis.given(texts())
@hypothesis.settings(max_examples=300)
def test_operators_bind_as_in_python(text: str) -> None:
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return
    if any(isinstance(part, ast.Compare) and len(part.ops) > 1 for part in ast.walk(node)):
        return
    file = parse(Source("a.hk", f"kernel k(A: global[f32, M]):\n    x = {text}\n"))
    (statement,) = file.kernels[0].body
    assert isinstance(statement, syntax.Assign)
    wanted = Converter(Source("a.py", text), lambda name, _: name).expr(node)
    assert statement.values == (wanted,)
