"""Drawings as plain data, and as SVG text.

A drawing knows where everything lies: what a label may not leave, and how wide text gets. So a test can prove without a
browser that nothing is cut off and nothing overlaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

Anchor = Literal["start", "middle", "end"]

STYLE = """
text { font-family: "DejaVu Sans", Verdana, sans-serif; fill: #1d2330 }
.soft { fill: #5c6675 }
.on { fill: #16181d }
.white { fill: #ffffff }
.line { fill: none; stroke: #16181d }
.hair { stroke: #ffffff; stroke-width: 0.75 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6eaf0 }
  .soft { fill: #9aa5b5 }
  .on { fill: #16181d }
  .white { fill: #ffffff }
  .hair { stroke: #14171c }
}
"""
"""What every drawing looks like; of the classes, `on` is text on coloured cells."""

WIDE, NARROW = "ABCDEFGHKMNOPQRSTUVWXYZmw×–→%@&=+<>", "ijl.,:;|!'()[] frtI/"
"""Characters wider and narrower than most."""


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.y + self.height

    def inside(self, other: Box, slack: float = 0.01) -> bool:
        """Does this lie in another box?"""
        return (
            self.x >= other.x - slack
            and self.y >= other.y - slack
            and self.right <= other.right + slack
            and self.bottom <= other.bottom + slack
        )

    def overlaps(self, other: Box, slack: float = 0.01) -> bool:
        """Do both share more than an edge?"""
        return (
            min(self.right, other.right) - max(self.x, other.x) > slack
            and min(self.bottom, other.bottom) - max(self.y, other.y) > slack
        )


@dataclass(frozen=True)
class Cell:
    """A filled rectangle; `kind` is a class of the style sheet, `tip` what a pointer over it shows."""

    box: Box
    fill: str
    kind: str = "hair"
    tip: str = ""
    opacity: float = 1.0


@dataclass(frozen=True)
class Label:
    """One line of text at a point on its base line; `within` is the box that it belongs into, if any."""

    x: float
    y: float
    text: str
    size: float = 10
    anchor: Anchor = "start"
    kind: str = ""
    bold: bool = False
    within: Box | None = None

    @property
    def box(self) -> Box:
        """The room that it takes, estimated for a wide font."""
        width = text_width(self.text, self.size, self.bold)
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return Box(left, self.y - 0.78 * self.size, width, self.size)


@dataclass(frozen=True)
class Drawing:
    """What is drawn, back to front, on a canvas of this size; `name` is what `--figure` calls it, `title` and `caption`
    say in a few words and in one sentence what it shows."""

    name: str
    title: str
    caption: str
    width: float
    height: float
    cells: tuple[Cell, ...]
    labels: tuple[Label, ...]
    frames: tuple[Box, ...] = ()

    def svg(self, style: str = "") -> str:
        """The drawing as an SVG element; `style` is a style sheet for one that stands alone."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_n(self.width)}" height="{_n(self.height)}" '
            f'viewBox="0 0 {_n(self.width)} {_n(self.height)}">'
        )
        parts = [head, f"<title>{escape(self.title)}</title>", f"<desc>{escape(self.caption)}</desc>"]
        parts += [f"<style>{style}</style>"] if style else []
        parts += map(_cell, self.cells)
        parts += (f'<rect class="line" stroke-width="2" {_box(frame)}/>' for frame in self.frames)
        parts += map(_label, self.labels)
        return "\n".join([*parts, "</svg>"])


def shifted(drawing: Drawing, dx: float, dy: float) -> Drawing:
    """The same elsewhere on the canvas."""

    def box(it: Box) -> Box:
        return replace(it, x=it.x + dx, y=it.y + dy)

    labels = (
        replace(it, x=it.x + dx, y=it.y + dy, within=box(it.within) if it.within else None) for it in drawing.labels
    )
    cells = tuple(replace(it, box=box(it.box)) for it in drawing.cells)
    return replace(drawing, cells=cells, labels=tuple(labels), frames=tuple(map(box, drawing.frames)))


def together(first: Drawing, others: Iterable[Drawing]) -> Drawing:
    """Several drawings on one canvas, under the name and title of the first."""
    for other in others:
        first = replace(
            first,
            width=max(first.width, other.width),
            height=max(first.height, other.height),
            cells=first.cells + other.cells,
            labels=first.labels + other.labels,
            frames=first.frames + other.frames,
        )
    return first


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Pixels that a text takes at most, for DejaVu Sans, which is wider than what most pages are read in."""
    width = sum(0.86 if c in WIDE else 0.42 if c in NARROW else 0.645 for c in text)
    return width * size * (1.1 if bold else 1.0)


def centred(
    box: Box, text: str, size: float, kind: str = "on", bold: bool = False, row: int = 0, rows: int = 1
) -> Label:
    """A label in the middle of a box, or in row `row` of several."""
    pitch = size * 1.15
    y = box.y + box.height / 2 + 0.28 * size + (row - (rows - 1) / 2) * pitch + 0.04 * size
    return Label(box.x + box.width / 2, y, text, size, "middle", kind, bold, box)


def _cell(cell: Cell) -> str:
    kind = f' class="{cell.kind}"' if cell.kind else ""
    opacity = f' opacity="{_n(cell.opacity)}"' if cell.opacity < 1 else ""
    shape = f'rect{kind} fill="{cell.fill}" {_box(cell.box)}{opacity}'
    return f"<{shape}><title>{escape(cell.tip)}</title></rect>" if cell.tip else f"<{shape}/>"


def _label(label: Label) -> str:
    kind = f' class="{label.kind}"' if label.kind else ""
    anchor = f' text-anchor="{label.anchor}"' if label.anchor != "start" else ""
    bold = ' font-weight="bold"' if label.bold else ""
    place = f'x="{_n(label.x)}" y="{_n(label.y)}" font-size="{_n(label.size)}"'
    return f"<text {place}{kind}{anchor}{bold}>{escape(label.text)}</text>"


def _box(box: Box) -> str:
    return f'x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"'


def _n(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
