"""Program control: branches, calls, waits, barriers, EXEC bookkeeping, mode and hardware registers."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import EXEC, VCC, Decoded
from hkc.emulate.faults import trapped, unsupported
from hkc.emulate.modes import GPR_INDEX, SKIP
from hkc.emulate.operands import scalar_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.scalar import spread, stale
from hkc.emulate.semantics.salu import LOGIC, LOGIC_FIRST
from hkc.emulate.waves import Waves

END, BARRIER, QUEUE = -1, -2, -3
"""Jumps that are not addresses: the wave is done; it waits for the others of its workgroup; it has to try again when
global wave sync lets somebody pass."""

_NOWHERE = 1 << 62

Condition = Callable[[Waves], NDArray[np.bool_]]


def branch_target(instruction: Decoded) -> int:
    """The address to which a branch leads."""
    offset = instruction.simm16
    return instruction.address + 4 + 4 * (offset - (1 << 16) if offset & 0x8000 else offset)


_CONDITIONS: dict[str, Condition] = {
    "s_cbranch_scc0": lambda w: ~w.scc,
    "s_cbranch_scc1": lambda w: w.scc,
    "s_cbranch_vccz": lambda w: w.scalar64(VCC) == 0,
    "s_cbranch_vccnz": lambda w: w.scalar64(VCC) != 0,
    "s_cbranch_execz": lambda w: w.exec == 0,
    "s_cbranch_execnz": lambda w: w.exec != 0,
}


@op("s_branch")
def _(instruction: Decoded, context: Context) -> Step:
    target = branch_target(instruction)
    return lambda w: np.full(w.count, target, np.int64)


@op(*_CONDITIONS)
def _(instruction: Decoded, context: Context) -> Step:
    target, following = branch_target(instruction), instruction.address + instruction.size
    condition = _CONDITIONS[instruction.base]

    def step(w: Waves) -> NDArray[np.int64] | None:
        taken = condition(w)
        if w.scalar_taint is not None:
            w.consume("a branch")
        if not taken.any():
            return None
        return np.where(taken, np.int64(target), np.int64(following))

    return step


@op("s_endpgm")
def _(instruction: Decoded, context: Context) -> Step:
    def step(w: Waves) -> NDArray[np.int64]:
        w.state.outstanding.finish(w.rows)
        return np.full(w.count, END, np.int64)

    return step


@op("s_barrier")
def _(instruction: Decoded, context: Context) -> Step:
    return lambda w: np.full(w.count, BARRIER, np.int64)


@op("s_waitcnt")
def _(instruction: Decoded, context: Context) -> Step:
    bits = instruction.simm16
    vm, lgkm = bits & 0xF | bits >> 14 << 4, bits >> 8 & 0xF
    every_vm, every_lgkm = vm == 0x3F, lgkm == 0xF

    def step(w: Waves) -> None:
        w.state.outstanding.wait(w.rows, None if every_vm else vm, None if every_lgkm else lgkm)

    return step


@op(
    "s_nop", "s_setprio", "s_sleep", "s_icache_inv", "s_dcache_inv", "s_dcache_wb", "s_dcache_inv_vol",
    "s_dcache_wb_vol", "s_incperflevel", "s_decperflevel", "s_ttracedata", "s_wakeup", "s_sendmsg",
    "buffer_inv", "buffer_wbl2", "v_nop",
)  # fmt: skip
def _(instruction: Decoded, context: Context) -> Step:
    """Nothing that a program could observe here: caches are coherent, priorities have no say."""
    return lambda w: None


_DEBUG_TRAP = 3
"""LLVM AMDGPUUsage, "Trap Handler ABI": a breakpoint, from which a program goes on where there is no debugger."""


@op("s_trap")
def _(instruction: Decoded, context: Context) -> Step:
    """ROCm's trap handler halts the wave and ends the queue with an error; 2 is what `llvm.trap` becomes."""

    def step(w: Waves) -> None:
        raise trapped(instruction, w.state.first_wave + int(w.rows[0]), int(w.mask[0].argmax()))

    return (lambda w: None) if instruction.simm16 & 0xFF == _DEBUG_TRAP else step


@op("s_sethalt", "s_sendmsghalt")
def _(instruction: Decoded, context: Context) -> Step:
    """A wave that halts waits for the host to wake it, which nobody does here."""

    def step(w: Waves) -> None:
        raise trapped(instruction, w.state.first_wave + int(w.rows[0]), int(w.mask[0].argmax()), "halts")

    return step if instruction.base == "s_sendmsghalt" or instruction.simm16 & 1 else lambda w: None


# calls


def memory_address(w: Waves, place: int) -> NDArray[np.uint64]:
    """Where in memory an address of the file is."""
    return np.array([w.state.code_base + place], np.uint64)


