"""`hkc check`, and the flags that look into a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hkc as package
from hkc.cli.findings import Found, text
from hkc.emulate import Finding, Party
from hkc.machine.lines import Line
from hkc.support.errors import Source

EXAMPLES = Path(__file__).parents[2] / "examples"
Command = Callable[..., Any]


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("name", ["vector_add", "softmax"])
def test_examples_are_clean(hkc: Command, name: str, arch: str) -> None:
    outcome = hkc("check", EXAMPLES / f"{name}.hk", "--arch", arch, "--json")
    assert outcome.code == 0, outcome.out + outcome.err
    found = outcome.json
    assert found["ok"] and found["findings"] == [] and found["refused"] == []
    assert found["kernel"] == name and found["ran"]["chips"] == [arch]
    cases = found["cases"]
    assert {c["views"] for c in cases} == {"aligned", "unaligned"} and {c["order"] for c in cases} == {0, 1}
    sizes = {c["set"]["N"] for c in cases}
    assert {0, 1} <= sizes and any(n % 16 for n in sizes) and any(n > 256 for n in sizes)
    ran = found["ran"]
    assert ran["runs"] == len(cases) and ran["workgroups"] == sum(c["workgroups"] for c in cases) > 20
    assert ran["seeds"] == [0, 1] and ran["instructions"] > 1000


def test_a_kernel_with_a_race(hkc: Command, tmp_path: Path) -> None:
    """All workgroups write the same row."""
    kernel = tmp_path / "race.hk"
    kernel.write_text(
        "kernel race(A: global[f32, N], B: global[f32, N]):\n"
        "    i = tile_ids(cdiv(N, 64))\n"
        "    store(B, [0], load(A, [i*64], [64]))\n"
        "\n"
        "example N = 256\n"
    )
    outcome = hkc("check", kernel, "--arch", "gfx950")
    assert outcome.code == 1
    assert "race.hk:3:" in outcome.out and "error[HK724]: global race: byte 0 of `B` is written" in outcome.out
    assert "    3 |     store(B, [0], load(A, [i*64], [64]))" in outcome.out
    assert (
        "note: at 0x" in outcome.out
        and "note: the other at 0x" in outcome.out
        and "note: with N=256 on gfx950" in outcome.out
    )
    found = hkc("check", kernel, "--arch", "gfx950", "--json", "--interleavings", "1").json
    (finding,) = (f for f in found["findings"] if f["check"] == "global-race")
    assert finding["line"] == 3 and finding["code"] == "HK724" and finding["other"]["line"] == 3
    assert finding["severity"] == "error" and not found["ok"]
    assert (finding["arch"], finding["case"]) == ("gfx950", "N=256")
    assert finding["other"]["wave"] != finding["wave"] and finding["instruction"].startswith("buffer_store")
    assert hkc("check", kernel, "--arch", "gfx950", "--only", "lds-race,barrier").code == 0


def test_wrong_calls(hkc: Command) -> None:
    outcome = hkc("check", EXAMPLES / "vector_add.hk", "--arch", "gfx950", "--only", "lds-rage")
    assert outcome.code == 2 and "did you mean lds-race" in outcome.err
    outcome = hkc("check", EXAMPLES / "vector_add.hk", "--arch", "gfx950", "--only", "bank-conflict")
    assert outcome.code == 2 and "did you mean bank-conflicts" in outcome.err
    for words in (("--interleavings", "0"), ("--limit", "0"), ("--interleavings", "-1")):
        outcome = hkc("check", EXAMPLES / "vector_add.hk", "--arch", "gfx950", *words)
        assert outcome.code == 2 and "whole number" in outcome.err
    outcome = hkc("check", EXAMPLES / "vector_add.hk", "--arch", "gfx950,gfx951")
    assert outcome.code == 2 and "unknown chip `gfx951`" in outcome.err and "did you mean gfx950" in outcome.err
    outcome = hkc("run", EXAMPLES / "vector_add.hk", "--arch", "gfx950", "--break", "here")
    assert outcome.code == 2 and "not `here`" in outcome.err
    outcome = hkc("run", EXAMPLES / "vector_add.hk", "--arch", "gfx950", "--watch", "D[5]")
    assert outcome.code == 2 and "there is no `D` to watch" in outcome.err
    outcome = hkc("run", EXAMPLES / "vector_add.hk", "--arch", "gfx950", "--watch", "C[5]", "--device", "reference")
    assert outcome.code == 2 and "only runs on the emulator" in outcome.err


def test_looking_into_a_run(hkc: Command, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    outcome = hkc(
        "run", EXAMPLES / "vector_add.hk", "--arch", "gfx950", "--break", "9", "--show", "v0", "--watch", "C[5]",
        "--trace", trace,
    )  # fmt: skip
    assert outcome.code == 0
    assert "  exec ffffffffffffffff" in outcome.err and "v0 [ 0]" in outcome.err
    assert "C[5]: 7fc00000 -> " in outcome.err
    assert len(trace.read_text().splitlines()) > 50


def test_a_code_object_under_check(hkc: Command, tmp_path: Path) -> None:
    for name, source, code in (
        ("good", "    store(B, [i*64], load(A, [i*64], [64]))", 0),
        ("bad", "    store(B, [0], load(A, [i*64], [64]))", 1),
    ):
        file = tmp_path / f"{name}.hk"
        file.write_text(
            "kernel k(A: global[f32, N], B: global[f32, N]):\n"
            f"    i = tile_ids(cdiv(N, 64))\n{source}\n\nexample N = 256\n"
        )
        kernel = package.compile(file, "gfx950")
        hsaco = tmp_path / f"{name}.hsaco"
        hsaco.write_bytes(kernel.hsaco)
        words = ["f32[256]=iota", "i64:256", "i64:1", "f32[256]", "i64:256", "i64:1"]
        outcome = hkc(
            "emulate", hsaco, "--kernel", "k", "--grid", "4", "--block", str(64 * kernel.waves), "--args", *words,
            "--check",
        )  # fmt: skip
        assert outcome.code == code, outcome.err
        assert ("global race" in outcome.err) == bool(code)


def test_remarks_are_no_errors() -> None:
    source = Source("k.hk", "first\nsecond line\n")
    slow = Finding(
        "bank conflicts",
        16,
        "ds_read_b32 v0, v1",
        "8 clocks where 1 would do",
        3,
        0,
        5,
        1,
        None,
        Line(16, "k.hk", 2, 8),
    )
    assert text([Found(slow)], source).splitlines() == [
        "k.hk:2:8: remark[HK731]: bank conflicts: 8 clocks where 1 would do",
        "    2 | second line",
        "      |        ^",
        "note: at 0x10: ds_read_b32 v0, v1 (wave 3, workgroup 1, lane 0, 5 times)",
    ]
    other = Party(20, "ds_write_b32 v2, v3", 4, Line(20, "k.hk", 1, 1))
    race = Finding("lds race", 16, "ds_read_b32 v0, v1", "LDS byte 0x0 is read", 3, 0, other=other)
    shown = text([Found(race, "N=1")], source)
    assert "k.hk:1:1: note: the other at 0x14: ds_write_b32 v2, v3 (wave 4)" in shown and shown.endswith(
        "note: with N=1"
    )


SUM = """
tune BM = 32, BN = 32, BK = 32

