"""`hkc run`: compile a kernel, run it on seeded inputs, compare with the oracle."""

from __future__ import annotations

import argparse
import json
import math
import operator
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hkc import api
from hkc.cli import debugging
from hkc.cli.options import add_kernel, add_set, command, count, pair, positive

if TYPE_CHECKING:
    from hkc.cli.options import Commands
    from hkc.cli.trial import Verdict
    from hkc.emulate import Memory
    from hkc.reference import Comparison
    from hkc.runtime.device import Device, LaunchResult
    from hkc.support.errors import Source


def add(commands: Commands) -> None:
    """Describe the command."""
    it = command(
        commands,
        "run",
        run,
        "Run a kernel and compare what it writes with its reference. Inputs are random but repeatable, or come from "
        "files; the reference is evaluated in float64. Without a reference in the file, the NumPy meanings of the "
        "kernel's own operations stand in. Outputs start out as NaN (bytes 0x5A for whole numbers), so that elements "
        "never written show.",
    )
    it.add_argument("file", type=Path, metavar="FILE", help="the kernel: FILE.hk, or a Python file, which is not run")
    it.add_argument("--arch", metavar="CHIP", help="the chip (default: that of the GPU here)")
    add_kernel(it)
    add_set(
        it, "values for const and tune names, for dims and for numbers (default for the last two: the file's example)"
    )
    it.add_argument("--seed", type=count, default=0, metavar="N", help="of the random inputs (default: 0)")
    it.add_argument(
        "--input", type=pair, action="append", default=[], metavar="NAME=FILE.npy", help="a tensor from a file"
    )
    it.add_argument(
        "--output", type=pair, action="append", default=[], metavar="NAME=FILE.npy", help="save a tensor to a file"
    )
    it.add_argument(
        "--device",
        choices=("hip", "emulator", "reference"),
        help="a GPU, the emulator, or the operations' NumPy meanings (default: a GPU of the chip, else the emulator)",
    )
    it.add_argument(
        "--interleavings",
        type=positive,
        default=1,
        metavar="N",
        help="runs on the emulator, each with its own order of the waves; the worst one is told (default: 1, in step)",
    )
    it.add_argument("--json", action="store_true", help="print one JSON document")
    debugging.add(it, "NAME")


def run(options: argparse.Namespace) -> int:
    """Run and compare; 1 where an output is wrong."""
    api.warm_up()
    from hkc import pipeline
    from hkc.cli import trial
    from hkc.cli.progress import Progress
    from hkc.frontend.parse import read
    from hkc.support.errors import error
    from hkc.targets.chip import load

    interpreted = options.device == "reference"
    arch = load(options.arch).name if options.arch is not None else "" if interpreted else api.gpu_arch()
    checked, settings = trial.check(read(options.file), options.set, options.kernel)
    kernel = pipeline.only_kernel(checked)
    if not kernel.outputs:
        raise error("HK521", f"`{kernel.name}` stores nothing, so there is nothing to compare", kernel.span)
    wanted = {trial.tensor(kernel, name).name: Path(path) for name, path in options.output}
    files = {name: trial.load(trial.tensor(kernel, name), path) for name, path in options.input}
    known = trial.values(checked, kernel, settings, files)
    arrays = trial.inputs(kernel, known, files, options.seed)
    runs = []
    with _telling(checked.source), Progress(f"{kernel.name} on {arch or 'the reference'}") as progress:
        progress(0, "compiling")
        made = api.CompiledKernel(pipeline.uncompiled(checked, arch), checked) if interpreted else None
        compiled = made or api.build(checked, arch)
        for order in range(options.interleavings):
            arguments = compiled.bind(**{**known, **{name: array.copy() for name, array in arrays.items()}})
            before = {name: array.copy() for name, array in arguments.on_host().items()}
            with _device(options, order) as device:
                result = compiled.run(arguments, device, progress)
            if order == 0:
                _save(wanted, arguments.on_host())
            runs.append((order, result, trial.judge(checked, kernel, before, arguments)))
    order, result, verdicts = max(runs, key=lambda r: (not all(v.comparison.ok for v in r[2]), len(r[1].findings)))
    document = _document(compiled.arch, known, result, verdicts) | {"interleavings": len(runs), "order": order}
    print(json.dumps(document) if options.json else _text(kernel.name, document))
    _remark(result, verdicts, checked.source)
    return 0 if document["ok"] else 1


@contextmanager
def _telling(source: Source) -> Iterator[None]:
    """Show what had been found where a fault stops the run."""
    from hkc.cli.findings import Found, text
    from hkc.emulate import Fault
    from hkc.support.errors import HkcBug, HkcError

    try:
        yield
    except (HkcBug, HkcError) as stopped:
        fault = stopped if isinstance(stopped, Fault) else stopped.__cause__
        if isinstance(fault, Fault) and fault.before:
            print(text(map(Found, fault.before), source), file=sys.stderr)
        raise


