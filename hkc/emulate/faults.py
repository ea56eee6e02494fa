"""What stops an emulation (codes HK7xx) and what is only reported (findings)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hkc.machine.lines import Line
from hkc.support.errors import Diagnostic, HkcError, Source, Span

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


class Fault(HkcError):
    """An instruction that stops the emulation: `address` in the code object, and `line` where that is known.

    `wave` and `lane`: see `Finding`; both 0 where the instruction is at fault whoever executes it.
    """

    def __init__(
        self, diagnostic: Diagnostic, address: int = 0, wave: int = 0, lane: int = 0, line: Line | None = None
    ) -> None:
        super().__init__(diagnostic)
        self.address = address
        self.wave = wave
        self.lane = lane
        self.line = line

    def located(self, line: Line | None) -> Fault:
        """The same with its source line."""
        diagnostic = self.diagnostics[0]
        if line is not None:
            column = max(line.column, 1)
            span = Span(Source(line.file, ""), line.line, column, line.line, column + 1)
            diagnostic = replace(diagnostic, spans=(span,))
        return Fault(diagnostic, self.address, self.wave, self.lane, line)


def where(instruction: Decoded) -> str:
    """`0x1234: v_add_f32_e32 v0, v1, v2 (encoding 00 01 …)`."""
    return f"{instruction.address:#x}: {instruction.text} (encoding {instruction.encoding.hex(' ')})"


def unknown(instruction: Decoded) -> Fault:
    """The emulator has no semantics for this instruction."""
    return _fault("HK701", instruction, f"unknown instruction at {where(instruction)}")


def unsupported(instruction: Decoded, what: str) -> Fault:
    """The instruction is known, this form of it is not."""
    return _fault("HK702", instruction, f"the emulator does not support {what} at {where(instruction)}")


def wrong_chip(instruction: Decoded, chip: str) -> Fault:
    """The instruction exists, but not on the chip that the code object is for."""
    return _fault("HK703", instruction, f"{chip} has no such instruction: {where(instruction)}")


def beyond(instruction: Decoded, register: str, room: int) -> Fault:
    """A register that the kernel descriptor doesn't allocate."""
    return _fault(
        "HK716", instruction, f"`{register}` is used, but the kernel has {room} such registers: {where(instruction)}"
    )


def memory_fault(instruction: Decoded, what: str, note: str) -> Fault:
    """An access outside every allocation."""
    return _fault("HK704", instruction, f"{what} at {where(instruction)}", note)


def trapped(instruction: Decoded, wave: int, lane: int) -> Fault:
    """The program gives up: compilers put a trap where an assertion fails or where no path leads."""
    message = f"the program traps in wave {wave}, lane {lane} at {where(instruction)}"
    return Fault(Diagnostic("HK717", message), instruction.address, wave, lane)


def _fault(code: str, instruction: Decoded, message: str, hint: str | None = None) -> Fault:
    return Fault(Diagnostic(code, message, hint=hint), instruction.address)
