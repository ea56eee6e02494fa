"""Breakpoints, traces and watches."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from emulated import CHIPS, Wave, assemble, compile_ir
from test_kernels import ADD

from hkc.emulate import Break, Memory, Observer, Program, Trace, Watch, run
from hkc.machine.lines import Line
from hkc.support.errors import HkcUsageError

pytestmark = pytest.mark.parametrize("arch", CHIPS)

LINES = ("v_mov_b32_e32 v1, 2.0", "v_add_f32_e32 v0, v1, v1", "s_mov_b32 s4, 7", "ds_write_b32 v2, v0", "s_endpgm")


def wave(arch: str, *observers: Observer) -> None:
    made = Wave(arch, lds=256)
    made.vector(2, np.arange(64) * 4)
    made.active(0xF)
    made.run(*LINES, observers=observers)


def test_a_trace(arch: str) -> None:
    plain, values = io.StringIO(), io.StringIO()
    wave(arch, Trace(plain), Trace(values, values=True))
    rows = plain.getvalue().splitlines()
    assert [row.split("  ")[-1] for row in rows] == list(LINES)
    assert all(row.split()[0] == "0" for row in rows)
    assert "v_add_f32_e32 v0, v1, v1  ; v0 = 40800000" in values.getvalue()
    assert "s_mov_b32 s4, 7  ; s4 = 00000007" in values.getvalue()


def test_a_breakpoint_shows_what_the_instruction_names(arch: str) -> None:
    program = Program.load(compile_ir(ADD, arch))
    store = next(i for i in program.instructions if i.base == "global_store_dword")
    out = io.StringIO()
    a, b, c = np.arange(300, dtype=np.float32), np.ones(300, np.float32), np.zeros(300, np.float32)
    stop = Break(store.address, out, wave=2)
    run(program, a, b, c, 300, grid=2, block=256, observers=[stop])
    shown = out.getvalue()
    assert f"{store.address:#x}: {store.text}" in shown and "wave 2 of workgroup 0" in shown
    data = store.operands[1].name
    assert f"{data:>6} [ 0] {np.float32(129).view(np.uint32):08x}" in shown and "129 130 131" in shown


def test_what_is_not_there_yet_has_no_value(arch: str) -> None:
    """Dashes for what was never written, dots for what a load will bring; stores and comparisons have no result."""
    out, trace, made = io.StringIO(), io.StringIO(), Wave(arch)
    made.pair(4, made.memory.allocate(64))
    made.vector(1, np.arange(64) % 8 * 4)
    made.memory.write(made.s(4) | made.s(5) << 32, np.full(16, 9, np.uint32))
    made.state.flags[3], made.state.scalar_unwritten[9] = 1, True
    lines = (
        "global_load_dword v2, v1, s[4:5]", "s_load_dword s8, s[4:5], 0x0", "s_nop 0", "s_waitcnt vmcnt(0) lgkmcnt(0)",
        "s_cmp_eq_u32 s8, 9", "global_store_dword v1, v2, s[4:5]", "s_endpgm",
    )  # fmt: skip
    where = [Program.load(assemble(lines, arch)).instructions[n].address for n in (2, 4)]
    shown = ["v2", "v3", "s[8:9]"]
    made.run(*lines, observers=[Trace(trace, values=True), *(Break(at, out, show=shown) for at in where)])
    before, after = out.getvalue().split("s_cmp_eq_u32")
    assert (
        f"v2 [ 0] {' '.join(['.' * 8] * 8)}   {' '.join('-' * 8)}" in before and "s[8:9] = ........ --------" in before
    )
    assert "v2 [ 0] 00000009 " in after and f"v3 [ 0] {'-' * 8} " in after and "s[8:9] = 00000009 --------" in after
    rows = [row.split("  ")[-1] for row in trace.getvalue().splitlines()]
    assert rows[0].endswith("; v2 = ........") and rows[5] == lines[5] and rows[4] == lines[4]


def test_a_breakpoint_at_a_line(arch: str) -> None:
    program = Program.load(compile_ir(ADD, arch))
    add = next(i for i in program.instructions if i.base == "v_add_f32")
    lines = (Line(program.instructions[0].address, "k.hk", 3, 1), Line(add.address, "k.hk", 8, 5))
    out = io.StringIO()
    arrays = [np.ones(256, np.float32) for _ in range(3)]
    stop = Break(8, out, line=True, show=["s[0:1]", "exec", "v0"])
    run(replace(program, lines=lines), *arrays, 256, block=256, observers=[stop])
    text = out.getvalue()
    assert (
        text.startswith(f"{add.address:#x}: {add.text}")
        and "  s[0:1] = " in text
        and "  exec = ffffffff ffffffff" in text
    )
    with pytest.raises(HkcUsageError, match="no instruction comes from line 99"):
        run(replace(program, lines=lines), *arrays, 256, block=256, observers=[Break(99, out, line=True)])
    with pytest.raises(HkcUsageError, match="`q7` is no register"):
        Break(8, out, show=["q7"])


def test_a_breakpoint_shows_lds_and_memory(arch: str) -> None:
    out = io.StringIO()
    made = Wave(arch, lds=64)
    at = made.memory.allocate(64)
    made.memory.write(at, np.arange(16, dtype=np.uint32))
    made.vector(2, np.arange(64) * 4)
    made.vector(0, np.arange(64) + 0x100)
    made.active(0xF)
    lines = ("ds_write_b32 v2, v0", "s_waitcnt lgkmcnt(0)", "s_nop 0", "s_endpgm")
    where = Program.load(assemble(lines, arch)).instructions[2].address
    made.run(*lines, observers=[Break(where, out, show=["lds[0:22]", f"{at:#x}[4:12]"])])
    assert "0x0000: 00000100 00000101 00000102 00000103\n    0x0010: -------- --" in out.getvalue()
    assert "0x0004: 00000001 00000002" in out.getvalue()


def test_a_watch(arch: str) -> None:
    out = io.StringIO()
    a, b, c = np.full(300, 2, np.float32), np.ones(300, np.float32), np.zeros(300, np.float32)

    def element(memory: Memory) -> tuple[int, int]:
        return next(x.base for x in memory.allocations if x.name == "argument 2") + 4 * 261, 4

    place = Watch(element, out, "C[261]")
    run(compile_ir(ADD, arch), a, b, c, 300, grid=2, block=256, observers=[place])
    (line,) = out.getvalue().splitlines()
    assert line.startswith("C[261]: 00000000 -> 40400000 by wave 4, lane 5 at 0x")
