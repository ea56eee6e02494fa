"""From a kernel and its arguments to registers of waves: what the packet processor and the dispatcher do."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.faults import Fault, Finding
from hkc.emulate.memory import Memory
from hkc.emulate.observe import Observer
from hkc.emulate.program import Program
from hkc.emulate.registry import Context
from hkc.emulate.scheduler import Code, Scheduler
from hkc.emulate.state import LANES, Findings, Shape, State
from hkc.emulate.sync import WaveSync
from hkc.machine.codeobject import Kernel
from hkc.machine.elf import Relocation
from hkc.support.errors import error
from hkc.targets.chip import load as load_chip

Extents = tuple[int, int, int]
Progress = Callable[[float, str], None]

_BATCH_BYTES = 192 << 20
_BATCH_WAVES = 256
INSTRUCTION_LIMIT = 1 << 28
"""Steps of one batch after which a launch is taken for an endless loop."""

KERNARG_GRANULE = 64
"""Bytes to which runtimes align and round up the argument segment; compilers widen scalar loads up to its end."""

_ABS64, _RELATIVE64 = 3, 13  # relocation numbers of LLVM's AMDGPUUsage, "Relocation Records"
_MAX_ITEMS = (1 << 32) - 1  # threads along an axis, which the dispatch packet counts with 32 bits
_MAX_THREADS = 1024  # of a workgroup, on every chip so far


@dataclass(frozen=True)
class Result:
    """What a launch did: wave-instructions executed, the same per mnemonic, and findings in order of appearance."""

    instructions: int
    counts: dict[str, int]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Dispatch:
    """One launch. `threads` per workgroup; `kernarg` is the address of the argument segment.

    `code_base` is where address 0 of the code object's file is.
    """

    kernel: Kernel
    workgroups: Extents
    threads: Extents
    kernarg: int
    arguments: bytes
    packet: int
    lds: int
    code_base: int

    @property
    def waves_per_group(self) -> int:
        """Waves of 64 lanes that a workgroup takes; the last may be partial."""
        x, y, z = self.threads
        return -(-x * y * z // LANES)

    @property
    def groups(self) -> int:
        """Workgroups of the grid."""
        x, y, z = self.workgroups
        return x * y * z


def launch(
    program: Program,
    symbol: str | None,
    *,
    workgroups: Extents,
    threads: Extents,
    kernarg: bytes,
    memory: Memory,
    seed: int = 0,
    dynamic_lds: int = 0,
    progress: Progress | None = None,
    observers: Sequence[Observer] = (),
    limit: int = INSTRUCTION_LIMIT,
) -> Result:
    """Run a kernel over its whole grid. `kernarg` holds the explicit arguments; hidden ones are filled in.

    `seed` 0 runs waves in lockstep wherever they are at the same instruction; any other seed interleaves them in an
    order drawn from it. `observers` see what happens (`hkc.emulate.checks.observers` makes checkers). A batch of
    workgroups that takes more than `limit` steps is stopped. Raises `Fault` HK7xx for whatever the hardware would not
    survive, `HkcError` HK7xx for what can't be launched.
    """
    kernel = program.kernel(symbol)
    _check(kernel, workgroups, threads)
    _check_lds(program, kernel, dynamic_lds)
    base = _load(program, memory)
    arguments = _complete(kernel, kernarg, workgroups, threads, dynamic_lds)
    arguments += bytes(-len(arguments) % KERNARG_GRANULE)
    where = memory.allocate(len(arguments), "kernel arguments", KERNARG_GRANULE)
    memory.write(where, arguments)
    packet = memory.allocate(64, "dispatch packet", 64)
    memory.write(packet, _packet(kernel, workgroups, threads, where))
    lds = kernel.descriptor.lds + dynamic_lds
    dispatch = Dispatch(kernel, workgroups, threads, where, arguments, packet, lds, base)
    context = Context(kernel.descriptor.accum_offset, program.isa, kernel.descriptor.agprs)
    code = Code(program, context, observers)
    findings = Findings(dispatch.waves_per_group)
    for observer in observers:
        observer.start(program)
    chance = random.Random(seed) if seed else None
    try:
        with np.errstate(all="ignore"):
            _run(dispatch, code, memory, findings, chance, progress, limit)
    except Fault as fault:
        program.explain(fault, dispatch.waves_per_group, findings.all())
        raise
    counts = code.counts()
    return Result(sum(counts.values()), counts, tuple(map(program.located, findings.all())))


def _run(
    dispatch: Dispatch,
    code: Code,
    memory: Memory,
    findings: Findings,
    chance: random.Random | None,
    progress: Progress | None,
    limit: int,
) -> None:
    total, sync = dispatch.groups, WaveSync()
    for first, last in _batches(dispatch):
        state = _state(dispatch, memory, findings, first, last)
        state.code_base = dispatch.code_base
        state.sync = sync
        state.observe(code.observers)

        def tick(fraction: float, first: int = first, last: int = last) -> None:
            if progress is not None:
                done = first + fraction * (last - first)
                executed = sum(code.executed)
                progress(done / total, f"workgroup {int(done)} of {total}, {executed:,} wave-instructions")

        Scheduler(code, state, code.program.entry(dispatch.kernel), limit, chance).run(tick)


def _check(kernel: Kernel, workgroups: Extents, threads: Extents) -> None:
    size = threads[0] * threads[1] * threads[2]
    limit = min(kernel.metadata.max_threads, _MAX_THREADS)
    if min(threads) < 1 or size > limit:
        raise error("HK711", f"{size} threads per workgroup; `{kernel.name}` takes 1 to {limit}")
    if min(workgroups) < 0:
        raise error("HK711", f"a grid of {workgroups} workgroups")
    if any(w * t > _MAX_ITEMS for w, t in zip(workgroups, threads, strict=True)):
        raise error(
            "HK711", f"a grid of {workgroups} workgroups of {threads} threads; an axis has at most {_MAX_ITEMS}"
        )
    if kernel.descriptor.wave32:
        raise error("HK711", f"`{kernel.name}` is for waves of 32 lanes, which these chips lack")


def _check_lds(program: Program, kernel: Kernel, dynamic: int) -> None:
    room, wanted = load_chip(program.isa.chip, program.isa.folder).lds.bytes, kernel.descriptor.lds + dynamic
    if dynamic < 0 or wanted > room:
        raise error("HK711", f"`{kernel.name}` with {wanted} bytes of LDS; a workgroup has at most {room}")


def _load(program: Program, memory: Memory) -> int:
    """Put code and globals into memory, unless an earlier launch did; returns where address 0 of the file is."""
    base, fresh = memory.image(program)
    if fresh:
        for segment in program.code.segments:
            name = f"code object at {segment.address:#x}"
            memory.place(base + segment.address, segment.content, segment.size, name)
        for relocation in program.code.relocations:
            value = base + _relocated(program, relocation)
            memory.write(base + relocation.address, (value % (1 << 64)).to_bytes(8, "little"))
    return base


def _relocated(program: Program, relocation: Relocation) -> int:
    """The address inside the file that the loader makes absolute and stores."""
    if relocation.kind == _RELATIVE64:
        return relocation.addend
    symbol = program.code.symbols.get(relocation.symbol)
    if relocation.kind != _ABS64 or symbol is None or not symbol.defined:
        raise error("HK707", f"the emulator can't resolve relocation {relocation.kind} against `{relocation.symbol}`")
    return symbol.address + relocation.addend


def _batches(dispatch: Dispatch) -> Iterator[tuple[int, int]]:
    """Ranges of workgroups that fit into memory together."""
    registers = dispatch.kernel.descriptor.vgprs * LANES * 4
    scratch = 2 * LANES * dispatch.kernel.descriptor.scratch
    per_group = dispatch.waves_per_group * (registers + scratch) + 2 * dispatch.lds
    size = max(1, min(_BATCH_BYTES // per_group, _BATCH_WAVES // dispatch.waves_per_group))
    for first in range(0, dispatch.groups, size):
        yield first, min(first + size, dispatch.groups)


def _state(dispatch: Dispatch, memory: Memory, findings: Findings, first: int, last: int) -> State:
    descriptor = dispatch.kernel.descriptor
    per_group = dispatch.waves_per_group
    shape = Shape(
        waves=(last - first) * per_group,
        waves_per_group=per_group,
        vgprs=descriptor.accum_offset,
        agprs=descriptor.agprs,
        lds=dispatch.lds,
        scratch=descriptor.scratch,
    )
    state = State(shape, memory, findings, first * per_group)
    state.mode[:] = _mode(dispatch.kernel)
    _scalars(state, dispatch, np.arange(first, last))
    _workitems(state, dispatch, last - first)
    return state


def _mode(kernel: Kernel) -> int:
    mode = kernel.descriptor.float_mode
    denormals = mode.denorm_f32 << 4 | mode.denorm_f16_f64 << 6
    return mode.round_f32 | mode.round_f16_f64 << 2 | denormals | mode.dx10_clamp << 8 | mode.ieee << 9


def _scalars(state: State, dispatch: Dispatch, groups: NDArray[np.int64]) -> None:
    descriptor = dispatch.kernel.descriptor
    per_wave = np.repeat(groups, dispatch.waves_per_group)
    x, y, _ = dispatch.workgroups
    words = {
        "kernarg_segment_ptr": struct.pack("<Q", dispatch.kernarg),
        "dispatch_ptr": struct.pack("<Q", dispatch.packet),
        "queue_ptr": bytes(8),
        "dispatch_id": bytes(8),
        "flat_scratch_init": bytes(8),
        "private_segment_buffer": bytes(16),
        "private_segment_size": struct.pack("<I", descriptor.scratch),
        "kernarg_preload": dispatch.arguments[4 * descriptor.preload_offset :] + bytes(4 * descriptor.preload),
    }
    for run in descriptor.user_sgprs:
        content = np.frombuffer(words[run.name][: 4 * run.count], np.uint32)
        state.scalar[run.first : run.first + run.count] = content[:, None]
    ids = {
        "workgroup_id_x": per_wave % x,
        "workgroup_id_y": per_wave // x % y,
        "workgroup_id_z": per_wave // (x * y),
        "workgroup_info": np.zeros_like(per_wave),
    }
    for run in descriptor.system_sgprs:
        state.scalar[run.first] = ids[run.name].astype(np.uint32)
    given = (*descriptor.user_sgprs, *descriptor.system_sgprs)
    state.forget_scalars({run.first + i for run in given for i in range(run.count)})


def _workitems(state: State, dispatch: Dispatch, groups: int) -> None:
    x, y, z = dispatch.threads
    ids = np.arange(dispatch.waves_per_group * LANES)
    packed = ids % x | (ids // x % y) << 10 | (ids // (x * y)) << 20
    alive = (ids < x * y * z).reshape(-1, LANES)
    state.registers[0][:] = np.tile(packed.astype(np.uint32).reshape(-1, LANES), (groups, 1))
    state.flags[0] = 0
    state.exec_mask = np.tile(alive, (groups, 1))


def _complete(kernel: Kernel, given: bytes, workgroups: Extents, threads: Extents, dynamic_lds: int) -> bytes:
    """The argument segment: what the caller gave, and the hidden arguments of code object version 5."""
    explicit = [a for a in kernel.metadata.args if not a.kind.startswith("hidden_")]
    needed = max((a.offset + a.size for a in explicit), default=0)
    size = max(kernel.metadata.kernarg_size, kernel.descriptor.kernarg_size)
    if not needed <= len(given) <= max(size, needed):
        raise error("HK712", f"`{kernel.name}` takes {needed} bytes of arguments, not {len(given)}")
    segment = bytearray(given.ljust(size, b"\0"))
    values = _hidden(workgroups, threads, dynamic_lds)
    for argument in kernel.metadata.args:
        if argument.kind in values:
            content = values[argument.kind].to_bytes(argument.size, "little")
            segment[argument.offset : argument.offset + argument.size] = content
    return bytes(segment)


def _hidden(workgroups: Extents, threads: Extents, dynamic_lds: int) -> dict[str, int]:
    from hkc.emulate.operands import PRIVATE_BASE, SHARED_BASE

    values = {
        "hidden_grid_dims": max((i + 1 for i in range(3) if workgroups[i] > 1 or threads[i] > 1), default=1),
        "hidden_dynamic_lds_size": dynamic_lds,
        "hidden_private_base": PRIVATE_BASE >> 32,
        "hidden_shared_base": SHARED_BASE >> 32,
    }
    for axis, count, size in zip("xyz", workgroups, threads, strict=True):
        values[f"hidden_block_count_{axis}"] = count
        values[f"hidden_group_size_{axis}"] = size
        values[f"hidden_remainder_{axis}"] = 0
        values[f"hidden_global_offset_{axis}"] = 0
    return values


def _packet(kernel: Kernel, workgroups: Extents, threads: Extents, kernarg: int) -> bytes:
    """The HSA kernel dispatch packet that `dispatch_ptr` shows to the program."""
    grid = [w * t for w, t in zip(workgroups, threads, strict=True)]
    sizes = struct.pack("<HHHHH", 0, 3, *threads) + bytes(2) + struct.pack("<III", *grid)
    segments = struct.pack("<II", kernel.descriptor.scratch, kernel.descriptor.lds)
    return (sizes + segments + struct.pack("<QQ", kernel.entry, kernarg)).ljust(64, b"\0")
