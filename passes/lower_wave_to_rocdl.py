"""From wave ops to ROCDL and LLVM ops: each op's own lowering, then MLIR's conversions for the builtin ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects.define import WAVE_DIALECT, OpRecord
from hkc.dialects.forms import kernels, walk
from hkc.dialects.types import OpaqueType
from hkc.dialects.wave.lds import buffer_map
from hkc.dialects.wave.rocdl import LDS_SYMBOL, Rocdl
from hkc.layout.text import by
from hkc.passes.define import Pass
from hkc.passes.locate import refuse, span
from hkc.passes.plan_registers import AGPRS
from hkc.passes.requests import requested
from hkc.passes.select_layouts import WAVES
from hkc.support.errors import Note
from hkc.support.mlir import ir, run_passes
from hkc.targets.chip import FEATURES, Chip

ALLOC = "hkc_wave.lds_alloc"

CONVERSIONS = (
    "cse,canonicalize,cse,convert-scf-to-cf,convert-math-to-llvm,convert-ub-to-llvm,convert-vector-to-llvm,"
    "convert-arith-to-llvm{index-bitwidth=64},convert-cf-to-llvm{index-bitwidth=64},"
    "convert-func-to-llvm{index-bitwidth=64 use-bare-ptr-memref-call-conv=true},"
    "reconcile-unrealized-casts,canonicalize,cse"
)
"""What each lane's own lowering repeats goes before `canonicalize`, which takes longest by far."""

UNUSED_INPUTS = (
    "dispatch-id", "dispatch-ptr", "queue-ptr", "implicitarg-ptr", "heap-ptr", "hostcall-ptr", "lds-kernel-id",
    "completion-action", "default-queue", "multigrid-sync-arg", "flat-scratch-init",
    "workgroup-id-y", "workgroup-id-z", "workitem-id-y", "workitem-id-z",
)  # fmt: skip
"""What our kernels never ask the launcher for, as `amdgpu-no-…` attributes (LLVM AMDGPU usage guide)."""


@dataclass(frozen=True)
class LowerWaveToRocdl(Pass):
    """The last step in MLIR: what comes out translates to LLVM IR.

    Before::

        "hkc_wave.priority"() {level = 1 : i64} : () -> ()
        "hkc_wave.barrier"() : () -> ()

    After::

        rocdl.s.setprio 1
        llvm.fence syncscope("workgroup") release
        rocdl.s.barrier
        llvm.fence syncscope("workgroup") acquire
    """

    name: ClassVar[str] = "lower_wave_to_rocdl"
    needs: ClassVar[frozenset[str]] = frozenset({"waves", "synchronised"})
    gives: ClassVar[frozenset[str]] = frozenset({"rocdl", "llvm"})
    drops: ClassVar[frozenset[str]] = frozenset({"waves", "entries", "numbered"})

    def run(self, module: Any, chip: Chip) -> None:
        lds = max((_lds_bytes(function, chip) for function in kernels(module)), default=0)
        for function in kernels(module):
            with function.location:
                top = ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0])
                b = Rocdl(chip, _waves(function), top)
            _lower_function(function, b)
        if lds:
            _declare_lds(module, lds)
        run_passes(module, CONVERSIONS)
        for function in kernels(module):
            _mark_kernel(function, _waves(function), chip)


def _waves(function: Any) -> int:
    return int(ir.IntegerAttr(function.attributes[WAVES]).value)


def _lds_bytes(function: Any, chip: Chip) -> int:
    """The bytes of LDS up to the end of the last buffer. Raises HK453 where a workgroup has fewer: offsets written by
    hand may lie anywhere."""
    found = {op: buffer_map(OpaqueType(str(op.results[0].type))) for op in walk(function) if op.name == ALLOC}
    ends = {op: int(op.attributes["offset"].value) + lds.bytes for op, lds in found.items()}
    size = max(ends.values(), default=0)
    if size <= chip.lds.bytes:
        return size
    notes = {
        Note(f"{lds.bytes} bytes from byte {ends[op] - lds.bytes} on for a {by(lds.shape)} tile", span(op)): None
        for op, lds in sorted(found.items(), key=lambda each: -ends[each[0]])
    }
    raise refuse(
        max(ends, key=lambda op: ends[op]),
        "HK453",
        f"this kernel needs {size} bytes of LDS, but a workgroup of {chip.name} has {chip.lds.bytes}",
        hint="make the tiles smaller, or let buffers that are not needed at once have the same offset",
        notes=tuple(notes),
    )


