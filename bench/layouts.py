"""What choosing layouts and LDS swizzles takes: seconds of the passes that do it, for each example with a budget.

    python bench/layouts.py

Every line is a new process, so nothing is remembered from another kernel. `seconds` are of the processor, which other
programs don't lengthen; `elapsed` is what a clock shows.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUDGET = {"gemm": 0.5, "attention": 1.5}
"""Seconds that each example may take."""

CHIPS = ("gfx942", "gfx950")


def measure(name: str, arch: str) -> tuple[float, float]:
    """Seconds of the processor and on the clock that the passes from tile IR to layouts take in this process."""
    from hkc import pipeline
    from hkc.frontend.parse import read
    from hkc.support.mlir import context, ir
    from hkc.targets.chip import load

    checked = pipeline.check(read(ROOT / f"examples/{name}.hk"))
    with context(), ir.Location.unknown():
        module = pipeline.emit(checked, load(arch))
        stages = pipeline.stages()
        module = pipeline.run(module, stages["tile"])
        spent, elapsed = time.process_time(), time.perf_counter()
        pipeline.run(module, stages["layouts"])
        return time.process_time() - spent, time.perf_counter() - elapsed


def main() -> int:
    """Print the table; 1 where a budget is exceeded."""
    print(f"{'kernel':10} {'chip':7} {'seconds':>8} {'elapsed':>8} {'budget':>7}")
    late = False
    for name, budget in BUDGET.items():
        for arch in CHIPS:
            words = [sys.executable, __file__, name, arch]
            said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
            spent, elapsed = map(float, said)
            late |= spent > budget
            print(
                f"{name:10} {arch:7} {spent:8.3f} {elapsed:8.3f} {budget:7.1f}{'  too long' if spent > budget else ''}"
            )
    return int(late)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*measure(*sys.argv[1:3]))
    else:
        sys.exit(main())
