"""The proof that all waits are there: it holds of correct kernels, and no wait of a hot loop can be taken out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import hkc
from hkc.kernels.files import FOLDER, path
from hkc.machine.codeobject import CodeObject
from hkc.machine.control import hot_loop
from hkc.machine.disassemble import Instruction, listing
from hkc.machine.waits import needless, verify
from hkc.support.errors import HkcError

CHIPS = ("gfx942", "gfx950")
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.hk"))
LOOPED = """
kernel gemm(A: global[bf16, M, K], B: global[bf16, N, K], C: global[f32, M, N]) with HINTS:
    m, n = tile_ids(cdiv(M, 64), cdiv(N, 64))
    acc = zeros[f32, 64, 64]
    for k in range(0, K, 64):
        acc += dot(load(A, [m*64, k], [64, 64]), load(B, [n*64, k], [64, 64]).T)
    store(C, [m*64, n*64], acc)
"""


def codes(hsaco: bytes) -> Iterator[tuple[str, tuple[Instruction, ...]]]:
    parsed = CodeObject.parse(hsaco)
    for kernel in parsed.kernels:
        yield kernel.name, listing(parsed, kernel)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_waits_of_the_examples(example: Path, arch: str) -> None:
    for name, code in codes(hkc.compile(example, arch).hsaco):
        assert verify(code) == (), name


SHIPPED = sorted(p.stem for p in FOLDER.glob("*.hk") if "\nkernel " in p.read_text())


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", ["gemm", *(pytest.param(n, marks=pytest.mark.long) for n in SHIPPED if n != "gemm")])
def test_waits_of_the_kernels_of_hkc(name: str, arch: str) -> None:
    """All are there; and in hot loops of aligned entries none waits for all of memory without need, as the code
    generator's own would that it can't tell apart."""
    try:
        kernel = hkc.compile(path(name), arch)
    except HkcError as refusal:
        assert refusal.diagnostics[0].code == "HK451"
        return
    for symbol, code in codes(kernel.hsaco):
        assert verify(code) == (), symbol
        loop = hot_loop(code)
        if loop is None or symbol.endswith("__general"):
            continue
        if loop.count("buffer_load", " lds"):
            # Which copies a wait is for is not followed: there is one wait per trip, each of which has a barrier.
            assert loop.count("s_waitcnt", "vmcnt(0)") <= loop.count("s_barrier")
            continue
        for at in loop.positions:
            if "vmcnt(0)" in code[at].text:
                weaker = replace(code[at], text=code[at].text.replace("vmcnt(0)", "vmcnt(1)"))
                assert verify([*code[:at], weaker, *code[at + 1 :]]), f"{symbol}: {code[at]}"


def weakened(wait: Instruction, copies: bool) -> Iterator[str]:
    """The wait with each of its counts taken out or one higher. Where tiles go straight to LDS, waits for them are
    left: which bytes they bring is for the emulator's race check to follow."""
    counts = dict(wait.modifiers)
    for key in counts.keys() - ({"vmcnt"} if copies else set()):
        for other in (None, int(counts[key]) + 1):
            parts = [f"{k}({v if k != key else other})" for k, v in counts.items() if k != key or other is not None]
            yield f"s_waitcnt {' '.join(parts)}" if parts else "s_nop 0"


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("hints", ["waves=8, schedule=pingpong", "waves=8, schedule=pingpong, stages=3"])
def test_no_wait_of_the_hot_loop_can_be_weakened(hints: str, arch: str) -> None:
    code = dict(codes(hkc.compile(LOOPED.replace("HINTS", hints), arch).hsaco))["gemm"]
    assert verify(code) == ()
    loop = hot_loop(code)
    assert loop is not None
    tried, copies = 0, loop.count("buffer_load", " lds") > 0
    for at in loop.positions:
        if code[at].mnemonic == "s_waitcnt":
            for text in weakened(code[at], copies):
                mutant = [*code[:at], replace(code[at], text=text), *code[at + 1 :]]
                assert verify(mutant), f"{code[at].text} -> {text}"
                tried += 1
    assert tried > 3


def test_copies_that_are_never_waited_for() -> None:
    copy = "buffer_load_dword v0, s[0:3], 0 offen lds"
    loop = [copy, "s_barrier", "s_cbranch_scc1 65533", "s_endpgm"]
    (found,) = verify(instructions(*loop))
    assert "copy to LDS" in found.why
    loop.insert(1, "s_waitcnt vmcnt(0)")
    loop[3] = "s_cbranch_scc1 65532"
    assert verify(instructions(*loop)) == ()


def instructions(*texts: str) -> list[Instruction]:
    return [Instruction(4 * i, 4, b"", text) for i, text in enumerate(texts)]


