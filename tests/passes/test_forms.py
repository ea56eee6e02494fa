"""Forms: the pipeline's order is sound without running it, and every form tells a good module from a bad one."""

from __future__ import annotations

from typing import Any

import pytest

from hkc.support import worker

ORDER: list[Any] = worker.call("pass_examples:pass_order")
NAMES: list[str] = worker.call("pass_examples:form_names")


def test_every_pass_finds_the_forms_it_needs() -> None:
    held: set[str] = set()
    for _, _, name, _, needs, gives, drops in ORDER:
        assert set(needs) <= held, f"{name} needs {set(needs) - held}"
        assert not set(gives) & set(drops), name
        held = (held - set(drops)) | set(gives)
    assert "llvm" in held


def test_every_form_is_known_and_given_by_some_pass() -> None:
    mentioned = {form for *_, needs, gives, drops in ORDER for form in (*needs, *gives, *drops)}
    assert mentioned <= set(NAMES)
    assert {form for *_, gives, _ in ORDER for form in gives} == set(NAMES)


ROWS = '#hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(0,8 0,16 0,32 1,0 2,0 4,0) w()">'
COLUMNS = '#hkc_tile.layout<"16x64 r(0,1 0,2 0,4 8,0) l(1,0 2,0 4,0 0,8 0,16 0,32) w()">'


TWO_WAVES = tuple(
    f'#hkc_tile.layout<"16x64 r(0,2 0,4 {register}) l(0,8 0,16 0,32 1,0 2,0 4,0) w({wave})">'
    for register, wave in (("0,1", "8,0"), ("8,0", "0,1"))
)


def tiles(attributes: str, target: str = COLUMNS, shape: str = "16x64", held: str = ROWS) -> str:
    source = f"tensor<{shape}xf16, {held}>"
    op = f'%y = "hkc_tile.convert_layout"(%x) {attributes} : ({source}) -> tensor<{shape}xf16, {target}>'
    return f"func.func @f(%x: {source}) {{\n{op}\nreturn\n}}"


def regrouped(attributes: str) -> str:
    op = f'%y = "hkc_tile.reshape"(%x) {attributes} : (tensor<48x32xf32>) -> tensor<32x48xf32>'
    return f"func.func @f(%x: tensor<48x32xf32>) {{\n{op}\nreturn\n}}"


MAP = 'hkc.lds_map = "16x64:2 block 1x64 strides 128,128 order 1,0", hkc.lds_offset = 0 : i64'
EMPTY = "func.func @f() {\nreturn\n}"
TWINS: dict[str, tuple[str, str]] = {
    "numbered": (
        EMPTY,
        'func.func @f(%g: index) {\n%m = "hkc_tile.tile_id"(%g) {order = "rows"} : (index) -> index\nreturn\n}',
    ),
    "cuts_staged": (regrouped("{hkc.staged}"), regrouped("")),
    "layouts": (tiles(""), "func.func @f(%x: tensor<16x64xf16>) {\nreturn\n}"),
    "staged": (tiles("{hkc.staged}"), tiles("", TWO_WAVES[1], held=TWO_WAVES[0])),
    "lds_mapped": (tiles(f"{{hkc.staged, {MAP}}}"), tiles("{hkc.staged}")),
    "entries": (
        'func.func @k() attributes {hkc.kernel, hkc.entry = "general"} {\nreturn\n}',
        "func.func @k() attributes {hkc.kernel} {\nreturn\n}",
    ),
    "waves": ('func.func @f() {\n"hkc_wave.barrier"() : () -> ()\nreturn\n}', tiles("")),
    "rocdl": (EMPTY, 'func.func @f() {\n"hkc_wave.barrier"() : () -> ()\nreturn\n}'),
    "llvm": ("llvm.func @f() {\nllvm.return\n}", EMPTY),
    "scalars": (
        "llvm.func @f(%x: vector<1xi32>, %y: vector<2xi64>) {\nllvm.return\n}",
        "llvm.func @f(%x: vector<1xi64>) {\nllvm.return\n}",
    ),
}
"""By form: a module of which it holds, and one of which it does not."""

ALWAYS = {"legal_tiles", "peeled", "pipelined", "synchronised"}
"""Forms that no op breaks by itself: their pass refuses, or its checker proves."""


def test_every_form_has_its_twins() -> None:
    assert set(TWINS) | ALWAYS == set(NAMES)


@pytest.mark.parametrize("name", TWINS)
def test_a_form_tells_the_twins_apart(name: str) -> None:
    good, bad = TWINS[name]
    assert worker.call("pass_examples:form_holds", name, good) is None
    why = worker.call("pass_examples:form_holds", name, bad)
    assert why is not None and f"form `{name}` is broken" in why


def test_a_layout_must_cover_its_tile() -> None:
    why = worker.call("pass_examples:form_holds", "layouts", tiles("", shape="64"))
    assert why is not None and "does not cover" in why
