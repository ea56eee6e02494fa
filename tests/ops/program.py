"""Small kernels in tile IR, written op by op: run by the ops' meanings and, compiled, on the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from contract import compiled, emulate

from hkc.reference import compare
from hkc.support import worker
from hkc.support.dtypes import from_numpy

TILE = 1024
"""Elements of a tile in `along`."""


def mlir(array: Any) -> str:
    """The MLIR element type of an array."""
    known = from_numpy(array.dtype)
    assert known is not None
    return known.mlir


def tile(array: Any, shape: Sequence[int] | None = None) -> str:
    """The tensor type of a tile like an array."""
    return f"tensor<{'x'.join(map(str, shape or array.shape))}x{mlir(array)}>"


def memref(array: Any) -> str:
    """The type of an array as a kernel argument."""
    return f"memref<{'?x' * array.ndim}{mlir(array)}, strided<[{', '.join('?' * array.ndim)}]>>"


def zero(array: Any) -> str:
    """The constant 0 of an array's dtype, as MLIR writes it."""
    element = mlir(array)
    return "false" if element == "i1" else f"{0 if element[0] == 'i' else 0.0} : {element}"


def dims(name: str, array: Any) -> str:
    """The names of an argument's dims."""
    return ", ".join(f'"{name[1:]}{d}"' for d in range(array.ndim))


@dataclass
class Program:
    """A kernel as it grows: its arguments with their contents, and its lines."""

    waves: int | None = None
    arrays: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    functions: str = ""
    grid: int = 1

    def tensor(self, name: str, array: Any) -> str:
        """A global argument; returns its type."""
        self.arrays[name] = array
        return memref(array)

    def index(self, name: str, value: int) -> None:
        """A constant index."""
        self.lines.append(f"{name} = arith.constant {value} : index")

    def constant(self, name: str, value: Any, kind: str) -> None:
        """A constant scalar or tile of MLIR type `kind`."""
        self.lines.append(f"{name} = arith.constant {value} : {kind}")

    def load(self, name: str, array: Any, shape: Sequence[int] | None = None) -> str:
        """A tile with the contents of an array (and zeros around it, where `shape` is larger); returns its type."""
        kind, source = tile(array, shape), self.tensor(f"{name}_from", array)
        self.index(f"{name}_at", 0)
        self.lines.append(f"{name}_fill = arith.constant {zero(array)}")
        at = ", ".join([f"{name}_at"] * array.ndim)
        self.lines.append(
            f'{name} = "hkc_tile.load"({name}_from, {name}_fill, {at})'
            f" : ({source}, {mlir(array)}, {', '.join(['index'] * array.ndim)}) -> {kind}"
        )
        return kind

    def position(self, name: str, tiles: int, extent: int) -> None:
        """`name` becomes the offset of this workgroup's tile of `extent` elements; there are `tiles` of them."""
        self.grid = tiles
        self.index(f"{name}_n", tiles)
        self.index(f"{name}_extent", extent)
        self.lines += [
            f'{name}_id = "hkc_tile.tile_id"({name}_n) {{order = "rows"}} : (index) -> index',
            f"{name} = arith.muli {name}_id, {name}_extent : index",
        ]

    def store(self, name: str, shape: Sequence[int], dtype: Any) -> None:
        """Store a tile to a new argument of its own."""
        array = np.zeros(shape, dtype)
        target = self.tensor(f"{name}_to", array)
        self.index(f"{name}_zero", 0)
        at = ", ".join([f"{name}_zero"] * array.ndim)
        self.lines.append(
            f'"hkc_tile.store"({name}, {name}_to, {at})'
            f" : ({tile(array)}, {target}, {', '.join(['index'] * array.ndim)}) -> ()"
        )

    def text(self) -> str:
        """The module."""
        head = ", ".join(
            f'{name}: {memref(a)} {{hkc.name = "{name}", hkc.dims = [{dims(name, a)}]}}'
            for name, a in self.arrays.items()
        )
        hints = "" if self.waves is None else f"waves = {self.waves} : i64"
        marks = f'{{hkc.kernel, hkc.grid = ["{self.grid}"], hkc.hints = {{{hints}}}}}'
        body = "\n  ".join([*self.lines, "return"])
        return f"{self.functions}func.func @k({head}) attributes {marks} {{\n  {body}\n}}\n"

    def meant(self, bounded: bool = False) -> dict[str, Any]:
        """What the arguments hold afterwards, by the meanings; with bounds, pairs of values and bounds."""
        found: dict[str, Any] = worker.call("contract:run_tiles", self.text(), self.arrays, bounded)
        return found

    def run(self, arch: str, symbol: str = "k", seed: int = 0) -> dict[str, Any]:
        """What the arguments hold after the compiled kernel ran."""
        arguments = [(*a.shape, *(s // a.itemsize for s in a.strides)) for a in self.arrays.values()]
        code = compiled(self.text(), arch, "tile")
        found = emulate(code, symbol, list(self.arrays.values()), arguments, seed, self.grid)
        return dict(zip(self.arrays, found, strict=True))

    def check(self, arch: str, entries: Sequence[str] = ("k", "k__general"), exact: bool = False) -> None:
        """Both entries leave behind what the meanings do: within their bounds, or bit for bit."""
        wanted = self.meant(bounded=not exact)
        for symbol in entries:
            found = self.run(arch, symbol)
            for name in self.arrays:
                if exact:
                    np.testing.assert_array_equal(bits(found[name]), bits(wanted[name]), f"{symbol} {name}")
                    continue
                compared = compare(found[name], *wanted[name])
                assert compared.ok, f"{symbol} {name}: {compared}"


def along(arch: str, template: str, out: Any, *inputs: Any) -> Any:
    """A line of tile IR applied to vectors, tile after tile: `template` uses %x0, %x1, … of types {x0}, {x1}, …, and
    defines %r of type {r}. Only the aligned entry runs. Returns what it stores."""
    size = len(inputs[0])
    tiles = -(-size // TILE)
    program = Program()
    program.position("%at", tiles, TILE)
    kinds = {}
    for i, array in enumerate(inputs):
        source, element = program.tensor(f"%t{i}", array), mlir(array)
        kinds[f"x{i}"] = f"tensor<{TILE}x{element}>"
        program.lines += [
            f"%f{i} = arith.constant {zero(array)}",
            f'%x{i} = "hkc_tile.load"(%t{i}, %f{i}, %at) : ({source}, {element}, index) -> {kinds[f"x{i}"]}',
        ]
    made = np.zeros(size, out)
    kinds["r"] = f"tensor<{TILE}x{mlir(made)}>"
    target = program.tensor("%to", made)
    program.lines += [
        template.format(**kinds),
        f'"hkc_tile.store"(%r, %to, %at) : ({kinds["r"]}, {target}, index) -> ()',
    ]
    return program.run(arch)["%to"]


def bits(array: Any) -> Any:
    """The bytes of an array, all NaN of a float as one."""
    array = np.ascontiguousarray(array)
    known = from_numpy(array.dtype)
    if known is not None and known.is_float and known.name not in ("f6e2m3", "f6e3m2", "f4e2m1"):
        array = np.where(np.isnan(array.astype(np.float64)), np.array(np.nan, array.dtype), array)
    return np.ascontiguousarray(array).view(np.uint8)


__all__ = ["Program", "along", "bits", "memref", "mlir", "tile"]
