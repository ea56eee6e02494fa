"""Who holds which element: pictures of register tiles and of the operands of a matrix instruction."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hkc.figures import palette
from hkc.figures.svg import Box, Cell, Drawing, Label, centred, shifted, text_width, together
from hkc.layout import DistributedLayout
from hkc.layout.linear import Ints
from hkc.layout.text import by

MOST = 32
"""Cells per side that a picture shows of a block."""

SIDE = 150.0
"""Pixels of the longer side of a whole tile."""

CELL, NARROW = (26.0, 18.0), 19.0
"""Pixels of a cell that names a lane only, and the least width of one."""

TITLE, SMALL, TINY = 13.0, 10.0, 9.0
"""Sizes of text."""

HEAD = 46.0
"""Room for the title and what stands below it."""


@dataclass(frozen=True)
class Run:
    """A rectangle of elements that one lane of wave 0 holds in registers `first` to `last`; `copies` lanes have it."""

    row: int
    column: int
    rows: int
    columns: int
    lane: int
    first: int
    last: int
    copies: int

    @property
    def registers(self) -> str:
        """`r0` or `r0–7`."""
        return f"r{self.first}" if self.first == self.last else f"r{self.first}–{self.last}"

    @property
    def tip(self) -> str:
        """All about it in words."""
        rows, columns = (
            f"{what} {at}" if n == 1 else f"{what}s {at}–{at + n - 1}"
            for what, at, n in (("row", self.row, self.rows), ("column", self.column, self.columns))
        )
        held = "register" if self.first == self.last else "registers"
        copies = f"; {self.copies} lanes hold copies" if self.copies > 1 else ""
        return f"{rows}, {columns}: lane {self.lane}, {held} {self.registers[1:]}{copies}"


@dataclass(frozen=True)
class Held:
    """What wave 0 holds of the first base block: lane and register per element of the smallest rectangle around it, -1
    where another wave has it, and the number of lanes with a copy."""

    lane: Ints
    register: Ints
    copies: int

    @property
    def step(self) -> tuple[int, int]:
        """Rows and columns of a run: as many neighbours as lanes hold side by side, in a row or else in a column."""
        along = [_run(self.lane, self.register, axis) for axis in (1, 0)]
        return (1, along[0]) if along[0] >= along[1] else (along[1], 1)

    def runs(self) -> Iterator[Run]:
        """The runs that are shown."""
        rows, columns = self.step
        for r in range(0, min(len(self.lane), rows * MOST), rows):
            for c in range(0, min(self.lane.shape[1], columns * MOST), columns):
                lane, first = int(self.lane[r, c]), int(self.register[r, c])
                last = int(self.register[r + rows - 1, c + columns - 1])
                yield Run(r, c, rows, columns, lane, first, last, self.copies)


def held(layout: DistributedLayout) -> Held:
    """What wave 0 holds. Of a tile of more than two dims the last two are looked at, where the others are 0."""
    at = layout.coordinates(layout.block)[0, :, :, 0]  # [register, lane, dim]
    here = np.all(at[..., :-2] == 0, axis=-1)
    at = _last_two(at)
    extents = at[here].max(axis=0) + 1
    lanes, registers = np.full(extents, -1), np.full(extents, -1)
    for lane in reversed(range(layout.lanes)):
        for register in reversed(range(layout.registers)):
            if here[register, lane]:
                lanes[tuple(at[register, lane])], registers[tuple(at[register, lane])] = lane, register
    elements = int((lanes >= 0).sum())
    return Held(lanes, registers, int(here.sum()) // elements)


def _last_two(coordinates: Ints) -> Ints:
    """The last two dims of coordinates, a row number of 0 before those of a tile with one dim."""
    missing = 2 - min(2, coordinates.shape[-1])
    return np.concatenate([np.zeros((*coordinates.shape[:-1], missing), np.int64), coordinates], -1)[..., -2:]


def _run(lanes: Ints, registers: Ints, axis: int) -> int:
    """The longest power of two of elements along `axis` that one lane holds in consecutive registers, everywhere."""
    lanes, registers = (np.moveaxis(a, axis, -1) for a in (lanes, registers))
    run = 1
    while lanes.shape[-1] % (2 * run) == 0:
        grouped, numbers = (a.reshape(*a.shape[:-1], -1, 2 * run) for a in (lanes, registers))
        if np.any(grouped != grouped[..., :1]) or np.any(numbers != numbers[..., :1] + np.arange(2 * run)):
            break
        run *= 2
    return run


# -- the grid of one block


def grid(layout: DistributedLayout, unit: tuple[float, float] = (0.0, 0.0)) -> Drawing:
    """The elements of wave 0 in the first block, a cell per run, with row and column numbers around them.

    `unit` gives the width and height of an element where other grids are to fit (0: what the labels need).
    """
    owned = held(layout)
    step = owned.step
    needed = _needed(layout, owned)
    width, height = ((u * n if u else room) for u, n, room in zip(unit, reversed(step), needed, strict=True))
    left, top = 26.0, 16.0
    cells, labels = list[Cell](), list[Label]()
    across, down = dict[int, Box](), dict[int, Box]()
    for run in owned.runs():
        box = Box(left + run.column / step[1] * width, top + run.row / step[0] * height, width, height)
        across[run.column] = down[run.row] = box
        if run.lane < 0:
            cells.append(Cell(box, palette.IDLE, tip="another wave's", opacity=0.25))
        else:
            cells.append(Cell(box, palette.lane(run.lane), tip=run.tip))
            labels += _cell_labels(box, run, layout.registers > step[0] * step[1])
    labels += _ticks(across, top - 5)
    labels += [Label(left - 5, box.y + box.height / 2 + 3, str(r), TINY, "end", "soft") for r, box in down.items()]
    right, bottom = max(box.right for box in across.values()), max(box.bottom for box in down.values())
    shown = _cut(owned)
    if shown:
        labels.append(Label(left, bottom + 13, shown, TINY, kind="soft"))
    right = max(right, *(label.box.right for label in labels))
    return Drawing("", "", "", right + 1, bottom + (18 if shown else 1), tuple(cells), tuple(labels))


def _needed(layout: DistributedLayout, owned: Held) -> tuple[float, float]:
    """Width and height of a cell that has room for its labels."""
    rows, columns = owned.step
    if layout.registers == rows * columns:
        return CELL
    return max(CELL[0], 6 + max(text_width(run.registers, TINY) for run in owned.runs())), 28.0


def _cell_labels(box: Box, run: Run, registers: bool) -> list[Label]:
    """Lane and registers, as much as fits."""
    lane = str(run.lane)
    if registers and box.height >= 24 and box.width >= text_width(run.registers, TINY) + 2:
        return [
            centred(box, lane, SMALL, row=0, rows=2, bold=True),
            centred(box, run.registers, TINY, row=1, rows=2),
        ]
    line = f"{lane} {run.registers}"
    if registers and box.width >= text_width(line, TINY) + 4:
        return [centred(box, line, TINY)]
    return [centred(box, lane, TINY if box.width < 20 else SMALL, bold=box.width >= 20)]


def _ticks(boxes: dict[int, Box], y: float) -> list[Label]:
    """Column numbers, every second, fourth … where they would touch."""
    widest = max(text_width(str(column), TINY) for column in boxes)
    every = 1
    while every * boxes[0].width < widest + 4:
        every *= 2
    shown = list(boxes.items())[::every]
    return [Label(box.x + box.width / 2, y, str(column), TINY, "middle", "soft") for column, box in shown]


def _cut(owned: Held) -> str:
    """Says what the picture leaves out."""
    shown = tuple(min(n, step * MOST) for n, step in zip(owned.lane.shape, owned.step, strict=True))
    return "" if shown == owned.lane.shape else f"the first {by(shown)} of {by(owned.lane.shape)}"


# -- a tile


def tile_drawing(name: str, shape: Sequence[int], dtype: str, layout: DistributedLayout, uses: str) -> Drawing:
    """A tile: on the left how base blocks and waves share it, on the right wave 0's part of the first block."""
    left, detail, count = _overview(tuple(shape), layout), grid(layout), layout.fragments(shape)
    x, y = left.width + 30, HEAD + 16
    whole = together(
        shifted(left, 0, HEAD),
        [replace(shifted(detail, x, y), width=detail.width + x, height=detail.height + y)],
    )
    blocks = "one block" if count == 1 else f"{count} blocks of {by(layout.block)}"
    waves = "1 wave" if layout.waves == 1 else f"{layout.waves} waves"
    title = f"{by(shape)} {dtype}"
    lines = [
        Label(0, 14, title, TITLE, bold=True),
        Label(0, 31, f"{blocks} · {waves} · {uses}", SMALL, kind="soft"),
        Label(x + 26, HEAD + 6, _legend(layout), SMALL, bold=True),
    ]
    width = max([whole.width, *(label.box.right for label in lines)]) + 1
    height = max(whole.height, left.height + HEAD) + 1
    return replace(
        whole,
        name=name,
        title=f"{title}: {uses}",
        caption=_caption(count, bool(layout.reaches_beyond(shape))),
        width=width,
        height=height,
        labels=(*whole.labels, *lines),
    )


