"""Proves from machine code alone that every use of what memory operations bring is behind a wait.

An abstract interpretation over the control-flow graph. What is on its way is a map from registers (and two marks for
LDS) to an age: how many operations the wave issued on the same counter since. A wait for n leaves what is younger than
n; where paths meet, the younger age counts. So a loop's back edge is followed until nothing changes. Neither the passes
that place waits nor the emulator share code with this.

Proved of each wave: no instruction uses a register that a load may still fill; all LDS writes have happened at a
barrier; a copy from memory to LDS is not repeated before the last one was waited for, since then no barrier can have
published it. Which bytes of LDS are meant is not followed here: the emulator's race check does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hkc.machine.control import successors
from hkc.machine.disassemble import Instruction

_REGISTER = re.compile(r"\b([vas])(?:(\d+)|\[(\d+):(\d+)\])")
_RETURNING = re.compile(r"ds_(read|load|bpermute|permute|swizzle|consume|append|.*_rtn)")
_MOST = {"vm": 63, "lds": 15, "scalar": 1 << 30}
"""What counters count to: a wave issues nothing that a full one can't count, so what is older has happened."""

Code = Sequence[Instruction]
"""The instructions of one kernel, in order of address."""

LDS_WRITE, COPY = "a write to LDS", "a copy to LDS"


@dataclass(frozen=True)
class Uncovered:
    """An instruction that is not behind a wait that it needs, and why."""

    instruction: Instruction
    why: str

    def __str__(self) -> str:
        return f"{self.instruction.address:#x} {self.instruction.text}: {self.why}"


@dataclass
class _State:
    """What is on its way: by counter, the things that operations bring and their ages. And whether lanes may be
    switched off: all of them never are at a wave's start."""

    ages: dict[str, dict[str, int]] = field(default_factory=lambda: {c: {} for c in _MOST})
    masked: bool = False

    def copy(self) -> _State:
        return _State({c: dict(ages) for c, ages in self.ages.items()}, self.masked)

    def join(self, other: _State) -> bool:
        """Take in another state; whether that changed this one."""
        changed = other.masked and not self.masked
        self.masked |= other.masked
        for counter, theirs in other.ages.items():
            mine = self.ages[counter]
            for thing, age in theirs.items():
                if age < mine.get(thing, 1 << 31):
                    mine[thing] = age
                    changed = True
        return changed

    def issue(self, counter: str, things: Sequence[str]) -> None:
        most = _MOST[counter]
        older = {thing: age + 1 for thing, age in self.ages[counter].items() if age + 1 < most}
        self.ages[counter] = {**older, **dict.fromkeys(things, 0)}

    def wait(self, counter: str, allowed: int) -> None:
        self.ages[counter] = {thing: age for thing, age in self.ages[counter].items() if age < allowed}

    def pending(self, thing: str, but: str = "") -> bool:
        return any(thing in ages for counter, ages in self.ages.items() if counter != but)


def verify(code: Code) -> tuple[Uncovered, ...]:
    """What is not proved of a kernel, in order of address."""
    following = successors(code)
    entry: dict[int, _State] = {0: _State()}
    found: dict[tuple[int, str], Uncovered] = {}
    work = [0] if code else []
    while work:
        at = work.pop()
        state = entry[at].copy()
        for why in _step(code[at], state):
            found.setdefault((at, why), Uncovered(code[at], why))
        state.masked = _masked(code[at], state.masked)
        for to in _taken(code[at], at, following[at], state):
            if to not in entry:
                entry[to] = state.copy()
                work.append(to)
            elif entry[to].join(state):
                work.append(to)
    return tuple(found[key] for key in sorted(found))


def _taken(instruction: Instruction, at: int, following: Sequence[int], state: _State) -> Sequence[int]:
    """Where control may go: compilers ask whether EXEC is 0 where they know that it is not, to jump always or never."""
    if state.masked or instruction.mnemonic not in ("s_cbranch_execz", "s_cbranch_execnz"):
        return following
    return [to for to in following if (to == at + 1) == (instruction.mnemonic == "s_cbranch_execz")]


def _masked(instruction: Instruction, before: bool) -> bool:
    """Whether lanes may be switched off after it."""
    name, operands = instruction.mnemonic, instruction.operands
    if "saveexec" in name or "wrexec" in name or name.startswith("v_cmpx"):
        return True
    if operands and operands[0].startswith("exec"):
        return (name, *operands) != ("s_mov_b64", "exec", "-1")
    return before


def _step(instruction: Instruction, state: _State) -> Iterator[str]:
    """The effect of an instruction on the state; what it may use too early."""
    name = instruction.mnemonic
    if name == "s_waitcnt":
        for counter, key in (("vm", "vmcnt"), ("lds", "lgkmcnt")):
            if key in instruction.modifiers:
                state.wait(counter, int(instruction.modifiers[key]))
        if instruction.modifiers.get("lgkmcnt") == "0":
            state.wait("scalar", 0)
        return
    if name == "s_barrier" and state.pending(LDS_WRITE):
        yield "at the barrier an LDS write of the wave may not have happened"
    counter, brought = _brings(instruction)
    for register in registers(", ".join(instruction.operands)):
        if state.pending(register, counter if register in brought else ""):
            yield f"{register} may still be on its way"
    if counter:
        mark = f"{COPY} at {instruction.address:#x}"
        if mark in brought and state.pending(mark):
            yield "the last copy to LDS from here may not have been waited for"
        state.issue(counter, brought)


def _brings(instruction: Instruction) -> tuple[str, list[str]]:
    """The counter of a memory operation ("" for other instructions), and what it brings."""
    name, modifiers = instruction.mnemonic, instruction.modifiers
    first = list(registers(instruction.operands[0])) if instruction.operands else []
    if name.startswith(("s_load", "s_buffer_load", "s_memtime", "s_memrealtime")):
        return "scalar", first
    if name.startswith("ds_"):
        returns = _RETURNING.match(name) is not None
        writes = not re.match(r"ds_(read|load|bpermute|permute|swizzle)", name)
        return "lds", [*(first if returns else []), *([LDS_WRITE] if writes else [])]
    if name.startswith(("buffer_", "global_", "scratch_", "flat_")):
        if "lds" in modifiers:
            return "vm", [f"{COPY} at {instruction.address:#x}"]
        returns = "_load_" in name or ("_atomic_" in name and "sc0" in modifiers)
        return ("vm", first if returns else []) if not name.endswith(("wbl2", "inv")) else ("", [])
    return "", []


def registers(text: str) -> Iterator[str]:
    """The registers in operands, one by one: `v3`, `a0`, `s16`."""
    for kind, single, low, high in _REGISTER.findall(text):
        for number in range(int(single or low), int(single or high) + 1):
            yield f"{kind}{number}"
