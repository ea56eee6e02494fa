"""Every code of layouts and LDS maps, with one sentence for `hkc explain`."""

from __future__ import annotations

CODES: dict[str, str] = {
    "HK401": "Maps between bits are joined where the widths of their inputs and outputs agree.",
    "HK402": "A map between bits has an inverse, or a quotient, only where no two inputs share what they reach.",
    "HK403": "A layout has blocks of extents that are powers of two, every element of which it reaches.",
    "HK404": "Whole blocks of a layout cover a tile.",
    "HK405": "The text of a layout or an LDS map has the form in which reports print it.",
    "HK406": "A value stays in its lane where a layout changes within registers.",
    "HK411": "An LDS map gives every element of a tile a place of its own.",
    "HK412": "A byte offset into LDS is that of an element.",
    "HK413": "An access to LDS stays inside the tile and takes bytes that the map keeps together.",
    "HK414": "One LDS map serves all accesses to a tile.",
}
