"""`hkc emulate`: run a kernel of any code object on the emulator."""

from __future__ import annotations

import argparse
import io
import json
import math
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hkc.cli import debugging
from hkc.cli.options import add_limit, command, count, positive, words

if TYPE_CHECKING:
    from hkc.cli.findings import Collection
    from hkc.cli.options import Commands
    from hkc.cli.progress import Progress
    from hkc.cli.values import Array, Given
    from hkc.emulate import Memory, Observer, Program, Result
    from hkc.emulate.checks.conflicts import Conflicts
    from hkc.machine.codeobject import Kernel

ARGUMENTS = """Arguments, in the kernel's order:
  f32[64,128]         a buffer that the kernel writes; reading what it has not written is a finding
  f32[64,128]=FILL    a buffer with contents: zeros, ones, nan, iota, rand, rand:SEED, bits, bits:SEED, or a number
  @x.npy  bf16@x.npy  a buffer with the array of a file, its bits taken as the dtype where one is named
  i32:5  f32:0.125    a number of that dtype
  hex:0a0b0c0d        the bytes of a struct
  null                a null pointer

`rand` is normal for floats and lies between -8 and 8 for whole numbers; `bits` is random bits."""


def add(commands: Commands) -> None:
    """Describe the command."""
    it = command(
        commands,
        "emulate",
        run,
        "Run a kernel of a code object, whoever compiled it, on the emulator. What it finds (reads of what was never "
        "written, missing waits, LDS out of bounds) goes to stderr; accesses outside every buffer stop it.",
    )
    it.formatter_class, it.epilog = _Help, ARGUMENTS
    it.add_argument("file", type=Path, metavar="FILE", help="the code object, or a bundle or program that holds it")
    it.add_argument("--list", action="store_true", help="list the kernels and their arguments, and run nothing")
    it.add_argument(
        "--arch", metavar="CHIP", help="whose code object to take out of an offload bundle or a host program with one"
    )
    it.add_argument("--kernel", metavar="NAME", help="the kernel (default: the only one)")
    it.add_argument("--grid", type=_extents, default=(1,), metavar="X[,Y[,Z]]", help="workgroups (default: 1)")
    it.add_argument(
        "--block", type=_extents, metavar="X[,Y[,Z]]", help="threads of a workgroup (default: as many as it takes)"
    )
    it.add_argument("--args", nargs="*", default=[], metavar="ARG", help="the kernel's arguments, as described below")
    it.add_argument(
        "--output",
        type=_destination,
        action="append",
        default=[],
        metavar="N=FILE.npy",
        help="save argument N (counted from 0) after the run",
    )
    it.add_argument(
        "--dynamic-lds", type=count, default=0, metavar="BYTES", help="LDS in addition to what the kernel declares"
    )
    _add_checks(it)
    it.add_argument("--json", action="store_true", help="print one JSON document")
    debugging.add(it, "N")


def _add_checks(it: argparse.ArgumentParser) -> None:
    """In what order waves run, for how long, and what to look for."""
    it.add_argument(
        "--seed", type=count, default=0, metavar="N", help="draws the order in which waves run (default: 0, in step)"
    )
    it.add_argument(
        "--interleavings",
        type=positive,
        default=1,
        metavar="N",
        help="runs, each with its own order of the waves, from that of --seed on; outputs are those of the first",
    )
    add_limit(it)
    it.add_argument(
        "--check",
        type=words,
        nargs="?",
        const=[],
        metavar="NAME,…",
        help="look for races, hazards and the like, too (default: for all); the exit code is 1 where anything is wrong",
    )


def run(options: argparse.Namespace) -> int:
    """List or run; 1 where checks were asked for and something is wrong."""
    from hkc import emulate
    from hkc.cli.findings import Collection, text
    from hkc.cli.progress import Progress
    from hkc.emulate.checks import observers

    if options.list:
        return _list(options)
    observers(options.check or ())
    _arguments(options.args, options.output)
    program = emulate.opened(options.file, arch=options.arch, kernel=options.kernel)
    kernel = program.kernel(options.kernel)
    runs, began = _Runs(program, kernel, options, Collection(options.check or ())), time.perf_counter()
    try:
        with Progress(f"{kernel.name} on {program.code.arch}") as progress:
            for order in range(options.interleavings):
                runs.one(order, progress)
    except emulate.Fault as fault:
        if fault.before:
            runs.found.add(fault.before)
            print(text(runs.found.all()), file=sys.stderr)
        raise
    _save(options.output, runs.given)
    document = runs.document(time.perf_counter() - began)
    print(json.dumps(document) if options.json else _text(document))
    found = runs.found.all()
    if found and not options.json:
        print(text(found), file=sys.stderr)
    return 1 if options.check is not None and any(f.wrong for f in found) else 0