def test_the_younger_age_counts_where_paths_meet() -> None:
    load, use = "buffer_load_dword v1, v0, s[0:3], 0 offen", "v_add_u32_e32 v2, v1, v1"
    later = "buffer_load_dword v5, v0, s[0:3], 0 offen"
    skipped = instructions(load, "s_cbranch_scc0 1", later, "s_waitcnt vmcnt(1)", use, "s_endpgm")
    (found,) = verify(skipped)
    assert (found.instruction.text, found.why) == (use, "v1 may still be on its way")
    assert verify(instructions(load, later, "s_waitcnt vmcnt(1)", use, "s_endpgm")) == ()


def test_exec_is_zero_only_where_something_masks_lanes() -> None:
    """A jump where EXEC is 0 can't be taken before lanes are switched off, one where it isn't must be."""
    load, use = "buffer_load_dword v1, v0, s[0:3], 0 offen", "v_add_u32_e32 v2, v1, v1"
    skips = [load, "s_cbranch_execz 1", "s_waitcnt vmcnt(0)", use, "s_endpgm"]
    assert verify(instructions(*skips)) == ()
    jumps = [load, "s_waitcnt vmcnt(0)", "s_cbranch_execnz 1", load, use, "s_endpgm"]
    assert verify(instructions(*jumps)) == ()
    for mask in ("s_and_saveexec_b64 s[4:5], vcc", "s_mov_b64 exec, s[4:5]", "v_cmpx_eq_u32_e32 v3, v4"):
        assert verify(instructions(mask, *skips)) and verify(instructions(mask, *jumps))
        assert verify(instructions(mask, "s_mov_b64 exec, -1", *skips)) == ()
    joined = ["s_cbranch_scc0 1", "s_and_saveexec_b64 s[4:5], vcc", *skips]
    assert verify(instructions(*joined))


def test_a_condition_that_is_asked_for_twice() -> None:
    """Of the two paths that jump over a wait each, none jumps over both, unless the condition changes in between."""
    load, use = "buffer_load_dword v1, v0, s[0:3], 0 offen", "v_add_u32_e32 v2, v1, v1"
    first = [
        load,
        "s_cbranch_scc1 3",
        "s_waitcnt vmcnt(0)",
        "s_mov_b64 s[4:5], 0",
        "s_branch 1",
        "s_mov_b64 s[4:5], -1",
    ]
    second = ["s_andn2_b64 vcc, exec, s[4:5]", "s_cbranch_vccnz 1", "s_waitcnt vmcnt(0)", use, "s_endpgm"]
    assert verify(instructions(*first, *second)) == ()
    assert verify(instructions(*first, "s_mov_b32 s5, s7", *second))
    assert verify(instructions(*first, *second[:1], "v_cmp_eq_u32_e32 vcc, v3, v4", *second[1:]))
    other = ["s_and_b64 vcc, exec, s[4:5]", "s_cbranch_vccz 1", *second[2:]]
    assert verify(instructions(*first, *other)) == ()
    assert verify(instructions(*first, "s_and_saveexec_b64 s[8:9], s[10:11]", *other))  # ones of no lanes are 0, too
    assert verify(instructions(*first, *other[:1], "s_cbranch_vccnz 1", *other[2:]))


def test_scalar_loads_return_in_any_order() -> None:
    code = ["s_load_dword s4, s[0:1], 0x0", "s_load_dword s5, s[0:1], 0x4", "s_waitcnt lgkmcnt(1)"]
    assert verify(instructions(*code, "s_mov_b32 s6, s4", "s_endpgm"))
    assert verify(instructions(*code[:2], "s_waitcnt lgkmcnt(0)", "s_mov_b32 s6, s4", "s_endpgm")) == ()


def test_waits_for_nothing() -> None:
    load, skip = "buffer_load_dword v1, v0, s[0:3], 0 offen", "s_cbranch_scc0 1"
    assert needless(instructions("s_waitcnt vmcnt(0)", load, "s_waitcnt vmcnt(1)", "s_endpgm")) == {0, 8}
    assert needless(instructions(load, skip, "s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(0)", "s_endpgm")) == frozenset()
    assert needless(instructions(load, "s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_endpgm")) == {8}
    assert needless(instructions("ds_write_b32 v0, v1", "s_waitcnt lgkmcnt(0)", "s_endpgm")) == frozenset()


def test_lds_writes_have_happened_at_a_barrier() -> None:
    (found,) = verify(instructions("ds_write_b32 v0, v1", "s_barrier", "s_endpgm"))
    assert "LDS write" in found.why
    assert verify(instructions("ds_write_b32 v0, v1", "s_waitcnt lgkmcnt(0)", "s_barrier", "s_endpgm")) == ()
