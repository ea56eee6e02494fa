"""An emulator of GPU machine code on the CPU: any code object for a known chip, instruction by instruction."""

from hkc.emulate.faults import Finding
from hkc.emulate.launch import Result, launch
from hkc.emulate.memory import Memory
from hkc.emulate.program import Program

__all__ = ["Finding", "Memory", "Program", "Result", "launch"]
