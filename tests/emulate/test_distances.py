"""Wait states between vector instructions and what depends on them: just enough is silent, one fewer is found."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import CHIPS, Wave

from hkc.emulate import Finding
from hkc.emulate.checks import CHECKS, observers
from hkc.emulate.isa import load

pytestmark = pytest.mark.parametrize("arch", CHIPS)

MATRIX = "v_mfma_f64_4x4x4_4b_f64 v[40:41], v[42:43], v[44:45], v[46:47]"
ROWS = {
    "memory_scalar": ("v_readfirstlane_b32 s4, v9", "global_load_dword v8, v0, s[4:5]", "s4 is read by a memory"),
    "scalar": ("v_cmp_eq_u32_e64 s[8:9], v1, v2", "v_cndmask_b32_e64 v3, v1, v2, s[8:9]", "s8 is read"),
    "scalar vcc": ("v_cmp_eq_u32_e32 vcc, v1, v2", "v_addc_co_u32_e32 v3, vcc, v1, v2, vcc", "vcc_lo is read"),
    "lane_select": ("v_readfirstlane_b32 s9, v1", "v_readlane_b32 s10, v2, s9", "s9 chooses a lane"),
    "lane_exec": ("v_cmpx_eq_u32_e32 v1, v1", "v_readlane_b32 s10, v2, 3", "exec precedes an access to one lane"),
    "lane_vector": ("v_mov_b32_e32 v2, 1", "v_readfirstlane_b32 s10, v2", "v2 is read in one lane"),
    "dpp": ("v_mov_b32_e32 v2, 1", "v_mov_b32_dpp v3, v2 row_shr:1 row_mask:0xf bank_mask:0xf", "v2 is read from"),
    "dpp_exec": (
        "v_cmpx_eq_u32_e32 v1, v1",
        "v_mov_b32_dpp v3, v2 row_shr:1 row_mask:0xf bank_mask:0xf",
        "exec precedes DPP",
    ),
    "div_fmas": ("v_cmp_eq_u32_e32 vcc, v1, v1", "v_div_fmas_f32 v3, v1, v1, v1", "vcc_lo is read"),
    "transcendental": ("v_exp_f32_e32 v3, v1", "v_add_f32_e32 v4, v3, v1", "v3 is read"),
    "part": (
        "v_mov_b32_sdwa v3, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD",
        "v_mov_b32_e32 v4, v3",
        "v3 is read",
    ),
    "part op_sel": ("v_add_i16 v3, v1, v2 op_sel:[0,0,1]", "v_mov_b32_e32 v4, v3", "v3 is read"),
    "dot": ("v_dot4_i32_i8 v3, v1, v2, v3", "v_mov_b32_e32 v4, v3", "v3 is read"),
    "dot factor": ("v_dot4_i32_i8 v3, v1, v2, v3", "v_dot4_i32_i8 v4, v3, v2, v5", "v3 is read"),
    "dot stored": ("v_dot4_i32_i8 v3, v1, v2, v3", "ds_write_b32 v0, v3", "v3 is used"),
    "dot overwritten": ("v_dot4_i32_i8 v3, v1, v2, v3", "v_mov_b32_e32 v3, 0", "v3 is overwritten"),
    "store_data": ("global_store_dwordx4 v0, v[20:23], s[4:5]", "v_mov_b32_e32 v23, 0", "v23 is overwritten"),
    "set": ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0", "s_getreg_b32 s9, hwreg(HW_REG_MODE)", "HW_REG_MODE is"),
    "m0": ("s_mov_b32 m0, 0", "global_load_lds_dword v0, s[4:5]", "m0 is read"),
    "matrix_f64": (MATRIX, "v_fma_f64 v[50:51], v[52:53], v[52:53], v[52:53]", "f64 precedes"),
}


def hazards(arch: str, *lines: str) -> tuple[Finding, ...]:
    wave = Wave(arch, lds=1024)
    for register in range(64):
        wave.vector(register, np.zeros(64, np.uint32))
    for register in range(16):
        wave.scalar(register, 0)
    memory = wave.memory.allocate(1024)
    wave.memory.write(memory, bytes(1024))
    wave.pair(4, memory)
    wave.vector(9, np.full(64, memory & 0xFFFFFFFF))
    wave.run(*lines, "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_endpgm", observers=observers(CHECKS))
    assert {f.kind for f in wave.found} <= {"valu hazard", "bank conflict"}
    return tuple(f for f in wave.found if f.kind == "valu hazard")


def apart(states: int) -> list[str]:
    return [f"s_nop {states - 1}"] if states else []


@pytest.mark.parametrize("row", ROWS)
def test_distances_of_the_table(arch: str, row: str) -> None:
    first, second, message = ROWS[row]
    states = load(arch).valu_waits[row.partition(" ")[0]]
    assert hazards(arch, first, *apart(states), second) == ()
    found = hazards(arch, first, *apart(states - 1), second)
    assert message in found[0].message and "1 wait states too early" in found[0].message
    assert found[0].other is not None and found[0].other.text.startswith(first.split()[0])


def test_the_whole_distance_is_said(arch: str) -> None:
    found = hazards(arch, "v_readfirstlane_b32 s9, v1", "v_readlane_b32 s10, v2, s9")
    assert "s9 chooses a lane 4 wait states too early after v_readfirstlane_b32" in [f.message for f in found]


def test_what_may_follow_at_once(arch: str) -> None:
    """Vector results are forwarded, dot products add up, transcendental instructions know each other."""
    assert hazards(arch, "v_mov_b32_e32 v3, 0", "v_add_u32_e32 v4, v3, v3") == ()
    assert hazards(arch, "v_dot4_i32_i8 v3, v1, v2, v3", "v_dot4_i32_i8 v3, v1, v2, v3") == ()
    assert hazards(arch, "v_exp_f32_e32 v3, v1", "v_log_f32_e32 v4, v3") == ()
    assert hazards(arch, "s_mov_b32 s9, 3", "v_readlane_b32 s10, v2, s9") == ()
    assert hazards(arch, "global_store_dwordx2 v0, v[20:21], s[4:5]", "v_mov_b32_e32 v21, 0") == ()


def test_permutations(arch: str) -> None:
    """Only the newer chip has these."""
    if arch != CHIPS[0]:
        swap = "v_permlane32_swap_b32_e32 v2, v3"
        assert hazards(arch, "v_mov_b32_e32 v3, 0", "s_nop 1", swap) == ()
        (found,) = hazards(arch, "v_mov_b32_e32 v3, 0", "s_nop 0", swap)
        assert found.message.startswith("v3 is read from other lanes 1 wait")
        assert hazards(arch, "v_cmpx_eq_u32_e32 v1, v1", "s_nop 3", swap) == ()
        assert "EXEC precedes" in hazards(arch, "v_cmpx_eq_u32_e32 v1, v1", "s_nop 2", swap)[0].message


def test_over_jumps_and_loops(arch: str) -> None:
    """Along the path that is taken: a jump over the wait states is found, a jump that isn't taken is not."""
    jump = ("v_exp_f32_e32 v3, v1", "s_cbranch_scc1 1", "s_nop 0", "v_mov_b32_e32 v4, v3")
    assert hazards(arch, *jump) == ()
    first = ("v_readfirstlane_b32 s9, v1", "s_branch 1", "s_nop 7", "v_readlane_b32 s10, v2, s9")
    assert [f.message[:22] for f in hazards(arch, *first)] == ["s9 chooses a lane 3 wa"]
    loop = ("s_mov_b32 s8, {}", "v_readlane_b32 s10, v2, s9", "v_readfirstlane_b32 s9, v1", "s_sub_u32 s8, s8, 1",
            "s_cmp_lg_u32 s8, 0", "s_cbranch_scc1 65530")  # fmt: skip
    assert hazards(arch, loop[0].format(1), *loop[1:]) == ()
    assert [f.message[:22] for f in hazards(arch, loop[0].format(2), *loop[1:])] == ["s9 chooses a lane 1 wa"]
