"""All that a page shows of a compiled kernel, as plain data: what `--json` prints, and what is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hkc.figures.lds import phases, plain, total
from hkc.frontend.program import Checked
from hkc.handover import Binary, Choice, Conversion, Dot, LdsAccess, LdsBuffer, Loop, Resources, Tile
from hkc.layout import DistributedLayout, LdsMap
from hkc.layout.exchange import Exchange, exchange
from hkc.targets.chip import Chip

KINDS = {
    Exchange.IDENTITY: "nothing moves",
    Exchange.REGISTERS: "registers are renamed",
    Exchange.SELECT: "lanes choose among registers",
    Exchange.LANES: "lanes exchange",
    Exchange.WAVES: "waves exchange",
}
"""How far elements travel, in words."""


WORDS = {"hkc_tile.convert_layout": "converted", "arith.constant": "constant", "tensor.splat": "splat"}
"""Ops whose names say little to those who don't read IR."""


MOST = 2
"""Lines that the title of a tile names."""


@dataclass(frozen=True)
class TileGroup:
    """Tiles of one shape, dtype and layout: the layout's text, registers of 32 bits per lane, and where ops make such
    tiles, as (line, op) in program order. `name` is that of the drawing."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    layout: str
    registers: int
    uses: tuple[tuple[int | None, str], ...]

    @property
    def text(self) -> str:
        """The first lines and what happens there: `line 9: load · line 14: dot, mulf`."""
        lines: dict[int | None, list[str]] = {}
        for line, op in self.uses:
            if op not in lines.setdefault(line, []):
                lines[line].append(op)
        placed = [f"line {line}: {', '.join(lines[line])}" for line in sorted(filter(None, lines))]
        more = len(placed) - MOST
        return " · ".join(placed[:MOST] + ([f"{more} more {'line' if more == 1 else 'lines'}"] if more > 0 else []))


@dataclass(frozen=True)
class Product:
    """A matrix product: its instruction with the clocks that it takes, and the tile groups of its operands."""

    name: str
    line: int | None
    mnemonic: str
    clocks: int
    a: str
    b: str
    acc: str
    layouts: tuple[str, str, str]


@dataclass(frozen=True)
class Move:
    """A conversion: the tile groups that it leads from and to, how far elements travel, by which way, through which LDS
    buffer, with which instructions of a wave and for how many clocks (0: in registers)."""

    line: int | None
    source: str
    target: str
    kind: str
    way: str
    buffer: str
    instructions: str
    clocks: int


@dataclass(frozen=True)
class Access:
    """An access of an LDS buffer with its phases: lanes, the most dwords that one bank delivers. `unswizzled` is what
    all its instructions would take if rows lay one after another, `total` what they take."""

    name: str
    proof: LdsAccess
    total: int
    unswizzled: int | None
    phases: tuple[tuple[tuple[int, ...], int], ...]


@dataclass(frozen=True)
class Buffer:
    """An LDS buffer, the number of its copies (2: one is filled while the other is read), and its accesses."""

    name: str
    lds: LdsBuffer
    copies: tuple[str, ...]
    accesses: tuple[Access, ...]


@dataclass(frozen=True)
class Facts:
    """What was decided about a kernel on one chip, for the entry point that is tried first.

    `waves_per_simd` is how many waves the registers leave room for, `per_unit` how many workgroups of this kernel fit
    one compute unit at once.
    """

    kernel: str
    arch: str
    product: str
    file: str
    source: str
    constants: tuple[tuple[str, str], ...]
    waves: int
    resources: Resources
    waves_per_simd: int
    per_unit: int
    tiles: tuple[TileGroup, ...]
    products: tuple[Product, ...]
    conversions: tuple[Move, ...]
    buffers: tuple[Buffer, ...]
    loops: tuple[Loop, ...]
    choices: tuple[Choice, ...]


def facts(binary: Binary, checked: Checked, chip: Chip) -> Facts:
    """The facts of a compiled kernel."""
    info = binary.info
    taken = binary.resources[info.entries[0].symbol]
    groups = _groups([*binary.layouts.tiles, *_operands(binary)])
    names = {_key(g.shape, g.dtype, g.layout): g.name for g in groups}
    buffers = tuple(_buffers(binary.lds, chip))
    fitting, units = occupancy(taken, info.waves, chip)
    return Facts(
        info.name,
        binary.arch,
        chip.product,
        checked.source.name,
        checked.source.text,
        info.constants,
        info.waves,
        taken,
        fitting,
        units,
        groups,
        _products(binary.layouts.dots, names, chip),
        tuple(dict.fromkeys(_move(c, names, buffers) for c in binary.layouts.conversions)),
        buffers,
        binary.loops,
        tuple(dict.fromkeys(binary.choices)),
    )


def occupancy(taken: Resources, waves: int, chip: Chip) -> tuple[int, int]:
    """Waves per SIMD that the registers leave room for, and workgroups of so many waves that a compute unit holds."""
    granule = chip.registers.granule
    registers = max(1, -(-taken.vgpr // granule)) * granule
    per_simd = min(chip.registers.file // registers, chip.compute.waves_per_simd)
    groups = per_simd * chip.compute.simds // waves
    if taken.lds_bytes:
        groups = min(groups, chip.lds.bytes // (-(-taken.lds_bytes // chip.lds.granule) * chip.lds.granule))
    return per_simd, groups


def _key(shape: tuple[int, ...], dtype: str, layout: str) -> tuple[object, ...]:
    return shape, dtype, layout


def _operands(binary: Binary) -> Iterable[Tile]:
    for conversion in binary.layouts.conversions:
        yield conversion.source


def _groups(tiles: Iterable[Tile]) -> tuple[TileGroup, ...]:
    """Tiles that look alike, the largest first."""
    found: dict[tuple[object, ...], list[Tile]] = {}
    for tile in tiles:
        found.setdefault(_key(tile.shape, tile.dtype, tile.layout), []).append(tile)
    made = [_group(same) for same in found.values()]
    order = sorted(range(len(made)), key=lambda i: (made[i].uses[0][0] or 0, i))
    return tuple(_renamed(made[i], f"tile{n}") for n, i in enumerate(order))


def _group(same: list[Tile]) -> TileGroup:
    from hkc.support.dtypes import dtype

    tile, layout = same[0], DistributedLayout.parse(same[0].layout)
    elements = layout.fragments(tile.shape) * layout.registers
    uses = dict.fromkeys((t.line, WORDS.get(t.op, t.op.rpartition(".")[2])) for t in same if t.line is not None)
    ordered = tuple(uses) or ((None, "constant"),)
    return TileGroup("", tile.shape, tile.dtype, tile.layout, -(-elements * dtype(tile.dtype).bits // 32), ordered)


def _renamed(group: TileGroup, name: str) -> TileGroup:
    return TileGroup(name, group.shape, group.dtype, group.layout, group.registers, group.uses)


def _products(dots: Iterable[Dot], names: Mapping[tuple[object, ...], str], chip: Chip) -> tuple[Product, ...]:
    found: dict[tuple[object, ...], Product] = {}
    for dot in dots:
        tiles = (dot.a, dot.b, dot.acc)
        a, b, acc = (names[_key(t.shape, t.dtype, t.layout)] for t in tiles)
        clocks = next(row.cycles for row in chip.mfmas if row.mnemonic == dot.mnemonic)
        key = (dot.acc.line, dot.mnemonic, a, b, acc)
        layouts = (dot.a.layout, dot.b.layout, dot.acc.layout)
        found.setdefault(key, Product(f"mfma{len(found)}", dot.acc.line, dot.mnemonic, clocks, a, b, acc, layouts))
    return tuple(found.values())


def _move(conversion: Conversion, names: Mapping[tuple[object, ...], str], buffers: Iterable[Buffer]) -> Move:
    source, target = (names[_key(t.shape, t.dtype, t.layout)] for t in (conversion.source, conversion.target))
    kind = KINDS[exchange(*(DistributedLayout.parse(t.layout) for t in (conversion.source, conversion.target)))]
    line = conversion.target.line
    if conversion.way == "registers":
        return Move(line, source, target, kind, "in registers", "", "", 0)
    through = next((b for b in buffers if b.lds.map == conversion.map and line in _lines(b)), None)
    accesses = [a for a in through.accesses if a.proof.line == line] if through else []
    if conversion.way == "direct":
        accesses = [a for a in accesses if a.proof.kind != "write"]
    way = {"lds": "through registers and LDS", "direct": "straight from memory to LDS"}[conversion.way]
    each = ", ".join(f"{a.proof.instructions} {a.proof.mnemonic}" for a in accesses)
    clocks = sum(a.proof.instructions * a.proof.cycles for a in accesses)
    return Move(line, source, target, kind, way, through.name if through else "", each, clocks)


def _lines(buffer: Buffer) -> set[int | None]:
    return {access.proof.line for access in buffer.accesses}


def _buffers(all_buffers: Iterable[LdsBuffer], chip: Chip) -> Iterable[Buffer]:
    """Buffers that are read alike are copies of one. Of their accesses those of the first are shown that has all."""
    copies: dict[tuple[object, ...], list[LdsBuffer]] = {}
    for buffer in all_buffers:
        reads = sorted((a.line or 0, a.layout) for a in buffer.accesses if a.kind != "write")
        copies.setdefault((buffer.map, tuple(reads)), []).append(buffer)
    for same in copies.values():
        first = max(same, key=lambda buffer: len(buffer.accesses))
        names = [first.buffer, *(b.buffer for b in same if b is not first)]
        accesses = tuple(_access(f"{first.buffer}-{i}", first, a, chip) for i, a in enumerate(first.accesses))
        yield Buffer(first.buffer, first, tuple(names), accesses)


def _access(name: str, buffer: LdsBuffer, access: LdsAccess, chip: Chip) -> Access:
    lds = LdsMap.parse(buffer.map)
    served = tuple((phase.lanes, phase.clocks) for phase in phases(lds, access, chip))
    return Access(name, access, total(lds, access, chip) or 0, total(plain(lds), access, chip), served)
