"""The tiles of a kernel as a graph: along which ops a layout spreads, and where an op wants one of its operands in a
layout of its own. Read from the IR once, so that many choices can be tried quickly."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hkc.dialects.define import TILE_DIALECT, OpRecord
from hkc.dialects.forms import ENTRY, STAGED, walk
from hkc.dialects.tile.divisibility import is_constant
from hkc.dialects.tile.pieces import in_blocks
from hkc.dialects.translate import element_name, plain_attributes, record_type
from hkc.layout import DistributedLayout, with_runs
from hkc.passes.lds_accesses import weight
from hkc.support.dtypes import dtype
from hkc.support.mlir import ir

Layouts = dict[int, DistributedLayout]
Rule = Callable[[DistributedLayout], DistributedLayout]


WORD = 4
"""Bytes that a lane writes to memory at once at least, if it can."""

DOTS = ("hkc_tile.dot", "hkc_tile.dot_scaled")
"""The ops that matrix instructions compute; their last operand is the accumulator."""


@dataclass(frozen=True, eq=False)
class Tile:
    """A tile value: its number, extents, bytes per element, how often it is made, and whether its layout must be one of
    whole blocks."""

    number: int
    value: Any
    shape: tuple[int, ...]
    itemsize: int
    weight: int
    whole: bool

    def may_have(self, layout: DistributedLayout) -> bool:
        """Can the tile have a layout?"""
        return layout.fits(self.shape) if self.whole else layout.covers(self.shape)

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Want:
    """Operand `operand` of `op`, a tile, must have the layout that `layout` gives for a choice."""

    op: Any
    operand: int
    tile: int
    layout: Callable[[Layouts], DistributedLayout]


@dataclass(frozen=True, eq=False)
class Fold:
    """A reduction: its result comes in the layout that `layout` gives, whatever others want it in."""

    op: Any
    tile: int
    layout: Callable[[Layouts], DistributedLayout]


@dataclass(eq=False)
class LayoutGraph:
    """Tiles in program order, edges (tile -> tiles that hold their elements likewise), wants and folds."""

    function: Any
    tiles: list[Tile] = field(default_factory=list)
    edges: dict[int, list[tuple[int, Rule]]] = field(default_factory=dict)
    wants: list[Want] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    dots: list[Any] = field(default_factory=list)
    _numbers: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ops = walk(self.function)
        for op in ops:
            for region in op.regions:
                for block in region:
                    self._number(block.arguments)
            self._number(op.results)
        for op in ops:
            self._connect(op)

    def number(self, value: Any) -> int:
        """The number of a tile value."""
        return self._numbers[value]

    def spread(self, layouts: Layouts, given: Layouts) -> None:
        """Give some tiles their layouts, and then all those that hold their elements likewise and have none yet, the
        first ones' first."""
        given = {n: layout for n, layout in given.items() if n not in layouts and self.tiles[n].may_have(layout)}
        layouts |= given
        for first, layout in given.items():
            work = [(first, layout)]
            while work:
                tile, layout = work.pop()
                near = ((other, rule(layout)) for other, rule in self.edges[tile] if other not in layouts)
                for other, held in near:
                    if other not in layouts and self.tiles[other].may_have(held):
                        layouts[other] = held
                        work.append((other, held))

    def like(self, tile: int) -> set[int]:
        """The tiles that hold their elements where `tile` does, under some layout."""
        found, work = {tile}, [tile]
        while work:
            for other, _ in self.edges[work.pop()]:
                if other not in found:
                    found.add(other)
                    work.append(other)
        return found

    # -- reading the IR

    def _number(self, values: Any) -> None:
        for value in values:
            if is_tile(value):
                number = self._numbers[value] = len(self.tiles)
                bits = dtype(element_name(value.type.element_type)).bytes
                count = weight(value.owner) if not isinstance(value, ir.BlockArgument) else weight(value.owner.owner)
                whole = not isinstance(value, ir.BlockArgument) and _wants_whole_blocks(value.owner)
                self.tiles.append(Tile(number, value, tuple(value.type.shape), bits, count, whole))
                self.edges[number] = []

    def _connect(self, op: Any) -> None:
        if op.name in ("scf.for", "scf.if"):
            self._connect_regions(op)
        elif op.name == "scf.while":
            self._connect_while(op)
        elif op.name in DOTS:
            self.dots.append(op)
            acc = len(op.operands) - 1
            self._equal([op.results[0], op.operands[acc]])
            self._want(op, acc, op.results[0])
        elif STAGED in op.attributes:
            for i, operand in enumerate(op.operands):
                self._want(op, i, operand)
        elif op.name not in ("scf.yield", "scf.condition"):
            self._connect_plain(op, _record(op))

    def _connect_plain(self, op: Any, record: OpRecord | None) -> None:
        """By the rule that the op's class has; tiles of an op without one are all held alike."""
        tiles = [v for v in (*op.results, *op.operands) if is_tile(v)]
        if record is not None and hasattr(record.cls, "backward"):
            self._connect_shape(op, record)
        elif record is not None and hasattr(record.cls, "forward"):
            self._connect_fold(op, record, _related(op, record, "forward"))
        elif record is not None and hasattr(record.cls, "held"):
            self._equal([v for v in tiles if v.type.shape == tiles[0].type.shape])
            self._connect_fold(op, record, _same)
        else:
            self._equal(tiles)
            for i, operand in enumerate(op.operands):
                if is_tile(operand):
                    self._want(op, i, tiles[0])

    def _equal(self, values: list[Any]) -> None:
        """These tiles hold their elements alike. A constant, which each of its users may have a copy of, ties none of
        them to the others."""
        numbers = list(dict.fromkeys(self._numbers[v] for v in values))
        for a in (n for n in numbers if not is_constant(self.tiles[n].value)):
            self.edges[a] += [(b, _same) for b in numbers if b != a]

    def _want(self, op: Any, operand: int, like: Any) -> None:
        """An operand must be held like another tile."""
        other = self._numbers[like]
        rule: Rule = _same
        if _wants_whole_blocks(op):
            rule = _in_whole_blocks(like)
        elif op.name == "hkc_tile.store" and ir.StringAttr(self.function.attributes[ENTRY]).value == "aligned":
            rule = _in_words(self.tiles[other])
        self.wants.append(Want(op, operand, self._numbers[op.operands[operand]], lambda layouts: rule(layouts[other])))

    def _connect_regions(self, op: Any) -> None:
        """What a loop carries, or the branches of a conditional give, is one tile under several names."""
        blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
        ends = [list(block.operations)[-1] for block in blocks]
        for i, result in enumerate(op.results):
            if not is_tile(result):
                continue
            same = [result, *(end.operands[i] for end in ends)]
            if op.name == "scf.for":
                argument = blocks[0].arguments[1 + i]
                same += [argument, op.operands[3 + i]]
                self._want(op, 3 + i, argument)
                result = argument
            self._equal(same)
            for end in ends:
                self._want(end.operation, i, result)

    def _connect_while(self, op: Any) -> None:
        """What a loop carries into its condition, and what the condition hands on, are one tile each."""
        before, after = (region.blocks[0] for region in op.regions)
        condition, end = (list(block.operations)[-1].operation for block in (before, after))
        entering = [(op, 0), (end, 0)], before.arguments, ()
        leaving = [(condition, 1)], after.arguments, op.results
        for givers, arguments, results in (entering, leaving):
            for i, argument in enumerate(arguments):
                if is_tile(argument):
                    self._equal([argument, *(g.operands[at + i] for g, at in givers), *(results and [results[i]])])
                    for giver, at in givers:
                        self._want(giver, at + i, argument)

    def _connect_shape(self, op: Any, record: OpRecord) -> None:
        """The operand is held as the result asks."""
        operand, result = self._numbers[op.operands[0]], self._numbers[op.results[0]]
        backward = _related(op, record, "backward")
        self.edges[result].append((operand, backward))
        self.wants.append(Want(op, 0, operand, lambda layouts: backward(layouts[result])))
        if hasattr(record.cls, "forward"):
            forward, whole = _related(op, record, "forward"), _whole_rule(op)
            self.edges[operand].append((result, lambda layout: forward(whole(layout))))

    def _connect_fold(self, op: Any, record: OpRecord, forward: Rule) -> None:
        """The op works where its first operand is, in a layout of its own making, and the results come from there."""
        tiles = [self._numbers[v] for v in op.operands if is_tile(v)]
        held, whole = _held(op, record), _whole_rule(op)

        def inside(layout: DistributedLayout) -> DistributedLayout:
            return held(whole(layout))

        for i, operand in enumerate(op.operands):
            if is_tile(operand):
                self.wants.append(Want(op, i, self._numbers[operand], lambda layouts: inside(layouts[tiles[0]])))
        for result in op.results:
            self.edges[tiles[0]].append((self._numbers[result], lambda layout: forward(whole(layout))))
            self.folds.append(Fold(op, self._numbers[result], lambda layouts: forward(inside(layouts[tiles[0]]))))


