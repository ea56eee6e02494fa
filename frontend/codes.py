"""Every code of the front end with one sentence for `hkc explain`, and the limits that HK4xx are about."""

from __future__ import annotations

NESTING = 50
"""Depth of blocks, of brackets and of expressions."""
RANK = 5
"""Dims of a tensor or tile."""
FILE_BYTES = 4 * 2**20
"""Size of a source file."""
TILE_ELEMENTS = 2**20
"""Elements of one tile."""

CODES: dict[str, str] = {
    "HK101": "The text doesn't continue in a way that the grammar knows at this place.",
    "HK102": "The first line of a kernel or loop ends with a colon.",
    "HK103": "Every bracket is closed by one of its kind.",
    "HK104": "Arguments and list items are separated by commas.",
    "HK105": "A text in quotes ends on its own line (with three quotes: on a later one) and only documents a kernel.",
    "HK106": "Indentation is made of spaces, since a tab has no fixed width.",
    "HK107": "A single `=` gives a name to a value; `==` compares.",
    "HK108": "A line at the left margin starts with const, tune, kernel, example or reference.",
    "HK109": "A word of Python that the language doesn't have yet.",
    "HK110": "The lines of a block have the same indentation, deeper than the line that opens the block.",
    "HK111": "A character that means nothing outside comments and texts.",
    "HK112": "A comparison has two sides; combine several comparisons by where().",
    "HK113": "Only names are assigned to; memory is written by store().",
    "HK114": "A number is decimal or hexadecimal, with at most 64 bits, or a float within the range of f64.",
    "HK115": "An operator, comma or bracket is followed by an expression.",
    "HK116": "Every parameter of a kernel has a type.",
    "HK121": "The file can't be read as UTF-8 text.",
    "HK122": "A file holds at least one kernel.",
    "HK402": "Blocks, brackets and expressions nest up to a fixed depth.",
    "HK403": "A source file has a limited size.",
}
