"""Makes `contract`, which the tests of dialects share, and `program` importable here and in the worker."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "dialects")]
