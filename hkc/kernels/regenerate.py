"""Makes the table of tiles anew: `python -m hkc.kernels.regenerate` compiles every kernel with all that are tried."""

from __future__ import annotations

import itertools
from typing import Any

from hkc import api
from hkc.kernels.choose import FORMS, TABLE
from hkc.kernels.files import path
from hkc.support.errors import HkcError
from hkc.targets.chip import names

TRIED = ((32, 32), (32, 64), (64, 64), (64, 128), (128, 64), (128, 128))
"""Rows and columns of the tiles of C that the table is made of."""
WIDTHS = {4: "f32", 2: "bf16", 1: "i8"}
"""A dtype of each width of elements, in bytes; others of that width take the same registers."""
DEPTH = 128
"""Bytes of a row of A in one step along K."""


def lines() -> list[str]:
    """The table: a line for all tiles with which no entry of a kernel spills."""
    made = ["chip,kernel,bytes,rows,columns,depth,vgpr,lds"]
    for arch, kernel, width, tile in itertools.product(names(), FORMS.values(), WIDTHS, TRIED):
        kind, depth = WIDTHS[width], DEPTH // width
        total = "i32" if kind == "i8" else "f32"
        values: dict[str, Any] = {
            "TA": kind,
            "TB": kind,
            "SUM": total,
            "OUT": total,
            "BM": tile[0],
            "BN": tile[1],
            "BK": depth,
        }
        try:
            found = api.compile(path(kernel), arch, **values)
        except HkcError:
            continue  # more than the chip has
        if not any(r.vgpr_spills or r.scratch for r in found.resources.values()):
            made.append(f"{arch},{kernel},{width},{tile[0]},{tile[1]},{depth},{found.vgpr},{found.lds_bytes}")
    return made


if __name__ == "__main__":
    TABLE.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
