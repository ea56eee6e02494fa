"""The types that ops compute with, as plain records, for verifiers and for the front end, which never loads MLIR."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TileType:
    """A register tile: `shape` in elements, element `dtype` (a name of `hkc.support.dtypes`), and its layout text."""

    shape: tuple[int, ...]
    dtype: str
    layout: str | None = None

    def __str__(self) -> str:
        return f"{extents(self.shape)} {self.dtype}"


@dataclass(frozen=True)
class GlobalType:
    """A tensor in global memory; a dim is a number or the text of a symbolic extent (None where it is unknown)."""

    dims: tuple[str | int | None, ...]
    dtype: str

    def __str__(self) -> str:
        return f"global {extents(self.dims)} {self.dtype}"


@dataclass(frozen=True)
class ScalarType:
    """One number, the same in all lanes."""

    dtype: str

    def __str__(self) -> str:
        return self.dtype


@dataclass(frozen=True)
class IndexType:
    """An offset or extent, 64 bits."""

    def __str__(self) -> str:
        return "an index"


@dataclass(frozen=True)
class VectorType:
    """What one lane holds of a fragment: `size` elements of `dtype`."""

    size: int
    dtype: str

    def __str__(self) -> str:
        return f"{self.size} x {self.dtype} per lane"


@dataclass(frozen=True)
class OpaqueType:
    """A type that only its own dialect understands (an LDS buffer, a descriptor, a pointer), by its MLIR text."""

    text: str

    def __str__(self) -> str:
        return self.text


Type = TileType | GlobalType | ScalarType | IndexType | VectorType | OpaqueType


def extents(dims: tuple[object, ...]) -> str:
    """`64x32` for (64, 32)."""
    return "x".join("?" if d is None else str(d) for d in dims)