kernel sum(A: global[bf16, M, K], B: global[bf16, N, K], C: global[f32, M, N]):
    m, n = tile_ids(cdiv(M, BM), cdiv(N, BN))
    acc = zeros[f32, BM, BN]
    for k in range(0, K, BK):
        acc += dot(load(A, [m*BM, k], [BM, BK]), load(B, [n*BN, k], [BN, BK]).T)
    store(C, [m*BM, n*BN], acc)

example M = 40, N = 64, K = 96
"""


def test_bank_conflicts_are_counted_beside_their_proof(hkc: Command, tmp_path: Path) -> None:
    kernel = tmp_path / "sum.hk"
    kernel.write_text(SUM)
    words = ("check", kernel, "--only", "bank-conflicts", "--interleavings", "1")
    outcome = hkc(*words, "--json")
    assert outcome.code == 0 and outcome.json["ok"]
    assert list(outcome.json["bank_conflicts"]) == outcome.json["ran"]["chips"] == ["gfx942", "gfx950"]
    for rows in outcome.json["bank_conflicts"].values():
        assert {row["mnemonic"][:7] for row in rows} == {"ds_read", "ds_writ"}
        for row in rows:
            assert row["executions"] == sum(row["clocks"].values()) > 0
            assert row["minimum"] <= row["cycles"] <= max(row["minimum"], row["lower_bound"]) and row["ok"]
            assert row["address"] > 0 and row["line"] in (8, None)
    assert "bank conflicts on gfx942: none" in hkc(*words).out


KERNELS = sorted(path for path in (EXAMPLES.parent / "hkc" / "kernels").glob("*.hk") if path.stem != "epilogues")
"""The ready kernels; that file holds functions only."""


@pytest.mark.long
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda path: path.stem)
def test_ready_kernels_take_the_clocks_that_were_proved(hkc: Command, kernel: Path, arch: str) -> None:
    if (kernel.stem, arch) == ("gemm_mx", "gfx942"):
        pytest.skip("the chip has no scaled matrix instructions")
    outcome = hkc("check", kernel, "--arch", arch, "--only", "bank-conflicts", "--interleavings", "1", "--json")
    assert outcome.code == 0, outcome.err
    for row in outcome.json["bank_conflicts"][arch]:
        assert row["cycles"] == row["proved_cycles"] <= max(row["minimum"], row["lower_bound"]), row


def test_conflicts_above_the_bound_fail_who_asks_for_them(
    hkc: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every LDS instruction costs twice as much as its kind must."""
    from hkc.emulate import bank_conflicts

    count = bank_conflicts.conflicts
    monkeypatch.setattr(bank_conflicts, "conflicts", lambda *words: 2 * count(*words))
    kernel = tmp_path / "sum.hk"
    kernel.write_text(SUM)
    words = ("check", kernel, "--arch", "gfx942", "--interleavings", "1")
    outcome = hkc(*words, "--only", "bank-conflicts")
    assert outcome.code == 1 and "error[HK731]: bank conflicts: 16 clocks where 8 would do" in outcome.out
    assert "line 8: 16 clocks, 8 without conflicts, 8 at least" in outcome.out
    outcome = hkc(*words)
    assert outcome.code == 0 and "remark[HK731]" in outcome.out


