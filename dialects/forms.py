"""Forms: what may be relied on of a module between passes. A pass says which it needs, gives and drops.

Each form has a check that finds the first op that breaks it; the claimed forms are checked at stage borders and, with
`HKC_DEBUG=1`, after every pass. The forms that hold travel with the module in its attribute `hkc.forms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hkc.dialects.tile.shape import LDS_MAP, keeps_bits
from hkc.dialects.translate import layout_text
from hkc.layout import DistributedLayout
from hkc.layout.within_wave import steps
from hkc.support.errors import HkcError
from hkc.support.mlir import ir

STAGED = "hkc.staged"
"""Attribute of an op that goes through LDS: a `convert_layout`, a cut, a join or a regrouping of tiles."""

ENTRY = "hkc.entry"
"""Attribute of a kernel function: which entry point it is, "aligned" or "general"."""


@dataclass(frozen=True)
class Form:
    """A property of a module: `broken` finds what breaks it in an op, or None."""

    name: str
    doc: str
    broken: Callable[[Any], str | None]

    def check(self, ops: list[Any]) -> str | None:
        """Why the form does not hold of a module of these ops, or None."""
        for op in ops:
            why = self.broken(op)
            if why:
                return f"form `{self.name}` is broken by `{op.name}`: {why} ({op.location})"
        return None


def walk(root: Any) -> list[Any]:
    """Every operation under `root`, each before the ones inside it; a list, so that ops may be erased on the way."""
    found: list[Any] = []
    if not len(root.operation.regions):
        return found

    def visit(op: Any) -> Any:
        found.append(op)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def clone(ops: Iterable[Any], values: dict[Any, Any]) -> None:
    """Clone ops at the insertion point; `values` maps what they use, and learns what they compute."""
    for op in ops:
        made = op.clone()
        for inner in (made, *walk(made)):
            for i, operand in enumerate(inner.operands):
                if operand in values:
                    inner.operands[i] = values[operand]
        values.update(zip(op.results, made.results, strict=True))


def kernels(module: Any) -> list[Any]:
    """The kernel functions of a module."""
    return [op for op in module.body.operations if "hkc.kernel" in op.operation.attributes]


def values(op: Any) -> Iterator[Any]:
    """An op's results and the arguments of its blocks."""
    yield from op.results
    for region in op.regions:
        for block in region:
            yield from block.arguments


def unfit(op: Any) -> str | None:
    """Which layout is none, or does not fit its tile, among those that an op gives its results and block arguments."""
    for value in values(op):
        text = layout_text(value.type) if isinstance(value.type, ir.RankedTensorType) else None
        try:
            if text is not None and not DistributedLayout.parse(text).covers(tuple(value.type.shape)):
                return f"the layout does not cover {value.type}"
        except HkcError as problem:
            return problem.diagnostics[0].message
    return None


def _without_layout(op: Any) -> str | None:
    for value in values(op):
        if isinstance(value.type, ir.RankedTensorType) and layout_text(value.type) is None:
            return f"{value.type} has no layout"
    return unfit(op)


def _unstaged(op: Any) -> str | None:
    if op.name != "hkc_tile.convert_layout" or STAGED in op.attributes:
        return None
    source, target = (DistributedLayout.parse(layout_text(v.type) or "") for v in (op.operands[0], op.results[0]))
    return None if steps(source, target) is not None else "elements change waves"


def _unmapped(op: Any) -> str | None:
    return "no LDS map" if STAGED in op.attributes and LDS_MAP not in op.attributes else None


def _regrouped(op: Any) -> str | None:
    if op.name != "hkc_tile.reshape" or STAGED in op.attributes:
        return None
    old, new = (tuple(v.type.shape) for v in (op.operands[0], op.results[0]))
    return None if keeps_bits(old, new) else "elements change lanes"


def _no_entry(op: Any) -> str | None:
    return "no entry" if "hkc.kernel" in op.attributes and ENTRY not in op.attributes else None


def _from(*prefixes: str) -> Callable[[Any], str | None]:
    """Ops of these dialects must not occur."""
    return lambda op: "it should be gone" if op.name.startswith(prefixes) else None


def _foreign(op: Any) -> str | None:
    return None if op.name.split(".")[0] in ("llvm", "rocdl", "builtin") else "not an LLVM op"


def single(type: Any, of_64_bits: bool = False) -> bool:
    """Whether a type is a vector of one element, or of one number of 64 bits."""
    if not isinstance(type, ir.VectorType) or type.shape != [1]:
        return False
    element = type.element_type
    wide = isinstance(element, ir.F64Type) or (isinstance(element, ir.IntegerType) and element.width == 64)
    return wide or not of_64_bits


def _single_left(op: Any) -> str | None:
    return next((f"{v.type} is left" for v in values(op) if single(v.type, of_64_bits=True)), None)


FORMS = {
    f.name: f
    for f in (
        Form("legal_tiles", "Every tile has a shape and dtype that the chip's passes can handle.", lambda op: None),
        Form("cuts_staged", "Cuts and regroupings that lanes can't do themselves are marked.", _regrouped),
        Form("numbered", "Tile ids are computed from the workgroup's number.", _from("hkc_tile.tile_")),
        Form("layouts", "Every tile has a layout that fits it.", _without_layout),
        Form("staged", "Every conversion that moves elements between lanes goes through LDS.", _unstaged),
        Form("lds_mapped", "Every staged conversion has its LDS buffer: byte map and offset.", _unmapped),
        Form("entries", "Every kernel function is one entry point.", _no_entry),
        Form("peeled", "Trips of loops that end early stand behind their loops.", lambda op: None),
        Form("waves", "No tile is left: values are per-lane vectors.", _from("hkc_tile.", "tensor.")),
        Form("pipelined", "Loops fetch ahead as far as they are to.", lambda op: None),
        Form("synchronised", "LDS accesses of different waves are ordered by barriers and waits.", lambda op: None),
        Form("rocdl", "No op of ours is left.", _from("hkc_tile.", "hkc_wave.")),
        Form("llvm", "Everything is in the LLVM and ROCDL dialects.", _foreign),
        Form("scalars", "No vector has one number of 64 bits only.", _single_left),
    )
}
