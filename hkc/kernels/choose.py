"""Which tiles a product is computed in: a rule over the chip's numbers, and the table of tiles that spill nothing.

The table, `tiles.csv`, holds for each kernel, chip and width of elements the tiles that the kernel was compiled with,
and the registers that these took. `python -m hkc.kernels.regenerate` compiles them all again and writes it anew.
"""

from __future__ import annotations

import csv
import functools
import itertools
from dataclasses import dataclass, replace
from pathlib import Path

from hkc.support.dtypes import dtype
from hkc.targets.chip import Chip, load

TABLE = Path(__file__).with_name("tiles.csv")
FORMS = {"NN": "gemm_nn", "NT": "gemm", "TN": "gemm_tn", "TT": "gemm_tt"}
"""The kernel for each way in which A and B are stored: `T` of A is K x M, `T` of B is N x K."""
BATCHED = {form: f"batched_{form.lower()}" for form in FORMS}
"""The same for batches."""
PERSISTENT = {form: f"persistent_{form.lower()}" for form in FORMS}
"""The same where few workgroups take all tiles."""

START = 2000
"""Clocks that a workgroup is reckoned to take before its first product and after its last."""
SPLITS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Tiles:
    """Extents of a tile of C and of a step along K, waves per workgroup, and in how many shares K is split. Tiles that
    are `aligned` leave no registers for unaligned operands."""

    rows: int
    columns: int
    depth: int
    waves: int = 4
    aligned: bool = False
    splits: int = 1


def extents(tiles: Tiles) -> dict[str, str | int | bool]:
    """As constants of the kernels."""
    return {"BM": tiles.rows, "BN": tiles.columns, "BK": tiles.depth}


def ranked(
    arch: str,
    form: str,
    size: tuple[int, int, int],
    kinds: tuple[str, str, str],
    aligned: bool,
    split: int = 0,
    batch: int = 1,
) -> list[Tiles]:
    """All tiles for `batch` products of M, N, K, the least modelled clocks first; `kinds` are the dtypes of A, B and
    sums.

    A step along K takes a tile as long as its matrix instructions and as the L2 needs to deliver its rows and columns,
    one after the other (what overlaps does so for all tiles). Tiles come in rounds of one per compute unit. Shares of K
    (`split` of them, or as many as pay) are written and read once more, at the speed of memory.
    """
    chip = load(arch)
    bytes_ = max(dtype(kind).bytes for kind in kinds[:2])
    splits = (split,) if split else SPLITS
    known = [t for t in _known(arch, FORMS[form], bytes_) if aligned or not t.aligned]
    candidates = [replace(t, splits=s) for t, s in itertools.product(known, splits) if s == 1 or not t.aligned]
    fitting = [t for t in candidates if split or t.splits == 1 or size[2] >= 4 * t.depth * t.splits]
    return sorted(fitting, key=lambda t: (_clocks(chip, t, size, kinds, bytes_, batch), t.splits, -t.rows * t.columns))


def _clocks(
    chip: Chip, t: Tiles, size: tuple[int, int, int], kinds: tuple[str, str, str], bytes_: int, batch: int
) -> float:
    m, n, k = size
    units = chip.compute.units
    rate = max((f.rate for f in chip.mfma_for(*kinds)), default=1) * chip.compute.simds
    delivered = chip.memory.l2_bytes_per_clock * chip.memory.l2_channels * chip.compute.chiplets / units
    step = 2 * t.rows * t.columns / rate + (t.rows + t.columns) * bytes_ / delivered
    rounds = -(-(-(-m // t.rows) * -(-n // t.columns) * t.splits * batch) // units)
    memory = chip.memory.hbm_tbps * 1e3 / chip.compute.clock_ghz
    shares = 0.0 if t.splits == 1 else 2 * START + 8 * m * n * t.splits / memory
    return rounds * (step * k / t.splits + START) + shares


@functools.cache
def _known(arch: str, kernel: str, bytes_: int) -> tuple[Tiles, ...]:
    with TABLE.open(encoding="utf-8", newline="") as lines:
        rows = [r for r in csv.DictReader(lines) if (r["chip"], r["kernel"], r["bytes"]) == (arch, kernel, str(bytes_))]
    return tuple(
        Tiles(int(r["rows"]), int(r["columns"]), int(r["depth"]), int(r["waves"]), r["entries"] == "aligned")
        for r in rows
    )
