"""Layouts: where the elements of register tiles and of LDS tiles live, as algebra over GF(2)."""

from hkc.layout.constructors import blocked, tile_waves, with_runs
from hkc.layout.distributed import DistributedLayout, Piece
from hkc.layout.lds import LdsMap
from hkc.layout.linear import LinearMap

__all__ = ["DistributedLayout", "LdsMap", "LinearMap", "Piece", "blocked", "tile_waves", "with_runs"]
