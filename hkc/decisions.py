"""What was decided on the way down, read from the IR of a kernel's first entry point: for reports and pictures.

Worker process only.
"""

from __future__ import annotations

from typing import Any

from hkc.dialects.forms import STAGED, kernels, walk
from hkc.dialects.tile.lowering import MFMA
from hkc.dialects.tile.shape import DIRECT, LDS_MAP, LDS_TRANSPOSED
from hkc.dialects.translate import layout_text, record_type
from hkc.dialects.types import TileType
from hkc.dialects.wave.sync import ASSERTION
from hkc.handover import Assertion, Choice, Conversion, Dot, Layouts, LdsAccess, LdsBuffer, Loop, Module, Tile
from hkc.layout.synthesis import AccessProof
from hkc.passes.explain import explained
from hkc.passes.layout_graph import DOTS, is_tile
from hkc.passes.lds_accesses import buffers, trips
from hkc.passes.locate import span
from hkc.support.mlir import ir


def read(module: Module) -> dict[str, Any]:
    """What the module shows, by the names of `Binary`'s fields, as far down as it is."""
    if "waves" in module.forms:
        return {"lds": lds_buffers(module), "loops": loops(module), "choices": choices(module)}
    if "llvm" in module.forms:
        return {"assertions": assertions(module)}
    if "lds_mapped" in module.forms:
        return {"layouts": layouts(module)}
    return {}


def choices(module: Module) -> tuple[Choice, ...]:
    """How layouts and byte maps were chosen."""
    made = (
        (Choice(it.line, it.subject, it.chosen.text, it.chosen.clocks), it.runner_up)
        for it in explained(kernels(module.ir)[0])
    )
    return tuple(
        Choice(c.line, c.subject, c.chosen, c.clocks, other.text, other.clocks) if other else c for c, other in made
    )


def assertions(module: Module) -> tuple[Assertion, ...]:
    """What the assertions of all entry points say, by their places (LLVM's dialect)."""
    traps = (op for op in walk(module.ir) if ASSERTION in op.attributes)
    found = ((span(op), str(op.attributes[ASSERTION].value)) for op in traps)
    return tuple(dict.fromkeys(Assertion(at.line, at.column, said) for at, said in found if at))


# -- tile IR with layouts


def layouts(module: Module) -> Layouts:
    """The register tiles, matrix products and conversions (tile IR with layouts and byte maps)."""
    ops = list(walk(kernels(module.ir)[0]))
    return Layouts(
        tuple(_tile(value, op) for op in ops if not len(op.regions) for value in filter(is_tile, op.results)),
        tuple(_dot(op) for op in ops if op.name in DOTS),
        tuple(_conversion(op) for op in ops if op.name == "hkc_tile.convert_layout"),
    )


def _tile(value: Any, op: Any) -> Tile:
    kind = record_type(value.type)
    assert isinstance(kind, TileType)
    line, column = _place(op)
    return Tile(op.name, line, column, tuple(kind.shape), kind.dtype, layout_text(value.type) or "")


def _place(op: Any) -> tuple[int | None, int | None]:
    at = span(op)
    return (at.line, at.column) if at else (None, None)


def _dot(op: Any) -> Dot:
    factors = (0, 2) if len(op.operands) > 3 else (0, 1)
    a, b = (_tile(op.operands[i], op) for i in factors)
    return Dot(ir.StringAttr(op.attributes[MFMA]).value, a, b, _tile(op.results[0], op))


def _conversion(op: Any) -> Conversion:
    source, target = _tile(op.operands[0], op), _tile(op.results[0], op)
    if STAGED not in op.attributes:
        return Conversion(source, target, "registers")
    value = op.operands[0]
    direct = not isinstance(value, ir.BlockArgument) and DIRECT in value.owner.attributes
    lds = ir.StringAttr(op.attributes[LDS_MAP]).value
    return Conversion(source, target, "direct" if direct else "lds", lds, LDS_TRANSPOSED in op.attributes)


# -- wave IR


def lds_buffers(module: Module) -> tuple[LdsBuffer, ...]:
    """The LDS buffers with the proof of what their accesses cost (wave IR)."""
    found = buffers(kernels(module.ir)[0], module.chip)
    return tuple(
        LdsBuffer(
            f"lds{i}",
            buffer.offset,
            buffer.map.bytes,
            buffer.map.text(),
            tuple(_access(proof, line) for proof, line in buffer.accesses),
        )
        for i, buffer in enumerate(found)
    )


def _access(proof: AccessProof, line: int | None) -> LdsAccess:
    use = proof.use
    return LdsAccess(
        use.op,
        use.kind,
        proof.mnemonic,
        line,
        proof.instructions,
        proof.cycles,
        proof.minimum,
        proof.lower_bound,
        use.weight,
        proof.reason,
        use.layout.text(),
    )


def loops(module: Module) -> tuple[Loop, ...]:
    """The loops with what they do (wave IR)."""
    ops = list(walk(kernels(module.ir)[0]))
    names = {op.results[0]: f"lds{i}" for i, op in enumerate(o for o in ops if o.name == "hkc_wave.lds_alloc")}
    return tuple(_loop(op, names) for op in ops if op.name == "scf.for")


def _loop(loop: Any, names: dict[Any, str]) -> Loop:
    operations: dict[str, int] = {}
    used: set[str] = set()
    for op in walk(loop):
        if op.name.startswith("hkc_wave.") and _loops_around(op)[0] == loop:
            kind = op.name.removeprefix("hkc_wave.")
            operations[kind] = operations.get(kind, 0) + 1
            used |= {names[value] for value in op.operands if value in names}
    return Loop(_place(loop)[0], len(_loops_around(loop)), trips(loop), operations, tuple(sorted(used)))


def _loops_around(op: Any) -> list[Any]:
    """The loops that an op lies in, the innermost first."""
    found = []
    while (op := op.parent) is not None and op.name != "func.func":
        if op.name == "scf.for":
            found.append(op)
    return found
