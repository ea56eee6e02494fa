"""Where control goes in machine code: branch targets, successors, the hot loop."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
    """A loop: its instructions in order of address, and their positions in the code."""

    body: tuple[Instruction, ...]
    positions: tuple[int, ...]

    @property
    def start(self) -> int:
        """The position of its first instruction."""
        return self.positions[0]

    def count(self, pattern: str, text: str = "") -> int:
        """How many of its instructions have such a mnemonic (and such a text)."""
        return sum(bool(re.match(pattern, i.mnemonic)) and text in i.text for i in self.body)


def hot_loop(code: Sequence[Instruction]) -> Loop | None:
    """Of the loops that hold no other loop with MFMAs, the one with most MFMAs; of equals the shortest one."""
    found = loops(code)
    matrix = [loop for loop in found if loop.count(r"v_mfma")]
    around = {id(o) for o in found for i in matrix if set(i.positions) < set(o.positions)}
    innermost = [loop for loop in found if id(loop) not in around]
    return max(innermost, key=lambda loop: (loop.count(r"v_mfma"), -len(loop.body)), default=None)


def loops(code: Sequence[Instruction]) -> list[Loop]:
    """The natural loops: for each header all that lies on the way from it back to it."""
    following = successors(code)
    before: list[list[int]] = [[] for _ in code]
    for at, nexts in enumerate(following):
        for to in nexts:
            before[to].append(at)
    rank = {at: i for i, at in enumerate(_postorder(following))}
    over = _dominators(rank, before)
    bodies: dict[int, set[int]] = {}
    for at in rank:
        for header in following[at]:
            if rank[header] >= rank[at] and _dominates(header, at, over):
                bodies.setdefault(header, {header}).update(_back_to(header, at, before))
    return [Loop(tuple(code[i] for i in sorted(body)), tuple(sorted(body))) for body in bodies.values()]


def _back_to(header: int, end: int, before: Sequence[Sequence[int]]) -> set[int]:
    """Everything from which `end` is reached without passing `header`."""
    found, work = {header}, [end]
    while work:
        at = work.pop()
        if at not in found:
            found.add(at)
            work += before[at]
    return found


def _dominators(rank: Mapping[int, int], before: Sequence[Sequence[int]]) -> dict[int, int]:
    """The immediate dominators of what has a rank in postorder (Cooper, Harvey and Kennedy: A simple, fast dominance
    algorithm, 2001)."""
    order, over, changed = list(rank), {0: 0}, True
    while changed:
        changed = False
        for at in reversed(order[:-1]):
            known = [b for b in before[at] if b in over]
            best = known[0]
            for other in known[1:]:
                while best != other:
                    while rank[best] < rank[other]:
                        best = over[best]
                    while rank[other] < rank[best]:
                        other = over[other]
            changed |= over.get(at) != best
            over[at] = best
    return over


def _postorder(following: Sequence[Sequence[int]]) -> list[int]:
    """The positions that are reached from the first one, each after all that it leads to."""
    order, seen, stack = list[int](), {0}, [(0, iter(following[0]))] if following else []
    while stack:
        at, rest = stack[-1]
        to = next((n for n in rest if n not in seen), None)
        if to is None:
            order.append(at)
            stack.pop()
        else:
            seen.add(to)
            stack.append((to, iter(following[to])))
    return order


def _dominates(one: int, other: int, over: Mapping[int, int]) -> bool:
    while other not in (one, 0):
        other = over[other]
    return other == one