def test_what_was_found_before_a_fault_is_shown_with_it(hkc: Command, tmp_path: Path) -> None:
    """The step limit ends the kernel after it has raced."""
    kernel = tmp_path / "race.hk"
    kernel.write_text(
        "kernel race(A: global[f32, N], B: global[f32, N]):\n"
        "    i = tile_ids(cdiv(N, 64))\n"
        "    for k in range(0, 64 * N, 64):\n"
        "        store(B, [0], load(A, [i*64], [64]))\n"
        "\n"
        "example N = 256\n"
    )
    found = hkc("check", kernel, "--arch", "gfx950", "--interleavings", "1", "--limit", "600", "--json")
    assert found.code == 1
    by_check = {f["check"]: f for f in found.json["findings"]}
    assert {"global-race", "endless-loop"} <= set(by_check), by_check
    assert by_check["endless-loop"]["address"] > 0 and by_check["endless-loop"]["instruction"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--show", "v0"), "--show and --wave say what --break prints, and there is no --break"),
        (("--wave", "0"), "--show and --wave say what --break prints, and there is no --break"),
        (("--break", "9", "--wave", "-1"), "a whole number is needed, not `-1`"),
        (("--trace-values",), "there is no --trace"),
        (("--break", "9", "--show", "v0,q7"), "`q7` is no register such as v3"),
        (("--break", "9", "--show", "v300"), "the kernel has no register v300"),
        (("--break", "99"), "no instruction comes from line 99\nhint: the nearest are "),
        (("--break", "0x2"), "no instruction starts at address 0x2"),
        (("--watch", "C"), None),
        (("--watch", "C[5000]"), "`C` has 1000 elements, so `C[5000]` is none of them"),
        (("--watch", "C[1,1]"), "`C` has 1000 elements, so `C[1,1]` is none of them"),
        (("--watch", "Cc[1]"), "there is no `Cc` to watch\nhint: did you mean C?"),
        (("--watch", "C[1]:8"), "a number of bytes belongs to an address"),
        (("--watch", "0x12"), "the 4 bytes at 0x12 are not all in one allocation\nhint: close to address 0: a null"),
    ],
)
def test_what_a_newcomer_asks(hkc: Command, words: tuple[str, ...], message: str | None) -> None:
    kernel = EXAMPLES / "vector_add.hk"
    outcome = hkc("run", kernel, "--arch", "gfx942", "--set", "N=1000", "--device", "emulator", *words)
    assert outcome.code == (2 if message else 0), outcome.err
    assert (message or "") in outcome.err