def file_address(w: Waves, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The inverse; what lies before the code object leads nowhere."""
    places = (addresses - np.uint64(w.state.code_base)).astype(np.int64)
    return np.broadcast_to(np.where(places < 0, np.int64(_NOWHERE), places), (w.count,))


@op("s_getpc_b64")
def _(instruction: Decoded, context: Context) -> Step:
    index, following = instruction.operands[0].index, instruction.address + instruction.size
    return lambda w: w.set_scalar64(index, memory_address(w, following))


@op("s_setpc_b64")
def _(instruction: Decoded, context: Context) -> Step:
    read = scalar_reader(instruction.operands[0], 64, instruction)
    return lambda w: file_address(w, read(w))


@op("s_swappc_b64")
def _(instruction: Decoded, context: Context) -> Step:
    index, following = instruction.operands[0].index, instruction.address + instruction.size
    read = scalar_reader(instruction.operands[1], 64, instruction)

    def step(w: Waves) -> NDArray[np.int64]:
        target = file_address(w, read(w))
        w.set_scalar64(index, memory_address(w, following))
        return target

    return step


@op("s_call_b64")
def _(instruction: Decoded, context: Context) -> Step:
    index, following = instruction.operands[0].index, instruction.address + instruction.size
    target = branch_target(instruction)

    def step(w: Waves) -> NDArray[np.int64]:
        w.set_scalar64(index, memory_address(w, following))
        return np.full(w.count, target, np.int64)

    return step


# EXEC


def _saveexec(function: Callable[..., NDArray[np.uint64]], write_exec: bool) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        index = instruction.operands[0].index
        read = scalar_reader(instruction.operands[1], 64, instruction)

        def step(w: Waves) -> None:
            old, asked = w.exec, read(w)
            fresh = np.broadcast_to(function(asked, old), old.shape)
            if w.scalar_taint is not None:
                spread(w, function, [asked, old], [stale(w, instruction.operands[1], 64), np.zeros_like(old)])
            w.set_scalar64(index, old if write_exec else fresh)
            w.set_scalar64(EXEC, fresh)
            w.scc = fresh != 0

        return step

    return build


for _name, _function in (LOGIC | LOGIC_FIRST).items():
    op(f"s_{_name}_saveexec_b64")(_saveexec(_function, True))
op("s_andn1_wrexec_b64")(_saveexec(LOGIC_FIRST["andn1"], False))
op("s_andn2_wrexec_b64")(_saveexec(LOGIC["andn2"], False))

# hardware registers and clocks

_MODE = re.compile(r"hwreg\((HW_REG_\w+|\d+)(?:, *(\d+), *(\d+))?\)")


def _hardware(instruction: Decoded) -> tuple[str, int, int]:
    """(register name, lowest bit, number of bits)."""
    found = _MODE.search(instruction.text)
    if found is None:
        raise unsupported(instruction, "this hardware register operand")
    name, offset, size = found.groups()
    return name, int(offset or 0), int(size or 32)


@op("s_getreg_b32")
def _(instruction: Decoded, context: Context) -> Step:
    name, offset, size = _hardware(instruction)
    index = instruction.operands[0].index
    field = np.uint32((1 << size) - 1)
    if name == "HW_REG_MODE":
        return lambda w: w.set_scalar(index, w.state.mode[w.rows] >> np.uint32(offset) & field)
    if name in ("HW_REG_HW_ID", "HW_REG_XCC_ID"):
        # one compute unit of one chiplet runs everything here
        return lambda w: w.set_scalar(index, np.zeros(w.count, np.uint32))
    raise unsupported(instruction, f"the hardware register {name}")


@op("s_setreg_b32", "s_setreg_imm32_b32")
def _(instruction: Decoded, context: Context) -> Step:
    name, offset, size = _hardware(instruction)
    if name != "HW_REG_MODE":
        raise unsupported(instruction, f"the hardware register {name}")
    read = scalar_reader(instruction.operands[1], 32, instruction)
    field = np.uint32((1 << size) - 1 << offset)

    def step(w: Waves) -> None:
        fresh = read(w) << np.uint32(offset) & field
        if (fresh & np.uint32(GPR_INDEX | SKIP)).any():
            raise unsupported(instruction, "relative registers or skipping, when set by")
        w.state.mode[w.rows] = w.state.mode[w.rows] & ~field | fresh
        w.refresh_mode()

    return step


@op("s_memtime", "s_memrealtime")
def _(instruction: Decoded, context: Context) -> Step:
    index = instruction.operands[0].index

    def step(w: Waves) -> None:
        w.state.clock += 64
        w.set_scalar64(index, np.full(w.count, w.state.clock, np.uint64))

    return step
