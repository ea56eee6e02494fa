"""An atomic on memory that was never written is a finding, unless what was there plays no part."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import CHIPS, Wave

pytestmark = pytest.mark.parametrize("arch", CHIPS)

WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"


def prepared(arch: str) -> Wave:
    """v0: each lane's place in LDS; v[2:3]: its place in memory that was never written; v4, v5: data."""
    wave = Wave(arch, lds=256)
    wave.state.lds.forget(0, 256)
    memory = wave.memory.allocate(256, "out")
    wave.memory.forget(memory, 256)
    wave.vector(0, 4 * np.arange(64))
    wave.vector(2, (memory + 4 * np.arange(64)) & 0xFFFFFFFF)
    wave.vector(3, (memory + 4 * np.arange(64)) >> 32)
    wave.vector(4, np.arange(64))
    wave.vector(5, np.arange(64))
    return wave


@pytest.mark.parametrize(("line", "place"), [
    ("ds_add_u32 v0, v4", "LDS byte 0x0"), ("ds_max_rtn_f32 v6, v0, v4", "LDS byte 0x0"),
    ("ds_wrxchg_rtn_b32 v6, v0, v4", "LDS byte 0x0"), ("global_atomic_add v[2:3], v4, off", "memory at"),
    ("global_atomic_swap v6, v[2:3], v4, off sc0", "memory at"),
    ("global_atomic_cmpswap v[2:3], v[4:5], off", "memory at"),
])  # fmt: skip
def test_what_was_there_counts(arch: str, line: str, place: str) -> None:
    wave = prepared(arch).run(line, WAIT)
    (finding,) = wave.found
    assert (finding.kind, finding.lane) == ("uninitialised", 0)
    assert f"atomic on never-written {place}" in finding.message
    assert len(wave.run(line, WAIT).found) == 1  # by now something was written


@pytest.mark.parametrize("line", ["global_atomic_swap v[2:3], v4, off", "ds_wrxchg_rtn_b32 v6, v0, v4"])
def test_what_was_there_does_not_count(arch: str, line: str) -> None:
    first = ("ds_write_b32 v0, v4", WAIT) if line.startswith("ds") else ()
    assert prepared(arch).run(*first, line, WAIT).found == ()
