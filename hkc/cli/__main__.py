"""`python -m hkc.cli` is `hkc`."""

import sys

from hkc.cli import main

sys.exit(main())
