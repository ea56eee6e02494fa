"""Long and deeply nested input ends in a result or a located error, never in a crash."""

from __future__ import annotations

import pytest

from hkc.frontend.check import check
from hkc.frontend.parse import parse
from hkc.support.errors import HkcError, Source

HEAD = "kernel k(A: global[f32, M], n: i32):\n"
INDENT = "    "


def told(text: str) -> str:
    """The first line of what is said about a text; "" where it is right."""
    try:
        check(parse(Source("a.hk", text)))
    except HkcError as problem:
        return str(problem).split("\n")[0]
    return ""


def nested(line: str, depth: int) -> str:
    """A block in a block in a block …"""
    lines = (INDENT * (i + 1) + line.format(i) + "\n" for i in range(depth))
    return f"{HEAD}    x = 1\n{''.join(lines)}{INDENT * (depth + 1)}x += 1\n"


@pytest.mark.parametrize("line", ["if n > {}:", "for j{} in range(3):", "while n > x + {}:"])
def test_blocks_nest_up_to_a_limit(line: str) -> None:
    assert told(nested(line, 48)) == ""
    assert "HK432" in told(nested(line, 200))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("    if n > 0:\n        x = 1\n" + "    elif n > 1:\n        x = 2\n" * 500, "HK432"),
        ("    x = " + "(" * 5000 + "1" + ")" * 5000 + "\n", "HK432"),
        ("    x = " + "not " * 5000 + "True\n", "HK432"),
        ("    x = " + "1 if n > 3 else " * 3000 + "2\n", "HK432"),
        ("    x = " + "1 + " * 5000 + "2\n", "HK432"),
        ("    x = M" + "[0]" * 5000 + "\n", "HK432"),
        ("    x = M" + ".T" * 5000 + "\n", "HK432"),
    ],
)
def test_deep_text_is_refused(text: str, code: str) -> None:
    assert code in told(HEAD + text)


def test_functions_that_grow_without_end_are_refused() -> None:
    chain = "".join(f"def g{i}(x):\n    return g{i + 1}(x) + g{i + 1}(x)\n" for i in range(30))
    assert "HK437" in told(f"{chain}def g30(x):\n    return x\n{HEAD}    x = g0(M)\n")
    deep = "".join(f"def g{i}(x):\n    return g{i + 1}(x)\n" for i in range(80))
    assert "HK432" in told(f"{deep}def g80(x):\n    return x\n{HEAD}    x = g0(M)\n")


@pytest.mark.parametrize(
    "lines",
    [
        "".join(f"    x{i} = {i} + M\n" for i in range(3000)),
        "    x = 1\n" + "    if n > 3:\n        x = x + 1\n" * 1000,
        "".join(f"    x{i} = M\n" for i in range(1000))
        + "".join(f"    for j in range(3):\n        x{i} += 1\n" for i in range(1000)),
    ],
    ids=["assignments", "branches", "loops"],
)
def test_long_kernels(lines: str) -> None:
    assert told(HEAD + lines) == ""
