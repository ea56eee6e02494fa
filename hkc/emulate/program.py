"""A code object made ready for execution: its instructions decoded once, addressed by position."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hkc.emulate.decode import Decoded, decode
from hkc.emulate.faults import Fault, Finding
from hkc.emulate.isa import Isa, of_machine
from hkc.emulate.isa import load as load_isa
from hkc.machine.bundle import code_object
from hkc.machine.codeobject import CodeObject, Kernel
from hkc.machine.disassemble import disassemble
from hkc.machine.lines import Line, line_table, place
from hkc.support.errors import error


@dataclass(frozen=True)
class Program:
    """Kernels, instructions in address order, the position of each address, and which source line made what.

    Addresses are those of the file.
    """

    code: CodeObject
    isa: Isa
    instructions: tuple[Decoded, ...]
    positions: dict[int, int]
    lines: tuple[Line, ...] = ()

    @classmethod
    def load(
        cls,
        hsaco: bytes,
        chips: Path | None = None,
        lines: tuple[Line, ...] = (),
        *,
        arch: str | None = None,
        kernel: str | None = None,
    ) -> Program:
        """Read a linked code object, or the one for `arch` with `kernel` in a bundle or fat binary.

        `chips` is a further folder of chip tables; `lines` stands in for a line table. A plain code object must be for
        `arch` too, where that is given.

        Raises HK6xx for a broken code object or one that contradicts itself, HK706 for a chip without an `isa.toml`.
        """
        hsaco = code_object(hsaco, arch, kernel)
        code = CodeObject.parse(hsaco)
        isa = load_isa(code.arch, chips)
        if isa.machine not in (None, code.machine):
            said = of_machine(code.machine) or f"processor {code.machine:#x}, which is none that is known"
            raise error("HK607", f"the ELF header is for {said}, but the metadata for {code.arch}")
        instructions = tuple(
            decode(i.address, i.encoding, i.text)
            for segment in code.segments
            if segment.executable
            for i in disassemble(segment.content, code.arch, segment.address)
        )
        positions = {x.address: n for n, x in enumerate(instructions)}
        return cls(code, isa, instructions, positions, lines or line_table(hsaco))

    def located(self, finding: Finding) -> Finding:
        """The finding with source lines for both parties, as far as they are known."""
        other = finding.other
        if other is not None:
            other = replace(other, line=place(self.lines, other.address))
        return replace(finding, line=place(self.lines, finding.address), other=other)

    def explain(self, fault: Fault, waves_per_group: int, before: tuple[Finding, ...]) -> None:
        """Give the fault its source line, as far as it is known, its workgroup, and what was found before it."""
        fault.locate(place(self.lines, fault.address), waves_per_group, tuple(map(self.located, before)))

    def kernel(self, name: str | None) -> Kernel:
        """The kernel called `name` (or its descriptor's symbol `name.kd`); None: the only one."""
        return self.code.kernel(name.removesuffix(".kd") if name else None)

    def entry(self, kernel: Kernel) -> int:
        """Where its waves start: hardware that preloads kernel arguments skips the code that loads them."""
        return kernel.entry + (256 if kernel.descriptor.preload else 0)
