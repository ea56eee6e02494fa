"""Give every tile a layout: the cheapest choice for the whole kernel, with conversions where ops disagree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hkc.dialects.define import TILE_DIALECT
from hkc.dialects.forms import STAGED, kernels, walk
from hkc.dialects.load import create
from hkc.dialects.tile.divisibility import is_constant
from hkc.dialects.tile.lowering import MFMA, parse_layout
from hkc.dialects.tile.shape import DIRECT, LDS_FILLED, LDS_MAP, LDS_OFFSET, LDS_TRANSPOSED, ConvertLayout
from hkc.dialects.translate import element_name, layout_text, with_layout
from hkc.layout import DistributedLayout, blocked
from hkc.layout.conversion import clocks, extents_in_lds, through_lds
from hkc.passes.define import Pass
from hkc.passes.explain import Option, explain
from hkc.passes.layout_graph import DOTS, LayoutGraph, Layouts, Tile, from_memory, is_read, is_tile, loads
from hkc.passes.lds_accesses import weight
from hkc.passes.locate import refuse
from hkc.passes.mfma_choice import DotLayouts, candidates, shape_text, variants, wave_grids
from hkc.passes.registers import budget, relief
from hkc.passes.requests import requested
from hkc.support.dtypes import dtype
from hkc.support.mlir import ir, run_passes
from hkc.targets.chip import Chip

WAVES = "hkc.waves"
"""Attribute of a kernel function: waves per workgroup."""

WIDEST = 16
"""Bytes per lane of the widest global access: what a load's layout gives each lane to hold in a row."""

ORIGINALS = frozenset(
    record.full_name for record in TILE_DIALECT.ops.values() if getattr(record.cls, "gives_originals", False)
)
"""Ops that work once per element and give their result only where no copies are."""

TOO_LARGE = 1 << 40
"""What a conversion costs for which LDS has no room: more than any other way."""

CHOICES = 256
"""Combinations of dots that are all tried; with more of them, dots are decided one after another."""


