"""Machine code for emulator tests: LLVM IR compiled, or lines of assembly executed on chosen registers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.backend.codegen import Generated
from hkc.emulate import Finding, Memory, Observer, Program, launch
from hkc.emulate.decode import Decoded
from hkc.emulate.isa import load as load_isa
from hkc.emulate.registry import Context, bind
from hkc.emulate.scheduler import Code, Scheduler
from hkc.emulate.state import Findings, Shape, State
from hkc.emulate.waves import Waves
from hkc.support import worker

CHIPS = ("gfx942", "gfx950")
VGPRS = 256
NEVER = 0x7FC0DEAD
EXECUTED: set[tuple[str, str]] = set()
"""(chip, mnemonic) of every instruction that a test ran on a `Wave`, whose registers and memory it then looks at."""


@functools.cache
def compile_ir(ir: str, arch: str) -> bytes:
    generated: Generated = worker.call("hkc.backend.codegen:generate", ir, arch)
    return generated.hsaco


@functools.cache
def assemble(lines: tuple[str, ...], arch: str) -> bytes:
    """A kernel `k` that consists of these lines."""
    text = "\\0A".join(line.replace('"', "\\22") for line in lines)
    attributes = '"amdgpu-flat-work-group-size"="64,64"'
    return compile_ir(
        f'define amdgpu_kernel void @k() {attributes} {{ call void asm sideeffect "{text}", ""()\n ret void }}', arch
    )


@functools.cache
def assembled(lines: tuple[str, ...], arch: str) -> tuple[Decoded, ...]:
    """The instructions of these lines, one each."""
    return Program.load(assemble(lines, arch)).instructions[: len(lines)]


class Wave:
    """One wave (or several) with registers to set and to look at; memory at `memory`."""

    def __init__(self, arch: str, *, waves: int = 1, lds: int = 0, scratch: int = 0, agprs: int = 256) -> None:
        self.arch = arch
        self.memory = Memory()
        self.findings = Findings()
        shape = Shape(waves, waves, VGPRS, agprs, lds, scratch)
        self.state = State(shape, self.memory, self.findings, 0)
        self.state.mode[:] = 0x3F0

    def vector(self, register: int, values: Any) -> None:
        """Set v[register], bits as they are."""
        self.state.registers[register][:] = bits(values)
        self.state.flags[register] = 0

    def scalar(self, register: int, values: Any) -> None:
        self.state.scalar[register] = bits(values)

    def pair(self, register: int, value: int) -> None:
        self.scalar(register, value & 0xFFFFFFFF)
        self.scalar(register + 1, value >> 32)

    def active(self, mask: int) -> None:
        lanes = np.array([mask >> i & 1 for i in range(64)], np.bool_)
        self.state.exec_mask = np.broadcast_to(lanes, self.state.exec_mask.shape).copy()

    def run(self, *lines: str, observers: Sequence[Observer] = ()) -> Wave:
        """Execute; everything outstanding happens at the end."""
        hsaco = assemble(lines, self.arch)
        program = Program.load(hsaco)
        EXECUTED.update((self.arch, i.base) for i in program.instructions[: len(lines)])
        code = Code(program, Context(VGPRS, program.isa), observers)
        for observer in observers:
            observer.start(program)
        self.state.observe(observers)
        with np.errstate(all="ignore"):
            entry = program.entry(program.kernel("k"))
            Scheduler(code, self.state, entry, 1 << 16, None).run(lambda fraction: None)
        return self

    def step(self, *instructions: Decoded) -> Wave:
        """Execute decoded instructions one after the other, no jumps; everything outstanding happens at the end."""
        context = Context(VGPRS, load_isa(self.arch))
        with np.errstate(all="ignore"):
            for instruction in instructions:
                EXECUTED.add((self.arch, instruction.base))
                group = Waves(self.state, np.arange(self.state.shape.waves))
                group.instruction = instruction
                bind(instruction, context)(group)
            self.state.outstanding.finish(np.arange(self.state.shape.waves))
        return self

    def v(self, register: int, kind: Any = np.uint32) -> NDArray[Any]:
        """v[register] of the first wave as `kind`."""
        return self.state.registers[register][0].view(kind)

    def s(self, register: int) -> int:
        return int(self.state.scalar[register, 0])

    @property
    def found(self) -> tuple[Finding, ...]:
        return self.findings.all()


def bits(values: Any) -> NDArray[np.uint32]:
    array = np.asarray(values)
    if array.dtype == np.float32:
        return array.view(np.uint32)
    return (array.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)


def run_kernel(
    ir: str,
    arch: str,
    name: str,
    buffers: Sequence[NDArray[Any]],
    scalars: bytes = b"",
    grid: tuple[int, int, int] = (1, 1, 1),
    threads: int | tuple[int, int, int] = 64,
    **options: Any,
) -> tuple[list[NDArray[Any]], Any]:
    """Launch with pointers to copies of `buffers`, then `scalars`; returns the buffers afterwards and the result."""
    memory = Memory()
    addresses = [memory.allocate(b.nbytes, f"argument {i}") for i, b in enumerate(buffers)]
    for address, content in zip(addresses, buffers, strict=True):
        memory.write(address, content)
    kernarg = b"".join(a.to_bytes(8, "little") for a in addresses) + scalars
    shape = threads if isinstance(threads, tuple) else (threads, 1, 1)
    program = Program.load(compile_ir(ir, arch))
    result = launch(program, name, workgroups=grid, threads=shape, kernarg=kernarg, memory=memory, **options)
    after = [
        np.frombuffer(memory.read(a, b.nbytes), b.dtype).reshape(b.shape)
        for a, b in zip(addresses, buffers, strict=True)
    ]
    return after, result
