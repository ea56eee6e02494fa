"""Where control goes in machine code: branch targets, successors, the hot loop."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hkc.machine.disassemble import Instruction

ENDS = frozenset({"s_endpgm", "s_setpc_b64", "s_trap"})


def target(instruction: Instruction) -> int | None:
    """The address that a branch goes to; None for other instructions."""
    if not instruction.mnemonic.startswith(("s_branch", "s_cbranch")):
        return None
    # The operand counts words from the next instruction, as a 16-bit number.
    words = int(instruction.operands[0], 0) & 0xFFFF
    return instruction.address + 4 + 4 * (words - 0x10000 if words & 0x8000 else words)


def successors(code: Sequence[Instruction]) -> list[tuple[int, ...]]:
    """For each instruction the positions of those that may come next."""
    place = {instruction.address: i for i, instruction in enumerate(code)}
    found: list[tuple[int, ...]] = []
    for i, instruction in enumerate(code):
        to = target(instruction)
        following = [i + 1] if i + 1 < len(code) and instruction.mnemonic not in (*ENDS, "s_branch") else []
        found.append((*following, *([place[to]] if to in place else [])))
    return found


@dataclass(frozen=True)
class Loop:
    """A loop without branches inside but its own: its instructions, and the position of the first."""

    body: tuple[Instruction, ...]
    start: int

    def count(self, pattern: str, text: str = "") -> int:
        """How many of its instructions have such a mnemonic (and such a text)."""
        return sum(bool(re.match(pattern, i.mnemonic)) and text in i.text for i in self.body)


def hot_loop(code: Sequence[Instruction]) -> Loop | None:
    """The loop with most MFMAs, from the target of a backward branch to the branch; of equals the shortest one."""
    place = {instruction.address: i for i, instruction in enumerate(code)}
    loops = [
        Loop(tuple(code[place[to] : i + 1]), place[to])
        for i, instruction in enumerate(code)
        if (to := target(instruction)) in place and to is not None and to <= instruction.address
    ]
    return max(loops, key=lambda loop: (loop.count(r"v_mfma"), -len(loop.body)), default=None)
