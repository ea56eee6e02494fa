"""Scalar registers remember bit by bit what was never written, since compilers keep a bool per lane in them: they merge
the masks of two paths by `(old & ~exec) | (new & exec)`, where `old` is nothing yet."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import CHIPS, Wave

pytestmark = pytest.mark.parametrize("arch", CHIPS)

LOW = (1 << 32) - 1
MERGE = ("s_andn2_b64 s[20:21], s[20:21], exec", "s_and_b64 s[22:23], s[6:7], exec",
         "s_or_b64 s[20:21], s[20:21], s[22:23]")  # fmt: skip
CHOOSE = "v_cndmask_b32_e64 v1, 0, 1, s[20:21]"
USE = "v_readfirstlane_b32 s8, v1"


def use(lane: int) -> tuple[str, ...]:
    return f"v_readlane_b32 s8, v1, {lane}", "s_cmp_eq_u32 s8, 0", "s_cbranch_scc1 0"


def prepared(arch: str) -> Wave:
    """s[4:5] is not 0, s[6:7] the odd lanes; all other scalar registers were never written."""
    wave = Wave(arch)
    wave.state.forget_scalars(range(4, 8))
    wave.pair(4, 1)
    wave.pair(6, 0xAAAAAAAAAAAAAAAA)
    wave.vector(1, np.zeros(64))
    return wave


def kinds(wave: Wave) -> list[str]:
    return [f.kind for f in wave.found]


def test_a_merged_mask_is_written(arch: str) -> None:
    wave = prepared(arch).run(*MERGE, CHOOSE, USE)
    assert (wave.found, wave.v(1).tolist()) == ((), [0, 1] * 32)


def test_lanes_of_the_other_path_are_not(arch: str) -> None:
    wave = prepared(arch)
    wave.active(LOW)
    wave.run(*MERGE, CHOOSE, USE)
    assert wave.found == ()
    wave.active(-1)
    wave.run(CHOOSE, USE)
    assert wave.found == ()  # the lane that is read has a bit of its own
    wave.run(*use(31))
    assert wave.found == ()
    wave.run(*use(40))
    assert kinds(wave) == ["uninitialised"]


@pytest.mark.parametrize("line", ["s_mov_b64 s[20:21], s[20:21]", "s_not_b64 s[20:21], s[20:21]",
    "s_xor_b64 s[20:21], s[20:21], s[20:21]", "s_or_b64 s[20:21], s[20:21], s[6:7]",
    "s_lshl_b64 s[20:21], s[20:21], 1", "s_and_b64 s[20:21], s[20:21], s[30:31]",
])  # fmt: skip
def test_no_operation_makes_a_value_of_nothing(arch: str, line: str) -> None:
    wave = prepared(arch).run(line, CHOOSE, *use(2))
    assert kinds(wave) == ["uninitialised"]


@pytest.mark.parametrize("line", ["s_and_b64 s[20:21], s[20:21], 0", "s_or_b64 s[20:21], -1, s[20:21]",
    "s_nor_b64 s[20:21], s[20:21], -1", "s_andn2_b64 s[20:21], 0, s[20:21]", "s_orn2_b64 s[20:21], -1, s[20:21]",
])  # fmt: skip
def test_bits_that_the_other_operand_decides(arch: str, line: str) -> None:
    assert prepared(arch).run(line, CHOOSE, USE, "s_cbranch_scc1 0").found == ()


def test_a_condition_of_bits_that_were_never_written(arch: str) -> None:
    wave = prepared(arch).run("s_and_b64 s[20:21], s[20:21], s[6:7]", "s_cbranch_scc1 0")
    assert kinds(wave) == ["uninitialised"]


def test_lanes_switched_off_by_nothing(arch: str) -> None:
    assert kinds(prepared(arch).run("s_and_saveexec_b64 s[10:11], s[20:21]")) == ["uninitialised"]
    wave = prepared(arch)
    wave.active(LOW)
    wave.run(*MERGE, "s_and_saveexec_b64 s[10:11], s[20:21]")
    assert wave.found == ()


def test_a_scalar_that_was_spilled_into_a_lane(arch: str) -> None:
    """Of an inactive lane, too; it comes back as it was."""
    wave = prepared(arch)
    wave.active(0xFF)
    wave.run("v_writelane_b32 v1, s20, 40", "v_writelane_b32 v1, s6, 41", *use(41))
    assert wave.found == ()
    wave.run("v_readlane_b32 s9, v1, 40")
    assert wave.found == ()
    wave.run("s_cmp_eq_u32 s9, 0", "s_cbranch_scc1 0")
    assert kinds(wave) == ["uninitialised"]
