"""What stops an emulation (codes HK7xx) and what is only reported (findings)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hkc.machine.lines import Line
from hkc.support.errors import Diagnostic, HkcError, Note, Source, Span

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


TRAP = "HK717"
"""The code of a fault that the program itself asks for."""


class Fault(HkcError):
    """An instruction that stops the emulation: `address` and `text` (0 and "" where no single one is to blame), and
    `line` where that is known.

    `wave` and `lane`: see `Finding`. Who raises it may not know the wave but only its `row` among those that execute
    the instruction together; the scheduler fills in the rest. `before` are the findings made until then, `printed` what
    the kernel had printed.
    """

    def __init__(
        self,
        diagnostic: Diagnostic,
        by: Decoded | None = None,
        wave: int | None = None,
        lane: int = 0,
        row: int | None = None,
    ) -> None:
        super().__init__(diagnostic)
        self.address = by.address if by else 0
        self.text = by.text if by else ""
        self.wave = wave
        self.lane = lane
        self.row = row
        self.workgroup = 0
        self.line: Line | None = None
        self.before: tuple[Finding, ...] = ()
        self.printed = ""

    def means(self, code: str, message: str) -> None:
        """Say what the fault is for the author of the source, and where it was raised."""
        place = Note(f"in workgroup {self.workgroup}, wave {self.wave}, lane {self.lane}: {self.text}")
        self.diagnostics = (replace(self.diagnostics[0], code=code, message=message, notes=(place,)),)

    def quote(self, source: Source) -> None:
        """Show the text of the source where the fault is placed in it."""
        diagnostic = self.diagnostics[0]
        spans = tuple(replace(s, source=source) for s in diagnostic.spans if _same_file(s.source.name, source.name))
        self.diagnostics = (replace(diagnostic, spans=spans or diagnostic.spans),)

    @property
    def code(self) -> str:
        """Of its diagnostic."""
        return self.diagnostics[0].code

    def locate(self, line: Line | None, waves_per_group: int, before: tuple[Finding, ...]) -> None:
        """Fill in the source line, if known, the workgroup, and what had been found before."""
        self.line, self.before = line, before
        self.workgroup = (self.wave or 0) // waves_per_group
        if line is not None:
            column = max(line.column, 1)
            span = Span(Source(line.file, ""), line.line, column, line.line, column + 1)
            self.diagnostics = (replace(self.diagnostics[0], spans=(span,)),)


def _same_file(a: str, b: str) -> bool:
    return Path(a).name == Path(b).name


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


def memory_fault(instruction: Decoded, what: str, note: str, row: int, lane: int) -> Fault:
    """An access outside every allocation by a lane of wave `row`, counted among those that make the access."""
    diagnostic = Diagnostic("HK704", f"{what} at {where(instruction)}", hint=note)
    return Fault(diagnostic, instruction, lane=lane, row=row)


def trapped(instruction: Decoded, wave: int, lane: int, how: str = "traps") -> Fault:
    """The program gives up: compilers put a trap where an assertion fails or where no path leads."""
    message = f"the program {how} in wave {wave}, lane {lane} at {where(instruction)}"
    return Fault(Diagnostic(TRAP, message), instruction, wave, lane)


def endless(instruction: Decoded, wave: int, first: Decoded, last: Decoded) -> Fault:
    """Too many steps: where a wave is, and the first and last of the instructions that were executed most often."""
    message = (
        f"the program runs for too long; most of the time goes by from {first.address:#x}: "
        f"{first.text} to {last.address:#x}: {last.text}; wave {wave} is at {where(instruction)}"
    )
    return Fault(Diagnostic("HK709", message, hint="raise the step limit if it should take so long"), instruction, wave)


def deadlock(instruction: Decoded, wave: int, addresses: Collection[int]) -> Fault:
    """All waves wait, at these barriers; `instruction` is the one at which `wave` does."""
    places = ", ".join(f"{a:#x}" for a in sorted(addresses))
    return Fault(Diagnostic("HK710", f"deadlock: waves wait at barriers {places}"), instruction, wave)


def nowhere(address: int, by: Decoded | None) -> Fault:
    """`by` leads to an address at which no instruction starts."""
    after = f" after {where(by)}" if by else ""
    return Fault(Diagnostic("HK708", f"control gets to {address:#x}, where there is no instruction,{after}"), by)


def _fault(code: str, instruction: Decoded, message: str) -> Fault:
    return Fault(Diagnostic(code, message), instruction)
