"""Give every tile a layout: dots decide first, loads next, and conversions are put where the choices meet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hkc.dialects.define import TILE_DIALECT, OpRecord
from hkc.dialects.forms import kernels, walk
from hkc.dialects.load import create
from hkc.dialects.tile.lowering import MFMA
from hkc.dialects.tile.shape import ConvertLayout
from hkc.dialects.translate import element_name, plain_attributes, record_type, with_layout
from hkc.layout import DistributedLayout, blocked
from hkc.passes.define import Pass
from hkc.passes.mfma_choice import DotLayouts, candidates, choose, wave_grid
from hkc.support.dtypes import dtype
from hkc.support.mlir import ir, passmanager
from hkc.targets.chip import Chip

WAVES = "hkc.waves"
"""Attribute of a kernel function: waves per workgroup."""

WIDEST = 16
"""Bytes per lane of the widest global access: what a load's layout gives each lane to hold in a row."""


@dataclass(frozen=True)
class SelectLayouts(Pass):
    """Layouts spread from the dots' accumulators, then from the largest remaining tile, along ops that move nothing.

    Before::

        #plain = strided<[?, ?]>
        %a = "hkc_tile.load"(%A, %f, %i, %i) : (memref<?x?xf32, #plain>, f32, index, index) -> tensor<64x32xf32>
        %s = "hkc_tile.reduce"(%a) {axis = 1 : i64, kind = "sum"} : (tensor<64x32xf32>) -> tensor<64x1xf32>

    After::

        "hkc_tile.reduce"(%a) {axis = 1 : i64, kind = "sum"} : (tensor<64x32xf32, #hkc_tile.layout<
    """

    name: ClassVar[str] = "select_layouts"
    needs: ClassVar[frozenset[str]] = frozenset({"legal_tiles"})
    gives: ClassVar[frozenset[str]] = frozenset({"layouts"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            waves = _waves(function, chip)
            function.attributes[WAVES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), waves)
            choice = _Choice(chip, waves, function)
            choice.spread_all()
            _Converter(choice).run()
        passmanager.PassManager.parse("builtin.module(cse)").run(module.operation)


def _is_tile(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _record(op: Any) -> OpRecord | None:
    dialect, _, name = op.name.partition(".")
    return TILE_DIALECT.ops.get(name) if dialect == TILE_DIALECT.dialect else None


def _dot_extents(op: Any) -> tuple[int, int, int]:
    a, b = (tuple(o.type.shape) for o in list(op.operands)[:2])
    return a[0], b[1], a[1]


def _dot_dtypes(op: Any) -> tuple[str, str, str]:
    a, b, acc = (element_name(o.type.element_type) for o in op.operands)
    return a, b, acc


def _waves(function: Any, chip: Chip) -> int:
    """Waves per workgroup: the hint, else as many of four as every dot can share without copies, or tiles can fill."""
    hints = function.attributes.get("hkc.hints", {})
    if "waves" in hints:
        return int(ir.IntegerAttr(hints["waves"]).value)
    counts = [4]
    elements = 0
    for op in walk(function):
        elements = max([elements, *(math.prod(r.type.shape) for r in op.results if _is_tile(r))])
        if op.name == "hkc_tile.dot":
            row = candidates(chip, *_dot_dtypes(op), _dot_extents(op))[0]
            m, n, _ = _dot_extents(op)
            counts.append(math.prod(wave_grid(m // row.n, n // row.m, 4)))
    lanes = chip.compute.wave
    return min(*counts, max(1, 1 << max(0, (elements // lanes).bit_length() - 1)))


@dataclass
class _Choice:
    """The layout of every tile of one kernel, as they are found."""

    chip: Chip
    waves: int
    function: Any
    layouts: dict[Any, DistributedLayout] = field(default_factory=dict)
    dots: dict[Any, DotLayouts] = field(default_factory=dict)

    def spread_all(self) -> None:
        """Choose for all tiles: dots first, then the largest tile without a layout until there is none."""
        tiles = list(self._tiles())
        for op in walk(self.function):
            if op.name == "hkc_tile.dot":
                self.dots[op.results[0]] = choose(self.chip, _dot_dtypes(op), _dot_extents(op), self.waves)
                op.attributes[MFMA] = ir.StringAttr.get(self.dots[op.results[0]].instruction.mnemonic)
                self._spread(op.results[0], self.dots[op.results[0]].acc)
        for value in sorted(tiles, key=lambda v: -math.prod(v.type.shape)):
            if value not in self.layouts:
                self._spread(value, self._coalesced(value))

    def _tiles(self) -> Iterator[Any]:
        for op in walk(self.function):
            for region in op.regions:
                for block in region:
                    yield from filter(_is_tile, block.arguments)
            yield from filter(_is_tile, op.results)

    def _coalesced(self, value: Any) -> DistributedLayout:
        shape = tuple(value.type.shape)
        vector = WIDEST // dtype(element_name(value.type.element_type)).bytes
        spread = math.prod(shape) // (self.waves * self.chip.compute.wave)
        vector = min(vector, 1 << max(0, spread.bit_length() - 1))
        return blocked(shape, self.waves, vector, len(shape) - 1, self.chip.compute.wave)

    def _spread(self, value: Any, layout: DistributedLayout) -> None:
        work = [(value, layout)]
        while work:
            value, layout = work.pop()
            if value in self.layouts or not layout.fits(tuple(value.type.shape)):
                continue
            self.layouts[value] = layout
            work += self._neighbours(value, layout)

    def _neighbours(self, value: Any, layout: DistributedLayout) -> Iterator[tuple[Any, DistributedLayout]]:
        """The tiles that hold their elements where `value` does, if it has `layout`."""
        for use in value.uses:
            yield from self._through(use.owner.operation, value, use.operand_number, layout)
        owner = value.owner
        if isinstance(value, ir.BlockArgument):
            yield from ((v, layout) for v in _carried(owner.owner, value.arg_number - 1))
        elif owner.name == "scf.for":
            yield from ((v, layout) for v in _carried(owner, value.result_number))
        else:
            yield from self._from_result(owner, layout)

    def _through(
        self, op: Any, value: Any, number: int, layout: DistributedLayout
    ) -> Iterator[tuple[Any, DistributedLayout]]:
        record = _record(op)
        if op.name == "scf.for":
            yield from ((v, layout) for v in _carried(op, number - 3))
        elif op.name == "scf.yield":
            yield from ((v, layout) for v in _carried(op.parent, number))
        elif op.name == "hkc_tile.dot":
            if number == 2:
                yield op.results[0], layout
        elif record is None:
            yield from ((v, layout) for v in (*op.results, *op.operands) if _is_tile(v))
        elif hasattr(record.cls, "forward"):
            yield op.results[0], _related(record, "forward", op, layout)

    def _from_result(self, op: Any, layout: DistributedLayout) -> Iterator[tuple[Any, DistributedLayout]]:
        record = _record(op)
        if op.name == "hkc_tile.dot":
            yield op.operands[2], layout
        elif record is None:
            yield from ((v, layout) for v in (*op.results, *op.operands) if _is_tile(v))
        elif hasattr(record.cls, "backward"):
            yield op.operands[0], _related(record, "backward", op, layout)


def _related(record: OpRecord, direction: str, op: Any, layout: DistributedLayout) -> DistributedLayout:
    """The layout on the other side of a shape op."""
    types = (record_type(op.operands[0].type), record_type(op.results[0].type))
    found: DistributedLayout = getattr(record.cls, direction)(layout, *types, **plain_attributes(record, op.attributes))
    return found


def _carried(loop: Any, position: int) -> Iterator[Any]:
    """The values that are one loop-carried variable: its start, block argument, yielded value and result."""
    if position < 0:
        return
    block = loop.regions[0].blocks[0]
    terminator = list(block.operations)[-1]
    found = (
        loop.operands[3 + position],
        block.arguments[1 + position],
        terminator.operands[position],
        loop.results[position],
    )
    yield from filter(_is_tile, found)


@dataclass
class _Converter:
    """Writes the choice into the IR: types with layouts, and conversions where an op wants another layout."""

    choice: _Choice

    def run(self) -> None:
        layouts = self.choice.layouts
        for op in list(walk(self.choice.function)):
            self._settle(op)
        for value, layout in layouts.items():
            value.set_type(with_layout(value.type, layout.text()))
            op = value.owner
            if not isinstance(value, ir.BlockArgument) and op.name == "arith.constant":
                op.attributes["value"] = ir.DenseElementsAttr.get_splat(value.type, _splat_value(op))

    def _settle(self, op: Any) -> None:
        """Make an op's operands agree with its result, whose layout stays as chosen."""
        layouts, record = self.choice.layouts, _record(op)
        if op.name == "scf.for":
            self._settle_carried(op, op, 3)
        elif op.name == "scf.yield" and op.parent.name == "scf.for":
            self._settle_carried(op, op.parent, 0)
        elif op.name == "hkc_tile.dot":
            chosen = self.choice.dots[op.results[0]]
            for i, layout in enumerate((chosen.a, chosen.b, layouts[op.results[0]])):
                self._want(op, i, layout)
        elif record is None:
            self._settle_elementwise(op)
        elif hasattr(record.cls, "backward"):
            self._want(op, 0, _related(record, "backward", op, layouts[op.results[0]]))
        elif hasattr(record.cls, "forward"):
            self._settle_reduction(op, record)

    def _settle_carried(self, op: Any, loop: Any, first: int) -> None:
        """Operands of `op` from `first` on become the variables that `loop` carries."""
        for i, argument in enumerate(list(loop.regions[0].blocks[0].arguments)[1:]):
            self._want(op, first + i, self.choice.layouts.get(argument))

    def _settle_elementwise(self, op: Any) -> None:
        layouts = self.choice.layouts
        tiles = [v for v in (*op.results, *op.operands) if _is_tile(v)]
        for i, operand in enumerate(op.operands):
            if _is_tile(operand):
                self._want(op, i, layouts[tiles[0]])

    def _settle_reduction(self, op: Any, record: OpRecord) -> None:
        """A fold happens where the operand is, in lanes of one wave; its result is then moved where it is wanted."""
        layouts, axis = self.choice.layouts, int(op.attributes["axis"].value)
        inside = _within_wave(layouts[op.operands[0]], axis)
        self._want(op, 0, inside)
        given = _related(record, "forward", op, inside)
        result = op.results[0]
        if layouts[result] != given:
            wanted, layouts[result] = layouts[result], given
            with ir.InsertionPoint.after(op), op.location:
                moved = create(ConvertLayout, result, results=[result.type]).result
            result.replace_all_uses_except(moved, moved.owner)
            layouts[moved] = wanted

    def _want(self, op: Any, number: int, layout: DistributedLayout | None) -> None:
        """Make operand `number` of `op` have `layout`: constants are made again, everything else is converted."""
        value = op.operands[number]
        if layout is None or self.choice.layouts[value] == layout:
            return
        with ir.InsertionPoint(op), op.location:
            if not isinstance(value, ir.BlockArgument) and value.owner.name == "arith.constant":
                made = value.owner.clone().results[0]
            else:
                made = create(ConvertLayout, value, results=[value.type]).result
        self.choice.layouts[made] = layout
        op.operands[number] = made


def _within_wave(layout: DistributedLayout, axis: int) -> DistributedLayout:
    """The layout with each wave holding the whole of `axis`: what waves had of it becomes registers."""
    moved = tuple(basis for basis in layout.wave if basis[axis])
    if not moved:
        return layout
    rest = tuple(basis if not basis[axis] else (0,) * layout.rank for basis in layout.wave)
    return DistributedLayout(layout.block, layout.register + moved, layout.lane, rest)


def _splat_value(op: Any) -> Any:
    return ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
