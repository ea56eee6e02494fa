"""The compiler, from top to bottom: text is checked, becomes tile IR, wave IR, ROCDL, LLVM IR and a code object.

`check` runs anywhere. Everything after it needs MLIR and LLVM and therefore runs in the worker process:
`worker.call("hkc.pipeline:compile_kernel", checked, …)`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hkc.frontend import check as checking
from hkc.frontend import parse as parsing
from hkc.frontend import syntax
from hkc.frontend.program import Checked, Kernel
from hkc.handover import Assembly, Binary, Module, Resources
from hkc.machine.abi import Entry, KernelInfo
from hkc.support.errors import Diagnostic, HkcBug, HkcUsageError, Source, error
from hkc.targets.chip import Chip, load

if TYPE_CHECKING:
    from hkc.passes.define import Pass


LINES = "ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly}"
"""MLIR's pass without which places get lost on the way to LLVM IR."""


def compile_kernel(checked: Checked, arch: str, keep: Sequence[str] = (), debug: bool = False) -> Binary:
    """A checked kernel as a code object for one chip; `keep` names the stages whose text is wanted as well, `debug`
    embeds the line table.

    Raises `HkcError` for what the kernel author can mend and `HkcBug` for what only we can. Worker process only.
    """
    from hkc.passes.locate import quote
    from hkc.support.mlir import context, ir

    with context(), ir.Location.unknown(), quote(checked.source):
        return _compile(emit(checked, load(arch)), keep, debug)


def compile_module(source: Source, arch: str | None, keep: Sequence[str] = (), debug: bool = False) -> Binary:
    """The same for the text of a module at any stage before LLVM IR; the passes that it has behind it don't run again.

    Raises `HkcError` HK471 to HK474 for a text that is no such module, HK475 where a pass was left out. Worker process
    only.
    """
    from hkc.dialects import header
    from hkc.passes.locate import quote
    from hkc.support.mlir import UNNAMED, context, ir

    with context(), ir.Location.unknown(), quote(source):
        module = enter(source, arch)
        header.info(module.ir, module.chip.name)
        _refuse_gaps(module.forms)
        binary = _compile(module, keep, debug)
    named = (replace(line, file=source.name) if line.file == UNNAMED else line for line in binary.lines)
    return replace(binary, lines=tuple(named))


def _compile(module: Module, keep: Sequence[str], debug: bool) -> Binary:
    from hkc import decisions

    texts: dict[str, str] = {}
    made: dict[str, Any] = {}
    for stage, passes in remaining(module.forms).items():
        if stage in keep and not passes:
            raise HkcUsageError(Diagnostic("HK516", f"the module is beyond the stage `{stage}`"))
        module = run(module, passes)
        if stage in keep:
            texts[stage] = printed(module, debug)
        made |= decisions.read(module)
    info = interface(module)
    assembly = translate(module)
    if "llvm" in keep:
        texts["llvm"] = assembly.llvm_ir
    binary = generate(assembly, info, "asm" in keep, debug)
    return replace(binary, texts={**texts, **binary.texts}, **made)


def printed(module: Module, debug: bool) -> str:
    """The text of a module; with `debug` every op says from where in the source it comes."""
    return str(module.ir.operation.get_asm(enable_debug_info=debug)).rstrip("\n") + "\n"


# 1. Text to a typed program.


def parse(source: Source) -> syntax.File:
    """The syntax of a file: of a Python file, which is read and not run, where its name says so. Raises `HkcError`."""
    if source.name.endswith(".py"):
        from hkc.frontend.python_file import read_file

        return read_file(source)
    return parsing.parse(source)


def check(source: Source, constants: Mapping[str, str] | None = None, kernel: str | None = None) -> Checked:
    """Parse and check a source; `constants` overrides its `const` and `tune` values, `kernel` names the one that is
    meant of several. Raises `HkcError`."""
    checked = checking.check(parse(source), constants)
    return checked if kernel is None else checking.only(checked, kernel)


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


def enter(source: Source, arch: str | None) -> Module:
    """The module of a text. Its chip is `arch`, or the one that it names. Raises `HkcError` HK471 to HK474."""
    from hkc.dialects import header
    from hkc.dialects.load import load as load_dialects
    from hkc.passes.verify import verify

    load_dialects()
    module = header.parse(source)
    found = header.read(module)
    verify(module, found.forms)
    if arch and found.chip and arch != found.chip:
        raise error("HK474", f"the module is for {found.chip}, not for {arch}")
    name = arch or found.chip
    if name is None:
        raise error("HK474", "the module names no chip", hint="name it: arch, on the command line --arch")
    return Module(module, load(name), found.forms)


