"""Published LDS swizzles against synthesised ones: clocks of all accesses of a tile together, from the chips' phases.

    python bench/swizzles.py

A row is a subtile of HipKittens (include/types/shared/st_shape.cuh, and the slabs of its branch for CDNA3) with the
register tiles that its kernels move through it. Fewer clocks are better; `x` is the factor, and in brackets stands
how many clocks each access takes for one of an instruction of its width without conflicts.

A map that keeps 8 bytes together has rows read 8 bytes at a time: as many clocks, since the banks deliver the same
bytes, but twice the instructions. `instructions` says how many there are under both maps, and how wide ours are.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from hkc.layout import DistributedLayout, LdsMap
from hkc.layout.accesses import Use
from hkc.layout.synthesis import prove, synthesise
from hkc.targets.chip import load

LAYOUTS = {
    "16x32": "16x32 r(0,1 0,2 0,4) l(1,0 2,0 4,0 8,0 0,8 0,16) w()",
    "32x16": "32x16 r(0,1 0,2 0,4) l(1,0 2,0 4,0 8,0 16,0 0,8) w()",
    "16x16": "16x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w()",
    "32x32": "32x32 r(0,1 0,2 0,8 0,16) l(1,0 2,0 4,0 8,0 16,0 0,4) w()",
    "16x32 columns": "16x32 r(1,0 2,0 4,0) l(0,1 0,2 0,4 0,8 0,16 8,0) w()",
    "32x16 columns": "32x16 r(1,0 2,0 4,0) l(0,1 0,2 0,4 0,8 8,0 16,0) w()",
    "16x16 columns": "16x16 r(1,0 2,0) l(0,1 0,2 0,4 0,8 4,0 8,0) w()",
    "16x64 bytes": "16x64 r(0,1 0,2 0,4 0,8) l(1,0 2,0 4,0 8,0 0,16 0,32) w()",
}
"""Register tiles: 8 or 4 neighbours per lane along a row, or down a column (read transposed)."""


def row(name: str) -> Use:
    """Rows read by the widest instruction."""
    return Use("read", DistributedLayout.parse(LAYOUTS[name]), op=f"read {name}")


def column(name: str) -> Use:
    """Columns read transposed."""
    return Use("read_transposed", DistributedLayout.parse(LAYOUTS[f"{name} columns"]), op=f"read columns {name}")


def store(name: str) -> Use:
    """Rows written 8 bytes at a time, as results of matrix instructions are."""
    return Use("write", DistributedLayout.parse(LAYOUTS[name]), op=f"write {name}", widest=8)


@dataclass(frozen=True)
class Row:
    """A published subtile, its map, and the accesses that it serves."""

    name: str
    arch: str
    published: LdsMap
    uses: tuple[Use, ...]


def _map(block: tuple[int, int], xor: tuple[tuple[int, int], ...] = (), itemsize: int = 2) -> LdsMap:
    return LdsMap.swizzled((64, 128) if itemsize == 1 else (64, 64), itemsize, block, xor)


SLABS = {16: ((3, 7), (4, 8)), 32: ((3, 7), (4, 8), (5, 9)), 64: ((3, 7), (4, 8), (5, 9), (6, 10))}

ROWS = (
    Row("16x16", "gfx950", _map((16, 16)), (row("16x16"), store("16x16"), column("16x16"))),
    Row("16x16", "gfx950", _map((16, 16)), (row("32x32"),)),
    Row("16x16 swizzled", "gfx950", _map((16, 16), ((3, 7), (4, 8))), (row("16x16"), store("16x16"), column("16x16"))),
    Row("32x32", "gfx950", _map((32, 32), ((5, 9), (4, 10))), (row("32x16"), column("16x32"))),
    Row("32x32", "gfx950", _map((32, 32), ((5, 9), (4, 10))), (row("32x16"), store("16x16"), column("16x32"))),
    Row("16x32", "gfx950", _map((16, 32), ((5, 9),)), (row("16x32"), column("16x32"))),
    Row("16x32", "gfx950", _map((16, 32), ((5, 9),)), (row("16x32"), column("16x32"), store("16x16"))),
    Row("16x32", "gfx950", _map((16, 32), ((5, 9),)), (row("32x32"),)),
    Row("32x16", "gfx950", _map((32, 16), ((4, 9),)), (row("32x16"),)),
    Row("32x16", "gfx950", _map((32, 16), ((4, 9),)), (row("32x16"), column("32x16"), store("16x16"))),
    Row("8x32", "gfx950", _map((8, 32)), (row("16x32"),)),
    Row("8x32", "gfx950", _map((8, 32)), (row("32x32"), store("16x16"))),
    Row("16x128 fp8", "gfx950", _map((16, 128), ((4, 8), (5, 9), (6, 10)), 1), (row("16x64 bytes"),)),
    *(
        Row(f"slab of {2 * width} bytes", "gfx942", _map((64, width), xor), (row("16x16"), store("16x16")))
        for width, xor in SLABS.items()
    ),
    *(
        Row(f"slab of {2 * width} bytes", "gfx942", _map((64, width), xor), (row("16x32"), store("16x16")))
        for width, xor in SLABS.items()
    ),
)


@dataclass(frozen=True)
class Result:
    """Clocks of both maps, ways of conflict per access, instructions and their bytes per lane, the synthesised map and
    the seconds that it took."""

    published: int
    synthesised: int
    ways: tuple[tuple[float, ...], tuple[float, ...]]
    instructions: tuple[int, int]
    widths: tuple[int, ...]
    map: LdsMap
    seconds: float


def compare(case: Row) -> Result:
    """One row of the table."""
    timings = load(case.arch).lds.access
    theirs = prove(case.published, case.uses, timings)
    start = time.perf_counter()
    ours = synthesise(case.published.shape, case.published.itemsize, case.uses, timings).chosen
    seconds = time.perf_counter() - start
    ways = tuple(tuple(a.cycles / a.minimum for a in accesses) for accesses in (theirs, ours.accesses))
    count = tuple(sum(a.instructions for a in accesses) for accesses in (theirs, ours.accesses))
    widths = tuple(timings(a.mnemonic).bytes for a in ours.accesses)
    return Result(
        sum(a.total for a in theirs), ours.clocks, (ways[0], ways[1]), (count[0], count[1]), widths, ours.map, seconds
    )


def main() -> None:
    """Print the table."""
    heads = f"{'published':>16} {'synthesised':>16} {'x':>5}  {'instructions':18} map"
    print(f"{'chip':7} {'subtile':18} {'accesses':50} {heads}")
    for case in ROWS:
        made = compare(case)
        accesses = ", ".join(use.op for use in case.uses)
        columns = (
            f"{total} ({'/'.join(f'{way:g}' for way in ways)})"
            for total, ways in zip((made.published, made.synthesised), made.ways, strict=True)
        )
        table = " ".join(f"{text:>16}" for text in columns)
        factor = made.published / made.synthesised
        found = made.map.text().split(" order ")[1]
        block = "x".join(map(str, made.map.block))
        issued = f"{made.instructions[0]}, {made.instructions[1]} of {'/'.join(map(str, made.widths))} B"
        print(
            f"{case.arch:7} {case.name:18} {accesses:50} {table} {factor:5.2f}  {issued:18} block {block} order {found}"
        )


if __name__ == "__main__":
    main()
