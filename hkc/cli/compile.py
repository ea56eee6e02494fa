"""`hkc compile`: a kernel file to code objects, or to any stage on the way."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from hkc import api
from hkc.cli.options import add_kernel, add_set, command, words

if TYPE_CHECKING:
    from hkc.cli.options import Commands

REPORT = "arch file symbol vgpr agpr sgpr vgpr_spills sgpr_spills scratch lds_bytes waves args".split()
"""The keys of a report, for every chip; as JSON it also has `lds`, the buffers with the proof of every access,
`audit`, what the machine code of each entry point does, `choices`, what was decided on the way, and `requires`, what
declarations and the hint `align` demand of every launch. A text has the last two below the table."""

MODULE = ".mlir"
"""How the file of a module ends."""


def add(commands: Commands) -> None:
    """Describe the command."""
    it = command(
        commands,
        "compile",
        run,
        "Compile the kernel of a file for one or more chips. Prints the paths of the files written, "
        "STEM.ARCH.SUFFIX, or a report; nothing is written unless everything compiles. Beside a code object lies its "
        "line table, STEM.ARCH.lines.json. The text of a module that --emit has written is compiled from its stage on.",
    )
    it.add_argument("file", type=Path, metavar="FILE", help="the kernel, FILE.hk or FILE.py, or a module, FILE.mlir")
    it.add_argument("--arch", type=words, required=True, metavar="CHIP,…", help="the chips")
    it.add_argument("-o", "--output", type=Path, default=Path(), metavar="DIR", help="where files go (default: here)")
    add_kernel(it)
    add_set(it, "values for the file's const and tune names")
    it.add_argument(
        "--emit",
        type=words,
        default=["hsaco"],
        metavar="STAGE,…",
        help="what to write: tile, wave, rocdl (MLIR), llvm, asm, hsaco (default: hsaco)",
    )
    it.add_argument(
        "-g",
        "--debug",
        action="store_true",
        help="keep the line table inside the code object, as DWARF, and the places of ops in the texts of modules",
    )
    it.add_argument("--report", choices=("text", "json"), help="print resources, arguments and decisions per chip")
    it.add_argument("--explain", choices=("layouts",), help="say how layouts and LDS swizzles were chosen")
    it.add_argument(
        "--fail-on-spill",
        action=argparse.BooleanOptionalAction,
        help="fail where registers are spilled to memory (default: of hkc's own kernels)",
    )


def run(options: argparse.Namespace) -> int:
    """Compile, then write all files, then report."""
    api.warm_up()
    from hkc.kernels.files import FOLDER
    from hkc.support.files import write_all

    kernels = _compiled(options)
    stem = _stem(options.file)
    own = options.file.resolve().parent == FOLDER
    _report_spills(kernels, own if options.fail_on_spill is None else options.fail_on_spill)
    if options.explain and options.report != "text":
        _explain(kernels, sys.stderr if options.report == "json" else sys.stdout)
    files = [kernel.files(options.output, stem, options.emit) for kernel in kernels]
    write_all({path: content for group in files for path, content in group.items()})
    if options.report is None:
        print(*(path for group in files for path in group), sep="\n")
        return 0
    main = api.SUFFIXES[max(options.emit, key=list(api.SUFFIXES).index)]
    rows = [_row(kernel, options.output / f"{stem}.{kernel.arch}.{main}") for kernel in kernels]
    if options.report == "json":
        print(json.dumps({"kernels": rows}, indent=2))
    else:
        print(_table(rows))
        _explain(kernels, sys.stdout)
    return 0


def _explain(kernels: Sequence[api.CompiledKernel], stream: TextIO) -> None:
    for kernel in kernels:
        demands = (f"every launch: {demand}" for demand in kernel.info.requires)
        print(f"{kernel.arch}:", *kernel.binary.choices, *demands, sep="\n", file=stream)


def _compiled(options: argparse.Namespace) -> list[api.CompiledKernel]:
    """The kernel for all chips."""
    from hkc import pipeline
    from hkc.frontend.parse import read
    from hkc.support.errors import Diagnostic, HkcUsageError
    from hkc.targets.chip import load

    chips = [load(name).name for name in options.arch]
    api.check_stages(options.emit)
    source = read(options.file)
    if options.file.suffix == MODULE:
        if options.set:
            raise HkcUsageError(Diagnostic("HK305", f"the constants of `{options.file}` have their values already"))
        return [api.build_module(source, chip, options.emit, options.debug) for chip in chips]
    checked = pipeline.check(source, dict(options.set), options.kernel)
    return [api.build(checked, chip, options.emit, options.debug) for chip in chips]


def _stem(file: Path) -> str:
    """`gemm` for gemm.hk, and for gemm.CHIP.tile.mlir, as it is called when it is written."""
    from hkc.targets.chip import names

    endings = [f".{suffix}" for suffix in api.SUFFIXES.values()] + [f".{chip}" for chip in names()]
    stem = file.name if file.suffix == MODULE else file.stem
    for ending in (*endings, MODULE) if file.suffix == MODULE else ():
        stem = stem.removesuffix(ending)
    return stem


def _report_spills(kernels: Sequence[api.CompiledKernel], fail: bool) -> None:
    """Say which entry points spill; where that is not wanted, raise HK518."""
    from hkc.support.errors import error

    found = [spilled for kernel in kernels for spilled in kernel.spills.values()]
    if found and fail:
        raise error("HK518", "; ".join(found), hint="smaller tiles or more waves need fewer registers")
    for line in found:
        print(f"warning: {line}", file=sys.stderr)


def _row(kernel: api.CompiledKernel, file: Path) -> dict[str, Any]:
    """The report on one chip. Numbers are those of the entry point that is tried first."""
    from dataclasses import asdict

    from hkc.backend.audit import audit

    return {
        "arch": kernel.arch,
        "file": str(file),
        "symbol": kernel.symbol,
        **asdict(kernel.resources[kernel.symbol]),
        "waves": kernel.waves,
        "args": [asdict(a) for a in kernel.arguments],
        "lds": [asdict(buffer) for buffer in kernel.lds],
        "choices": [asdict(choice) for choice in kernel.binary.choices],
        "requires": [str(demand) for demand in kernel.info.requires],
        "audit": {symbol: asdict(found) for symbol, found in audit(kernel.hsaco).items()},
    }


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """The report as text; of the arguments only their bytes."""
    shown = [[str(row[key]) for key in REPORT[:-1]] + [f"{_bytes(row)} B"] for row in rows]
    columns = [max(map(len, column)) for column in zip(REPORT, *shown, strict=True)]
    lines = ("  ".join(cell.ljust(n) for cell, n in zip(row, columns, strict=True)) for row in (REPORT, *shown))
    return "\n".join(line.rstrip() for line in lines)


def _bytes(row: dict[str, Any]) -> int:
    return max((a["offset"] + a["bytes"] for a in row["args"]), default=0)