@dataclass(frozen=True)
class SelectLayouts(Pass):
    """Layouts spread from the dots' accumulators, then from the largest remaining tile, along ops that move nothing.

    A choice names for each dot its instruction, its grid of waves and its order along k, and for each load how lanes
    share its tile. It costs the clocks of the matrix units and those of the LDS for conversions, by trip counts. All
    combinations for the dots are tried while they are few; loads then improve on it one after another.

    Before::

        #plain = strided<[?, ?]>
        %a = "hkc_tile.load"(%A, %f, %i, %i) : (memref<?x?xf32, #plain>, f32, index, index) -> tensor<64x32xf32>
        %s = "hkc_tile.reduce"(%a) {axis = 1 : i64, kind = "sum"} : (tensor<64x32xf32>) -> tensor<64x1xf32>

    After::

        "hkc_tile.reduce"(%a) {axis = 1 : i64, kind = "sum"} : (tensor<64x32xf32, #hkc_tile.layout<
    """

    name: ClassVar[str] = "select_layouts"
    needs: ClassVar[frozenset[str]] = frozenset({"legal_tiles", "entries", "cuts_staged"})
    gives: ClassVar[frozenset[str]] = frozenset({"layouts"})
    drops: ClassVar[frozenset[str]] = frozenset({"staged", "lds_mapped"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            _forget(function)
            _check_request(function, chip)
            waves = _waves(function, chip)
            function.attributes[WAVES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), waves)
            graph = LayoutGraph(function)
            best = _Search(chip, waves, graph).best()
            _explain(graph, best)
            _write(graph, best)
            _check_registers(function, waves, chip)
        run_passes(module, "cse")


def _dot_extents(op: Any) -> tuple[int, int, int]:
    a, b = (tuple(op.operands[i].type.shape) for i in _factors(op)[:2])
    return a[0], b[1], a[1]


def _dot_dtypes(op: Any) -> tuple[str, str, str]:
    a, b, acc = (element_name(op.operands[i].type.element_type) for i in _factors(op))
    return a, b, acc


def _factors(op: Any) -> tuple[int, int, int]:
    """Which operands of a dot are a, b and the accumulator."""
    return (0, 2, 4) if _is_scaled(op) else (0, 1, 2)


def _is_scaled(op: Any) -> bool:
    return bool(op.name == "hkc_tile.dot_scaled")


def _forget(function: Any) -> None:
    """Take back what was decided for layouts that were chosen before."""
    for op in walk(function):
        for name in {DIRECT, LDS_FILLED, LDS_MAP, LDS_OFFSET, LDS_TRANSPOSED} & set(op.attributes):
            del op.attributes[name]


def _check_request(function: Any, chip: Chip) -> None:
    """Refuse a request for a matrix instruction that some dot can't have, or that no dot is there for."""
    asked = requested(function, "mfma")
    dots = [op for op in walk(function) if op.name in DOTS]
    if asked is not None and not dots:
        why = f"`mfma={asked}` can't be honoured: this kernel has no dot"
        raise refuse(function, "HK450", why, hint="leave it out")
    for op in dots:
        extents, scaled = _dot_extents(op), _is_scaled(op)
        if not candidates(chip, *_dot_dtypes(op), extents, scaled, asked):
            shapes = dict.fromkeys(map(shape_text, candidates(chip, *_dot_dtypes(op), extents, scaled)))
            a, b, acc = _dot_dtypes(op)
            why = f"`mfma={asked}` can't be honoured: {chip.name} has no such instruction for {a} x {b} into {acc}"
            raise refuse(op, "HK450", why, hint=f"for this dot there are {', '.join(shapes)}")


def _waves(function: Any, chip: Chip) -> int:
    """Waves per workgroup: the hint, else as many of four as every dot can share without copies, or tiles can fill."""
    asked = requested(function, "waves")
    if asked is not None:
        return int(asked)
    counts = [4]
    elements = 0
    for op in walk(function):
        elements = max([elements, *(math.prod(r.type.shape) for r in op.results if is_tile(r))])
        if op.name in DOTS:
            wanted = requested(function, "mfma")
            row = candidates(chip, *_dot_dtypes(op), _dot_extents(op), _is_scaled(op), wanted)[0]
            m, n, _ = _dot_extents(op)
            counts.append(math.prod(wave_grids(-(-m // row.n), -(-n // row.m), 4)[0]))
    lanes = chip.compute.wave
    return min(*counts, max(1, 1 << max(0, (elements // lanes).bit_length() - 1)))


@dataclass(frozen=True, eq=False)
class Choice:
    """The dots' layouts, the layouts of all tiles that follow from them, what it costs, in clocks, and what else was
    tried for the dots."""

    dots: tuple[DotLayouts, ...]
    layouts: Layouts
    clocks: float
    others: tuple[Choice, ...] = ()


@dataclass(frozen=True, eq=False)
class _Search:
    """Tries choices on the graph of one kernel."""

    chip: Chip
    waves: int
    graph: LayoutGraph

    def best(self) -> Choice:
        """The cheapest choice that was tried, the first of equals. What stands in one place of the source is chosen
        alike, however often a pass has copied it."""
        groups = _by_place(self.graph.dots)
        options = [list(self._variants(ops[0])) for ops in groups]
        if math.prod(map(len, options)) <= CHOICES:
            best = self._cheapest(groups, itertools.product(*options))
        else:
            chosen = [some[0] for some in options]
            others: list[Choice] = []
            for i, some in enumerate(options):
                tried = [(*chosen[:i], option, *chosen[i + 1 :]) for option in some]
                best = self._cheapest(groups, tried)
                others += best.others
                chosen[i] = best.dots[self.graph.dots.index(groups[i][0])]
            best = replace(best, others=tuple(others))
        given: Layouts = {}
        for tiles in _by_place(list(loads(self.graph)), lambda tile: tile.value.owner):
            for layout in self._shares(tiles[0]):
                shared = {**given, **{tile.number: layout for tile in tiles}}
                other = self.evaluate(best.dots, shared)
                if other.clocks < best.clocks:
                    best, given = replace(other, others=best.others), shared
        return best

    def _cheapest(self, groups: list[list[Any]], choices: Iterable[tuple[DotLayouts, ...]]) -> Choice:
        where = {op: i for i, ops in enumerate(groups) for op in ops}
        tried = (self.evaluate(tuple(chosen[where[op]] for op in self.graph.dots)) for chosen in choices)
        first, *others = sorted(tried, key=lambda choice: choice.clocks)
        return replace(first, others=tuple(others))

    def _variants(self, op: Any) -> Iterator[DotLayouts]:
        results = {self.graph.number(dot.results[0]) for dot in self.graph.dots}
        operands = [self.graph.number(op.operands[i]) for i in _factors(op)[:2]]
        chained = any(results & self.graph.like(tile) for tile in operands)
        wanted = requested(self.graph.function, "mfma")
        return variants(self.chip, _dot_dtypes(op), _dot_extents(op), self.waves, chained, _is_scaled(op), wanted)

    # -- the layouts of a choice

    def evaluate(self, dots: tuple[DotLayouts, ...], given: Layouts | None = None) -> Choice:
        """All layouts that follow from those of the dots and of some other tiles, and their cost."""
        results = [self.graph.number(op.results[0]) for op in self.graph.dots]
        layouts: Layouts = {}
        self.graph.spread(layouts, {n: chosen.acc for n, chosen in zip(results, dots, strict=True)})
        for number, layout in (given or {}).items():
            self.graph.spread(layouts, {number: layout})
        for tile in sorted(self.graph.tiles, key=lambda tile: (-tile.size, not is_read(tile.value))):
            if tile.number not in layouts:
                self.graph.spread(layouts, {tile.number: self._coalesced(tile)})
        return Choice(dots, layouts, self._clocks(dots, layouts))

    def _coalesced(self, tile: Tile) -> DistributedLayout:
        return blocked(tile.shape, self.waves, self._vector(tile), len(tile.shape) - 1, self.chip.compute.wave)

    def _vector(self, tile: Tile) -> int:
        """Neighbours along the last dim that one lane holds."""
        spread = tile.size // (self.waves * self.chip.compute.wave)
        return min(WIDEST // tile.itemsize, 1 << max(0, spread.bit_length() - 1))

    def _shares(self, tile: Tile) -> Iterator[DistributedLayout]:
        """Other ways to share a loaded matrix: as one of the next powers of two, where waves would hold copies else;
        and each lane holding several rows of its neighbours, so that it can write runs down the columns to LDS."""
        if len(tile.shape) != 2:
            return
        wave = self.chip.compute.wave
        powers = tuple(1 << (n - 1).bit_length() for n in tile.shape)
        for shape in dict.fromkeys((tile.shape, powers)):
            if shape != tile.shape:
                yield blocked(shape, self.waves, self._vector(tile), 1, wave)
            for vector in (self._vector(tile), self._vector(tile) // 2):
                rows = min(
                    tile.size // (self.waves * wave * max(vector, 1)), WIDEST // tile.itemsize, shape[0] & -shape[0]
                )
                if vector * tile.itemsize >= 4 and rows > 1:
                    yield _with_rows(shape, self.waves, vector, 1 << (rows.bit_length() - 1), wave)

    # -- cost

    def _clocks(self, dots: tuple[DotLayouts, ...], layouts: Layouts) -> float:
        simds = self.chip.compute.simds
        total = sum(
            chosen.clocks * weight(op) * max(1, self.waves // simds)
            for op, chosen in zip(self.graph.dots, dots, strict=True)
        )
        for number, wanted in conversions(self.graph, Choice(dots, layouts, 0)):
            tile = self.graph.tiles[number]
            if not is_constant(tile.value):
                total += tile.weight * self._conversion(layouts[number], wanted, tile)
        for fold in self.graph.folds:
            tile = self.graph.tiles[fold.tile]
            total += tile.weight * self._conversion(fold.layout(layouts), layouts[fold.tile], tile)
        return total + sum(tile.weight * self._load(layouts[tile.number], tile) for tile in loads(self.graph))

    def _conversion(self, source: DistributedLayout, target: DistributedLayout, tile: Tile) -> int:
        staged = from_memory(tile.value) is not None
        cost = (through_lds if staged else clocks)(source, target, tile.shape, tile.itemsize, self.chip.machine)
        held = math.prod(extents_in_lds(tile.shape, (source, target))) * tile.itemsize
        return cost + TOO_LARGE if staged and held > self.chip.lds.bytes else cost

    def _load(self, layout: DistributedLayout, tile: Tile) -> float:
        """Clocks of the cache for one tile: its lines, and an instruction per access."""
        last = len(tile.shape) - 1
        run = min(layout.contiguous(last) * tile.itemsize, WIDEST)
        accesses = layout.waves * layout.fragments(tile.shape) * layout.registers * tile.itemsize / run
        return accesses * max(4, run * layout.lanes / self.chip.memory.l1_bytes_per_clock)


def _by_place(items: list[Any], op: Callable[[Any], Any] = lambda op: op) -> list[list[Any]]:
    """Items whose ops have the same place in the source, the same types and attributes, in order."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for item in items:
        made = op(item)
        key = (str(made.location), *(str(v.type) for v in (*made.operands, *made.results)))
        groups.setdefault(key, []).append(item)
    return list(groups.values())


def _with_rows(shape: tuple[int, ...], waves: int, vector: int, rows: int, lanes: int) -> DistributedLayout:
    """A coalesced layout in which each lane also holds `rows` neighbouring rows of its elements."""
    unit = blocked((shape[0] // rows, shape[1]), waves, vector, 1, lanes)
    spread = [tuple((r * rows, c) for r, c in bases) for bases in (unit.register, unit.lane, unit.wave)]
    down = tuple((1 << i, 0) for i in range(rows.bit_length() - 1))
    return DistributedLayout((unit.block[0] * rows, unit.block[1]), spread[0] + down, spread[1], spread[2])


def conversions(graph: LayoutGraph, choice: Choice) -> dict[tuple[int, DistributedLayout], list[tuple[Any, int]]]:
    """Which tiles are wanted in which other layouts, and by which operands (op, position)."""
    found: dict[tuple[int, DistributedLayout], list[tuple[Any, int]]] = {}
    wants = [(want.op, want.operand, want.tile, want.layout(choice.layouts)) for want in graph.wants]
    for op, chosen in zip(graph.dots, choice.dots, strict=True):
        held = (chosen.a, chosen.scales[0], chosen.b, chosen.scales[1]) if chosen.scales else (chosen.a, chosen.b)
        wants += [(op, i, graph.number(op.operands[i]), layout) for i, layout in enumerate(held)]
    for op, operand, tile, layout in wants:
        if choice.layouts[tile] != layout:
            found.setdefault((tile, layout), []).append((op, operand))
    return found


def _explain(graph: LayoutGraph, choice: Choice) -> None:
    """Say what was chosen for each dot, what the kernel is modelled to cost, and what would have been next."""
    for ops in _by_place(graph.dots):
        at = graph.dots.index(ops[0])
        chosen, *others = (Option(_described(c.dots[at]), round(c.clocks)) for c in (choice, *choice.others))
        explain(graph.function, ops[0], "dot", chosen, others)


def _described(chosen: DotLayouts) -> str:
    rows, columns = (sum(any(b) for b in layout.wave) for layout in (chosen.a, chosen.b))
    depth = chosen.a.block[1]
    return f"{chosen.instruction.mnemonic}, waves {1 << rows}x{1 << columns}, {depth} along k per fragment {chosen.a}"


# -- the choice in the IR


def _write(graph: LayoutGraph, choice: Choice) -> None:
    """Types with layouts, the dots' instructions, and conversions: one for all who want a tile in the same layout."""
    for op, chosen in zip(graph.dots, choice.dots, strict=True):
        op.attributes[MFMA] = ir.StringAttr.get(chosen.instruction.mnemonic)
    layouts = {tile.value: choice.layouts[tile.number] for tile in graph.tiles}
    for (number, layout), users in conversions(graph, choice).items():
        value = graph.tiles[number].value
        with _place(value, [op for op, _ in users]), users[0][0].location:
            made = value.owner.clone().results[0] if is_constant(value) else _converted(value)
        layouts[made] = layout
        for op, operand in users:
            op.operands[operand] = made
    for fold in graph.folds:
        _write_fold(graph.tiles[fold.tile].value, fold.layout(choice.layouts), layouts)
    for op in walk(graph.function):
        if op.name in ORIGINALS and layouts[op.results[0]].replication() != (0, 0):
            _copy_originals(op.results[0], layouts)
    for value, layout in layouts.items():
        value.set_type(with_layout(value.type, layout.text()))
        if is_constant(value):
            splat = ir.DenseElementsAttr(value.owner.attributes["value"]).get_splat_value()
            value.owner.attributes["value"] = ir.DenseElementsAttr.get_splat(value.type, splat)


def _write_fold(result: Any, given: DistributedLayout, layouts: dict[Any, DistributedLayout]) -> None:
    """A fold's result in the layout that it comes in, converted to the one that its users know it by."""
    wanted = layouts[result]
    if wanted == given:
        return
    with ir.InsertionPoint.after(result.owner), result.owner.location:
        moved = _converted(result)
    result.replace_all_uses_except(moved, moved.owner.operation)
    layouts[result], layouts[moved] = given, wanted


def _copy_originals(result: Any, layouts: dict[Any, DistributedLayout]) -> None:
    """Only the lanes without copies have the right result; through LDS it gets to the others."""
    with ir.InsertionPoint.after(result.owner), result.owner.location:
        moved = _converted(result)
    moved.owner.attributes[STAGED] = ir.UnitAttr.get()
    result.replace_all_uses_except(moved, moved.owner.operation)
    layouts[moved] = layouts[result]


def _converted(value: Any) -> Any:
    return create(ConvertLayout, value, results=[value.type]).result


def _place(value: Any, users: list[Any]) -> Any:
    """Where to convert a tile: before its first user, or right after it is made where the users lie in loops."""
    argument = isinstance(value, ir.BlockArgument)
    block = value.owner if argument else value.owner.operation.block
    if all(user.operation.block == block for user in users):
        inside = [op.operation for op in block.operations]
        return ir.InsertionPoint(min((user.operation for user in users), key=inside.index))
    return ir.InsertionPoint.at_block_begin(block) if argument else ir.InsertionPoint.after(value.owner)


def _put_off(value: Any) -> bool:
    """Is a tile loaded on its way into another layout? Then LDS may take it as it comes."""
    users = {use.owner.name for use in value.uses}
    return value.owner.name == "hkc_tile.load" and users <= {"hkc_tile.convert_layout", "hkc_tile.transpose"}


def _check_registers(function: Any, waves: int, chip: Chip) -> None:
    """Refuse a tile that alone takes all registers of a wave: no schedule saves it from being spilled."""
    limit = budget(waves, chip)
    for op in walk(function):
        for value in filter(is_tile, op.results):
            layout, shape = parse_layout(layout_text(value.type) or ""), tuple(value.type.shape)
            size = dtype(element_name(value.type.element_type)).bytes
            taken = layout.fragments(shape) * layout.registers * size // 4
            if taken >= limit and not _put_off(value):
                message = (
                    f"this {'x'.join(map(str, shape))} tile takes {taken} registers of every lane, but a wave of a "
                    f"workgroup of {waves} has {limit} on {chip.name}"
                )
                raise refuse(op, "HK459", message, hint=relief(waves, chip))
