"""LDS buffers: which bank each part of a tile falls into, and which lanes meet in which bank."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hkc.figures import palette
from hkc.figures.svg import Box, Cell, Drawing, Label, centred, shifted, text_width
from hkc.figures.tiles import HEAD, SMALL, TINY, TITLE
from hkc.handover import LdsAccess, LdsBuffer
from hkc.layout import DistributedLayout, LdsMap
from hkc.layout.accesses import Use, moves
from hkc.layout.banks import BANK_BYTES
from hkc.layout.linear import Ints
from hkc.layout.synthesis import prove
from hkc.layout.text import by
from hkc.support.errors import HkcError
from hkc.targets.chip import Chip

ROWS, GRANULES = 16, 16
"""Rows and granules of a map that are shown: by then every map repeats, or the picture says that it goes on."""

ROOM = 512.0
"""Pixels for all banks of a chip: a whole number for each."""

WIDEST = 16
"""Bytes of the largest granule that is drawn as one cell: what the widest access takes."""


def plain(lds: LdsMap) -> LdsMap:
    """The same tile in rows one after another."""
    return LdsMap.row_major(lds.shape, lds.itemsize, order=lds.order)


# -- banks of a map


def map_drawing(name: str, buffer: LdsBuffer, banks: int) -> Drawing:
    """The banks of a buffer's rows, on the left without the swizzle, on the right with it."""
    lds = LdsMap.parse(buffer.map)
    granule = max(min(lds.granule, WIDEST), BANK_BYTES)
    inner, outer = _dims(lds)
    unchanged = bool(np.array_equal(_banks(lds, granule, banks), _banks(plain(lds), granule, banks)))
    panels = (
        [("its rows lie one after another, as they are", lds)]
        if unchanged
        else [("rows as they are", plain(lds)), (_what(lds), lds)]
    )
    x, cells, labels = 0.0, list[Cell](), list[Label]()
    for title, shown in panels:
        panel = shifted(_panel(title, _banks(shown, granule, banks), banks, granule // lds.itemsize), x, HEAD)
        x = panel.width + x + 34
        cells += panel.cells
        labels += panel.labels
    bottom = max(cell.box.bottom for cell in cells)
    rows, count = lds.shape[outer], lds.shape[inner] * lds.itemsize // granule
    cut = "" if rows <= ROWS and count <= GRANULES else f"the first {min(rows, ROWS)} of {rows} rows"
    cut += f", {GRANULES} of {count} cells" if count > GRANULES else ""
    labels += [Label(26, bottom + 13, cut, TINY, kind="soft")] if cut else []
    title = f"{buffer.buffer}: {by(lds.shape)}, {buffer.bytes} bytes at {buffer.offset}"
    way = "down columns" if inner < outer else "along rows"
    labels += [
        Label(0, 14, title, TITLE, bold=True),
        Label(
            0,
            31,
            f"{granule} bytes a cell, {way} of the tile; number and colour: first of its banks, of {banks}",
            SMALL,
            kind="soft",
        ),
    ]
    what = "needs no swizzle here" if unchanged else "is spread over different banks by this map"
    caption = (
        "Cells of one colour lie in the same banks, where lanes that want several of them at once wait in turn; "
        f"what lanes do want at once {what}."
    )
    width = max(label.box.right for label in labels)
    return Drawing(name, title, caption, max(x - 34, width) + 1, bottom + 20, tuple(cells), tuple(labels))


def _what(lds: LdsMap) -> str:
    """The swizzle in a few characters."""
    parts = [" ".join(f"b{i}^=b{j}" for i, j in lds.xor)] if lds.xor else []
    parts += [f"{lds.pad} bytes free after {lds.interval}"] if lds.pad else []
    return f"blocks of {by(lds.block)}" + "".join(f", {part}" for part in parts)


def _dims(lds: LdsMap) -> tuple[int, int]:
    """The innermost dim and the one around it (the same where there is but one)."""
    return lds.order[0], lds.order[min(1, len(lds.order) - 1)]


def _banks(lds: LdsMap, granule: int, banks: int) -> Ints:
    """The first bank of each granule: [row, granule]."""
    inner, outer = _dims(lds)
    rows = 1 if inner == outer else min(lds.shape[outer], ROWS)
    each = granule // lds.itemsize
    at = np.zeros((rows, min(max(1, lds.shape[inner] // each), GRANULES), len(lds.shape)), np.int64)
    if inner != outer:
        at[..., outer] = np.arange(rows)[:, None]
    at[..., inner] = np.arange(at.shape[1]) * each
    found: Ints = lds.offset(at) // BANK_BYTES % banks
    return found


def _panel(title: str, numbers: Ints, banks: int, elements: int) -> Drawing:
    """One map: rows down, granules across."""
    left, top, width, height = 26.0, 34.0, 27.0, 16.0
    labels = [Label(left, 10, title, SMALL, bold=True)]
    cells = []
    for (row, column), number in np.ndenumerate(numbers):
        box = Box(left + column * width, top + row * height, width, height)
        cells.append(
            Cell(
                box,
                palette.bank(int(number), banks),
                tip=f"row {row}, elements from {column * elements}: bank {number}",
            )
        )
        labels.append(centred(box, str(number), TINY))
    labels += [Label(left - 5, top + (r + 0.5) * height + 3, str(r), TINY, "end", "soft") for r in range(len(numbers))]
    labels += [
        Label(left + (c + 0.5) * width, top - 5, str(c * elements), TINY, "middle", "soft")
        for c in range(numbers.shape[1])
    ]
    right = max(*(label.box.right for label in labels), *(cell.box.right for cell in cells))
    return Drawing("", "", "", right, top + len(numbers) * height, tuple(cells), tuple(labels))


# -- phases of an access


@dataclass(frozen=True)
class Phase:
    """Lanes that the LDS serves together in the costliest instruction of an access: their numbers, `banks` with the
    lane that uses each first and how many dwords it has to deliver, and the clocks that this takes."""

    lanes: tuple[int, ...]
    banks: dict[int, tuple[int, int]]
    clocks: int


def phases(lds: LdsMap, access: LdsAccess, chip: Chip) -> tuple[Phase, ...]:
    """The phases of an access, counted from its addresses."""
    use = Use(access.kind, DistributedLayout.parse(access.layout))
    made, timing = moves(use, lds), chip.lds.access(access.mnemonic)
    (proof,) = prove(lds, [use], chip.lds.access)
    instruction, wave = np.unravel_index(int(proof.clocks.sum(axis=-1).argmax()), proof.clocks.shape[:2])
    dwords = made.addresses[instruction, wave][:, None] // BANK_BYTES + np.arange(max(1, made.width // BANK_BYTES))
    return tuple(_phase(tuple(lanes), dwords, made.active[wave], timing.banks) for lanes in timing.phases)


def _phase(lanes: tuple[int, ...], dwords: Ints, active: Ints, banks: int) -> Phase:
    wanted: dict[int, dict[int, int]] = {}
    for lane in lanes:
        for dword in dwords[lane].tolist() if active[lane] else []:
            wanted.setdefault(dword % banks, {}).setdefault(dword, lane)
    used = {bank: (next(iter(by_dword.values())), len(by_dword)) for bank, by_dword in sorted(wanted.items())}
    return Phase(lanes, used, max((count for _, count in used.values()), default=0))


def total(lds: LdsMap, access: LdsAccess, chip: Chip) -> int | None:
    """Clocks of all instructions of one wave for an access under any map; None where the map tears it apart."""
    try:
        (proof,) = prove(lds, [Use(access.kind, DistributedLayout.parse(access.layout))], chip.lds.access)
    except HkcError:
        return None
    return proof.total


def phase_drawing(name: str, buffer: LdsBuffer, access: LdsAccess, chip: Chip) -> Drawing:
    """A row per phase and a column per bank: which lane uses it, and where several dwords queue."""
    served = phases(LdsMap.parse(buffer.map), access, chip)
    banks = chip.lds.access(access.mnemonic).banks
    texts = [_lanes(phase.lanes) for phase in served]
    left = max(Label(0, 0, text, TINY).box.width for text in texts) + 26
    top, width, height = HEAD + 22, ROOM / banks, 18.0
    cells, labels = list[Cell](), list[Label]()
    for row, (phase, text) in enumerate(zip(served, texts, strict=True)):
        y = top + row * height
        labels.append(Label(left - 6, y + 12, text, TINY, "end", "soft"))
        labels.append(Label(left + ROOM + 8, y + 12, str(phase.clocks), SMALL, bold=phase.clocks > 1))
        for cell, label in _phase_row(phase, banks, Box(left, y, width, height)):
            cells.append(cell)
            labels += [label] if label else []
    labels += [Label(left + b * width, top - 5, str(b), TINY, kind="soft") for b in range(0, banks, 8)]
    labels += [
        Label(0, 14, f"{buffer.buffer}: {access.instructions} × {access.mnemonic}", TITLE, bold=True),
        Label(0, 31, _verdict(access), SMALL, kind="soft"),
        Label(left - 6, top - 5, "lanes", TINY, "end", "soft"),
        Label(left + ROOM + 8, top - 5, "clocks", TINY, kind="soft"),
    ]
    bottom = top + len(served) * height
    right = max(label.box.right for label in labels)
    title = f"{buffer.buffer}: {access.mnemonic}"
    return Drawing(name, title, PHASES, right + 1, bottom + 2, tuple(cells), tuple(labels))


PHASES = (
    "A row is a phase, lanes that the LDS serves together, in the costliest of these instructions; a column is a bank, "
    "with the first lane that uses it; a number on red is how many dwords queue there."
)


def _verdict(access: LdsAccess) -> str:
    line = f"line {access.line} · " if access.line else ""
    limits = f"minimum {access.minimum}, lower bound {access.lower_bound}"
    return f"{line}{access.cycles} clocks each ({limits}): {access.reason}"


def _phase_row(phase: Phase, banks: int, first: Box) -> Iterator[tuple[Cell, Label | None]]:
    """The banks of a phase from left to right, neighbours that serve the same lane as one cell, and what it says."""
    served = [(bank, *phase.banks.get(bank, (-1, 0))) for bank in range(banks)]
    for (lane, count), group in itertools.groupby(served, key=lambda it: it[1:]):
        at = [bank for bank, _, _ in group]
        for part in [at] if count < 2 else [[bank] for bank in at]:
            box = Box(first.x + part[0] * first.width, first.y, first.width * len(part), first.height)
            where = f"bank {part[0]}" if len(part) == 1 else f"banks {part[0]}–{part[-1]}"
            if count == 0:
                yield Cell(box, palette.IDLE, opacity=0.15, tip=f"{where}: not used"), None
            elif count == 1:
                fits = box.width >= text_width(str(lane), TINY) + 2
                label = centred(box, str(lane), TINY) if fits else None
                yield Cell(box, palette.lane(lane), tip=f"{where}: lane {lane}"), label
            else:
                label = centred(box, str(count), TINY, "white", bold=True)
                yield Cell(box, palette.CONFLICT, tip=f"{where}: {count} dwords, the first for lane {lane}"), label


@functools.cache
def _lanes(lanes: tuple[int, ...]) -> str:
    """`0–3 12–15 20–27`."""
    runs: list[list[int]] = []
    for lane in lanes:
        if runs and runs[-1][1] == lane - 1:
            runs[-1][1] = lane
        else:
            runs.append([lane, lane])
    return " ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)
