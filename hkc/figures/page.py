"""One HTML page about a kernel, complete in itself: no script, nothing from the network, light and dark."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from hkc.figures.drawings import drawings
from hkc.figures.facts import Buffer, Facts, Move
from hkc.figures.svg import STYLE, Drawing
from hkc.handover import Loop
from hkc.layout.text import by
from hkc.targets.chip import Chip

CSS = Path(__file__).with_name("page.css")


def page(kernels: Sequence[tuple[Facts, Chip]]) -> str:
    """The page about one kernel on one or more chips."""
    first = kernels[0][0]
    constants = " · ".join(f"{name} = {value}" for name, value in first.constants)
    body = [
        f"<header><h1>{escape(first.kernel)}</h1>",
        f'<p class="soft">{escape(first.file)}{" · " if constants else ""}{escape(constants)}</p>',
        "<p>What the compiler decided for the entry point that is tried first. Clocks are modelled, not measured. "
        "Point at a cell for its details.</p>",
        *_navigation([known for known, _ in kernels]),
        "</header>",
        *(part for known, chip in kernels for part in _chip(known, chip)),
    ]
    style = f"<style>{CSS.read_text()}{STYLE}</style>"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width">{style}'
    title = f"<title>{escape(first.kernel)}</title>"
    return "\n".join(
        ["<!doctype html>", f'<html lang="en"><head>{head}{title}</head><body>', *body, "</body></html>", ""]
    )


def _navigation(kernels: Sequence[Facts]) -> list[str]:
    """Links to the chips, where there are several."""
    if len(kernels) == 1:
        return []
    return ["<nav>", *(f'<a href="#{known.arch}">{known.arch}</a>' for known in kernels), "</nav>"]


def _chip(known: Facts, chip: Chip) -> Iterable[str]:
    """The part about one chip."""
    drawn = drawings(known, chip)
    yield f'<section id="{known.arch}"><h2>{known.arch} <span class="soft">{escape(known.product)}</span></h2>'
    yield from _resources(known)
    yield "<h3>The program, and what became of it</h3>"
    yield from _source(known)
    sections = (
        ("Matrix products", PRODUCTS, [drawn[product.name] for product in known.products]),
        ("Register tiles", TILES, [drawn[tile.name] for tile in known.tiles]),
    )
    for title, text, figures in sections:
        if figures:
            yield f"<h3>{title}</h3><p>{text}</p>"
            yield from _gallery(known.arch, figures)
    if known.buffers:
        yield f"<h3>LDS</h3><p>{LDS}</p>"
        yield from _buffers(known, drawn)
    yield from _tables(known)
    yield "</section>"


PRODUCTS = "How wave 0 holds the operands of the matrix instruction: colours are lanes, a hue for each group of 16."
TILES = (
    "Tiles with the same layout share a picture. Colours on the left are waves, on the right lanes. Registers are "
    "counted in elements of a lane and block: two of 16 bits share a register of the machine."
)
SHOWN = ("load", "dot", "reduce", "cast")
"""Ops whose tiles are named beside the source."""

LDS = (
    "Each buffer with its byte map, then every access with its phases. The clocks of all instructions of one wave are "
    "compared with those of plain rows."
)


def _resources(known: Facts) -> Iterable[str]:
    taken = known.resources
    spills = f"{taken.vgpr_spills} / {taken.sgpr_spills}"
    cards = (
        (taken.vgpr, f"VGPRs, of them {taken.agpr} AGPRs"),
        (taken.sgpr, "SGPRs"),
        (spills, "spills, VGPR / SGPR"),
        (f"{taken.scratch} B", "scratch"),
        (f"{taken.lds_bytes} B", "LDS"),
        (known.waves, "waves per workgroup"),
        (known.waves_per_simd, "waves per SIMD fit the registers"),
        (known.per_unit, "workgroups per compute unit"),
    )
    yield '<div class="cards">'
    yield from (f'<div class="card"><b>{value}</b><span>{what}</span></div>' for value, what in cards)
    yield "</div>"


# -- the source and what was decided there


def _source(known: Facts) -> Iterable[str]:
    said = _decisions(known)
    yield '<div class="scroll"><table class="source">'
    for number, line in enumerate(known.source.splitlines(), 1):
        chips = "".join(f'<span class="chip">{text}</span>' for text in said.get(number, ()))
        mark = ' class="said"' if chips else ""
        yield f"<tr{mark}><td>{number}</td><td><code>{escape(line)}</code></td><td>{chips}</td></tr>"
    yield "</table></div>"


def _decisions(known: Facts) -> dict[int, list[str]]:
    """What was decided at each line, as HTML, each once."""
    said: dict[int, dict[str, None]] = {}
    for line, text in itertools.chain(_about_loops(known), _about_tiles(known), _about_lds(known)):
        if line is not None:
            said.setdefault(line, {})[text] = None
    return {line: list(texts) for line, texts in said.items()}


def _about_loops(known: Facts) -> Iterator[tuple[int | None, str]]:
    yield from ((loop.line, _trip(loop)) for loop in known.loops)
    yield from ((c.line, escape(c.chosen)) for c in known.choices if c.subject == "loop")


def _about_tiles(known: Facts) -> Iterator[tuple[int | None, str]]:
    yield from ((p.line, _link(known.arch, p.name, p.mnemonic)) for p in known.products)
    for tile in known.tiles:
        link = _link(known.arch, tile.name, f"{by(tile.shape)} {tile.dtype}")
        yield from ((line, f"{op}: {link}") for line, op in tile.uses if op in SHOWN)


def _about_lds(known: Facts) -> Iterator[tuple[int | None, str]]:
    for buffer in known.buffers:
        for line in dict.fromkeys(access.proof.line for access in buffer.accesses):
            proofs = [access.proof for access in buffer.accesses if access.proof.line == line]
            each = ", ".join(f"{proof.instructions} {proof.mnemonic}" for proof in proofs)
            yield line, f"{_link(known.arch, buffer.name, buffer.name)}: {each}"


def _trip(loop: Loop) -> str:
    counts = loop.operations
    parts = [f"{counts[kind]} {kind}" for kind in ("mfma", "lds_read", "barrier") if kind in counts]
    return f"per trip {', '.join(parts)}" if parts else "a loop"


def _link(arch: str, name: str, text: str) -> str:
    return f'<a href="#{arch}-{name}">{escape(text)}</a>'


# -- pictures


def _gallery(arch: str, figures: Iterable[Drawing]) -> Iterable[str]:
    yield '<div class="gallery">'
    yield from (_figure(arch, drawing) for drawing in figures)
    yield "</div>"


def _figure(arch: str, drawing: Drawing) -> str:
    caption = f"<figcaption>{escape(drawing.caption)} <code>{drawing.name}</code></figcaption>"
    return f'<figure id="{arch}-{drawing.name}"><div class="scroll">{drawing.svg()}</div>{caption}</figure>'


def _buffers(known: Facts, drawn: dict[str, Drawing]) -> Iterable[str]:
    for buffer in known.buffers:
        yield f'<p class="buffer"><b>{buffer.name}</b> {escape(_copies(buffer))}</p>'
        yield f'<div class="gallery">{_figure(known.arch, drawn[buffer.name])}<div class="column">'
        yield from (_figure(known.arch, drawn[access.name]) for access in buffer.accesses)
        yield "</div></div>"
        rows = [
            [
                f"{a.proof.instructions} × {a.proof.mnemonic}",
                a.proof.line or "",
                a.proof.cycles,
                a.proof.minimum,
                a.proof.lower_bound,
                a.total,
                "impossible" if a.unswizzled is None else a.unswizzled,
                a.proof.reason,
            ]
            for a in buffer.accesses
        ]
        heads = ["access", "line", "clocks each", "minimum", "lower bound", "clocks of all", "as plain rows", "reason"]
        yield from _table(heads, rows)


def _copies(buffer: Buffer) -> str:
    lds = buffer.lds
    copies = f", with copies in {', '.join(buffer.copies[1:])}" if len(buffer.copies) > 1 else ""
    return f"{lds.bytes} bytes from byte {lds.offset}{copies}: {lds.map}"


# -- tables


def _tables(known: Facts) -> Iterable[str]:
    if known.conversions:
        yield "<h3>Conversions</h3><p>Tiles that are held in one layout and wanted in another.</p>"
        heads = ["line", "from", "to", "what moves", "how", "buffer", "instructions of a wave", "clocks"]
        yield from _table(heads, [_move(known.arch, move) for move in known.conversions])
    if known.loops:
        yield f"<h3>Loops</h3><p>{LOOPS}</p>"
        yield from _table(
            ["line", "depth", "trips", "operations", "LDS buffers"], [_loop(loop) for loop in known.loops]
        )
    if known.choices:
        yield f"<h3>Choices and runners-up</h3><p>{CHOICES}</p>"
        rows = [
            [
                c.line or "",
                c.subject,
                _layout(c.chosen),
                _clocks(c.clocks),
                _layout(c.runner_up),
                _clocks(c.runner_up_clocks),
            ]
            for c in known.choices
        ]
        yield from _table(["line", "of", "chosen", "clocks", "next best", "clocks"], rows)


LOOPS = "What one wave does in a trip. Of a buffer with two copies, one is filled while the other is read."
CHOICES = "For a dot, the modelled clocks of the whole kernel; for LDS, those of one wave's accesses."


def _clocks(known: int | None) -> int | str:
    return "" if known is None else known


def _layout(text: str) -> str:
    return f'<code class="layout">{escape(text)}</code>'


def _move(arch: str, move: Move) -> list[object]:
    tiles = [_link(arch, name, name) for name in (move.source, move.target)]
    buffer = _link(arch, move.buffer, move.buffer) if move.buffer else ""
    return [move.line or "", *tiles, move.kind, move.way, buffer, move.instructions, move.clocks]


def _loop(loop: Loop) -> list[object]:
    operations = ", ".join(f"{count} {kind}" for kind, count in loop.operations.items())
    trips = "known at launch" if loop.trips is None else loop.trips
    return [loop.line or "", loop.depth, trips, operations, ", ".join(loop.buffers)]


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterable[str]:
    """A table; cells are HTML, numbers stand right."""
    rows = list(rows)
    numeric = [all(isinstance(row[i], int) or row[i] in ("", "impossible") for row in rows) for i in range(len(heads))]
    kinds = [' class="number"' if it else "" for it in numeric]
    yield '<div class="scroll"><table>'
    yield "<tr>" + "".join(f"<th{kind}>{head}</th>" for kind, head in zip(kinds, heads, strict=True)) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True)) + "</tr>"
    yield "</table></div>"
