"""Checkers: each finds what it is for, with both parties, and says nothing about correct code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulated import CHIPS, Wave, compile_ir, run_kernel

from hkc.emulate import Finding, Program
from hkc.emulate.checks import CHECKS, name_of, observers
from hkc.emulate.codes import CODES
from hkc.machine.lines import Line
from hkc.support.errors import HkcUsageError

pytestmark = pytest.mark.parametrize("arch", CHIPS)

DECLARATIONS = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
"""


def kernel(body: str, threads: int = 256) -> str:
    """A kernel `k` of one buffer `%p`, with %i the workitem, %g the workgroup and 4 KiB of LDS."""
    return f"""
@lds = internal addrspace(3) global [1024 x i32] poison, align 16
define amdgpu_kernel void @k(ptr addrspace(1) %p) "amdgpu-flat-work-group-size"="{threads},{threads}" {{
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %g = call i32 @llvm.amdgcn.workgroup.id.x()
{body}
 ret void
}}
{DECLARATIONS}"""


def found(
    ir: str, arch: str, groups: int = 1, threads: int = 256, size: int = 1024, seed: int = 0
) -> tuple[Finding, ...]:
    """What all checkers find with a buffer of `size` words."""
    buffer = np.arange(size, dtype=np.uint32)
    options: dict[str, Any] = {"grid": (groups, 1, 1), "threads": threads, "seed": seed}
    _, result = run_kernel(ir, arch, "k", [buffer], observers=observers(CHECKS), **options)
    return tuple(result.findings)


FENCED = """ fence syncscope("workgroup") release
 call void @llvm.amdgcn.s.barrier()
 fence syncscope("workgroup") acquire
"""
MIRROR = """
 %a = getelementptr i32, ptr addrspace(3) @lds, i32 %i
 store i32 %i, ptr addrspace(3) %a
{between}
 %j = xor i32 %i, 255
 %b = getelementptr i32, ptr addrspace(3) @lds, i32 %j
 %x = load i32, ptr addrspace(3) %b
 %o = getelementptr i32, ptr addrspace(1) %p, i32 %i
 store i32 %x, ptr addrspace(1) %o
{after}
"""


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("between", "why"),
    [
        ("", "there is no barrier between them"),
        (" call void @llvm.amdgcn.s.barrier()", "not waited for before the barrier"),
        (FENCED, None),
    ],
    ids=["nothing", "barrier without wait", "wait and barrier"],
)
def test_lds_written_then_read(arch: str, between: str, why: str | None, seed: int) -> None:
    races = [
        f for f in found(kernel(MIRROR.format(between=between, after="")), arch, seed=seed) if f.kind == "lds race"
    ]
    if why is None:
        assert not races
        return
    assert races
    (race,) = races[:1]
    assert why in race.message and race.other is not None
    assert {race.text.split("_")[1][:4], race.other.text.split("_")[1][:4]} == {"read", "writ"}
    assert race.wave // 4 == race.other.wave // 4 == race.workgroup and race.wave != race.other.wave


def test_lds_read_then_written(arch: str) -> None:
    """The barrier that frees a buffer is missing; with it all is well."""
    after = "{between}\n %k = add i32 %i, 7\n store i32 %k, ptr addrspace(3) %a"
    race = found(kernel(MIRROR.format(between=FENCED, after=after.format(between=""))), arch)
    assert [(f.kind, f.text.split("_")[1][:5]) for f in race] == [("lds race", "write")]
    assert race[0].other is not None and "ds_read" in race[0].other.text
    assert found(kernel(MIRROR.format(between=FENCED, after=after.format(between=FENCED))), arch) == ()


def test_waves_that_write_the_same_word_at_once(arch: str) -> None:
    """Of different values, or of one that all of them know."""
    wave = " %w = lshr i32 %i, 6\n"
    (race,) = found(kernel(wave + " store volatile i32 %w, ptr addrspace(3) @lds"), arch)
    assert race.kind == "lds race" and "at the same time" in race.message
    assert found(kernel(" store volatile i32 7, ptr addrspace(3) @lds"), arch) == ()
    assert found(kernel(" store volatile i32 7, ptr addrspace(3) @lds"), arch, seed=2) == ()
    races = found(kernel(wave + " store volatile i32 %w, ptr addrspace(3) @lds"), arch, seed=2)
    assert [f.kind for f in races] == ["lds race"]


