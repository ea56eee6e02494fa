"""What one stage hands to the next: Source -> File (syntax) -> Checked -> Module -> Assembly -> Binary.

`Source`, `File` and `Checked` are the front end's; the rest is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hkc.machine.abi import KernelInfo
from hkc.machine.lines import Line
from hkc.targets.chip import Chip

STAGES = ("tile", "wave", "rocdl", "llvm", "asm", "hsaco")
"""The stages whose text (or bytes) can be kept, in order."""


@dataclass(frozen=True)
class Module:
    """An MLIR module on its way down: the live module (worker process only), the chip, and the forms that hold."""

    ir: Any
    chip: Chip
    forms: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Assembly:
    """LLVM IR of one chip, ready for the code generator."""

    llvm_ir: str
    chip: Chip


@dataclass(frozen=True)
class Resources:
    """What one entry point takes, read from the code object. Bytes and counts per wave; AGPRs are part of `vgpr`."""

    vgpr: int
    agpr: int
    sgpr: int
    vgpr_spills: int
    sgpr_spills: int
    scratch: int
    lds_bytes: int

    @property
    def spills(self) -> bool:
        """Whether anything that belongs in registers is kept elsewhere."""
        return bool(self.vgpr_spills or self.sgpr_spills or self.scratch)

    @property
    def spilled(self) -> str:
        """The same in words."""
        return f"{self.vgpr_spills} VGPRs and {self.sgpr_spills} SGPRs ({self.scratch} B scratch)"


@dataclass(frozen=True)
class LdsAccess:
    """One use of an LDS buffer: the instructions of a wave, and the clocks that the costliest of them takes.

    kind         `write`, `read` or `read_transposed`
    minimum      clocks without bank conflicts, for the lanes that take part
    lower_bound  clocks below which no byte map gets that keeps as many bytes together
    weight       how often the use is executed, for what is known when compiling
    reason       why there are conflicts, or that there are none
    layout       the register tile's layout, as `DistributedLayout.text` writes it
    """

    op: str
    kind: Literal["write", "read", "read_transposed"]
    mnemonic: str
    line: int | None
    instructions: int
    cycles: int
    minimum: int
    lower_bound: int
    weight: int
    reason: str
    layout: str


@dataclass(frozen=True)
class LdsBuffer:
    """An LDS buffer: its name, first byte, size with padding, byte map and uses."""

    buffer: str
    offset: int
    bytes: int
    map: str
    accesses: tuple[LdsAccess, ...]


@dataclass(frozen=True)
class Choice:
    """What the compiler chose at a source line, and the best of the other options ("" and None: there was no other).

    For a `dot` that is its instruction and layouts, with the modelled clocks of the whole kernel; for `LDS` a byte map
    and the way into it, with the clocks of one wave; for a `loop` how its tiles come in, or its schedule (clocks None).
    """

    line: int | None
    subject: str
    chosen: str
    clocks: int | None
    runner_up: str = ""
    runner_up_clocks: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        other = f"; next best, at {self.runner_up_clocks}: {self.runner_up}" if self.runner_up else ""
        cost = "" if self.clocks is None else f", at {self.clocks} clocks"
        return f"{place}{self.subject}: {self.chosen}{cost}{other}"


@dataclass(frozen=True)
class Tile:
    """A register tile: the op that makes it and its place in the source, extents, dtype, and who holds which element,
    as `DistributedLayout.text` writes it."""

    op: str
    line: int | None
    column: int | None
    shape: tuple[int, ...]
    dtype: str
    layout: str


@dataclass(frozen=True)
class Dot:
    """A matrix product `acc += a @ b`: its instruction, and its tiles as the instruction takes them."""

    mnemonic: str
    a: Tile
    b: Tile
    acc: Tile


@dataclass(frozen=True)
class Conversion:
    """A tile brought from one layout into another: in `registers`, through `lds`, or `direct`, where memory goes
    straight to LDS; then `map` is the byte map there, as `LdsMap.text` writes it, and `transposed` says whether lanes
    exchange elements as they read.
    """

    source: Tile
    target: Tile
    way: Literal["registers", "lds", "direct"]
    map: str = ""
    transposed: bool = False


@dataclass(frozen=True)
class Loop:
    """A loop of the final wave IR: its place and depth, trips (None: known at launch), what one wave does in a trip, by
    kind of operation, and the LDS buffers that it touches. A pipelined loop may do the work of several trips in one.
    """

    line: int | None
    depth: int
    trips: int | None
    operations: Mapping[str, int]
    buffers: tuple[str, ...]


@dataclass(frozen=True)
class Layouts:
    """All register tiles of an entry point, its matrix products and conversions, in program order."""

    tiles: tuple[Tile, ...] = ()
    dots: tuple[Dot, ...] = ()
    conversions: tuple[Conversion, ...] = ()


@dataclass(frozen=True)
class Assertion:
    """What the `assert` at a place of the source says when it fails."""

    line: int
    column: int
    message: str


@dataclass(frozen=True)
class Binary:
    """A compiled kernel: the code object, how to launch it, and what its entry points take (by symbol).

    `lines` says which source line each instruction comes from, `assertions` what a trap there means; `texts` holds the
    stages that were asked for, by name of `STAGES`. Of the entry point that is tried first, `lds` lists the buffers,
    `choices` says how layouts and byte maps were chosen, `layouts` and `loops` what became of tiles and loops.
    """

    arch: str
    hsaco: bytes
    info: KernelInfo
    resources: Mapping[str, Resources]
    lines: tuple[Line, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    lds: tuple[LdsBuffer, ...] = ()
    choices: tuple[Choice, ...] = ()
    layouts: Layouts = Layouts()
    loops: tuple[Loop, ...] = ()
    assertions: tuple[Assertion, ...] = ()
