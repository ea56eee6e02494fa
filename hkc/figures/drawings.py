"""The drawings of a kernel, by the names that `--figure` takes, and as PNG."""

from __future__ import annotations

import importlib

from hkc.figures.facts import Facts
from hkc.figures.lds import map_drawing, phase_drawing
from hkc.figures.svg import STYLE, Drawing
from hkc.figures.tiles import product_drawing, tile_drawing
from hkc.layout import DistributedLayout
from hkc.support.errors import error
from hkc.targets.chip import Chip

ZOOM = 2.0
"""Pixels of a PNG per pixel of a drawing."""


def drawings(known: Facts, chip: Chip) -> dict[str, Drawing]:
    """All drawings: `mfma0` … products, `tile0` … register tiles, `lds0` … byte maps, `lds0-0` … their accesses."""
    made = [
        product_drawing(
            product.name,
            product.mnemonic,
            f"{f'line {product.line} · ' if product.line else ''}{product.clocks} clocks each",
            [DistributedLayout.parse(text) for text in product.layouts],
        )
        for product in known.products
    ]
    made += [
        tile_drawing(tile.name, tile.shape, tile.dtype, DistributedLayout.parse(tile.layout), tile.text)
        for tile in known.tiles
    ]
    for buffer in known.buffers:
        timings = [chip.lds.access(access.proof.mnemonic) for access in buffer.accesses]
        banks = max((timing.banks for timing in timings), default=chip.lds.accesses[0].banks)
        made.append(map_drawing(buffer.name, buffer.lds, banks))
        made += [phase_drawing(access.name, buffer.lds, access.proof, chip) for access in buffer.accesses]
    return {drawing.name: drawing for drawing in made}


def png(drawing: Drawing) -> bytes:
    """A drawing as PNG on white. Raises `HkcError` HK527 where the library that renders it is missing."""
    try:
        resvg = importlib.import_module("resvg_py")
    except ImportError:
        message = "PNG pictures need the package `resvg-py`, which is not installed"
        raise error("HK527", message, hint="pip install 'hkc[figures]', or ask for .svg") from None
    light = STYLE.partition("@media")[0]
    return bytes(resvg.svg_to_bytes(svg_string=drawing.svg(light), background="#ffffff", zoom=ZOOM))
