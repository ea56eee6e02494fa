"""Nothing overlaps and nothing is cut off, by the sizes that drawings know themselves: needs no browser."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from hkc.figures import palette
from hkc.figures.lds import phase_drawing
from hkc.figures.svg import Box, Cell, Drawing, Label, text_width
from hkc.handover import LdsAccess, LdsBuffer
from hkc.layout import DistributedLayout, LdsMap
from hkc.layout.accesses import Use
from hkc.layout.synthesis import prove
from hkc.targets.chip import load

Draw = Callable[[str, str], dict[str, Drawing]]


def corners(boxes: list[Box]) -> np.ndarray:
    return np.array([(b.x, b.y, b.right, b.bottom) for b in boxes]).reshape(-1, 4)


def overlapping(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Which boxes of one list share an area with which of the other."""
    low = np.maximum(one[:, None, :2], two[None, :, :2])
    high = np.minimum(one[:, None, 2:], two[None, :, 2:])
    return np.all(high - low > 0.01, axis=-1)


def faults(drawing: Drawing) -> list[str]:
    """What is wrong with a drawing."""
    canvas = Box(0, 0, drawing.width, drawing.height)
    found = [f"{label.text!r} leaves the canvas" for label in drawing.labels if not label.box.inside(canvas)]
    found += [f"{cell.box} leaves the canvas" for cell in drawing.cells if not cell.box.inside(canvas)]
    found += [f"{label.text!r} leaves its cell" for label in drawing.labels if label.within and not fits(label)]
    cells, labels = corners([c.box for c in drawing.cells]), corners([label.box for label in drawing.labels])
    both = overlapping(cells, cells)
    found += [f"cells {i} and {j} overlap" for i, j in zip(*np.nonzero(np.triu(both, 1)), strict=True)]
    both = overlapping(labels, labels)
    pairs = zip(*np.nonzero(np.triu(both, 1)), strict=True)
    found += [f"{drawing.labels[i].text!r} and {drawing.labels[j].text!r} overlap" for i, j in pairs]
    free = [label for label in drawing.labels if label.within is None]
    over = overlapping(corners([label.box for label in free]), cells)
    return found + [f"{free[i].text!r} lies over cell {j}" for i, j in zip(*np.nonzero(over), strict=True)]


def fits(label: Label) -> bool:
    assert label.within is not None
    return label.box.inside(label.within)


def test_every_drawing_of_every_kernel(drawn: Draw, name: str, arch: str) -> None:
    made = drawn(name, arch)
    assert made
    assert {drawing.name: found for drawing in made.values() if (found := faults(drawing))} == {}


@pytest.mark.parametrize(
    ("cells", "labels", "said"),
    [
        ([Box(0, 0, 10, 10), Box(5, 0, 10, 10)], [], "overlap"),
        ([Box(95, 0, 10, 10)], [], "leaves the canvas"),
        ([], [Label(90, 20, "long text")], "leaves the canvas"),
        ([], [Label(10, 20, "one"), Label(12, 20, "two")], "overlap"),
        ([Box(0, 0, 40, 40)], [Label(10, 20, "free")], "lies over"),
        ([], [Label(10, 20, "wide", within=Box(0, 10, 20, 20))], "leaves its cell"),
    ],
)
def test_faults_are_found(cells: list[Box], labels: list[Label], said: str) -> None:
    drawing = Drawing("x", "", "", 100, 50, tuple(Cell(box, "#fff") for box in cells), tuple(labels))
    assert any(said in fault for fault in faults(drawing))


def test_captions_are_one_sentence_or_two(drawn: Draw) -> None:
    for name, arch in itertools.product(("gemm", "softmax"), ("gfx950",)):
        for drawing in drawn(name, arch).values():
            assert drawing.title and drawing.caption.endswith(".")
            assert drawing.caption.count(". ") <= 1


def test_text_is_not_estimated_too_narrow() -> None:
    """Advances of DejaVu Sans, in 2048ths of an em."""
    for text, units in (
        ("0123456789", 10 * 1303),
        ("lane", 569 + 1255 + 1298 + 1260),
        ("r0–7", 842 + 1303 + 1024 + 1303),
    ):
        assert units / 2048 * 10 <= text_width(text, 10) <= 1.25 * units / 2048 * 10


def test_conflicts_are_red_and_counted() -> None:
    """Rows of 256 bytes read down a column: all lanes of a phase queue in the same banks."""
    layout = DistributedLayout.parse("64x2 r(0,1) l(1,0 2,0 4,0 8,0 16,0 32,0) w()")
    lds = LdsMap.row_major((64, 64), 4)
    chip = load("gfx942")
    (proof,) = prove(lds, [Use("read", layout)], chip.lds.access)
    numbers = (proof.instructions, proof.cycles, proof.minimum, proof.lower_bound, 1)
    access = LdsAccess("lds_read", "read", proof.mnemonic, 7, *numbers, proof.reason, layout.text())
    drawing = phase_drawing("lds0-0", LdsBuffer("lds0", 0, lds.bytes, lds.text(), (access,)), access, chip)
    assert faults(drawing) == []
    red = [cell for cell in drawing.cells if cell.fill == palette.CONFLICT]
    assert red and {label.text for label in drawing.labels if label.kind == "white"} == {"16"}
    assert proof.cycles == 16 * proof.minimum
