"""The hot loops of matrix products in hkc's machine code, beside those of other compilers.

    python bench/hot_loops.py [--json] [--whole] [--live [--env DIR]]

hkc's rows are counted in code that is compiled now; the others' are figures on record (`bench/peers/hot_loops.csv`,
with their source), and with `--live` also those of Triton's and IREE's products, compiled now in an environment of
theirs (`build/peers` where no DIR is named; made by the first run, 1.5 GB). The hot loop is the innermost one with most
MFMAs; rows that end in `__general` show it in the entry for any alignment. Nothing is measured here: `pct_peak` is the
coarse model of `bench/loop_model.py`, once more with LDS reads at 128 bytes per clock, and a floor rather than a goal.

`--whole` emulates two workgroups of products with M, N and K of 4096 (minutes) and prints the executed instructions per
MFMA, `whole`, as a multiple of those of the loop alone.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import hkc
from hkc.api import CompiledKernel
from hkc.emulate import Memory, Program, launch
from hkc.machine import control
from hkc.machine.abi import GlobalParam, View, pack
from hkc.machine.codeobject import CodeObject, Kernel
from hkc.machine.control import Loop
from hkc.machine.disassemble import Instruction, listing
from hkc.support.dtypes import dtype
from hkc.targets.chip import load

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from loop_model import share_of_peak  # noqa: E402
from peers.environment import compile_all  # noqa: E402

COLUMNS = (
    "peer", "kernel", "arch", "vgpr", "spills", "lds", "instructions", "mfma", "lds_reads", "lds_writes", "direct",
    "loads", "waits", "vmcnt0", "barriers", "valu", "pct_peak", "pct_peak_128", "whole",
)  # fmt: skip
KERNEL = """
const T = bf16
tune BM = 256, BN = 256, BK = 64

kernel gemm(A: global[T, M, K], B: global[T, N, K], C: global[f32, M, N]) with waves=8:
    m, n = tile_ids(cdiv(M, BM), cdiv(N, BN))
    acc = zeros[f32, BM, BN]
    for k in range(0, K, BK):
        acc += dot(load(A, [m*BM, k], [BM, BK]), load(B, [n*BN, k], [BN, BK]).T)
    store(C, [m*BM, n*BN], acc)
