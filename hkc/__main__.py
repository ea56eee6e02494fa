"""`python -m hkc` is `hkc`."""

import sys

from hkc.cli import main

sys.exit(main())
