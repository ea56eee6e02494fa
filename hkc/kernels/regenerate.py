"""Makes the table of tiles anew: `python -m hkc.kernels.regenerate` compiles every kernel with all that are tried."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from hkc.kernels.choose import FORMS, TABLE
from hkc.kernels.files import built
from hkc.support.errors import HkcError
from hkc.targets.chip import names

TRIED = (
    (32, 32, 64, 4), (64, 64, 64, 4), (32, 32, 128, 4), (32, 64, 128, 4), (64, 64, 128, 4), (64, 128, 128, 4),
    (128, 64, 128, 4), (128, 128, 128, 4), (128, 256, 128, 8), (256, 128, 128, 8), (256, 256, 128, 8),
    (256, 256, 128, 4),
)  # fmt: skip
"""Rows and columns of the tiles of C that the table is made of, bytes of a row of A in one step along K, and waves."""

WIDTHS = {4: "f32", 2: "bf16", 1: "i8"}
"""A dtype of each width of elements, in bytes; others of that width take the same registers."""


def lines() -> Iterator[str]:
    """The table: a line for all tiles with which no entry of a kernel spills, or at least not the aligned one."""
    yield "chip,kernel,bytes,rows,columns,depth,waves,entries,vgpr,lds"
    for arch, kernel, width, (rows, columns, deep, waves) in itertools.product(names(), FORMS.values(), WIDTHS, TRIED):
        kind, depth = WIDTHS[width], deep // width
        total = "i32" if kind == "i8" else "f32"
        values: dict[str, Any] = {"TA": kind, "TB": kind, "SUM": total, "OUT": total, "WAVES": waves}
        try:
            found = built(kernel, arch, BM=rows, BN=columns, BK=depth, **values)
        except HkcError:
            continue  # more than the chip has
        if found.symbol not in found.spills:
            entries = "aligned" if found.spills else "all"
            yield f"{arch},{kernel},{width},{rows},{columns},{depth},{waves},{entries},{found.vgpr},{found.lds_bytes}"


if __name__ == "__main__":
    TABLE.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