# 3. The passes, in order.


def stages() -> dict[str, tuple[Pass, ...]]:
    """The passes that lead to each stage that can be looked at."""
    from hkc.passes.check_tiles import CheckTiles
    from hkc.passes.compute_late import ComputeLate
    from hkc.passes.eliminate_dead_tiles import EliminateDeadTiles
    from hkc.passes.lower_tile_to_wave import LowerTileToWave
    from hkc.passes.lower_wave_to_rocdl import LowerWaveToRocdl
    from hkc.passes.map_workgroups import MapWorkgroups
    from hkc.passes.peel_ragged_loops import PeelRaggedLoops
    from hkc.passes.pipeline_loops import PipelineLoops
    from hkc.passes.place_waits import PlaceWaits
    from hkc.passes.plan_registers import PlanRegisters
    from hkc.passes.scalarize_vectors import ScalarizeVectors
    from hkc.passes.schedule_waves import ScheduleWaves
    from hkc.passes.select_layouts import SelectLayouts
    from hkc.passes.split_entries import SplitEntries
    from hkc.passes.stage_cuts import StageCuts
    from hkc.passes.stage_through_lds import StageThroughLds
    from hkc.passes.swizzle_lds import SwizzleLds
    from hkc.passes.unroll_loops import UnrollLoops
    from hkc.passes.widen_dots import WidenDots

    return {
        "tile": (WidenDots(), CheckTiles(), EliminateDeadTiles()),
        "layouts": (
            SplitEntries(),
            PeelRaggedLoops(),
            MapWorkgroups(),
            StageCuts(),
            SelectLayouts(),
            StageThroughLds(),
            SwizzleLds(),
        ),
        "wave": (
            LowerTileToWave(),
            PipelineLoops(),
            ScheduleWaves(),
            UnrollLoops(),
            ComputeLate(),
            PlanRegisters(),
            PlaceWaits(),
        ),
        "rocdl": (LowerWaveToRocdl(), ScalarizeVectors()),
    }


def remaining(forms: frozenset[str]) -> dict[str, tuple[Pass, ...]]:
    """The passes, by stage, that a module has before it: those behind the last one that gives a form which it has."""
    passes = [step for group in stages().values() for step in group]
    behind = [i for i, step in enumerate(passes) if step.gives & forms]
    waiting = passes[behind[-1] + 1 :] if behind else passes
    return {stage: tuple(step for step in group if step in waiting) for stage, group in stages().items()}


def run(module: Module, passes: Sequence[Pass]) -> Module:
    """Run passes one after another, and check at the end that the forms they promise hold. What they leave travels with
    the module as attributes."""
    from hkc.dialects.header import mark
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
        mark(module.ir, module.chip.name, held)
        dump(module.ir, f"{module.chip.name}-{step.name}")
        if os.environ.get("HKC_DEBUG") == "1":
            check_forms(module.ir, held - before, step.name)
    last = passes[-1].name if passes else "entering"
    check_forms(module.ir, held, last)
    if not module.ir.operation.verify():
        raise HkcBug(f"the module is invalid after pass `{last}`", details=str(module.ir))
    return Module(module.ir, module.chip, held)


def transform(
    source: Source, names: Sequence[str], arch: str | None = None, check_all: bool = False, debug: bool = False
) -> str:
    """The text of a module after passes, ours or MLIR's, by name; `check_all` verifies it after each, too. With `debug`
    it has the places that ops come from.

    Raises `HkcError` HK471 to HK474 for a text that is no module of ours, HK475 for a pass that needs a form which the
    module has not; `HkcUsageError` HK476 for an unknown pass. Worker process only.
    """
    from hkc.dialects.header import mark, refusal
    from hkc.passes.locate import quote
    from hkc.passes.verify import verify
    from hkc.support.mlir import context, ir

    with context(), ir.Location.unknown(), quote(source):
        module = enter(source, arch)
        try:
            for name in names:
                module = _step(module, name)
                if check_all:
                    verify(module.ir, module.forms)
        except ir.MLIRError as failure:
            raise refusal(failure, source) from None
        mark(module.ir, module.chip.name, module.forms)
        return printed(module, debug)


def _step(module: Module, name: str) -> Module:
    from hkc.passes.builtin import run_builtin

    known = {step.name: step for group in stages().values() for step in group}
    if name not in known:
        return replace(module, forms=run_builtin(module.ir, name, module.forms, known))
    _refuse_early(known[name], module.forms)
    return run(module, (known[name],))


