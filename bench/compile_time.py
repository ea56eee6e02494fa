"""How long kernels take to compile: processor seconds of one configuration, of a doubled tile, and of a doubled depth.

    python bench/compile_time.py [--json] [--arch CHIP]

Everything from text to code object, in this process, after a first kernel has loaded MLIR and LLVM. Doubling a tile or
the depth should at most triple the time.
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

kernel gemm(A: global[bf16, M, K], B: global[bf16, N, K], C: global[f32, M, N]) with HINTS:
    m, n = tile_ids(cdiv(M, BM), cdiv(N, BN))
    acc = zeros[f32, BM, BN]
    for k in range(0, K, BK):
        acc += dot(load(A, [m*BM, k], [BM, BK]), load(B, [n*BN, k], [BN, BK]).T)
    store(C, [m*BM, n*BN], acc)
"""
BASE = {"BM": "128", "BN": "128", "BK": "32"}
VARIANTS = (
    ("128x128x32", "waves=4, stages=2", {}),
    ("256x128x32", "waves=4, stages=2", {"BM": "256"}),
    ("128x128x64", "waves=4, stages=2", {"BK": "64"}),
    ("128x128x32, 4 stages", "waves=4, stages=4", {}),
    ("256x256x64", "waves=8", {"BM": "256", "BN": "256", "BK": "64"}),
)
"""Name, hints and changed constants: the first is the one to compare with."""


def seconds(arch: str, hints: str, constants: dict[str, str]) -> float:
    """Processor seconds of one compilation."""
    checked = pipeline.check(Source("gemm.hk", KERNEL.replace("HINTS", hints)), {**BASE, **constants})
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
        seconds(arch, "waves=1", {"BM": "16", "BN": "16"})
        taken = [seconds(arch, hints, constants) for _, hints, constants in VARIANTS]
        for (name, _, _), one in zip(VARIANTS, taken, strict=True):
            rows.append({"arch": arch, "kernel": name, "seconds": round(one, 2), "ratio": round(one / taken[0], 2)})
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(f"{row['arch']}  {row['kernel']:22}  {row['seconds']:6} s  {row['ratio']:5} x")


if __name__ == "__main__":
    main()
