"""The parts of `bench/emulator.py`: the clock around every instruction, and how its rows are put together."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from emulated import run_kernel

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import emulator

IR = """
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %a = getelementptr float, ptr addrspace(1) %p, i32 %t
  %v = load float, ptr addrspace(1) %a
  %w = fadd float %v, 1.0
  store float %w, ptr addrspace(1) %a
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="64,64" }
"""


def test_every_instruction_is_timed_and_has_a_class() -> None:
    profile = emulator.Profile()
    (after,), result = run_kernel(IR, "gfx942", "k", [np.zeros(64, np.float32)], observers=[profile])
    assert (after == 1).all()
    assert dict(profile.calls) == result.counts and min(profile.seconds.values()) > 0
    rows = [{"mnemonic": m, "seconds": 1.0, "steps": n} for m, n in result.counts.items()]
    rows += [{"mnemonic": m, "seconds": 10.0, "steps": 1} for m in ("v_mfma_f32_16x16x16_f16", "ds_read_b128")]
    found = emulator.classes([*rows, {"mnemonic": "(scheduling)", "seconds": 0.5, "steps": 0}])
    assert sum(found.values()) == len(result.counts) + 20.5 and found["scheduling"] == 0.5
    assert found["matrix instructions"] == found["LDS"] == 10 and {"memory", "vector ALU"} <= set(found)


def test_goals_are_judged_by_the_fewer_seconds() -> None:
    cost = {"seconds": 100.0, "cpu": 20.0, "gib": 1.0, "instructions": 5, "ok": True}
    row = {"name": "gemm", "chip": "gfx942", "off": cost, "on": cost, "slower": 3.9, "classes": {}, "profile": []}
    assert emulator.met(row) and "goals (30 s, 4 GiB, 4 times slower with checkers) met" in emulator.text(row)
    for off, slower in (({**cost, "cpu": 31.0}, 1.0), ({**cost, "gib": 4.1}, 1.0), (cost, 4.1)):
        assert not emulator.met({**row, "off": off, "slower": slower})
