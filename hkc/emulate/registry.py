"""The table of semantics: base mnemonic → a builder that turns a decoded instruction into a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hkc.emulate.faults import beyond, unknown, wrong_chip

if TYPE_CHECKING:
    from hkc.emulate.decode import Decoded, Operand
    from hkc.emulate.isa import Isa
    from hkc.emulate.waves import Waves

Jump = Any
"""None: go on. Otherwise int64 [waves] with the addresses of the next instructions, or negative numbers: see
`semantics.control`."""
Step = Callable[["Waves"], Jump]

Build = Callable[["Decoded", "Context"], Step]

_TABLE: dict[str, Build] = {}
_FAMILIES: dict[str, Build] = {}
_MODULES = (
    "salu", "control", "fork", "relative", "smem", "smem_store", "valu_int", "valu_float", "valu_half", "valu_wide",
    "valu_media", "compare", "convert", "convert_small", "convert_scaled", "packed", "lane", "lds", "lds_more", "gws",
    "buffer", "typed", "vmem", "mfma", "smfmac", "transcendental", "trig", "divide",
)  # fmt: skip


@dataclass(frozen=True)
class Context:
    """What building a step needs to know about kernel and chip.

    `accumulators` is where the accumulation registers begin in the state's single file, thus also how many ordinary
    ones there are; `agprs` is how many follow.
    """

    accumulators: int
    isa: Isa
    agprs: int = 256

    def vector(self, operand: Operand) -> int:
        """The register number of a vector operand in the state's single file."""
        return operand.index + (self.accumulators if operand.kind == "agpr" else 0)


def op(*names: str) -> Callable[[Build], Build]:
    """Register a builder for base mnemonics."""

    def register(build: Build) -> Build:
        for name in names:
            if name in _TABLE:
                raise ValueError(f"two semantics for {name}")
            _TABLE[name] = build
        return build

    return register


def family(prefix: str) -> Callable[[Build], Build]:
    """Register a builder for all mnemonics that begin with `prefix`; it looks them up in the chip's own tables."""

    def register(build: Build) -> Build:
        _FAMILIES[prefix] = build
        return build

    return register


@cache
def table() -> dict[str, Build]:
    """All semantics."""
    for name in _MODULES:
        import_module(f"hkc.emulate.semantics.{name}")
    return _TABLE


def bind(instruction: Decoded, context: Context) -> Step:
    """The step that executes `instruction`.

    Raises HK701 for an unknown one, HK703 on the wrong chip, HK716 for registers that the kernel didn't ask for.
    """
    build = table().get(instruction.base)
    if build is None:
        build = next((b for prefix, b in _FAMILIES.items() if instruction.base.startswith(prefix)), None)
    if build is None:
        raise unknown(instruction)
    if context.isa.lacks(instruction):
        raise wrong_chip(instruction, context.isa.chip)
    for operand in instruction.operands:
        room = {"vgpr": context.accumulators, "agpr": context.agprs}.get(operand.kind)
        if room is not None and operand.index + operand.count > room:
            raise beyond(instruction, f"{operand}", room)
    return build(instruction, context)