def test_lds_atomics_do_not_race(arch: str) -> None:
    count = ' %old = atomicrmw add ptr addrspace(3) @lds, i32 1 syncscope("workgroup") monotonic\n'
    first = """
 %first = icmp eq i32 %i, 0
 br i1 %first, label %init, label %go
init:
 store i32 0, ptr addrspace(3) @lds
 br label %go
go:
"""
    assert found(kernel(first + FENCED + count), arch) == ()
    races = found(kernel(first + count), arch)
    assert {f.kind for f in races} == {"lds race"}


def test_halves_of_a_word_are_apart(arch: str) -> None:
    """Waves that write different bytes of the same word do not race."""
    body = """
 %lane = and i32 %i, 63
 %wave = lshr i32 %i, 6
 %two = shl i32 %lane, 2
 %at = or i32 %two, %wave
 %a = getelementptr i8, ptr addrspace(3) @lds, i32 %at
 store i8 1, ptr addrspace(3) %a
"""
    assert found(kernel(body), arch) == ()


STORE = " %o = getelementptr i32, ptr addrspace(1) %p, i32 {index}\n store i32 %i, ptr addrspace(1) %o"


def test_workgroups_that_write_the_same_memory(arch: str) -> None:
    (race,) = found(kernel(STORE.format(index="%i")), arch, groups=2)
    assert race.kind == "global race" and race.other is not None
    assert "byte 0 of `argument 0`" in race.message and "workgroup" in race.message
    apart = " %t = shl i32 %g, 8\n %at = or i32 %t, %i\n" + STORE.format(index="%at")
    assert found(kernel(apart), arch, groups=4) == ()


def test_a_workgroup_that_reads_what_another_writes(arch: str) -> None:
    body = """
 %t = shl i32 %g, 8
 %at = or i32 %t, %i
 %n = add i32 %at, 256
 %q = getelementptr i32, ptr addrspace(1) %p, i32 %n
 %x = load i32, ptr addrspace(1) %q
 %o = getelementptr i32, ptr addrspace(1) %p, i32 %at
 store i32 %x, ptr addrspace(1) %o
"""
    for seed in (0, 3):
        kinds = {f.kind for f in found(kernel(body), arch, groups=3, seed=seed)}
        assert kinds == {"global race"}


MESSAGE = """
 %first = icmp eq i32 %g, 0
 br i1 %first, label %send, label %wait
send:
 %o = getelementptr i32, ptr addrspace(1) %p, i32 %i
 store i32 %g, ptr addrspace(1) %o
 {release}
 %flag = getelementptr i32, ptr addrspace(1) %p, i32 1000
 %old = atomicrmw xchg ptr addrspace(1) %flag, i32 1 syncscope("agent") monotonic
 br label %done
wait:
 %f = getelementptr i32, ptr addrspace(1) %p, i32 1000
 %v = load atomic i32, ptr addrspace(1) %f syncscope("agent") monotonic, align 4
 %ready = icmp eq i32 %v, 1
 br i1 %ready, label %receive, label %wait
receive:
 {acquire}
 %q = getelementptr i32, ptr addrspace(1) %p, i32 %i
 %x = load i32, ptr addrspace(1) %q
 %y = add i32 %i, 512
 %r = getelementptr i32, ptr addrspace(1) %p, i32 %y
 store i32 %x, ptr addrspace(1) %r
 br label %done
done:
"""


@pytest.mark.parametrize(("release", "acquire"), [(True, True), (False, True), (True, False)])
def test_messages_between_workgroups(arch: str, release: bool, acquire: bool) -> None:
    fences = {
        "release": 'fence syncscope("agent") release' if release else "",
        "acquire": 'fence syncscope("agent") acquire' if acquire else "",
    }
    kinds = [f.kind for f in found(kernel(MESSAGE.format(**fences), 64), arch, groups=2, threads=64)]
    assert kinds == ([] if release and acquire else ["global race"])


def test_atomics_of_workgroups_do_not_race(arch: str) -> None:
    body = ' %old = atomicrmw add ptr addrspace(1) %p, i32 1 syncscope("agent") monotonic'
    assert found(kernel(body), arch, groups=4) == ()


BARRIER = ' call void asm sideeffect "s_barrier", ""()'


def test_barriers_that_some_waves_miss(arch: str) -> None:
    body = f"""
 %w = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %i)
 %early = icmp ult i32 %w, 128
 br i1 %early, label %more, label %on
more:
{BARRIER}
 br label %on
on:
{BARRIER}
"""
    ir = kernel(body) + "declare i32 @llvm.amdgcn.readfirstlane.i32(i32)\n"
    (finding,) = found(ir, arch)
    assert finding.kind == "barrier" and "2 times" in finding.message and finding.other is not None
    offset = (
        body.replace("%early", "%late").replace("ult", "uge").replace("%w =", "%w2 =").replace("i32 %w,", "i32 %w2,")
    )
    offset = offset.replace("%on", "%end").replace("on:", "end:").replace("%more", "%rest").replace("more:", "rest:")
    assert found(kernel(body + offset) + "declare i32 @llvm.amdgcn.readfirstlane.i32(i32)\n", arch) == ()