def _lower_function(function: Any, b: Rocdl) -> None:
    """Replace every wave op. A value whose type changes (a buffer) is only used by wave ops."""
    lowered: dict[Any, Any] = {}
    old = [op for op in walk(function) if op.name.startswith("hkc_wave.")]
    for op in old:
        record = WAVE_DIALECT.ops[op.name.partition(".")[2]]
        operands = [lowered.get(o, o) for o in op.operands]
        _check_chip(op, record, b.chip)
        with ir.InsertionPoint(op), op.location:
            results = record.cls.lower(b, op, *operands)  # type: ignore[attr-defined]
        for before, after in zip(op.results, results, strict=True):
            if before.type == after.type:
                before.replace_all_uses_with(after)
            else:
                lowered[before] = after
    for op in reversed(old):
        op.erase()


def _check_chip(op: Any, record: OpRecord, chip: Chip) -> None:
    """Refuse what only another chip has: a schedule written by hand may ask for it."""
    feature = getattr(record.cls, "feature", None)
    if feature is not None and not chip.has(feature):
        raise refuse(op, "HK477", f"{chip.name} has no `{op.name}`: {FEATURES[feature]}")
    if record.name == "copy_to_lds" and op.attributes["bytes"].value not in chip.direct_to_lds_bytes:
        widths, size = " or ".join(map(str, chip.direct_to_lds_bytes)), op.attributes["bytes"].value
        raise refuse(op, "HK477", f"{chip.name} copies {widths} bytes per lane straight to LDS, not {size}")


def _mark_kernel(function: Any, waves: int, chip: Chip) -> None:
    """The attributes by which LLVM knows a kernel.

    `amdgpu-agpr-alloc` is the least number of AGPRs. Where it is 0, MFMAs leave their results in VGPRs (see
    `support/llvm.py`); LLVM would else split what a wave gets into halves and move accumulators between them.
    """
    threads = waves * chip.compute.wave
    function.attributes["rocdl.kernel"] = ir.UnitAttr.get()
    function.attributes["rocdl.flat_work_group_size"] = ir.StringAttr.get(f"{threads},{threads}")
    function.attributes["rocdl.reqd_work_group_size"] = ir.DenseI32ArrayAttr.get([threads, 1, 1])
    occupancy = requested(function, "waves_per_eu")
    pairs = ['["uniform-work-group-size", "true"]', *(f'"amdgpu-no-{name}"' for name in UNUSED_INPUTS)]
    if occupancy is not None:
        sharing = -(-waves // chip.compute.simds)
        if occupancy < sharing:
            why = f"`waves_per_eu={occupancy}` can't be honoured: {sharing} waves of a workgroup share each SIMD"
            raise refuse(function, "HK450", why, hint=f"at least {sharing}")
        pairs.append(f'["amdgpu-waves-per-eu", "{occupancy}"]')
    agprs = ir.IntegerAttr(function.attributes[AGPRS]).value if AGPRS in function.attributes else 0
    pairs.append(f'["amdgpu-agpr-alloc", "{agprs}"]')
    function.attributes["passthrough"] = ir.Attribute.parse(f"[{', '.join(pairs)}]")


def _declare_lds(module: Any, size: int) -> None:
    attributes = "{addr_space = 3 : i32, alignment = 16 : i64}"
    parsed = ir.Module.parse(f"llvm.mlir.global internal @{LDS_SYMBOL}() {attributes} : !llvm.array<{size} x i8>")
    with ir.InsertionPoint.at_block_begin(module.body):
        parsed.body.operations[0].operation.clone()
