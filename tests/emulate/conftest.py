"""Makes `emulated` importable from the tests of this folder, and writes down what they executed if somebody asks."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

RECORD = "HKC_RECORD_INSTRUCTIONS"
"""Environment variable: a file for the list of instructions that tests ran, `bench/isa_coverage.py` sets it."""


def pytest_sessionfinish(session: pytest.Session) -> None:
    if path := os.environ.get(RECORD):
        from emulated import EXECUTED

        Path(path).write_text("".join(f"{chip} {name}\n" for chip, name in sorted(EXECUTED)), encoding="utf-8")