"""
PRODUCTS = (("bf16", 256, 256, 64), ("fp8", 256, 256, 128), ("bf16", 256, 128, 64))
"""Element types and tiles: M, N, K."""

FP8 = {"ocp": "f8e4m3fn", "fnuz": "f8e4m3fnuz"}
SIZE = 4096
CHIPS, LIVE = ("gfx942", "gfx950"), ("triton", "iree")


def hot_loop(code: CodeObject, kernel: Kernel) -> tuple[Loop, bool]:
    """The hot loop of a kernel, and whether a barrier that only some waves pass stands before it."""
    instructions = listing(code, kernel)
    loop = control.hot_loop(instructions)
    assert loop is not None, f"{kernel.name} has no loop"
    return loop, _conditional_barrier(instructions[: loop.start])


def _conditional_barrier(before: Sequence[Instruction]) -> bool:
    """A branch over a barrier and nothing else."""
    return any(
        barrier.mnemonic == "s_barrier" and control.target(branch) == after.address
        for branch, barrier, after in zip(before, before[1:], before[2:], strict=False)
    )


def row(peer: str, name: str, hsaco: bytes, symbol: str | None = None, dynamic_lds: int = 0) -> dict[str, object]:
    """The counts of the loop of a compiled kernel, the only one in its code object if `symbol` is None."""
    code = CodeObject.parse(hsaco)
    kernel, chip = code.kernel(symbol), load(code.arch)
    (loop, shifted), taken = hot_loop(code, kernel), kernel.metadata
    loads, direct = loop.count(r"(buffer|global)_load"), loop.count(r"(buffer|global)_load", " lds")
    waves = max(1, taken.max_threads // (chip.compute.wave * chip.compute.simds))
    rated = [share_of_peak(loop.body, chip, waves, shifted, rate) for rate in (None, 128)]
    return {
        "peer": peer, "kernel": name, "arch": code.arch, "vgpr": taken.vgprs, "spills": taken.vgpr_spills,
        "lds": taken.lds + dynamic_lds, "instructions": len(loop.body),
        "mfma": loop.count(r"v_mfma"), "lds_reads": loop.count(r"ds_read"), "lds_writes": loop.count(r"ds_write"),
        "direct": direct, "loads": loads - direct, "waits": loop.count(r"s_waitcnt"),
        "vmcnt0": loop.count(r"s_waitcnt", "vmcnt(0)"), "barriers": loop.count(r"s_barrier"),
        "valu": loop.count(r"v_(?!mfma)"), "pct_peak": round(rated[0], 1), "pct_peak_128": round(rated[1], 1),
    }  # fmt: skip


def executed(kernel: CompiledKernel) -> float:
    """Executed instructions per MFMA of two workgroups of a product of `SIZE`, relative to those of the loop alone."""
    info, memory, views = kernel.info, Memory(), dict[str, View]()
    for p in info.params:
        assert isinstance(p, GlobalParam)
        kind = dtype(p.dtype).numpy
        array = np.zeros((SIZE, SIZE), kind)
        at = memory.allocate(array.nbytes, p.name)
        memory.write(at, array)
        views[p.name] = View(at, array.shape, (SIZE, 1), array.itemsize)
    symbol = info.entry(views).symbol
    program, threads = Program.load(kernel.hsaco), info.waves * load(kernel.arch).compute.wave
    arguments = pack(info.params, views, {})
    result = launch(program, symbol, workgroups=(2, 1, 1), threads=(threads, 1, 1), kernarg=arguments, memory=memory)
    mfmas = sum(n for name, n in result.counts.items() if name.startswith("v_mfma"))
    loop, _ = hot_loop(program.code, program.kernel(symbol))
    return result.instructions / mfmas / (len(loop.body) / loop.count(r"v_mfma"))


def own(arch: str, whole: bool) -> Iterator[dict[str, object]]:
    """hkc's rows for one chip."""
    for kind, bm, bn, bk in PRODUCTS:
        element = FP8[load(arch).fp8] if kind == "fp8" else kind
        kernel = hkc.compile(KERNEL, arch=arch, T=element, BM=bm, BN=bn, BK=bk)
        for symbol in kernel.resources:
            name = f"gemm_{kind}_{bm}x{bn}x{bk}_w8{symbol.removeprefix('gemm')}"
            made = row(f"hkc {hkc.__version__}", name, kernel.hsaco, symbol)
            if whole and symbol == "gemm":
                made["whole"] = round(executed(kernel), 3)
            yield made


def recorded() -> list[dict[str, Any]]:
    """The rows of other compilers."""
    lines = (HERE / "peers/hot_loops.csv").read_text().splitlines()
    return [dict(r) for r in csv.DictReader(x for x in lines if not x.startswith("#"))]


def live(environment: Path | None) -> Iterator[dict[str, object]]:
    """The rows of compilers that can be installed, from what they compile now. Exits if one of them can't."""
    with tempfile.TemporaryDirectory() as folder:
        if missing := compile_all(environment, Path(folder), "products", LIVE, CHIPS):
            raise SystemExit("; ".join(missing))
        for path in sorted(Path(folder).glob("*.json")):
            facts = json.loads(path.read_text())
            peer, hsaco = f"{facts['peer']} {facts['version']}", path.with_suffix(".hsaco").read_bytes()
            yield row(peer, facts["name"], hsaco, facts["symbol"], facts["lds"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--whole", action="store_true", help="emulate parts of whole products")
    parser.add_argument("--live", action="store_true", help="compile the products of Triton and IREE, too")
    parser.add_argument("--env", type=Path, metavar="DIR", help="the environment that holds them")
    options = parser.parse_args()
    rows = recorded() + [made for arch in CHIPS for made in own(arch, options.whole)]
    rows += live(options.env) if options.live else []
    rows.sort(
        key=lambda r: (
            re.search(r"(bf16|fp8|bf8)_.*", str(r["kernel"]))[0][:3] + re.findall(r"\d+x\d+x\d+|$", str(r["kernel"]))[0]
        )
    )
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for arch in CHIPS:
        shown = [COLUMNS, *([str(r.get(c, "")) for c in COLUMNS] for r in rows if r["arch"] == arch)]
        widths = [max(len(r[i]) for r in shown) for i in range(len(COLUMNS))]
        for r in shown:
            print("  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)).rstrip())
        print()


if __name__ == "__main__":
    main()
