"""What wave IR does to its LDS buffers: every use, proved. Uses are read from the ops alone, as any judge could."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hkc.dialects.forms import walk
from hkc.dialects.tile.divisibility import constant
from hkc.dialects.types import OpaqueType
from hkc.dialects.wave.lds import buffer_map
from hkc.layout import DistributedLayout, LdsMap
from hkc.layout.accesses import Kind, Use
from hkc.layout.synthesis import AccessProof, prove
from hkc.passes.locate import span
from hkc.support.mlir import ir
from hkc.targets.chip import Chip

KINDS: dict[str, Kind] = {
    "hkc_wave.lds_write": "write",
    "hkc_wave.lds_read": "read",
    "hkc_wave.lds_read_transposed": "read_transposed",
}
"""The ops that move a fragment between registers and LDS."""

TRIPS = 16
"""What a loop counts for where its trip count is only known at launch."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """An LDS buffer at byte `offset` and the proofs of its uses, in program order, each with its source line."""

    map: LdsMap
    offset: int
    accesses: tuple[tuple[AccessProof, int | None], ...]


def buffers(function: Any, chip: Chip) -> tuple[Buffer, ...]:
    """The LDS buffers of a kernel function in wave IR."""
    found: dict[Any, dict[tuple[Kind, str, int | None], int]] = {}
    for op in walk(function):
        if op.name == "hkc_wave.lds_alloc":
            found[op.results[0]] = {}
        elif op.name in KINDS:
            at = span(op)
            key = (KINDS[op.name], ir.StringAttr(op.attributes["layout"]).value, at.line if at else None)
            uses = found[op.operands[len(op.operands) - 1]]
            uses[key] = max(uses.get(key, 0), weight(op))
    return tuple(_proved(buffer, uses, chip) for buffer, uses in found.items())


def _proved(buffer: Any, uses: dict[tuple[Kind, str, int | None], int], chip: Chip) -> Buffer:
    lds = buffer_map(OpaqueType(str(buffer.type)))
    accesses = [
        Use(kind, DistributedLayout.parse(layout), count, f"lds_{kind}") for (kind, layout, _), count in uses.items()
    ]
    lines = [line for _, _, line in uses]
    proofs = prove(lds, accesses, chip.lds.access)
    return Buffer(lds, int(buffer.owner.attributes["offset"].value), tuple(zip(proofs, lines, strict=True)))


def weight(op: Any) -> int:
    """How often an op is executed, by the loops around it."""
    count, parent = 1, op.parent
    while parent is not None and parent.name != "func.func":
        if parent.name == "scf.for":
            known = trips(parent)
            count *= TRIPS if known is None else known
        parent = parent.parent
    return count


def trips(loop: Any) -> int | None:
    """How often the body of a loop is executed; None where only the launch says."""
    bounds = [constant(value) for value in list(loop.operands)[:3]]
    start, stop, step = bounds
    if start is None or stop is None or step is None:
        return None
    return max(0, -(-(stop - start) // step))
