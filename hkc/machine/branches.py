"""Which way a branch on EXEC or VCC can go, from what is known of a path: compilers often ask what they know already.

EXEC is not 0 at a wave's start, nor before something switches lanes off. And a condition that is computed as 0 or -1 on
one path and asked for later, as structured control flow leaves it, is one of the two and not both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hkc.machine.disassemble import Instruction

Known = Mapping[str, str]
"""Register or pair → `zero`, `ones` (all bits) or `some` (not zero)."""

START: Known = {"exec": "some"}
_ASKED = {
    "s_cbranch_execz": ("exec", True), "s_cbranch_execnz": ("exec", False),
    "s_cbranch_vccz": ("vcc", True), "s_cbranch_vccnz": ("vcc", False),
}  # fmt: skip
"""What a branch looks at, and whether it jumps where that is 0."""
_COMBINED = ("s_and_b64", "s_andn2_b64")


def conditions(code: Sequence[Instruction]) -> frozenset[str]:
    """The registers whose values decide branches: EXEC, VCC, and what VCC is made from."""
    found = {"exec", "vcc"}
    for i in code:
        if i.mnemonic in (*_COMBINED, "s_mov_b64") and i.operands[0] == "vcc":
            found |= set(i.operands[1:])
    return frozenset(found)


def after(instruction: Instruction, known: Known, wanted: Collection[str]) -> Known:
    """What is known after an instruction, of the `wanted` registers."""
    name, operands = instruction.mnemonic, instruction.operands
    results = operands[: 2 if name.startswith("v_") else 1]
    if "saveexec" in name or "wrexec" in name or name.startswith("v_cmpx"):
        results = (*results, "exec")
    left = {kept: value for kept, value in known.items() if not any(_overlap(kept, r) for r in results)}
    value = _value(name, operands, known)
    return {**left, operands[0]: value} if value and operands[0] in wanted else left


def taken(instruction: Instruction, at: int, following: Sequence[int], known: Known) -> Sequence[int]:
    """Those of the positions `following` the one `at` to which control may go."""
    register, jumps_at_zero = _ASKED.get(instruction.mnemonic, ("", False))
    if register not in known:
        return following
    jumps = (known[register] == "zero") == jumps_at_zero
    return [to for to in following if (to != at + 1) == jumps]


def _value(name: str, operands: Sequence[str], known: Known) -> str | None:
    if name == "s_mov_b64":
        return {"0": "zero", "-1": "ones"}.get(operands[1]) or known.get(operands[1])
    if name not in _COMBINED or "exec" not in operands[1:] or (name == "s_andn2_b64" and operands[1] != "exec"):
        return None
    other = known.get(next((o for o in operands[1:] if o != "exec"), "exec"))
    if other == ("zero" if name == "s_and_b64" else "ones"):
        return "zero"
    return "some" if other == ("ones" if name == "s_and_b64" else "zero") and "exec" in known else None


def _overlap(one: str, two: str) -> bool:
    if one[0] != "s" or two[0] != "s":
        return one[:3] == two[:3] and one[0] != "s"
    (first, last), (low, high) = _range(one), _range(two)
    return first <= high and low <= last


def _range(register: str) -> tuple[int, int]:
    low, _, high = register.strip("s[]").partition(":")
    return int(low), int(high or low)
