"""An emulator of GPU machine code on the CPU: any code object for a known chip, instruction by instruction.

::

    import hkc

    out = np.empty_like(x)
    result = hkc.emulate("add.hsaco", x, y, hkc.emulate.Output(out), x.size, grid=8, block=256)

To call the module is to call its `run`, which packs NumPy arrays and numbers for any kernel; `launch` is what lies
beneath: memory and argument bytes.
"""

import sys
from types import ModuleType
from typing import Any

from hkc.emulate.call import Output, explicit, opened, read, run
from hkc.emulate.debug import Break, Trace, Watch
from hkc.emulate.faults import Fault, Finding, Party
from hkc.emulate.launch import INSTRUCTION_LIMIT, Result, launch
from hkc.emulate.memory import Memory
from hkc.emulate.observe import Access, Observer
from hkc.emulate.program import Program

__all__ = [
    "INSTRUCTION_LIMIT",
    "Access",
    "Break",
    "Fault",
    "Finding",
    "Memory",
    "Observer",
    "Output",
    "Party",
    "Program",
    "Result",
    "Trace",
    "Watch",
    "explicit",
    "launch",
    "opened",
    "read",
    "run",
]


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Result:
        return run(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