def _refuse_early(step: Pass, held: frozenset[str]) -> None:
    for form in sorted(step.needs - held):
        giver = next(s.name for group in stages().values() for s in group if form in s.gives)
        raise error("HK475", f"pass `{step.name}` needs the form `{form}`", hint=f"`{giver}` gives it")


def _refuse_gaps(held: frozenset[str]) -> None:
    """Raise `HkcError` where passes that ran out of order leave others without what they need."""
    from hkc.passes.define import forms_after

    for step in (step for group in remaining(held).values() for step in group):
        _refuse_early(step, held)
        held = forms_after(held, step)


def described() -> list[tuple[str, str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    """All passes in order: stage, name, docstring, and the forms that each needs, gives and drops."""
    from inspect import getdoc

    return [
        (stage, p.name, getdoc(p) or "", tuple(sorted(p.needs)), tuple(sorted(p.gives)), tuple(sorted(p.drops)))
        for stage, group in stages().items()
        for p in group
    ]


def described_forms() -> list[tuple[str, str]]:
    """All forms: name and what holds of a module that has it."""
    from hkc.dialects.forms import FORMS

    return [(form.name, form.doc) for form in FORMS.values()]


# 4. MLIR to LLVM IR, and LLVM IR to a code object.


def translate(module: Module) -> Assembly:
    """The LLVM IR of a module that is in the LLVM dialect throughout."""
    from hkc.support.mlir import llvm, run_passes

    if missing := {"llvm", "scalars"} - module.forms:
        raise HkcBug(f"a module without the forms {', '.join(sorted(missing))} can't be translated")
    run_passes(module.ir, LINES)
    return Assembly(llvm.translate_module_to_llvmir(module.ir.operation), module.chip)


def generate(assembly: Assembly, info: KernelInfo, text: bool = False, debug: bool = False) -> Binary:
    """Code for the chip, linked, with all that a launch needs to know; with `text` its assembly too."""
    from hkc.backend.codegen import generate as generate_code

    made = generate_code(assembly.llvm_ir, assembly.chip.name, assembly=text, debug=debug)
    taken = {
        k.name: Resources(m.vgprs, m.agprs, m.sgprs, m.vgpr_spills, m.sgpr_spills, m.scratch, m.lds)
        for k in made.kernels
        if (m := k.metadata) is not None
    }
    if os.environ.get("HKC_DEBUG") == "1":
        check_waits(made.hsaco)
    texts = {} if made.assembly is None else {"asm": made.assembly}
    return Binary(assembly.chip.name, made.hsaco, info, taken, made.lines, texts)


def check_waits(hsaco: bytes) -> None:
    """Prove from the machine code that what memory brings is waited for. Raises `HkcBug` where that fails."""
    from hkc.backend.audit import audit

    for symbol, found in audit(hsaco).items():
        if found.unproved:
            raise HkcBug(f"waits are missing in `{symbol}`: {found.unproved[0]}", details="\n".join(found.unproved))


def interface(module: Module) -> KernelInfo:
    """What a launch needs to know of the kernel of a module that has its layouts."""
    from hkc.dialects import header
    from hkc.dialects.forms import kernels
    from hkc.passes.select_layouts import WAVES
    from hkc.passes.split_entries import entries

    info = header.info(module.ir, module.chip.name)
    waves = int(kernels(module.ir)[0].attributes[WAVES].value)
    return replace(info, waves=waves, entries=entries(info.name, info.params, (*info.inputs, *info.outputs)))


def uncompiled(checked: Checked, arch: str = "") -> Binary:
    """A kernel without machine code, for the reference, which needs none."""
    kernel = only_kernel(checked)
    info = replace(checked.info(kernel), arch=arch, entries=(Entry(kernel.name, ()),))
    return Binary(arch, b"", info, {})


def only_kernel(checked: Checked) -> Kernel:
    """The kernel of a file. Raises `HkcError` HK454 where a file has several: they can't be launched together yet."""
    if len(checked.kernels) != 1:
        names = ", ".join(f"`{k.name}`" for k in checked.kernels)
        message = f"this file has {len(checked.kernels)} kernels ({names}), but only one can be compiled at a time"
        hint = f"name one: --kernel {checked.kernels[0].name}, in Python kernel=…"
        raise error("HK454", message, checked.kernels[-1].span, hint=hint)
    return checked.kernels[0]
