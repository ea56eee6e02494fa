"""Makes `pass_examples` importable from the tests of this folder, and from the worker."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
