"""What differs between chips: `isa.toml` of the chip's folder."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hkc.support.errors import error
from hkc.targets.chip import FOLDER, names

if TYPE_CHECKING:
    from hkc.emulate.decode import Decoded


@dataclass(frozen=True)
class Isa:
    """Facts of one chip: instructions it lacks, `lds` loads wider than it can do, and its 8-bit float encodings."""

    chip: str
    absent: frozenset[str]
    lds_load_bytes: frozenset[int]
    fnuz: bool
    """8-bit floats have no infinities and one NaN (0x80), bias one higher; otherwise they are the OCP formats."""
    machine: int | None = None
    """The number of the processor in ELF headers (EF_AMDGPU_MACH); None for a chip without one."""
    folder: Path | None = None
    """Where the chip's tables lie, if not among the ones that come with hkc."""
    mfma_waits: Mapping[tuple[str, int], tuple[int, ...]] = field(default_factory=dict, compare=False)
    """By kind of operands (f64, f32, xdl) and passes of a matrix instruction: wait states until its registers may be
    used, in the order of the table's columns, then between a vector ALU instruction and a matrix instruction."""
    exec_mfma: int = 0
    """Wait states between a vector ALU instruction that writes EXEC and a matrix instruction."""
    valu_waits: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Wait states between other instructions, by name as the table has them; empty for none."""

    def lacks(self, instruction: Decoded) -> bool:
        """Whether the chip has no such instruction."""
        return instruction.base in self.absent


@cache
def load(chip: str, folder: Path | None = None) -> Isa:
    """Read `isa.toml` of a chip, from `folder` if it is there. Raises HK706 where there is none."""
    own = folder / chip / "isa.toml" if folder else None
    path = own if own and own.is_file() else FOLDER / chip / "isa.toml"
    if not path.is_file():
        known = ", ".join(names(folder))
        raise error("HK706", f"the emulator does not know the chip {chip}", hint=f"it knows {known}")
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return Isa(
        chip,
        frozenset(data["absent"]["instructions"]),
        frozenset(data["direct_to_lds"]["bytes"]),
        bool(data["float8"]["fnuz"]),
        data.get("elf", {}).get("machine"),
        folder,
        *_hazards(data.get("mfma_hazards")),
        {name: states for name, states in data.get("valu_hazards", {}).items() if name != "source"},
    )


def of_machine(machine: int) -> str | None:
    """The chip that ELF headers give this number, if it is a known one."""
    return next((chip for chip in names() if load(chip).machine == machine), None)


def _hazards(table: Mapping[str, Any] | None) -> tuple[Mapping[tuple[str, int], tuple[int, ...]], int]:
    """The table, and the wait states after EXEC; a chip without one has no hazards that are known."""
    if table is None:
        return {}, 0
    waits = {(kind, passes): (*needs, table["valu_mfma"]) for kind, passes, *needs in table["rows"]}
    return waits, table["exec_mfma"]
