"""Let the hot part of a loop know that its tiles lie inside their tensors; the ragged trip is taken out of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects import build
from hkc.dialects.forms import ENTRY, clone, kernels, walk
from hkc.dialects.tile.access import INSIDE
from hkc.dialects.tile.divisibility import constant, nonnegative
from hkc.passes.define import Pass
from hkc.passes.ragged_columns import in_vectors
from hkc.support.mlir import ir
from hkc.targets.chip import Chip


@dataclass(frozen=True)
class PeelRaggedLoops(Pass):
    """A loop over an extent in steps of a tile becomes one over whole tiles; the rest is a trip of its own, if any.
    Along the other dims of what it loads a workgroup at an edge needs no mask either, but for rare columns
    (`ragged_columns.py`).

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
        scf.if
        "hkc_tile.load"(%A, %f, %i, %e)
    """  # noqa: E501

    name: ClassVar[str] = "peel_ragged_loops"
    needs: ClassVar[frozenset[str]] = frozenset({"entries"})
    gives: ClassVar[frozenset[str]] = frozenset({"peeled"})

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
        names = attributes["hkc.dims"] if "hkc.dims" in attributes else ()  # noqa: SIM401 (its `get` makes attributes)
        for dim, name in enumerate(names):
            found[argument, dim] = ir.StringAttr(name).value
    return found


def _peel(loop: Any, symbols: dict[tuple[Any, int], str]) -> None:
    lower, upper, step = list(loop.operands)[:3]
    extent, size = _extent(upper, symbols), constant(step)
    if extent is None or size is None or not nonnegative(lower):
        in_vectors(loop, whole=False)
        return
    steps = any(dims for _, dims in _accesses(loop, extent, size, symbols))
    loop, inside = in_vectors(loop, steps)
    if not steps:
        return
    first = _only_accumulates(loop)
    with ir.InsertionPoint(loop), loop.location:
        span = upper if constant(lower) == 0 and upper.owner.name == "memref.dim" else _span(lower, upper)
        rest = build.binary("remui", span, step)
        whole = build.sub(upper, rest)
        ragged = build.cmp("ne", rest, 0)
        if first:
            for i, start in enumerate(_once(loop, whole, ragged)):
                loop.operands[3 + i] = start
    if not first:
        uses = [[(u.owner, u.operand_number) for u in r.uses] for r in loop.results]
        with ir.InsertionPoint.after(loop), loop.location:
            ends = _once(loop, whole, ragged, list(loop.results))
        for after, users in zip(ends, uses, strict=True):
            for user, number in users:
                user.operands[number] = after
    loop.operands[1] = whole
    for op, dims in _accesses(loop, extent, size, symbols):
        if dims := [*dims, *inside.get(op, [])]:
            op.attributes[INSIDE] = ir.DenseI64ArrayAttr.get(dims)


def _span(lower: Any, upper: Any) -> Any:
    """How far a loop runs, not less than 0."""
    return build.binary("maxsi", build.sub(upper, lower), 0)


def _once(loop: Any, at: Any, condition: Any, starts: list[Any] | None = None) -> list[Any]:
    """One trip of the loop with its variable `at`, where the condition holds: what is carried on, from `starts`."""
    carried = starts if starts is not None else list(loop.operands)[3:]
    *body, end = loop.regions[0].blocks[0].operations

    def trip() -> list[Any]:
        values = dict(zip(loop.regions[0].blocks[0].arguments, [at, *carried], strict=True))
        clone((op.operation for op in body), values)
        return [values.get(o, o) for o in end.operands]

    return build.if_else(condition, [v.type for v in carried], trip, lambda: list(carried))


def _only_accumulates(loop: Any) -> bool:
    """Does the loop nothing but add up dots? Then its trips may come in another order: the ragged one goes first, where
    no accumulator is alive yet to compete with its masks for registers."""
    block = loop.regions[0].blocks[0]
    end = list(block.operations)[-1]
    for i, carried in enumerate(list(block.arguments)[1:]):
        last = end.operands[i]
        dot = not isinstance(last, ir.BlockArgument) and last.owner.name == "hkc_tile.dot"
        if not dot or last.owner.operands[2] != carried or len(list(carried.uses)) != 1:
            return False
    return not any(op.name.startswith("hkc_tile.") and not op.results for op in walk(loop))


def _extent(value: Any, symbols: dict[tuple[Any, int], str]) -> str | None:
    """The name of the extent that an index is, or surely doesn't exceed."""
    if isinstance(value, ir.BlockArgument):
        return None
    if value.owner.name == "arith.minsi":
        return next((name for o in value.owner.operands if (name := _extent(o, symbols)) is not None), None)
    if value.owner.name != "memref.dim":
        return None
    source, dim = value.owner.operands
    return symbols.get((source, constant(dim) or 0))


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