@dataclass
class _Runs:
    """Runs of a kernel, the waves in another order each time, and what they have found.

    `given` holds the first run's arguments, `result` is its result (None where it was stopped), `differing` the
    arguments that came out otherwise later.
    """

    program: Program
    kernel: Kernel
    options: argparse.Namespace
    found: Collection
    given: list[Given] = field(default_factory=list)
    result: Result | None = None
    differing: set[int] = field(default_factory=set)
    conflicts: Conflicts | None = None

    def one(self, order: int, progress: Progress) -> None:
        """One more. With checks a fault is a finding; without any it is raised."""
        from hkc import emulate
        from hkc.cli.findings import from_error
        from hkc.emulate.checks import CHECKS, observers

        options = self.options
        given, seed = _arguments(options.args, options.output), options.seed + order
        checkers = observers([] if options.check is None else options.check or list(CHECKS))
        case = f"waves in order {seed}" if seed else ""
        result = None
        try:
            with debugging.observers(options, partial(_element, given)) as watching:
                result = emulate.run(
                    self.program,
                    *(g.value for g in given),
                    kernel=self.kernel.name,
                    grid=options.grid,
                    block=options.block,
                    dynamic_lds=options.dynamic_lds,
                    seed=seed,
                    progress=progress,
                    observers=[*checkers, *watching],
                    limit=options.limit,
                )
            self.found.add(result.findings, case)
        except emulate.Fault as fault:
            if options.check is None:
                raise
            self.found.add(from_error(fault), case)
        if order == 0:
            self.given, self.result = given, result
            self._keep(checkers)
        elif result is not None:
            self._compare(given)

    def _keep(self, checkers: list[Observer]) -> None:
        from hkc.emulate.checks.conflicts import Conflicts

        self.conflicts = next((c for c in checkers if isinstance(c, Conflicts)), None)

    def _compare(self, given: list[Given]) -> None:
        for number, (old, new) in enumerate(zip(self.given, given, strict=True)):
            if old.array is not None and new.array is not None and old.array.tobytes() != new.array.tobytes():
                self.differing.add(number)

    def document(self, seconds: float) -> dict[str, Any]:
        """What `--json` prints."""
        from hkc.cli.bank_table import Row
        from hkc.cli.findings import document
        from hkc.machine.lines import place

        result = self.result
        shown = {
            "kernel": self.kernel.name,
            "arch": self.program.code.arch,
            "workgroups": math.prod(self.options.grid),
            "interleavings": self.options.interleavings,
            "seconds": seconds,
            "instructions": result.instructions if result else None,
            "counts": dict(sorted(result.counts.items(), key=lambda pair: -pair[1])) if result else {},
            "buffers": [_buffer(n, g.kind, g.array) for n, g in enumerate(self.given) if g.array is not None],
            "differing": sorted(self.differing),
            "findings": [document(f) for f in self.found.all()],
        }
        if self.conflicts is not None and result is not None:
            seen = self.conflicts.instructions() if shown["workgroups"] else ()
            rows = [Row(o, place(self.program.lines, o.address), None) for o in seen]
            shown["bank_conflicts"] = [row.document() for row in rows]
        return shown


def _list(options: argparse.Namespace) -> int:
    from hkc import emulate
    from hkc.machine.bundle import code_object
    from hkc.machine.codeobject import CodeObject

    code = CodeObject.parse(code_object(emulate.read(options.file), options.arch, options.kernel))
    kernels = [_kernel(k) for k in code.kernels]
    if options.json:
        print(json.dumps({"arch": code.arch, "version": code.version, "kernels": kernels}))
    else:
        print(f"{options.file}: {code.arch}, code object version {code.version}", *map(_listed, kernels), sep="\n")
    return 0


def _element(given: list[Given], memory: Memory, name: str, index: tuple[int, ...]) -> tuple[int, int]:
    """Where an element of an argument is."""
    import numpy as np

    arrays = {str(n): g.array for n, g in enumerate(given) if g.array is not None}
    debugging.element(name, index, {n: array.shape for n, array in arrays.items()})
    (held,) = (a for a in memory.allocations if a.name == f"argument {name}")
    return held.base + int(np.ravel_multi_index(index, arrays[name].shape)) * arrays[name].itemsize, arrays[
        name
    ].itemsize


