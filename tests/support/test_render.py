from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hkc.support.errors import Diagnostic, Note, Source, Span, error
from hkc.support.render import WINDOW, render


def test_the_design_example() -> None:
    text = "\n" * 10 + "  b = load(B, [0, 0], [16, 64])\n\n\n  acc = dot(a, b, acc)\n"
    source = Source("matmul.hk", text)
    a, b = Span(source, 14, 13, 14, 14), Span(source, 14, 16, 14, 17)
    note = Note("`b` gets its shape here", Span(source, 11, 7, 11, 32))
    shown = error(
        "HK203", "inner sizes differ: `a` is 64x32 but `b` is 16x64", a, b, notes=(note,), hint="load 32 rows"
    )
    assert str(shown) == (
        "matmul.hk:14:13: error[HK203]: inner sizes differ: `a` is 64x32 but `b` is 16x64\n"
        "   14 |   acc = dot(a, b, acc)\n"
        "      |             ^  ^\n"
        "matmul.hk:11:7: note: `b` gets its shape here\n"
        "hint: load 32 rows"
    )


def carets(text: str, first: int, last: int) -> tuple[str, str]:
    """The source line and the caret line for columns `first` to `last` (exclusive) of a one-line source."""
    source = Source("x", text)
    lines = str(error("HK101", "no", Span(source, 1, first, 1, last))).split("\n")
    return lines[1], lines[2]


def test_tabs_and_double_width_characters_are_counted() -> None:
    assert carets("\tx = 1", 2, 3) == ("    1 |     x = 1", "      |     ^")
    assert carets("瓦片 x", 4, 5) == ("    1 | 瓦片 x", "      |      ^")
    assert carets("瓦片 x", 2, 3) == ("    1 | 瓦片 x", "      |   ^^")
    assert carets("e\N{COMBINING ACUTE ACCENT}x", 3, 4) == ("    1 | e\N{COMBINING ACUTE ACCENT}x", "      |  ^")


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in carets("\x1b[31mred", 1, 2)[0]


def test_a_long_line_shows_the_part_with_the_mark() -> None:
    row, marks = carets("a" * 500 + "b" + "c" * 500, 501, 502)
    assert row[marks.index("^")] == "b"
    assert len(row) < WINDOW + 12 and row.count("…") == 2


def test_a_mark_after_the_end_of_the_line() -> None:
    assert carets("for", 4, 5) == ("    1 | for", "      |    ^")


def test_spans_on_several_lines_each_show_theirs() -> None:
    source = Source("x", "one\ntwo\n")
    text = str(error("HK101", "no", Span(source, 1, 1, 1, 4), Span(source, 2, 1, 2, 4)))
    assert text.split("\n")[1:] == ["    1 | one", "      | ^^^", "    2 | two", "      | ^^^"]


def test_without_a_place_there_is_only_the_heading() -> None:
    assert render([Diagnostic("HK121", "can't read `x`")]) == "error[HK121]: can't read `x`"


@given(st.text(max_size=300), st.integers(-2, 400), st.integers(-2, 400), st.integers(-1, 6), st.integers(-1, 6))
def test_any_span_of_any_text_can_be_shown(text: str, first: int, last: int, line: int, end_line: int) -> None:
    shown = str(error("HK101", "no", Span(Source("x", text), line, first, end_line, last)))
    assert shown.startswith(f"x:{line}:{first}: error[HK101]: no")
    assert all(ord(c) >= 32 for row in shown.split("\n") for c in row)