def _legend(layout: DistributedLayout) -> str:
    """What the cells of the grid say."""
    owned = held(layout)
    several = layout.registers > owned.step[0] * owned.step[1]
    registers = ", registers" if several else f", r0–{layout.registers - 1}" if layout.registers > 1 else ", r0"
    copies = f"; {owned.copies} lanes hold each" if owned.copies > 1 else ""
    return f"wave 0: lane{registers}{copies}"


def _caption(blocks: int, beyond: bool) -> str:
    """What the picture of a tile shows."""
    pale = "; what is pale lies beyond the tile" if beyond else ""
    if blocks == 1:
        return (
            f"Left: the waves' parts of the tile{pale}. Right: which lane holds which elements, and in which registers."
        )
    return (
        f"Left: the waves' parts of the tile, with its first base block framed{pale}. Right: which lane holds which "
        "elements of that block, and in which registers; the other blocks repeat it in further registers."
    )


def _overview(shape: tuple[int, ...], layout: DistributedLayout) -> Drawing:
    """The whole tile, coloured by wave, with its base blocks; pale what these hold beyond the tile."""
    flat, covered, block = ((1, *extents)[-2:] for extents in (shape, layout.covered(shape), layout.block))
    scale = SIDE / max(covered)
    pitch = [max(n * scale, 36.0) / n for n in covered]  # pixels per row and column
    first, copies = _waves(layout)
    part = [b // n for b, n in zip(block, first.shape, strict=True)]
    left, top = 34.0, 18.0
    cells = []
    for r, c in np.ndindex(covered[0] // part[0], covered[1] // part[1]):
        number = int(first[r % first.shape[0], c % first.shape[1]])
        for (y, height), (x, width) in itertools.product(*map(_split, (r, c), part, flat)):
            box = Box(left + x * pitch[1], top + y * pitch[0], width * pitch[1], height * pitch[0])
            inside = x < flat[1] and y < flat[0]
            tip = _named(number, copies) + ("" if inside else ", beyond the tile")
            kind = "hair" if min(box.width, box.height) > 4 else ""
            cells.append(Cell(box, palette.wave(number), kind, tip, 1.0 if inside else 0.25))
    bottom, right = top + covered[0] * pitch[0], left + covered[1] * pitch[1]
    labels = (
        Label(left + flat[1] * pitch[1] / 2, top - 5, str(flat[1]), TINY, "middle", "soft"),
        Label(left - 5, top + flat[0] * pitch[0] / 2 + 3, str(flat[0]), TINY, "end", "soft"),
    )
    frames = () if covered == block else (Box(left, top, block[1] * pitch[1], block[0] * pitch[0]),)
    drawing = Drawing("", "", "", right + 2, bottom + 8, tuple(cells), labels, frames)
    return together(drawing, [_wave_legend(first, copies, left, bottom + 8)])


def _split(index: int, size: int, extent: int) -> list[tuple[int, int]]:
    """Start and length of part `index`, in two where the tile ends inside it."""
    start = index * size
    cut = min(max(extent - start, 0), size)
    return [piece for piece in ((start, cut), (start + cut, size - cut)) if piece[1]]


def _waves(layout: DistributedLayout) -> tuple[Ints, int]:
    """The first wave that holds each part of a block, equal neighbours merged, and how many waves hold each."""
    at = _last_two(layout.coordinates(layout.block)[0])  # [register, lane, wave, dim]
    owner = np.full(at.reshape(-1, 2).max(axis=0) + 1, -1)
    for wave in reversed(range(layout.waves)):
        owner[at[:, :, wave, 0], at[:, :, wave, 1]] = wave
    for axis in (0, 1):
        owner = np.moveaxis(owner, axis, 0)
        while len(owner) > 1 and np.array_equal(owner[::2], owner[1::2]):
            owner = owner[::2]
        owner = np.moveaxis(owner, 0, axis)
    return owner, 1 << sum(not any(basis) for basis in layout.wave)


def _named(wave: int, copies: int) -> str:
    return f"wave {wave}" if copies == 1 else f"wave {wave} and {copies - 1} with copies"


def _wave_legend(first: Ints, copies: int, left: float, y: float) -> Drawing:
    """A colour for each wave that holds a part of its own."""
    cells, labels = list[Cell](), list[Label]()
    x = left
    for number in sorted(set(first.ravel().tolist())):
        if x > left + SIDE - 40:
            x, y = left, y + 16
        cells.append(Cell(Box(x, y, 10, 10), palette.wave(number)))
        labels.append(Label(x + 14, y + 9, f"wave {number}", TINY, kind="soft"))
        x = labels[-1].box.right + 8
    if copies > 1:
        y += 16
        labels.append(Label(left, y + 9, f"{copies} waves hold each part", TINY, kind="soft"))
    room = max(label.box.right for label in labels)
    return Drawing("", "", "", room, y + 14, tuple(cells), tuple(labels))


# -- a matrix instruction


def product_drawing(name: str, mnemonic: str, place: str, layouts: Sequence[DistributedLayout]) -> Drawing:
    """The operands a, b and the accumulator of a product as they meet: a left of the accumulator, b above it, as wave 0
    holds them."""
    a, b, acc = layouts
    column, row = _pitch((b, acc), 1), _pitch((a, acc), 0)
    upper, left, lower = grid(b, (column, 0)), grid(a, (0, row)), grid(acc, (column, row))
    x, y = left.width + 30, upper.height + HEAD + 34
    parts = [(upper, x, HEAD + 10), (left, 0.0, y), (lower, x, y)]
    placed = [replace(shifted(g, dx, dy), width=g.width + dx, height=g.height + dy) for g, dx, dy in parts]
    names = ["B", "A", "accumulator"]
    lines = [Label(0, 14, mnemonic, TITLE, bold=True), Label(0, 31, place, SMALL, kind="soft")]
    lines += [
        Label(dx + 26, dy - 3, f"{operand}, {by(held(layout).lane.shape)}", SMALL, bold=True)
        for operand, layout, (_, dx, dy) in zip(names, (b, a, acc), parts, strict=True)
    ]
    whole = together(Drawing(name, f"{mnemonic}, {place}", PRODUCT, 0, 0, (), ()), placed)
    width = max([whole.width, *(label.box.right for label in lines)])
    return replace(whole, width=width + 1, height=whole.height + 1, labels=(*whole.labels, *lines))


PRODUCT = (
    "The operands as they meet: each cell names the lane of wave 0 that holds these elements, and the registers where "
    "a lane has several cells."
)


def _pitch(layouts: Sequence[DistributedLayout], axis: int) -> float:
    """Pixels per row (axis 0) or column (axis 1) that all these grids have room for."""
    pitches = []
    for layout in layouts:
        owned = held(layout)
        width, height = _needed(layout, owned)
        room = height if axis == 0 else width if (width, height) != CELL else NARROW
        pitches.append(room / owned.step[axis])
    return max(pitches)
