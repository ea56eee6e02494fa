"""`hkc_tile`: what is computed on tiles, with no lanes, no LDS and no waits. Importing it fills the registry."""

from hkc.dialects.tile import (
    atomics,
    convert,
    create,
    diagnostics,
    division,
    dot,
    indexed,
    memory,
    pieces,
    random,
    reduce,
    scan,
    shape,
)

__all__ = [
    "atomics", "convert", "create", "diagnostics", "division", "dot", "indexed", "memory", "pieces", "random", "reduce",
    "scan", "shape",
]  # fmt: skip
