"""Choosing layouts and LDS swizzles takes no longer than it may, in seconds of the processor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import layouts


@pytest.mark.parametrize("name", layouts.BUDGET)
def test_within_the_budget(name: str) -> None:
    """On the chip with more ways into LDS, in a process of its own, which remembers nothing."""
    words = [sys.executable, str(BENCH / "layouts.py"), name, "gfx950"]
    spent, _ = map(float, subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())
    assert 0 < spent <= layouts.BUDGET[name]