class _Help(argparse.HelpFormatter):
    """Keeps the lines of a text that has several."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def _extents(text: str) -> tuple[int, ...]:
    found = tuple(count(part) for part in text.split(","))
    if len(found) > 3:
        raise argparse.ArgumentTypeError(f"up to three extents are needed, not `{text}`")
    return found


def _destination(text: str) -> tuple[int, Path]:
    number, _, path = text.partition("=")
    if not (number.isdecimal() and path):
        raise argparse.ArgumentTypeError(f"N=FILE.npy is needed, not `{text}`")
    return int(number), Path(path)


def _arguments(texts: list[str], outputs: list[tuple[int, Path]]) -> list[Given]:
    from hkc.cli.values import parse
    from hkc.support.errors import Diagnostic, HkcUsageError

    given = [parse(text, number) for number, text in enumerate(texts)]
    for number, path in outputs:
        if number >= len(given) or given[number].array is None:
            raise HkcUsageError(Diagnostic("HK305", f"argument {number}, which {path} is for, is no buffer"))
    return given


def _save(outputs: list[tuple[int, Path]], given: list[Given]) -> None:
    import numpy as np

    from hkc.support.files import write_all

    contents: dict[Path, bytes] = {}
    for number, path in outputs:
        buffer, array = io.BytesIO(), given[number].array
        assert array is not None
        np.save(buffer, array)
        contents[path] = buffer.getvalue()
    write_all(contents)


def _kernel(kernel: Kernel) -> dict[str, Any]:
    """What `--list` says of a kernel."""
    about, descriptor = kernel.metadata, kernel.descriptor
    return {
        "name": kernel.name,
        "max_threads": about.max_threads,
        "vgpr": about.vgprs,
        "agpr": about.agprs,
        "sgpr": about.sgprs,
        "lds": descriptor.lds,
        "scratch": descriptor.scratch,
        "args": [
            {"name": a.name, "offset": a.offset, "size": a.size, "kind": a.kind}
            for a in about.args
            if not a.kind.startswith("hidden_")
        ],
    }


def _listed(kernel: dict[str, Any]) -> str:
    registers = ", ".join(f"{kernel[k]} {k}s" for k in ("vgpr", "agpr", "sgpr"))
    memory = f"{kernel['lds']} bytes of LDS, {kernel['scratch']} of scratch"
    lines = [f"{kernel['name']}: up to {kernel['max_threads']} threads, {registers}, {memory}"]
    for number, a in enumerate(kernel["args"]):
        lines.append(f"  {number}: {a['name'] or '(unnamed)'}, {a['kind']}, {a['size']} bytes at {a['offset']}")
    return "\n".join(lines)


def _buffer(number: int, kind: str, array: Array) -> dict[str, Any]:
    """Least, greatest and NaN of a buffer; null where there is none (or no number)."""
    import numpy as np

    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
    nans = int(np.isnan(wide).sum())
    return {"arg": number, "dtype": kind, "shape": list(array.shape), "min": low, "max": high, "nan": nans}


def _text(document: dict[str, Any]) -> str:
    lines = [f"{document['kernel']} for {document['arch']}"]
    for b in document["buffers"]:
        reach = "no finite elements" if b["min"] is None else f"{b['min']:.6g} to {b['max']:.6g}"
        lines.append(f"  {b['arg']}: {b['dtype']}[{','.join(map(str, b['shape']))}], {reach}, {b['nan']} NaN")
    lines += [f"  {number}: other orders of the waves give other contents" for number in document["differing"]]
    for row in document.get("bank_conflicts", ()):
        if row["cycles"] > row["minimum"]:
            lines.append(f"  {row['address']:#x}: {row['instruction']}: {row['cycles']} clocks, not {row['minimum']}")
    if not document["workgroups"]:
        lines.append("the grid holds no workgroups, so nothing was executed")
    count = "stopped" if document["instructions"] is None else f"{document['instructions']:,} wave-instructions"
    orders = f", {document['interleavings']} orders of waves" if document["interleavings"] > 1 else ""
    return "\n".join([*lines, f"{document['seconds']:.2f} s, {count}{orders}"])