@contextmanager
def _device(options: argparse.Namespace, order: int) -> Iterator[str | Device | None]:
    """The device that is asked for; an emulator where the run is to be looked into or has an order of its own."""
    from hkc.runtime.emulator import Emulator
    from hkc.support.errors import Diagnostic, HkcUsageError

    if not debugging.asked(options) and options.interleavings == 1:
        yield options.device
        return
    if options.device not in (None, "emulator"):
        message = "only runs on the emulator can be stopped, traced, watched and interleaved"
        raise HkcUsageError(Diagnostic("HK305", message))
    emulator = Emulator(order)

    def find(memory: Memory, name: str, index: tuple[int, ...]) -> tuple[int, int]:
        debugging.element(name, index, {n: v.extents for n, v in emulator.views.items()})
        view = emulator.views[name]
        return view.address + sum(map(operator.mul, index, view.strides)) * view.itemsize, view.itemsize

    with debugging.observers(options, find) as observers:
        emulator.observers = observers
        yield emulator


def _save(wanted: dict[str, Path], arrays: dict[str, Any]) -> None:
    import io

    import numpy as np

    from hkc.support.files import write_all

    contents: dict[Path, bytes] = {}
    for name, path in wanted.items():
        buffer = io.BytesIO()
        np.save(buffer, arrays[name])
        contents[path] = buffer.getvalue()
    write_all(contents)


def _document(arch: str, known: dict[str, Any], result: LaunchResult, verdicts: list[Verdict]) -> dict[str, Any]:
    """What `--json` prints. `max_error` and `bound` are those of the output that comes closest to its bound."""
    worst = max((v.comparison for v in verdicts), key=lambda c: (not c.ok, c.max_error / (c.max_bound or 1)))
    return {
        "device": result.device,
        "arch": arch or None,
        **{key: it for key, it in _numbers(worst).items() if key != "unchecked"},
        "seconds": result.seconds,
        "instructions": result.instructions,
        "entry": result.entry,
        "oracle": verdicts[0].oracle,
        "set": known,
        "unchecked": sum(v.comparison.unchecked for v in verdicts),
        "outputs": {v.name: _numbers(v.comparison) for v in verdicts},
        "findings": len(result.findings),
    }


def _numbers(comparison: Comparison) -> dict[str, Any]:
    """JSON has no infinity: a distance from a number to NaN, or a bound that says nothing, is null. `unchecked` counts
    the elements of which `ok` says nothing."""
    error, bound = (x if math.isfinite(x) else None for x in (comparison.max_error, comparison.max_bound))
    return {"max_error": error, "bound": bound, "ok": comparison.ok, "unchecked": comparison.unchecked}


def _text(name: str, document: dict[str, Any]) -> str:
    values = ", ".join(f"{key}={value}" for key, value in document["set"].items())
    chip = f" for {document['arch']}" if document["arch"] else ""
    lines = [f"{name}{chip} on the {document['device']}: {values}"]
    for output, verdict in document["outputs"].items():
        unchecked = f"NOT CHECKED in {verdict['unchecked']:,} elements" if verdict["unchecked"] else "ok"
        word = unchecked if verdict["ok"] else "WRONG"
        error, bound = ("infinite" if x is None else f"{x:.3g}" for x in (verdict["max_error"], verdict["bound"]))
        lines.append(f"{output}: {word}, max error {error}, bound {bound} (oracle: {document['oracle']})")
    instructions = document["instructions"]
    counted = f", {instructions:,} wave-instructions" if instructions is not None else ""
    runs = f", {document['interleavings']} orders of waves" if document["interleavings"] > 1 else ""
    if document["order"]:
        lines.append(f"this is order {document['order']} of the waves, the worst")
    return "\n".join([*lines, f"{document['seconds']:.2f} s{counted}{runs}"])


def _remark(result: LaunchResult, verdicts: list[Verdict], source: Source) -> None:
    """What else there is to say, on stderr."""
    from hkc.cli.findings import Found, text

    if result.findings:
        print(text(map(Found, result.findings), source), file=sys.stderr)
    for v in verdicts:
        if v.comparison.unchecked:
            print(f"`{v.name}` was not checked where rounding errors could make it any number", file=sys.stderr)
        if v.comparison.ok:
            continue
        where = f"`{v.name}`{list(v.comparison.worst or ())}"
        print(f"{where} is {v.comparison.error:.3g} off, {v.comparison.bound:.3g} is allowed", file=sys.stderr)
        if v.faithful and result.device != "reference":
            print("what was run is what the kernel says; it and the reference disagree", file=sys.stderr)
        elif not v.faithful:
            print("what was run is not what the kernel says: this is a bug of hkc", file=sys.stderr)
