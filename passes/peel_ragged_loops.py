"""Let the hot part of a loop know that its tiles lie inside their tensors; the ragged last trip is a loop of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects import build
from hkc.dialects.forms import ENTRY, kernels, walk
from hkc.dialects.tile.access import INSIDE
from hkc.passes.define import Pass
from hkc.support.mlir import ir
from hkc.targets.chip import Chip


@dataclass(frozen=True)
class PeelRaggedLoops(Pass):
    """A loop over an extent in steps of a tile becomes one over whole tiles and one for the rest (0 or 1 trips).

    Before::

        func.func @k(%A: memref<?x?xf16, strided<[?, ?]>> {hkc.dims = ["M", "K"]}, %f: f16, %i: index) attributes {hkc.kernel, hkc.entry = "aligned"} {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c32 = arith.constant 32 : index
          %K = memref.dim %A, %c1 : memref<?x?xf16, strided<[?, ?]>>
          scf.for %k = %c0 to %K step %c32 {
            %x = "hkc_tile.load"(%A, %f, %i, %k) : (memref<?x?xf16, strided<[?, ?]>>, f16, index, index) -> tensor<16x32xf16>
            "hkc_tile.store"(%x, %A, %i, %k) : (tensor<16x32xf16>, memref<?x?xf16, strided<[?, ?]>>, index, index) -> ()
          }
          return
        }

    After::

        %r = arith.remui %K, %c32
        %e = arith.subi %K, %r
        scf.for %k = %c0 to %e step %c32
        {hkc.inside = array<i64: 1>}
        scf.for %t = %e to %K step %c32
    """

    name: ClassVar[str] = "peel_ragged_loops"
    needs: ClassVar[frozenset[str]] = frozenset({"entries"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            if ir.StringAttr(function.attributes[ENTRY]).value == "aligned":
                for op in reversed(walk(function)):
                    if op.name == "scf.for":
                        _peel(op, _symbols(function))


def _symbols(function: Any) -> dict[tuple[Any, int], str]:
    """The name of each dim of each global argument."""
    found = {}
    for argument, attributes in zip(function.arguments, function.arg_attrs, strict=True):
        for dim, name in enumerate(attributes["hkc.dims"] if "hkc.dims" in attributes else ()):
            found[argument, dim] = ir.StringAttr(name).value
    return found


def _peel(loop: Any, symbols: dict[tuple[Any, int], str]) -> None:
    lower, upper, step = list(loop.operands)[:3]
    extent = _extent(upper, symbols)
    size = _constant(step)
    if extent is None or size is None or _constant(lower) != 0:
        return
    inside = [(op, dims) for op, dims in _accesses(loop, extent, size, symbols) if dims]
    if not inside:
        return
    with ir.InsertionPoint(loop), loop.location:
        whole = build.sub(upper, build.binary("remui", upper, step))
        main = loop.clone()
    main.operands[1] = whole
    for op, dims in _accesses(main, extent, size, symbols):
        if dims:
            op.attributes[INSIDE] = ir.DenseI64ArrayAttr.get(dims)
    loop.operands[0] = whole
    for i, carried in enumerate(main.results):
        loop.operands[3 + i] = carried


def _extent(value: Any, symbols: dict[tuple[Any, int], str]) -> str | None:
    """The name of the extent that an index is, if it is one."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "memref.dim":
        return None
    source, dim = value.owner.operands
    return symbols.get((source, _constant(dim) or 0))


def _constant(value: Any) -> int | None:
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return None
    return int(value.owner.attributes["value"].value)


def _accesses(
    loop: Any, extent: str, size: int, symbols: dict[tuple[Any, int], str]
) -> Iterator[tuple[Any, list[int]]]:
    """The loads in a loop and the dims in which its variable steps through the extent by whole tiles."""
    variable = loop.regions[0].blocks[0].arguments[0]
    for op in walk(loop):
        if op.name == "hkc_tile.load":
            source, shape = op.operands[0], op.results[0].type.shape
            offsets = list(op.operands)[2:]
            yield (
                op,
                [
                    d
                    for d, o in enumerate(offsets)
                    if o == variable and shape[d] <= size and symbols.get((source, d)) == extent
                ],
            )
