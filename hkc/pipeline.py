"""The compiler, from top to bottom: text is checked, becomes tile IR, wave IR, ROCDL, LLVM IR and a code object.

`check` runs anywhere. Everything after it needs MLIR and LLVM and therefore runs in the worker process:
`worker.call("hkc.pipeline:compile_kernel", checked, …)`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hkc.frontend import check as checking
from hkc.frontend import parse as parsing
from hkc.frontend.program import Checked, Kernel
from hkc.handover import Assembly, Binary, Choice, LdsAccess, LdsBuffer, Module, Resources
from hkc.machine.abi import Entry, KernelInfo, LaunchPlan
from hkc.support.errors import HkcBug, Source, error
from hkc.targets.chip import Chip, load

if TYPE_CHECKING:
    from hkc.passes.define import Pass


def compile_kernel(checked: Checked, arch: str, keep: Sequence[str] = (), debug: bool = False) -> Binary:
    """A checked kernel as a code object for one chip; `keep` names the stages whose text is wanted as well, `debug`
    embeds the line table.

    Raises `HkcError` for what the kernel author can mend and `HkcBug` for what only we can. Worker process only.
    """
    from hkc.passes.locate import quote
    from hkc.support.mlir import context, ir

    texts: dict[str, str] = {}
    lds: tuple[LdsBuffer, ...] = ()
    made: tuple[Choice, ...] = ()
    with context(), ir.Location.unknown(), quote(checked.source):
        module = emit(checked, load(arch))
        for stage, passes in stages().items():
            module = run(module, passes)
            if stage in keep:
                texts[stage] = str(module.ir)
            if stage == "wave":
                lds, made = lds_buffers(module), choices(module)
        assembly = translate(module)
    if "llvm" in keep:
        texts["llvm"] = assembly.llvm_ir
    binary = generate(assembly, checked, "asm" in keep, debug)
    return replace(binary, texts={**texts, **binary.texts}, lds=lds, choices=made)


# 1. Text to a typed program.


def check(source: Source, constants: Mapping[str, str] | None = None) -> Checked:
    """Parse and check a source; `constants` overrides its `const` and `tune` values. Raises `HkcError`."""
    return checking.check(parsing.parse(source), constants)


def check_function(function: Callable[..., object], constants: Mapping[str, str] | None = None) -> Checked:
    """The same for a kernel that is a Python function."""
    from hkc.frontend.python import read_function

    return checking.check(read_function(function), constants)


# 2. A typed program to tile IR.


def emit(checked: Checked, chip: Chip) -> Module:
    """The tile IR of a checked file with one kernel."""
    from hkc.dialects.load import load as load_dialects
    from hkc.frontend.emit import build

    only_kernel(checked)
    load_dialects()
    return Module(build(checked), chip)


# 3. The passes, in order.


def stages() -> dict[str, tuple[Pass, ...]]:
    """The passes that lead to each stage that can be looked at."""
    from hkc.passes.check_tiles import CheckTiles
    from hkc.passes.eliminate_dead_tiles import EliminateDeadTiles
    from hkc.passes.lower_tile_to_wave import LowerTileToWave
    from hkc.passes.lower_wave_to_rocdl import LowerWaveToRocdl
    from hkc.passes.map_workgroups import MapWorkgroups
    from hkc.passes.peel_ragged_loops import PeelRaggedLoops
    from hkc.passes.pipeline_loops import PipelineLoops
    from hkc.passes.place_waits import PlaceWaits
    from hkc.passes.select_layouts import SelectLayouts
    from hkc.passes.split_entries import SplitEntries
    from hkc.passes.stage_through_lds import StageThroughLds
    from hkc.passes.swizzle_lds import SwizzleLds
    from hkc.passes.widen_dots import WidenDots

    return {
        "tile": (WidenDots(), CheckTiles(), EliminateDeadTiles()),
        "wave": (
            SplitEntries(),
            PeelRaggedLoops(),
            MapWorkgroups(),
            SelectLayouts(),
            StageThroughLds(),
            SwizzleLds(),
            LowerTileToWave(),
            PipelineLoops(),
            PlaceWaits(),
        ),
        "rocdl": (LowerWaveToRocdl(),),
    }


def run(module: Module, passes: Sequence[Pass]) -> Module:
    """Run passes one after another, and check at the end that the forms they promise hold."""
    from hkc.passes.define import check_forms, dump, forms_after
    from hkc.support.mlir import ir

    held = module.forms
    for step in passes:
        before = held
        held = forms_after(held, step)
        try:
            step.run(module.ir, module.chip)
        except ir.MLIRError as failure:
            raise HkcBug(f"pass `{step.name}` failed: {failure}", details=str(module.ir)) from failure
        dump(module.ir, f"{module.chip.name}-{step.name}")
        if os.environ.get("HKC_DEBUG") == "1":
            check_forms(module.ir, held - before, step.name)
    check_forms(module.ir, held, passes[-1].name)
    if not module.ir.operation.verify():
        raise HkcBug(f"the module is invalid after pass `{passes[-1].name}`", details=str(module.ir))
    return Module(module.ir, module.chip, held)


def lds_buffers(module: Module) -> tuple[LdsBuffer, ...]:
    """The LDS buffers of the entry point that is tried first, with the proof of what their accesses cost (wave IR)."""
    from hkc.dialects.forms import kernels
    from hkc.passes.lds_accesses import buffers

    return tuple(
        LdsBuffer(
            f"lds{i}",
            buffer.offset,
            buffer.map.bytes,
            buffer.map.text(),
            tuple(
                LdsAccess(
                    a.use.op,
                    a.mnemonic,
                    line,
                    a.instructions,
                    a.cycles,
                    a.minimum,
                    a.lower_bound,
                    a.use.weight,
                    a.reason,
                )
                for a, line in buffer.accesses
            ),
        )
        for i, buffer in enumerate(buffers(kernels(module.ir)[0], module.chip))
    )


def choices(module: Module) -> tuple[Choice, ...]:
    """How the layouts and byte maps of the entry point that is tried first were chosen."""
    from hkc.dialects.forms import kernels
    from hkc.passes.explain import explained

    made = (
        (Choice(it.line, it.subject, it.chosen.text, it.chosen.clocks), it.runner_up)
        for it in explained(kernels(module.ir)[0])
    )
    return tuple(
        replace(choice, runner_up=other.text, runner_up_clocks=other.clocks) if other else choice
        for choice, other in made
    )


# 4. MLIR to LLVM IR, and LLVM IR to a code object.


def translate(module: Module) -> Assembly:
    """The LLVM IR of a module that is in the LLVM dialect throughout."""
    from hkc.dialects.forms import kernels
    from hkc.passes.select_layouts import WAVES
    from hkc.support.mlir import llvm

    if "llvm" not in module.forms:
        raise HkcBug("a module that is not all LLVM can't be translated")
    waves = int(kernels(module.ir)[0].attributes[WAVES].value)
    return Assembly(llvm.translate_module_to_llvmir(module.ir.operation), module.chip, waves)


def generate(assembly: Assembly, checked: Checked, text: bool = False, debug: bool = False) -> Binary:
    """Code for the chip, linked, with all that a launch needs to know; with `text` its assembly too."""
    from hkc.backend.codegen import generate as generate_code

    made = generate_code(assembly.llvm_ir, assembly.chip.name, assembly=text, debug=debug)
    taken = {
        k.name: Resources(m.vgprs, m.agprs, m.sgprs, m.vgpr_spills, m.sgpr_spills, m.scratch, m.lds)
        for k in made.kernels
        if (m := k.metadata) is not None
    }
    plan = LaunchPlan((interface(checked, assembly),))
    texts = {} if made.assembly is None else {"asm": made.assembly}
    return Binary(assembly.chip.name, made.hsaco, plan, taken, made.lines, texts)


def interface(checked: Checked, assembly: Assembly) -> KernelInfo:
    """What a launch needs to know of the kernel of a checked file."""
    from hkc.passes.split_entries import entries

    kernel = only_kernel(checked)
    return _info(checked, assembly.chip.name, assembly.waves, entries(kernel.name, kernel.params))


def uncompiled(checked: Checked, arch: str = "") -> Binary:
    """A kernel without machine code, for the reference, which needs none."""
    return Binary(arch, b"", LaunchPlan((_info(checked, arch, 1, (Entry(only_kernel(checked).name, ()),)),)), {})


def _info(checked: Checked, arch: str, waves: int, entries: tuple[Entry, ...]) -> KernelInfo:
    kernel = only_kernel(checked)
    return KernelInfo(
        kernel.name,
        arch,
        kernel.params,
        kernel.grid,
        waves,
        entries,
        kernel.outputs,
        checked.constant_texts,
        kernel.inputs,
        kernel.conditions,
    )


def only_kernel(checked: Checked) -> Kernel:
    """The kernel of a file. Raises `HkcError` HK454 where a file has several: they can't be launched together yet."""
    if len(checked.kernels) != 1:
        names = ", ".join(f"`{k.name}`" for k in checked.kernels)
        message = f"this file has {len(checked.kernels)} kernels ({names}), but only one can be compiled at a time"
        raise error("HK454", message, checked.kernels[-1].span, hint="put each kernel in a file of its own")
    return checked.kernels[0]
