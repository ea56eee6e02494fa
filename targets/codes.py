"""Every code of chip tables, with one sentence for `hkc explain`."""

from __future__ import annotations

CODES: dict[str, str] = {
    "HK421": "The tables of a chip agree with each other.",
    "HK422": "A chip is one of those that hkc has tables of.",
    "HK423": "The operands of a matrix instruction that spreads tiles over registers are dense, and of one block.",
    "HK424": "The tables of a chip hold the instruction that is asked for.",
}
