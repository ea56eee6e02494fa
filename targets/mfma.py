"""Matrix instructions as records: shape, types, cost, and which lane and register holds which element."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hkc.layout import DistributedLayout
from hkc.support.errors import error

WAVE = 64
BITS = {
    "f64": 64, "f32": 32, "xf32": 32, "i32": 32, "f16": 16, "bf16": 16, "i16": 16, "i64": 64, "i8": 8,
    "f8e4m3fn": 8, "f8e5m2": 8, "f8e4m3fnuz": 8, "f8e5m2fnuz": 8, "f6e2m3": 6, "f6e3m2": 6, "f4e2m1": 4,
}  # fmt: skip
"""Bits of one element as it lies in registers."""

CLOCKS_PER_PASS = 4
CHUNK = 16
"""A lane that holds more than 16 elements of 8 bits holds them in chunks of 16 along k; sparse forms: chunks of b of 16
bytes, whatever the element."""


@dataclass(frozen=True)
class Mfma:
    """One matrix instruction form: acc (m x n) += a (m x k) times b (k x n), for each of `blocks` independent blocks.

    mnemonic   as LLVM's disassembler prints it
    rocdl      name of the MLIR op; `a_type`, `b_type`, `acc_type` are its operand types, elements of `carrier`
    *_vgprs    32-bit registers per lane
    passes     of 4 clocks each
    overlap    clocks in which vector ALU work hides
    latency    clocks to the result (0: unknown)
    result     lane rule of acc: "rows_of_4" (four consecutive rows per lane) or "f64" (one)
    sparse     a holds 2 of every 4 elements along k; `a_index` counts the stored ones
    scaled     takes a scale per 32 elements along k
    a_format, b_format   operand format keywords of the op and `a_code`, `b_code` in the encoding (f8f6f4 forms only)

    Raises HK421 where the numbers contradict one another.
    """

    mnemonic: str
    rocdl: str
    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    acc: str
    carrier: str
    a_vgprs: int
    b_vgprs: int
    acc_vgprs: int
    passes: int
    overlap: int
    latency: int
    result: str = "rows_of_4"
    sparse: bool = False
    scaled: bool = False
    a_format: str = ""
    b_format: str = ""
    a_code: int = 0
    b_code: int = 0

    def __post_init__(self) -> None:
        a_elements = self.m * self.k * self.blocks // (2 if self.sparse else 1)
        self._check_count("a", a_elements, self.a, self.a_vgprs)
        self._check_count("b", self.k * self.n * self.blocks, self.b, self.b_vgprs)
        self._check_count("acc", self.m * self.n * self.blocks, self.acc, self.acc_vgprs)
        shape = f"{self.m}x{self.n}x{self.k}"
        if f"_{shape}_" not in self.mnemonic or not self.rocdl.startswith("rocdl.") or f".{shape}" not in self.rocdl:
            raise error("HK421", f"{self.mnemonic} ({self.rocdl}) is not named after its shape {shape}")
        if self.result not in ("rows_of_4", "f64"):
            raise error("HK421", f"{self.mnemonic} has the unknown result rule `{self.result}`")
        if not 0 <= self.overlap < self.cycles:
            raise error("HK421", f"{self.mnemonic} can't hide {self.overlap} clocks in {self.cycles}")
        if self.has_layouts:
            (
                self.a_layout(),
                self.b_layout(),
                self.acc_layout(),
            )  # a wrong table fails here

    def _check_count(self, operand: str, elements: int, dtype: str, vgprs: int) -> None:
        if dtype not in BITS or elements * BITS[dtype] != vgprs * 32 * WAVE:
            raise error(
                "HK421", f"{self.mnemonic}: {elements} elements of {dtype} in `{operand}` don't fill {vgprs} registers"
            )

    # -- cost

    @property
    def cycles(self) -> int:
        """Clocks for which the instruction occupies the matrix unit of its SIMD."""
        return self.passes * CLOCKS_PER_PASS

    @property
    def flops(self) -> int:
        """Multiplications and additions of one instruction (sparse: those of the dense product that it stands for)."""
        return 2 * self.m * self.n * self.k * self.blocks

    @property
    def rate(self) -> float:
        """`flops` per clock of one SIMD."""
        return self.flops / self.cycles

    # -- operand types of the MLIR op

    @property
    def a_type(self) -> str:
        """MLIR type of operand a: `vector<4xi16>`, or a scalar where one element of the carrier holds it."""
        return _type(self.carrier, self.a_vgprs)

    @property
    def b_type(self) -> str:
        """MLIR type of operand b."""
        return _type(self.carrier, self.b_vgprs)

    @property
    def acc_type(self) -> str:
        """MLIR type of the accumulator."""
        return _type(self.acc, self.acc_vgprs)

    # -- who holds what

    @property
    def has_layouts(self) -> bool:
        """Can the operands be described as register tiles (one block, dense)?"""
        return self.blocks == 1 and not self.sparse

    def a_layout(self) -> DistributedLayout:
        """Layout of a, (m, k), in one wave. Raises HK423 for multi-block and sparse forms."""
        return self._checked(_operand_layout(self.m, self.k, self._chunk(self.a)))

    def b_layout(self) -> DistributedLayout:
        """Layout of b, (k, n), in one wave. Raises HK423 for multi-block and sparse forms."""
        return self._checked(_operand_layout(self.n, self.k, self._chunk(self.b)).transpose((1, 0)))

    def acc_layout(self) -> DistributedLayout:
        """Layout of acc, (m, n), in one wave. Raises HK423 for multi-block and sparse forms."""
        return self._checked(_result_layout(self.m, self.n, 1 if self.result == "f64" else 4))

    def _checked(self, layout: DistributedLayout) -> DistributedLayout:
        if not self.has_layouts:
            raise error("HK423", f"{self.mnemonic} has several blocks or sparse operands: not a register tile")
        return layout

    def a_index(self, i: Any, k: Any, block: Any = 0) -> tuple[Any, Any]:
        """(lane, element within the lane) of a[block][i, k]; ints or integer arrays. Element e lies at bit e * bits."""
        return _operand_index(i, k, block, self.m, self._stored_k, self.blocks, self._chunk(self.a))

    def b_index(self, k: Any, j: Any, block: Any = 0) -> tuple[Any, Any]:
        """(lane, element within the lane) of b[block][k, j]."""
        chunk = CHUNK * 8 // BITS[self.b] if self.sparse else self._chunk(self.b)
        return _operand_index(j, k, block, self.n, self.k, self.blocks, chunk)

    def acc_index(self, i: Any, j: Any, block: Any = 0) -> tuple[Any, Any]:
        """(lane, element within the lane) of acc[block][i, j]; an f64 element takes two registers."""
        run = 1 if self.result == "f64" else 4
        groups = WAVE // self.n  # lanes that share a column, over all blocks
        side_by_side = -(-WAVE * run // (self.m * self.n))  # blocks that share a register
        register = block * (self.m * self.n // WAVE) + i // (run * groups) * run + i % run
        lane = block % side_by_side * self.n + i // run % groups * side_by_side * self.n + j
        return lane, register

    @property
    def _stored_k(self) -> int:
        return self.k // 2 if self.sparse else self.k

    def _chunk(self, dtype: str) -> int:
        """Consecutive k in a lane: all that it holds, or chunks of 16 (f8f6f4 forms with 8-bit elements)."""
        return CHUNK if self.a_format and BITS[dtype] == 8 else self.k


def _type(carrier: str, vgprs: int) -> str:
    count = vgprs * 32 // BITS[carrier]
    return carrier if count == 1 else f"vector<{count}x{carrier}>"


def _operand_index(i: Any, k: Any, block: Any, dim: int, depth: int, blocks: int, chunk: int) -> tuple[Any, Any]:
    groups = WAVE // (dim * blocks)
    run = min(chunk, depth // groups)
    lane = block * dim + k // run % groups * dim * blocks + i
    return lane, k // (run * groups) * run + k % run


@functools.cache
def _operand_layout(dim: int, depth: int, chunk: int) -> DistributedLayout:
    """Layout over (dim, k): lanes walk dim, then groups of k; a lane holds runs of at most `chunk` consecutive k."""
    groups = WAVE // dim
    run = min(chunk, depth // groups)
    k = [(0, 1 << i) for i in range(depth.bit_length() - 1)]
    low, high = run.bit_length() - 1, (run * groups).bit_length() - 1
    lanes = [(1 << i, 0) for i in range(dim.bit_length() - 1)] + k[low:high]
    return DistributedLayout((dim, depth), tuple(k[:low] + k[high:]), tuple(lanes), ())


@functools.cache
def _result_layout(m: int, n: int, run: int) -> DistributedLayout:
    """Layout over (m, n): lanes walk the columns, then groups of `run` rows; a lane holds `run` rows of each group."""
    rows = [(1 << i, 0) for i in range(m.bit_length() - 1)]
    low, high = run.bit_length() - 1, (run * WAVE // n).bit_length() - 1
    lanes = [(0, 1 << i) for i in range(n.bit_length() - 1)] + rows[low:high]
    return DistributedLayout((m, n), tuple(rows[:low] + rows[high:]), tuple(lanes), ())


def records(table: Mapping[str, Any]) -> Iterator[Mfma]:
    """The records of an `mfma.toml`: its rows, and every pair of formats of its mixed forms."""
    for part in table["table"]:
        for row in part["rows"]:
            fields = dict(zip(table["columns"], row, strict=True))
            fields["rocdl"] = f"rocdl.{fields['rocdl']}"
            yield Mfma(**fields, result=part["result"], sparse=part["sparse"])
    mixed = table.get("mixed", {"forms": (), "formats": {}})
    for form in mixed["forms"]:
        for a_code, a in enumerate(mixed["formats"]):
            for b_code, b in enumerate(mixed["formats"]):
                yield _mixed(form, mixed["formats"], (a, a_code), (b, b_code))


def _mixed(form: Mapping[str, Any], formats: Mapping[str, str], a: tuple[str, int], b: tuple[str, int]) -> Mfma:
    wide = 0 if 8 in (BITS[a[0]], BITS[b[0]]) else 1
    return Mfma(
        form["mnemonic"], f"rocdl.{form['rocdl']}", form["m"], form["n"], form["k"], 1, a[0], b[0], "f32", "i32",
        BITS[a[0]], BITS[b[0]], form["m"] * form["n"] // WAVE,
        form["passes"][wide], form["overlap"][wide], form["latency"][wide], scaled=form["scaled"],
        a_format=formats[a[0]], b_format=formats[b[0]], a_code=a[1], b_code=b[1],
    )  # fmt: skip
