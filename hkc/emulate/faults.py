"""What stops an emulation (codes HK7xx) and what is only reported (findings)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hkc.machine.lines import Line
from hkc.support.errors import HkcError, error

if TYPE_CHECKING:
    from hkc.emulate.decode import Decoded


@dataclass(frozen=True)
class Party:
    """The other side of a finding: the instruction (address and text), and the wave, counted over the launch."""

    address: int
    text: str
    wave: int
    line: Line | None = None


@dataclass(frozen=True)
class Finding:
    """One questionable deed of the program: its kind, where (address and text), and what exactly.

    `wave` counts the waves of the whole launch; `lane` is the first lane concerned. `count` says how often the same
    thing happened at the same instruction; only the first is described. `line` is the source line, where the code
    object or its caller knows it; `other` is who else took part.
    """

    kind: str
    address: int
    text: str
    message: str
    wave: int
    lane: int
    count: int = 1
    workgroup: int = 0
    other: Party | None = None
    line: Line | None = None


def where(instruction: Decoded) -> str:
    """`0x1234: v_add_f32_e32 v0, v1, v2 (encoding 00 01 …)`."""
    return f"{instruction.address:#x}: {instruction.text} (encoding {instruction.encoding.hex(' ')})"


def unknown(instruction: Decoded) -> HkcError:
    """The emulator has no semantics for this instruction."""
    return error("HK701", f"unknown instruction at {where(instruction)}")


def unsupported(instruction: Decoded, what: str) -> HkcError:
    """The instruction is known, this form of it is not."""
    return error("HK702", f"the emulator does not support {what} at {where(instruction)}")


def wrong_chip(instruction: Decoded, chip: str) -> HkcError:
    """The instruction exists, but not on the chip that the code object is for."""
    return error("HK703", f"{chip} has no such instruction: {where(instruction)}")


def beyond(instruction: Decoded, register: str, room: int) -> HkcError:
    """A register that the kernel descriptor doesn't allocate."""
    return error("HK716", f"`{register}` is used, but the kernel has {room} such registers: {where(instruction)}")


def memory_fault(instruction: Decoded, what: str, note: str) -> HkcError:
    """An access outside every allocation."""
    return error("HK704", f"{what} at {where(instruction)}", hint=note)
