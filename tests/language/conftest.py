"""Makes `interpret` importable from the tests of this folder, and runs them: interpreted, and in the long tier as
machine code of every chip, too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from interpret import MACHINE

from hkc.targets.chip import names


@pytest.fixture(autouse=True, params=["reference", *(pytest.param(n, marks=pytest.mark.long) for n in names())])
def machine(request: pytest.FixtureRequest) -> Iterator[str]:
    """What runs the kernels of a test."""
    MACHINE[0] = request.param
    yield request.param
    MACHINE[0] = "reference"
