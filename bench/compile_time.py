"""How long kernels take to compile: processor seconds of one configuration, of a doubled tile, and of a doubled depth.

    python bench/compile_time.py [--json] [--arch CHIP]

Everything from text to code object, in this process, after a first kernel has loaded MLIR and LLVM. Doubling a tile or
the depth should at most triple the time; none should take more than 3 seconds on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import time

from hkc import pipeline
from hkc.support.errors import Source
from hkc.targets.chip import names

KERNEL = """
tune BM = 128, BN = 128, BK = 64

kernel gemm(A: global[bf16, A_DIMS], B: global[bf16, B_DIMS], C: global[f32, M, N]) with HINTS:
    m, n = tile_ids(cdiv(M, BM), cdiv(N, BN))
    acc = zeros[f32, BM, BN]
    for k in range(0, K, BK):
        acc += dot(A_TILE, B_TILE)
    store(C, [m*BM, n*BN], acc)
"""
A = {"N": ("M, K", "load(A, [m*BM, k], [BM, BK])"), "T": ("K, M", "load(A, [k, m*BM], [BK, BM]).T")}
B = {"N": ("K, N", "load(B, [k, n*BN], [BK, BN])"), "T": ("N, K", "load(B, [n*BN, k], [BN, BK]).T")}
"""Extents and tile of an operand that is stored as it is, and of one that is stored transposed."""

BASE = {"BM": "128", "BN": "128", "BK": "32"}
LARGE = {"BM": "256", "BN": "256", "BK": "64"}
VARIANTS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("128x128x32", "NT", "waves=4, stages=2", {}),
    ("256x128x32", "NT", "waves=4, stages=2", {"BM": "256"}),
    ("128x128x64", "NT", "waves=4, stages=2", {"BK": "64"}),
    ("128x128x32, 4 stages", "NT", "waves=4, stages=4", {}),
    *((f"256x256x64, {w} waves", form, f"waves={w}", LARGE) for w in (8, 4) for form in ("NT", "NN", "TN", "TT")),
)
"""Name, transposes, hints and changed constants: the first is the one to compare with."""


def seconds(arch: str, form: str, hints: str, constants: dict[str, str]) -> float:
    """Processor seconds of one compilation."""
    (a_dims, a_tile), (b_dims, b_tile) = A[form[0]], B[form[1]]
    text = KERNEL.replace("A_DIMS", a_dims).replace("B_DIMS", b_dims).replace("HINTS", hints)
    text = text.replace("A_TILE", a_tile).replace("B_TILE", b_tile)
    checked = pipeline.check(Source("gemm.hk", text), {**BASE, **constants})
    began = time.process_time()
    pipeline.compile_kernel(checked, arch)
    return time.process_time() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--arch", help="one chip (default: all)")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for arch in [options.arch] if options.arch else names():
        seconds(arch, "NT", "waves=1", {"BM": "16", "BN": "16"})
        taken = [seconds(arch, *how) for _, *how in VARIANTS]
        for (name, form, *_), one in zip(VARIANTS, taken, strict=True):
            found = {"seconds": round(one, 2), "ratio": round(one / taken[0], 2)}
            rows.append({"arch": arch, "kernel": name, "form": form, **found})
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(f"{row['arch']}  {row['kernel']:22}  {row['form']}  {row['seconds']:6} s  {row['ratio']:5} x")


if __name__ == "__main__":
    main()
