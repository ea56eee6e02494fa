"""`hkc_tile`: what is computed on tiles, with no lanes, no LDS and no waits. Importing it fills the registry."""

from hkc.dialects.tile import convert, create, dot, memory, reduce, shape

__all__ = ["convert", "create", "dot", "memory", "reduce", "shape"]