def is_tile(value: Any) -> bool:
    """Is a value a register tile?"""
    return isinstance(value.type, ir.RankedTensorType)


def is_read(value: Any) -> bool:
    """Is a value what an op reads from global memory?"""
    reads = ("hkc_tile.load", "hkc_tile.load_masked", "hkc_tile.gather")
    return not isinstance(value, ir.BlockArgument) and value.owner.name in reads


def _record(op: Any) -> OpRecord | None:
    dialect, _, name = op.name.partition(".")
    return TILE_DIALECT.ops.get(name) if dialect == TILE_DIALECT.dialect else None


def _same(layout: DistributedLayout) -> DistributedLayout:
    return layout


def _wants_whole_blocks(op: Any) -> bool:
    record = _record(op)
    return STAGED in op.attributes or (record is not None and getattr(record.cls, "whole_blocks", False))


def _in_words(tile: Tile) -> Rule:
    """A layout for a store: lanes that would write less than a word each trade registers for it."""
    last = len(tile.shape) - 1
    count = max(1, WORD // tile.itemsize)
    return lambda layout: layout if layout.contiguous(last) >= count else with_runs(layout, last, count)


def _whole_rule(op: Any) -> Rule:
    """In which layout an op wants its first tile that has some layout: one of whole blocks, if it needs those."""
    return _in_whole_blocks(op.operands[0]) if _wants_whole_blocks(op) else _same


def _in_whole_blocks(value: Any) -> Rule:
    """A layout for a tile, if it reaches beyond it exchanged for one of as many waves and lanes that does not."""
    shape = tuple(value.type.shape)
    return lambda layout: in_blocks(layout, shape)


def _related(op: Any, record: OpRecord, direction: str) -> Rule:
    """The layout on the other side of a shape op."""
    types = (record_type(op.operands[0].type), record_type(op.results[0].type))
    attributes: Mapping[str, Any] = plain_attributes(record, op.attributes)
    rule = getattr(record.cls, direction)

    @functools.cache
    def related(layout: DistributedLayout) -> DistributedLayout:
        found: DistributedLayout = rule(layout, *types, **attributes)
        return found

    return related


def _held(op: Any, record: OpRecord) -> Rule:
    """In which layout an op works whose operand has some layout: folds by default within each wave."""
    attributes: dict[str, Any] = dict(plain_attributes(record, op.attributes))
    rule = getattr(record.cls, "held", None)
    if rule is None:
        return lambda layout: within_wave(layout, int(attributes["axis"]))
    if "shapes" in inspect.signature(rule).parameters:
        attributes["shapes"] = tuple(tuple(v.type.shape) for v in (*op.operands, *op.results) if is_tile(v))

    @functools.cache
    def held(layout: DistributedLayout) -> DistributedLayout:
        found: DistributedLayout = rule(layout, **attributes)
        return found

    return held


@functools.lru_cache(maxsize=1024)
def within_wave(layout: DistributedLayout, axis: int) -> DistributedLayout:
    """The layout with each wave holding the whole of `axis`: what waves had of it becomes registers."""
    moved = tuple(basis for basis in layout.wave if basis[axis])
    rest = tuple(basis if not basis[axis] else (0,) * layout.rank for basis in layout.wave)
    return DistributedLayout(layout.block, layout.register + moved, layout.lane, rest)


def loads(graph: LayoutGraph) -> Iterator[Tile]:
    """The tiles that come from global memory."""
    for tile in graph.tiles:
        if not isinstance(tile.value, ir.BlockArgument) and tile.value.owner.name == "hkc_tile.load":
            yield tile


def _drops_dims(op: Any) -> bool:
    """Does an op leave out first dims, of which there is one place, and nothing else?"""
    if op.name != "hkc_tile.reshape":
        return False
    before, after = (list(v.type.shape) for v in (op.operands[0], op.results[0]))
    return bool(before == [1] * (len(before) - len(after)) + after)


def from_memory(value: Any) -> list[Any] | None:
    """The ops from a load to a tile, the load first, where each result has one use and none moves elements; None where
    the tile comes from elsewhere."""
    chain: list[Any] = []
    while not isinstance(value, ir.BlockArgument) and len(list(value.uses)) == 1:
        made = value.owner.operation
        chain.insert(0, made)
        if made.name == "hkc_tile.load":
            return chain
        if made.name != "hkc_tile.transpose" and not _drops_dims(made):
            return None
        value = made.operands[0]
    return None


def chain_from_memory(ops: Sequence[Any]) -> list[Any] | None:
    """The same for the tile that `ops` convert, where it has no other use."""
    value = ops[0].operands[0]
    if len(ops) == 1 or isinstance(value, ir.BlockArgument):
        return from_memory(value)
    loaded, users = value.owner.operation, {use.owner.operation for use in value.uses}
    return [loaded] if loaded.name == "hkc_tile.load" and users == set(ops) else None
