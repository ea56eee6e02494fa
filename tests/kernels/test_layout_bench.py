"""bench/layouts times the passes. Whether they are fast enough is for the bench to say, not for a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench" / "layouts.py"


def test_it_prints_seconds_of_the_processor_and_on_the_clock() -> None:
    said = subprocess.run([sys.executable, str(BENCH), "gemm", "gfx950"], capture_output=True, text=True, check=True)
    spent, elapsed = map(float, said.stdout.split())
    assert spent > 0 and elapsed > 0
