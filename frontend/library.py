"""All functions of the language, by name: importing this module defines them."""

from __future__ import annotations

import builtins

from hkc.frontend import accesses, casts, elementwise, folds, matrix, shapes, telling
from hkc.frontend.functions import FUNCTIONS
from hkc.frontend.making import SHAPED
from hkc.support.dtypes import DTYPES

MODULES = (accesses, casts, elementwise, folds, matrix, shapes, telling)
"""The modules that define functions, besides `making`."""

SPECIAL = {
    "tile_ids": "tile_ids(extent, …, order=rows|chiplet, chunk=32, window=8)",
    "tiles": "for m, n in tiles(extent, extent, workgroups=304, order=rows|chiplet):",
    "range": "for k in range(start, stop, step):",
}
"""Functions of their own kind, and how they are written."""

WORDS = frozenset({*FUNCTIONS, *SHAPED, *SPECIAL, "global"})
"""Names that the language keeps for itself."""

OPTIONS = ("nearest_even", "toward_zero", "rows", "chiplet")
"""Words that some arguments choose from; they can be names as well."""

STAR = frozenset(
    name
    for name in {*(WORDS - {"global"}), *DTYPES, *OPTIONS, "global_", "bool_", "tune", "declare", "Dim", "inf", "nan"}
    if not hasattr(builtins, name)
)
"""What `from hkc.language import *` gives a Python file. Words that Python has, too (`max`, `range`), it need not
import for its kernels, and elsewhere in the file they shall stay Python's."""
