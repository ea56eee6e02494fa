"""Every scalar load, store and atomic, wave by wave."""

import re
from typing import Any

import numpy as np
import pytest
from emulated import CHIPS, Wave, compile_ir
from test_memory_sweep import RULES

from examples import examples, varied
from hkc.emulate import Finding, Memory, Program, launch
from hkc.emulate.checks import CHECKS, observers

WAVES, STEP = 8, 128
RNG = np.random.default_rng(8)
START = RNG.integers(0, 256, WAVES * STEP, np.uint8)
WIDTHS = {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}
NAMES = sorted(n for n in examples("gfx942") if re.match("s_(buffer_)?(load|store|atomic)_", n))


def prepared(arch: str, start: Any, buffer: bool) -> tuple[Wave, int]:
    """Waves with a base (or a buffer) of their own in s[4:7]; the examples add 32."""
    wave = Wave(arch, waves=WAVES)
    memory = wave.memory.allocate(len(start), "memory")
    wave.memory.write(memory, start)
    bases = memory - 32 + STEP * np.arange(WAVES)
    wave.scalar(4, bases & 0xFFFFFFFF)
    wave.scalar(5, bases >> 32)
    wave.scalar(6, 1 << 16)
    if buffer:
        wave.scalar(7, 0x27000)
    return wave, memory


def word(data: Any, wave: int, count: int) -> int:
    return int.from_bytes(bytes(data[STEP * wave : STEP * wave + 4 * count]), "little")


def held(wave: Wave, row: int, count: int) -> int:
    return sum(int(wave.state.scalar[16 + i, row]) << 32 * i for i in range(count))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", [n for n in NAMES if "_load_" in n or "_store_" in n])
def test_loads_and_stores(arch: str, name: str) -> None:
    wave, memory = prepared(arch, START, "buffer" in name)
    count = WIDTHS[name.rpartition("_")[2]]
    data = RNG.integers(0, 1 << 32, (count, WAVES))
    if "store" in name:
        for i in range(count):
            wave.scalar(16 + i, data[i])
    wave.step(examples(arch)[name])
    after = wave.memory.read(memory, len(START))
    for row in range(WAVES):
        if "load" in name:
            assert held(wave, row, count) == word(START, row, count)
        else:
            assert word(after, row, count) == sum(int(data[i, row]) << 32 * i for i in range(count))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", [n for n in NAMES if "_atomic_" in n])
@pytest.mark.parametrize("returned", (False, True))
def test_atomics(arch: str, name: str, returned: bool) -> None:
    operation = name.partition("atomic_")[2].removesuffix("_x2")
    count = 2 if name.endswith("_x2") else 1
    given = RNG.integers(0, 1 << 32, (2 * count, WAVES))
    given[count:, ::2] = np.array([[word(START, row, 2) >> 32 * i & 0xFFFFFFFF for row in range(0, WAVES, 2)]
                                   for i in range(count)])  # fmt: skip
    wave, memory = prepared(arch, START, "buffer" in name)
    for i in range(2 * count):
        wave.scalar(16 + i, given[i])
    wave.step(varied(examples(arch)[name], "glc") if returned else examples(arch)[name])
    after = wave.memory.read(memory, len(START))
    for row in range(WAVES):
        old, bits = word(START, row, count), 32 * count
        first, second = (sum(int(given[n + i, row]) << 32 * i for i in range(count)) for n in (0, count))
        if operation == "cmpswap":
            wanted = first if old == second else old
        else:
            wanted = RULES[operation](old, first, bits) & (1 << bits) - 1
        assert word(after, row, count) == wanted
        assert held(wave, row, count) == (old if returned else first)


@pytest.mark.parametrize("arch", CHIPS)
def test_waves_that_share_a_counter(arch: str) -> None:
    wave, memory = prepared(arch, START, False)
    base = memory - 32
    wave.pair(4, base)
    wave.memory.write(memory, np.array([100], np.uint32))
    wave.scalar(16, np.arange(1, WAVES + 1))
    wave.step(varied(examples(arch)["s_atomic_add"], "glc"))
    assert int.from_bytes(wave.memory.read(memory, 4), "little") == 100 + WAVES * (WAVES + 1) // 2
    assert sorted(wave.state.scalar[16, :WAVES].tolist()) == [100 + n * (n + 1) // 2 for n in range(WAVES)]


@pytest.mark.parametrize("arch", CHIPS)
def test_scalar_stores_beyond_a_buffer_are_dropped(arch: str) -> None:
    wave, memory = prepared(arch, START, True)
    wave.scalar(6, 36)
    for i in range(4):
        wave.scalar(16 + i, np.full(WAVES, 7))
    wave.step(examples(arch)["s_buffer_store_dwordx4"])
    after = wave.memory.read(memory, len(START))
    assert word(after, 0, 1) == 7 and after[4:16] == bytes(START[4:16])


def launched(arch: str, *lines: str, groups: int) -> tuple[Finding, ...]:
    """What all checkers find in workgroups of one wave whose scalar stores go to 64 bytes at s[4:5]; s6 counts them."""
    text = "\\0A".join(lines)
    memory = Memory()
    ir = f"""
    declare i32 @llvm.amdgcn.workgroup.id.x()
    define amdgpu_kernel void @k(ptr addrspace(1) %p) "amdgpu-flat-work-group-size"="64,64" {{
     %g = call i32 @llvm.amdgcn.workgroup.id.x()
     call void asm sideeffect "{text}", "{{s[4:5]}},{{s6}},~{{memory}}"(ptr addrspace(1) %p, i32 %g)
     ret void
    }}"""
    where = memory.allocate(64, "x")
    memory.write(where, bytes(64))
    kernarg = where.to_bytes(8, "little")
    program = Program.load(compile_ir(ir, arch))
    result = launch(program, "k", workgroups=(groups, 1, 1), threads=(64, 1, 1), kernarg=kernarg, memory=memory,
                    observers=observers(CHECKS))  # fmt: skip
    return result.findings


@pytest.mark.parametrize("arch", CHIPS)
def test_checkers_see_scalar_stores_and_atomics(arch: str) -> None:
    """Workgroups that store different words to one place, stores out of bounds; atomics are no race."""
    done = "s_waitcnt lgkmcnt(0)"
    (race,) = launched(arch, "s_store_dword s6, s[4:5], 0x10", done, groups=2)
    assert race.kind == "global race" and race.other is not None and race.text.startswith("s_store_dword")
    assert launched(arch, "s_atomic_add s6, s[4:5], 0x10", done, groups=2) == ()
    outside = launched(arch, "s_store_dword s6, s[4:5], 0x40", done, groups=1)
    assert [f.kind for f in outside] == ["out of bounds"] and outside[0].text.startswith("s_store_dword")
    outside = launched(arch, "s_atomic_add s6, s[4:5], 0x40", done, groups=1)
    assert [f.kind for f in outside] == ["out of bounds"]