def test_what_did_not_happen_is_told(hkc: Command) -> None:
    words = ("run", EXAMPLES / "vector_add.hk", "--arch", "gfx942", "--set", "N=100", "--break", "9")
    outcome = hkc(*words, "--show", "0x7e0000000000[0:4],lds[100:104]", "--watch", "A[3]")
    assert outcome.code == 0 and "A[3] was not written" in outcome.err
    assert "0x7e0000000000[0:4]: not all in one allocation; it begins " in outcome.err
    assert "lds[100:104]: no bytes; the workgroup has 0 bytes of LDS" in outcome.err
    assert "line 9 was not reached" in hkc(*words, "--wave", "7000").err


ASSERTS = """
kernel k(A: global[f32, N], B: global[f32, N]):
    i = tile_ids(cdiv(N, 64))
    x = load(A, [i*64], [64])
    assert N < 200, "at most 199 elements"
    store(B, [i*64], x)

example N = 256
"""


def test_an_assertion_fails(hkc: Command, tmp_path: Path) -> None:
    kernel = tmp_path / "k.hk"
    kernel.write_text(ASSERTS)
    for device in ("emulator", "reference"):
        ran = hkc("run", kernel, "--arch", "gfx950", "--device", device)
        assert ran.code == 1 and "error[HK720]: assertion failed: at most 199 elements" in ran.err, ran.err
    assert "k.hk:5:5: " in hkc("run", kernel, "--arch", "gfx950", "--device", "emulator").err
    assert hkc("run", kernel, "--arch", "gfx950", "--set", "N=64").code == 0
    found = hkc("check", kernel, "--arch", "gfx942", "--interleavings", "1", "--json")
    (finding,) = found.json["findings"]
    assert (
        found.code == 1
        and finding["check"] == "assertion"
        and finding["message"] == ("assertion failed: at most 199 elements")
    )
    assert finding["line"] == 5 and finding["instruction"].startswith("s_trap") and finding["case"] == "N=256"
    stopped = [c["set"]["N"] for c in found.json["cases"] if c["instructions"] is None]
    assert stopped and min(stopped) >= 200


IN_PLACE = """
kernel in_place(X: global[f32, M, 64]):
    m = tile_ids(cdiv(M, 32))
    x = load(X, [m*32, 0], [32, 64])
    store(X, [m*32, 0], dot(x, x.T)[:, 0:1] + x)
"""
READ_BY_ALL = """
const WRITER = 0
kernel read_by_all(X: global[f32, 64], Y: global[f32, M]):
    m = tile_ids(M)
    x = load(X, [0], [64])
    store(Y, [m], reshape(sum(x, axis=0, keepdims=True), [1]))
    if m == WRITER:
        store(X, [0], x + 1.0)
"""


def test_what_one_workgroup_reads_and_writes_is_no_race(hkc: Command, tmp_path: Path) -> None:
    """Whichever it is, and however many of its waves read the same."""
    kernel = tmp_path / "in_place.hk"
    kernel.write_text(IN_PLACE)
    assert hkc("check", kernel, "--arch", "gfx950", "--set", "M=160", "--interleavings", "2").code == 0


@pytest.mark.parametrize("writer", range(4))
def test_what_others_read_is_a_race_whoever_writes(hkc: Command, tmp_path: Path, writer: int) -> None:
    kernel = tmp_path / "all.hk"
    kernel.write_text(READ_BY_ALL)
    outcome = hkc("check", kernel, "--arch", "gfx950", "--set", f"M=4,WRITER={writer}", "--interleavings", "2")
    assert outcome.code == 1
    assert "global race: byte 0 of `X`" in outcome.out
