"""One kernel, two entry points: a fast one for aligned arguments and one for everything else."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.forms import ENTRY, kernels
from hkc.machine.abi import (
    Aligned,
    Condition,
    Entry,
    ExtentsBelow,
    GlobalParam,
    Param,
    RowsApart,
    SpanBelow,
    StrideMultiple,
    UnitStride,
    tallest,
)
from hkc.passes.define import Pass
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

ALIGNMENT = 16
"""Bytes to which bases and strides of the aligned entry are aligned: the widest access."""

EXTENT = 1 << 30
"""What every extent of the aligned entry stays below, so that loops over extents count in 32 bits."""

SPAN = 1 << 31
"""Bytes below which every tensor of the aligned entry lies, so that its offsets fit 32 bits."""


def entries(symbol: str, params: Sequence[Param], used: Collection[str]) -> tuple[Entry, ...]:
    """The entry points of a kernel, in the order in which a launch tries them. Of tensors that it doesn't use (`used`
    names the others) only the extents matter."""
    tensors = [p for p in params if isinstance(p, GlobalParam)]
    fast = tuple(c for p in tensors for c in _conditions(p) if p.name in used or isinstance(c, ExtentsBelow))
    return Entry(symbol, fast), Entry(general(symbol), ())


def general(symbol: str) -> str:
    """The symbol of a kernel's general entry."""
    return f"{symbol}__general"


def _conditions(param: GlobalParam) -> Iterator[Condition]:
    last = len(param.dims) - 1
    yield Aligned(param.name, ALIGNMENT)
    yield UnitStride(param.name, last)
    yield from (StrideMultiple(param.name, dim, ALIGNMENT) for dim in range(last))
    yield SpanBelow(param.name, SPAN)
    yield ExtentsBelow(param.name, EXTENT)
    if last:
        yield RowsApart(param.name, tallest(last + 1))


@dataclass(frozen=True)
class SplitEntries(Pass):
    """The aligned entry may use wide accesses and 32-bit offsets; the general one assumes nothing of its arguments.

    Before::

        func.func @k(%A: memref<?x?xf16, strided<[?, ?]>>) attributes {hkc.kernel} {
          return
        }

    After::

        func.func @k(%A: memref<?x?xf16, strided<[?, ?]>>) attributes {hkc.entry = "aligned", hkc.kernel}
        func.func @k__general(%A: memref<?x?xf16, strided<[?, ?]>>) attributes {hkc.entry = "general", hkc.kernel}
    """

    name: ClassVar[str] = "split_entries"
    gives: ClassVar[frozenset[str]] = frozenset({"entries"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            if ENTRY in function.attributes:
                continue
            function.attributes[ENTRY] = ir.StringAttr.get("aligned")
            with ir.InsertionPoint(module.body):
                twin = function.operation.clone()
            symbol = ir.StringAttr(function.attributes["sym_name"]).value
            twin.attributes["sym_name"] = ir.StringAttr.get(general(symbol))
            twin.attributes[ENTRY] = ir.StringAttr.get("general")
