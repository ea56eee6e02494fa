"""Loops of machine code, also where the code generator has put their blocks apart."""

from __future__ import annotations

from collections.abc import Sequence

from hkc.machine.control import hot_loop, loops
from hkc.machine.disassemble import Instruction

Line = str | tuple[str, int]
"""An instruction, or a branch and the number of the line that it goes to."""


def code(*lines: Line) -> Sequence[Instruction]:
    def text(at: int, line: Line) -> str:
        return line if isinstance(line, str) else f"{line[0]} {line[1] - at - 1 & 0xFFFF}"

    return [Instruction(4 * i, 4, bytes(4), text(i, line)) for i, line in enumerate(lines)]


MFMA = "v_mfma_f32_16x16x16_bf16 v[0:3], v[4:5], v[6:7], v[0:3]"


def test_a_jump_back_is_no_loop() -> None:
    """A branch that was moved behind the end, and comes back to where it would have fallen through."""
    made = code(("s_cbranch_scc1", 4), MFMA, "s_nop 0", "s_endpgm", "s_nop 1", ("s_branch", 1))
    assert loops(made) == [] and hot_loop(made) is None


def test_blocks_of_a_loop_that_lie_apart() -> None:
    made = code("s_nop 0", MFMA, ("s_cbranch_scc1", 5), ("s_cbranch_scc0", 1), "s_endpgm", "s_nop 1", ("s_branch", 3))
    (loop,) = loops(made)
    assert loop.positions == (1, 2, 3, 5, 6) and loop.start == 1
    assert loop.count(r"v_mfma") == 1 and [i.address for i in loop.body] == [4, 8, 12, 20, 24]


def test_the_innermost_loop_is_hot() -> None:
    """The outer one holds more MFMAs; one without any inside another does not count."""
    made = code(MFMA, MFMA, ("s_cbranch_scc0", 1), MFMA, ("s_cbranch_scc0", 0), "s_endpgm")
    assert sorted(loop.positions for loop in loops(made)) == [(0, 1, 2, 3, 4), (1, 2)]
    assert hot_loop(made) is not None and hot_loop(made).positions == (1, 2)  # type: ignore[union-attr]
    made = code(MFMA, "s_nop 0", ("s_cbranch_scc0", 1), ("s_cbranch_scc0", 0), "s_endpgm")
    assert hot_loop(made).positions == (0, 1, 2, 3)  # type: ignore[union-attr]


def test_code_that_nothing_reaches() -> None:
    assert loops(code("s_endpgm", MFMA, ("s_branch", 1))) == []
    assert loops([]) == []
