"""Proves from machine code alone that every use of what memory operations bring is behind a wait.

An abstract interpretation over the control-flow graph. What is on its way is a map from registers (and two marks for
LDS) to an age: how many operations the wave issued on the same counter since. A wait for n leaves what is younger than
n; where paths meet, the younger age counts. So a loop's back edge is followed until nothing changes. Neither the passes
that place waits nor the emulator share code with this.

Which branches can be taken together: `hkc.machine.branches`.

Proved of each wave: no instruction uses a register that a load may still fill; all LDS writes have happened at a
barrier; a copy from memory to LDS is not repeated before the last one was waited for, since then no barrier can have
published it. Which bytes of LDS are meant is not followed here: the emulator's race check does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hkc.machine.branches import START, Known, after, conditions, taken
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
    """What is on its way: by counter, the things that operations bring and their ages."""

    ages: dict[str, dict[str, int]] = field(default_factory=lambda: {c: {} for c in _MOST})

    def copy(self) -> _State:
        return _State({c: dict(ages) for c, ages in self.ages.items()})

    def join(self, other: _State) -> bool:
        """Take in another state; whether that changed this one."""
        changed = False
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
    entries = _entries(code).items()
    found = {(at, why) for (at, _), state in entries for why in _step(code[at], state.copy())}
    return tuple(Uncovered(code[at], why) for at, why in sorted(found))


def needless(code: Code) -> frozenset[int]:
    """Addresses of waits for which, on every path, nothing is on its way; stores to memory don't count."""
    waits, needed = set[int](), set[int]()
    for (at, _), state in _entries(code).items():
        if code[at].mnemonic == "s_waitcnt":
            left = state.copy()
            list(_step(code[at], left))
            (waits if left == state else needed).add(code[at].address)
    return frozenset(waits - needed)


def _entries(code: Code) -> dict[_Place, _State]:
    """What may be on its way before each instruction."""
    following, wanted = successors(code), conditions(code)
    entry: dict[_Place, _State] = {(0, _frozen(START)): _State()} if code else {}
    work = list(entry)
    while work:
        place = work.pop()
        at, state = place[0], entry[place].copy()
        list(_step(code[at], state))
        known = after(code[at], dict(place[1]), wanted)
        for to in taken(code[at], at, following[at], known):
            there = _place(to, known, entry)
            if there not in entry:
                entry[there] = state.copy()
                work.append(there)
            elif entry[there].join(state):
                work.append(there)
    return entry


_Place = tuple[int, frozenset[tuple[str, str]]]
"""A position in the code, and what is known there of conditions."""
_VARIANTS = 1 << 14


def _frozen(known: Known) -> frozenset[tuple[str, str]]:
    return frozenset(known.items())


def _place(at: int, known: Known, entry: Mapping[_Place, _State]) -> _Place:
    """Where paths that know different things stay apart, unless there are very many."""
    return (at, _frozen(known) if len(entry) < _VARIANTS else frozenset())


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
