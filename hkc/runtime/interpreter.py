"""The tile operations' NumPy meanings as a device: what a kernel says, without any machine code."""

from __future__ import annotations

import time

from hkc.frontend.program import Checked
from hkc.handover import Binary
from hkc.runtime.arguments import Arguments
from hkc.runtime.device import LaunchResult, Progress
from hkc.support import worker


class Reference:
    """Interprets a checked file; the code object plays no part."""

    name = "reference"

    def __init__(self, checked: Checked) -> None:
        self._checked = checked

    def run(self, binary: Binary, arguments: Arguments, progress: Progress | None = None) -> LaunchResult:
        """See `Device.run`."""
        began = time.perf_counter()
        arrays = arguments.on_host()
        numbers = {**arguments.names, **arguments.scalars}
        stored, printed = worker.call("hkc.reference:interpret", self._checked, arrays, numbers)
        for name, content in stored.items():
            arrays[name][...] = content
        return LaunchResult(self.name, time.perf_counter() - began, None, None, printed=printed)
