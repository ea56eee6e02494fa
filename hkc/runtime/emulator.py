"""The emulator as a device: arguments are copied into its memory, strides and all, and outputs back."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hkc.emulate import INSTRUCTION_LIMIT, Fault, Memory, Program, launch
from hkc.emulate.faults import TRAP
from hkc.emulate.memory import Space
from hkc.emulate.observe import Observer
from hkc.handover import Binary
from hkc.machine.abi import PRINTED_BYTES, PRINTED_START, KernelInfo, View, pack
from hkc.machine.lines import Line
from hkc.runtime.arguments import Arguments, workgroups
from hkc.runtime.arrays import Tensor
from hkc.runtime.device import PAGE, LaunchResult, Progress, Region, moved, regions
from hkc.runtime.printing import printed
from hkc.support.errors import HkcBug, HkcError, HkcUsageError
from hkc.targets.chip import load

WORD = 4
"""Bytes that the hardware updates atomically at least: what is smaller is updated by reading and swapping the aligned
word around it."""

BESIDE = 0xA5
"""What such words hold beside elements; a kernel must leave it as it is."""


class Emulator:
    """Runs machine code on the CPU, with checks that no GPU makes.

    Accesses outside the tensors fault. Gaps between the elements of a strided tensor count as never written, and so do
    tensors that the kernel only writes: reading them is a finding, storing to gaps a bug. `seed` other than 0
    interleaves the waves in an order drawn from it; `observers` see what happens; `views` says where the tensors of the
    last launch lay; `limit` is that of `launch`.
    """

    name = "emulator"

    def __init__(self, seed: int = 0, observers: Sequence[Observer] = (), limit: int = INSTRUCTION_LIMIT) -> None:
        self.seed = seed
        self.limit = limit
        self.observers = observers
        self.views: Mapping[str, View] = {}

    def run(self, binary: Binary, arguments: Arguments, progress: Progress | None = None) -> LaunchResult:
        """See `Device.run`.

        Raises `HkcError` HK509 for a grid that is too large, HK510 for memory of a GPU, HK720 for an assertion of the
        kernel that fails; `HkcBug` where the machine code
        does what hardware would not survive, since no kernel can ask for that.
        """
        began = time.perf_counter()
        info = binary.info
        arguments.on_host()
        wave = load(binary.arch).compute.wave
        count = workgroups(info, arguments.names, wave)
        if count == 0:
            return LaunchResult(self.name, time.perf_counter() - began, 0, None)
        copies = _Copies(info, arguments.tensors)
        self.views = copies.views
        entry = info.entry(copies.views)
        buffer = copies.memory.allocate(PRINTED_BYTES, "what is printed", PRINTED_START) if info.prints else None
        if buffer is not None:
            copies.memory.write(buffer, bytes(PRINTED_START))
        try:
            result = launch(
                _program(binary.hsaco, binary.lines),
                entry.symbol,
                workgroups=(count, 1, 1),
                threads=(info.waves * wave, 1, 1),
                kernarg=pack(info.params, copies.views, arguments.scalars, buffer),
                memory=copies.memory,
                seed=self.seed,
                progress=progress,
                observers=self.observers,
                limit=self.limit,
            )
        except HkcUsageError:
            raise
        except HkcError as failure:
            if isinstance(failure, Fault) and _failed(failure, binary):
                failure.printed = _printed(copies.memory, buffer, info, wave)
                raise
            raise HkcBug(f"`{entry.symbol}` stops on the emulator: {failure}", details=str(failure)) from failure
        copies.fetch(info.outputs)
        seconds = time.perf_counter() - began
        said = _printed(copies.memory, buffer, info, wave)
        return LaunchResult(self.name, seconds, result.instructions, entry.symbol, result.findings, said)


def _printed(memory: Memory, buffer: int | None, info: KernelInfo, lanes: int) -> str:
    allocation = memory.find(buffer) if buffer is not None else None
    return printed(info, allocation.space.data, lanes) if allocation is not None else ""


def _failed(fault: Fault, binary: Binary) -> bool:
    """Whether the fault is the trap of a failed assertion; it then says so (HK720)."""
    if fault.diagnostics[0].code != TRAP or not binary.assertions:
        return False
    at = fault.line and (fault.line.line, fault.line.column)
    messages = [a.message for a in binary.assertions if (a.line, a.column) == at]
    fault.means("HK720", f"assertion failed: {messages[0]}" if messages else "an assertion failed")
    return True


@lru_cache(maxsize=8)
def _program(hsaco: bytes, lines: tuple[Line, ...]) -> Program:
    return Program.load(hsaco, lines=lines)


@dataclass
class _Copy:
    """A region of host memory in the emulator's: `data` from the region's start on, and the bytes that belong to nobody
    but share words with elements which are updated atomically."""

    space: Space
    data: NDArray[np.uint8]
    beside: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


def _whole_words(owned: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """The bytes of all words that hold a byte which is owned."""
    return np.repeat(owned.reshape(-1, WORD).any(axis=1), WORD)


class _Copies:
    """The arguments inside the emulator's memory; `views` say where."""

    def __init__(self, info: KernelInfo, tensors: Mapping[str, Tensor]) -> None:
        self.memory = Memory()
        self.views: dict[str, View] = {name: t.view for name, t in tensors.items()}  # empty tensors keep theirs
        self._tensors = tensors
        self._read = set(info.inputs) | (set(tensors) - set(info.outputs))
        both = set(info.inputs) & set(info.outputs)
        self._updated = {name for name in both & set(tensors) if tensors[name].view.itemsize < WORD}
        self._copies: dict[Region, _Copy] = {}
        for region in regions(tensors):
            self._copy(region)

    def _copy(self, region: Region) -> None:
        """Where elements smaller than words may be updated atomically, the words around them are memory, too."""
        shared = any(name in self._updated for name in region.params)
        lead = region.start % WORD if shared else 0
        size = -(-(lead + region.size) // WORD) * WORD if shared else region.size
        base = self.memory.allocate(size, " and ".join(region.params), PAGE, (region.start - lead) % PAGE)
        allocation = self.memory.find(base)
        assert allocation is not None
        space, owned = allocation.space, np.zeros(size, np.uint8)
        copy = _Copy(space, space.data[lead:])
        for name in region.params:
            t = self._tensors[name]
            region.elements(copy.data, t)[...] = t.array
            for bits, marked in ((owned, True), (space.valid, name in self._read)):
                if marked:
                    itemsize = t.view.itemsize
                    ones = int.from_bytes(b"\1" * itemsize, "little")
                    region.elements(bits[lead:], t, f"u{itemsize}")[...] = ones
            self.views[name] = moved(t.view, region, base + lead)
        if shared:
            copy.beside = np.flatnonzero(_whole_words(owned) & (owned == 0))
            space.data[copy.beside] = BESIDE
            owned[copy.beside] = space.valid[copy.beside] = 1
        space.complete = bool(space.valid[:size].all())
        space.gaps = None if owned.all() else owned == 0
        self._copies[region] = copy

    def fetch(self, outputs: tuple[str, ...]) -> None:
        """Copy the elements of the outputs back. Raises `HkcBug` where more than elements was written."""
        for region, copy in self._copies.items():
            space = copy.space
            stored = space.gaps is not None and space.valid[: space.gaps.size][space.gaps].any()
            if stored or (space.data[copy.beside] != BESIDE).any():
                raise HkcBug(f"the kernel stored between the elements of {' or '.join(region.params)}")
            for name in region.params:
                if name in outputs:
                    t = self._tensors[name]
                    assert t.array is not None
                    t.array[...] = region.elements(copy.data, t)