def test_a_barrier_to_which_some_waves_and_lanes_never_come(arch: str) -> None:
    """100 of 256 threads: a part of wave 1, and waves 2 and 3 as a whole. Both are told."""
    body = f" %low = icmp ult i32 %i, 100\n br i1 %low, label %in, label %out\nin:\n{BARRIER}\n br label %out\nout:\n"
    lanes, waves = found(kernel(body), arch)
    assert (lanes.wave, lanes.lane, lanes.count) == (1, 36, 1) and "lane 36 is switched off" in lanes.message
    assert "1 times" in waves.message and "0 times" in waves.message
    assert waves.other is not None and (waves.other.wave, waves.other.text) == (2, "s_endpgm")


def test_barriers_in_a_part_of_a_wave(arch: str) -> None:
    body = f" %low = icmp ult i32 %i, 32\n br i1 %low, label %in, label %out\nin:\n{BARRIER}\n br label %out\nout:\n"
    (finding,) = found(kernel(body, 64), arch, threads=64)
    assert finding.kind == "barrier" and "lane 32" in finding.message and finding.lane == 32


def test_accesses_outside_the_arguments(arch: str) -> None:
    """They are reported, not carried out, and the rest of the kernel still runs."""
    (finding,) = found(kernel(STORE.format(index="%i")), arch, size=250)
    assert finding.kind == "out of bounds" and "into `argument 0`" in finding.message
    assert (finding.wave, finding.lane) == (3, 58)


def test_addresses_that_are_not_aligned(arch: str) -> None:
    store = """
 %t = mul i32 %i, 3
 %o = getelementptr i8, ptr addrspace(1) %p, i32 %t
 store i32 %i, ptr addrspace(1) %o, align 4
"""
    (plain,) = (f for f in found(kernel(store, 64), arch, threads=64) if f.kind != "global race")
    assert plain.kind == "unaligned" and "no multiple of 4" in plain.message
    wave = Wave(arch)
    at = wave.memory.allocate(64)
    wave.memory.write(at, bytes(64))
    wave.pair(4, at)
    wave.vector(0, np.full(64, 2))
    wave.vector(1, np.arange(64))
    wave.run("global_atomic_add v0, v1, s[4:5]", "s_endpgm", observers=observers(["misaligned"]))
    assert [f.kind for f in wave.found] == ["misaligned"]


def test_bank_conflicts(arch: str) -> None:
    """All lanes in one bank, then in neighbouring ones."""
    for stride, conflict in ((256, True), (4, False)):
        wave = Wave(arch, lds=64 * 256)
        wave.vector(0, np.arange(64) * stride)
        wave.vector(1, np.arange(64))
        wave.run("ds_write_b32 v0, v1", "s_endpgm", observers=observers(["bank-conflicts"]))
        assert bool(wave.found) == conflict
        if conflict:
            assert "clocks where" in wave.found[0].message


def test_scalar_registers_that_nothing_wrote(arch: str) -> None:
    body = ' call void asm sideeffect "s_cmp_eq_u32 s90, 0\\0A s_cbranch_scc1 0", "~{s90}"()'
    (finding,) = found(kernel(body, 64), arch, threads=64)
    assert finding.kind == "uninitialised" and "a branch" in finding.message
    store = ' %s = call i32 asm sideeffect "s_add_u32 $0, s90, 1", "=s,~{s90}"()\n' + STORE.format(index="%i").replace(
        "i32 %i, ptr", "i32 %s, ptr"
    )
    (finding,) = found(kernel(store, 64), arch, threads=64)
    assert finding.kind == "uninitialised" and "a stored value" in finding.message


def test_source_lines(arch: str) -> None:
    program = Program.load(compile_ir(kernel(STORE.format(index="%i")), arch))
    (finding,) = found(kernel(STORE.format(index="%i")), arch, size=250)
    where = replace(program, lines=(Line(0, "k.hk", 3, 5), Line(finding.address, "k.hk", 7, 9))).located(finding)
    assert where.line == Line(finding.address, "k.hk", 7, 9)


def test_names(arch: str) -> None:
    assert set(CHECKS.values()) <= set(CODES)
    assert name_of(Finding("lds race", 0, "", "", 0, 0)) == "lds-race"
    with pytest.raises(HkcUsageError, match="did you mean lds-race"):
        observers(["lds-rage"])
