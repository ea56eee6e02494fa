"""`hkc explain-kernel`: pages, pictures, data."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hkc.cli import main
from hkc.figures.drawings import png
from hkc.figures.svg import Drawing

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def call(kernel: str, arch: str, *words: str) -> int:
    return main(["explain-kernel", str(EXAMPLES / f"{kernel}.hk"), "--arch", arch, *words])


def test_a_page_for_both_chips_needs_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("gemm", "gfx942,gfx950", "-o", "page.html", "--set", "BM=64") == 0
    assert capsys.readouterr().out == "page.html\n"
    text = Path("page.html").read_text()
    assert not re.findall(r"<script|<link|<img|src=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)
    for said in ('id="gfx942"', 'id="gfx950"', "BM = 64", "prefers-color-scheme: dark", "v_mfma_f32_", "next best"):
        assert said in text
    links = set(re.findall(r'href="#([^"]+)"', text))
    assert links <= set(re.findall(r'id="([^"]+)"', text))
    source = (EXAMPLES / "gemm.hk").read_text().splitlines()
    assert text.count("<code>tune BM") == 2 and len(source) * 2 == len(
        re.findall(r"<tr[^>]*><td>\d+</td><td><code>", text)
    )


def test_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("attention", "gfx950", "--json") == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert not list(Path().iterdir())
    assert (kernel["kernel"], kernel["arch"], kernel["waves"]) == ("attention", "gfx950", 4)
    assert kernel["resources"]["lds_bytes"] >= max(b["lds"]["bytes"] for b in kernel["buffers"])
    assert all(p["mnemonic"].startswith("v_mfma_f32_") for p in kernel["products"])
    assert "waves exchange" in {m["kind"] for m in kernel["conversions"]}
    compared = [c for c in kernel["choices"] if c["subject"] in ("dot", "LDS")]
    assert compared and all(c["runner_up_clocks"] >= c["clocks"] for c in compared)
    assert any(loop["operations"].get("mfma") for loop in kernel["loops"])


def test_one_picture(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("gemm", "gfx950", "--figure", "lds0") == 0
    assert capsys.readouterr().out == "lds0.svg\n"
    root = ElementTree.parse("lds0.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and len(root) > 100
    assert call("gemm", "gfx950", "--figure", "lds0-1", "-o", "x.png") == 0
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("figure", ["mfma0", "tile0", "lds0", "lds0-1"])
def test_pictures_as_png(figure: str, drawn: Callable[[str, str], dict[str, Drawing]]) -> None:
    drawing = drawn("gemm", "gfx950")[figure]
    image = png(drawing)
    size = [int.from_bytes(image[at : at + 4], "big") for at in (16, 20)]
    assert all(abs(n - 2 * side) <= 2 for n, side in zip(size, (drawing.width, drawing.height), strict=True))
    assert len(image) > 5000  # not a blank one


@pytest.mark.parametrize(
    ("chips", "words", "said"),
    [
        ("gfx950", ("--figure", "lds9"), "there is no picture `lds9` of this kernel\nhint: there are mfma0, tile0"),
        ("gfx942,gfx950", ("--figure", "lds0"), "a picture shows one chip"),
        ("gfx950", ("--figure", "lds0", "-o", "x.pdf"), "written as .svg or .png"),
    ],
)
def test_wrong_calls(chips: str, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("gemm", chips, *words) == 2
    assert said in capsys.readouterr().err
    assert not list(Path().iterdir())


def test_png_without_its_package(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert call("gemm", "gfx950", "--figure", "mfma0", "-o", "x.png") == 1
    assert "error[HK527]" in (said := capsys.readouterr().err) and "pip install 'hkc[figures]'" in said
    assert not list(Path().iterdir())
