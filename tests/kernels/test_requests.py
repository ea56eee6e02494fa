"""Hints that can't be honoured are refused where they stand, with the reason; those that can change the code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matrix_products import CHIPS, FORMS
from matrix_products import compiled as product
from test_schedules_of_loops import KERNEL, check, compiled

import hkc
from hkc.cli import main
from hkc.support.errors import HkcError

MAP = """
kernel double(A: global[f32, M], B: global[f32, M]) with HINTS:
    i = tile_ids(cdiv(M, 256))
    store(B, [i*256], load(A, [i*256], [256]) * 2.0)
"""

LOOP = """
kernel loop(A: global[f32, M, N], B: global[f32, M, N]) with HINTS:
    x = zeros[f32, 32, 32]
    for k in range(0, N, 32):
        BODY
    store(B, [0, 0], x)
"""


def refusal(text: str, hints: str, arch: str, code: str = "HK450", **constants: int) -> str:
    with pytest.raises(HkcError) as caught:
        hkc.compile(text.replace("HINTS", hints), arch, **constants)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert diagnostic.spans
    return diagnostic.message


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("hints", "why"),
    [
        ("stages=2", "no loop of this kernel brings tiles through LDS"),
        ("schedule=pingpong", "no loop of this kernel multiplies"),
        ("waves=8, waves_per_eu=1", "2 waves of a workgroup share each SIMD"),
        ("unroll=4", "no `for` loop of this kernel is left"),
    ],
)
def test_requests_without_a_loop_for_them(hints: str, why: str, arch: str) -> None:
    assert why in refusal(MAP, hints, arch)


def test_more_stages_than_lds_has_room_for() -> None:
    message = refusal(KERNEL, "waves=8, stages=4", "gfx950", BM=256, BN=256, BK=64)
    assert message == "`stages=4` can't be honoured: it needs 262144 bytes of LDS, and gfx950 has 163840"


def test_schedules_for_other_numbers_of_waves() -> None:
    assert "2 wave(s) of a workgroup on each of 4 SIMDs" in refusal(KERNEL, "waves=4, schedule=pingpong", "gfx942")
    assert "1 wave(s) of a workgroup on each of 4 SIMDs" in refusal(KERNEL, "waves=8, schedule=interleave", "gfx942")


@pytest.mark.parametrize("arch", CHIPS)
def test_what_was_chosen_is_told(arch: str) -> None:
    told = [str(choice) for choice in compiled(arch, "waves=8, schedule=pingpong, stages=3").binary.choices]
    assert any("loop: tiles come in 2 trip(s) ahead" in line for line in told)
    assert any("loop: schedule pingpong, 2 clusters" in line for line in told)
    plain = compiled(arch, "waves=8, schedule=plain").binary.choices
    assert any(choice.chosen == "schedule plain" for choice in plain)


@pytest.mark.parametrize("arch", CHIPS)
def test_waves_per_eu_bounds_the_registers(arch: str) -> None:
    few = compiled(arch, "waves=4, waves_per_eu=8", BM=32, BN=32).resources["gemm"]
    assert few.vgpr + few.agpr <= 64


@pytest.mark.parametrize("arch", CHIPS)
def test_loops_that_carry_more_registers_than_a_wave_has(arch: str) -> None:
    message = refusal(KERNEL, "waves=8, waves_per_eu=4", arch, "HK459", BM=256, BN=256)
    assert f"but a wave has 128 on {arch}, where a workgroup has 8 waves" in message


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("elements", [1 << 17, 1 << 20])
def test_tiles_that_no_wave_can_hold(elements: int, arch: str) -> None:
    """Loaded, and stored as they are: the code generator would spill for minutes."""
    text = f"kernel k(X: global[f32, N]):\n    x = load(X, [0], [{elements}])\n    store(X, [0], x)\n"
    with pytest.raises(HkcError, match=rf"HK459\].* takes {elements // 256} registers of every lane"):
        hkc.compile(text, arch)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("columns", [128, 256])
def test_registers_are_predicted(columns: int, arch: str) -> None:
    kernel = compiled(arch, "waves=8", BM=256, BN=columns, BK=64)
    (told,) = (choice.chosen for choice in kernel.binary.choices if choice.subject == "registers")
    predicted, of, limit, *_ = told.split()
    taken = kernel.resources["gemm"]
    assert (of, limit, taken.vgpr_spills) == ("of", "256", 0)
    assert abs(int(predicted) - taken.vgpr) <= 32


@pytest.mark.long
@pytest.mark.parametrize("hints", ["waves=4, stages=3", "waves=8, schedule=plain", "waves=8"])
@pytest.mark.parametrize("form", FORMS)
def test_nothing_spills_that_was_predicted_to_fit(form: str, hints: str) -> None:
    """Tiles that wait in registers, of gfx942, whose LDS holds no more of them."""
    kernel = product(form, "gfx942", hints, BM=256, BN=256, BK=64)
    (told,) = (choice.chosen for choice in kernel.binary.choices if choice.subject == "registers")
    predicted, _, limit, *_ = told.split()
    assert "gemm" not in kernel.spills or int(predicted) > int(limit)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("hints", ["waves=4, unroll=2", "waves=4, stages=1, unroll=3", "waves=4, stages=3, unroll=6"])
def test_unrolled_products(hints: str, arch: str) -> None:
    """Trips that fill whole rounds, that leave some over, fewer than a round has, and none."""
    kernel = compiled(arch, hints)
    for k in (0, 32, 64, 100, 6 * 32, 13 * 32):
        check(kernel, (40, 70, k), 32, 1)
    factor = hints[-1]
    assert f"unrolled, {factor} trips at a time" in {c.chosen for c in kernel.binary.choices if c.subject == "loop"}


SETTLE = """
kernel settle(A: global[f32, M, N], B: global[f32, M, N], n: i32) with waves=4:
    x = load(A, [0, 0], [16, 16])
    for k in range(n):
        x = x - clamp(sum(x, axis=0, keepdims=True), -8.0, 8.0)
    store(B, [0, 0], x)
"""


@pytest.mark.parametrize("arch", CHIPS)
def test_what_a_loop_carries_goes_through_lds_in_its_own_trip(arch: str) -> None:
    """The waves exchange sums of what the trip before gave: nothing that could come ahead of time."""
    kernel = hkc.compile(SETTLE, arch)
    assert not any("ahead" in choice.chosen for choice in kernel.binary.choices)
    start = wanted = (np.arange(256) % 7 - 3.0).astype(np.float32).reshape(16, 16)
    for n in range(4):
        assert np.array_equal(kernel(start, n=n, device="emulator"), wanted)
        wanted = wanted - np.clip(wanted.sum(0, keepdims=True), -8, 8)


SUMS = """
tune N = 64
kernel sums(A: global[f32, M, K], B: global[f32, M]) with HINTS:
    i = tile_ids(cdiv(M, 16)) * 16
    total, most = zeros[f32, 16], full[f32, 16](-inf)
    for k in range(K - N, -N, -N):
        if k % (2 * N) == 0:
            part = sum(load(A, [i, k], [16, N]), axis=1)
            total, most = total + part, max(most, part)
    store(B, [i], total + most)
"""


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("hints", ["unroll=2", "waves=2, unroll=7"])
def test_unrolled_loops_that_count_down_and_branch(hints: str, arch: str) -> None:
    kernel = hkc.compile(SUMS.replace("HINTS", hints), arch)
    for trips in (1, 2, 7, 8, 15):
        a = (np.arange(20 * 64 * trips) % 97).astype(np.float32).reshape(20, -1)
        parts = a.astype(np.float64).reshape(20, trips, 64).sum(2)[:, ::2]
        assert np.array_equal(kernel(a, device="emulator"), parts.sum(1) + parts.max(1)), trips


def test_unrolling_that_can_not_be() -> None:
    message = refusal(KERNEL, "waves=4, stages=3, unroll=4", "gfx942")
    assert message == "`unroll=4` can't be honoured: its tiles come in ahead of time, for 3 trips at a time"
    fixed = SUMS.replace("range(K - N, -N, -N)", "range(0, 3 * N, N)")
    assert "the loop has 3 trips" in refusal(fixed, "unroll=4", "gfx942")


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("hints", "told"),
    [
        ("waves=2", "\nwaves 2\n"),
        ("waves=8, schedule=pingpong", "loop: schedule pingpong"),
        ("stages=3", "loop: tiles come in 2 trip(s) ahead"),
        ("unroll=4", "loop: unrolled, 4 trips at a time"),
        ("waves_per_eu=2", "by a loop, for 2 waves per SIMD"),
        ('mfma="32x32x8"', "dot: v_mfma_f32_32x32x8_bf16"),
        ("swizzle=pad", "strides 96,64"),
        ("align=32", "every launch: A starts at a multiple of 32 bytes"),
    ],
)
def test_every_hint_shows_in_the_report(
    hints: str, told: str, arch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gemm.hk"
    reports = []
    for given in (f" with {hints}", ""):
        path.write_text(KERNEL.replace(" with HINTS", given), "utf-8")
        reports.append(report(path, arch, capsys))
    assert told in reports[0] and told not in reports[1]


def report(path: Path, arch: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What `hkc compile --report text` says; the columns of its table as `name value`."""
    assert main(["compile", str(path), "--arch", arch, "-o", str(path.parent), "--report", "text"]) == 0
    heading, row, *rest = capsys.readouterr().out.splitlines()
    cells = zip(heading.split(), row.split(), strict=False)
    return "\n".join([*(f"{name} {cell}" for name, cell in cells), *rest])


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("x = dot(load(A, [0, k], [32, 32]), x)", "it puts into LDS what it has computed"),
        (
            "x += dot(load(A, [0, k], [32, 32]), load(A, [0, k], [32, 32]).T)\n        store(B, [k, 0], x)",
            "it has branches",
        ),
        ("x += load(A, [0, k], [32, 32])", "it brings no tile through LDS"),
    ],
)
def test_stages_are_refused_at_the_loop_that_has_none(body: str, why: str, arch: str) -> None:
    loop = LOOP.replace("BODY", body)
    with pytest.raises(HkcError, match=why) as caught:
        hkc.compile(loop.replace("HINTS", "stages=3"), arch)
    assert caught.value.diagnostics[0].spans[0].line == 4
    with pytest.raises(
        HkcError, match="`stages=1` can't be honoured: its tiles come with their trips anyway, since it"
    ):
        hkc.compile(loop.replace("HINTS", "stages=1"), arch)


@pytest.mark.parametrize("arch", CHIPS)
def test_schedules_name_the_line_that_is_in_their_way(arch: str) -> None:
    body = "a = load(A, [0, k], [32, 32])\n        x += dot(a, a.T)\n        store(B, [k, 0], x)"
    message = refusal(LOOP.replace("BODY", body), "schedule=interleave", arch)
    assert message.endswith("a branch, such as that of a ragged edge, in line 7")


@pytest.mark.parametrize(
    ("hints", "advice"),
    [
        ("schedule=pingpong", "with waves=8, or no `schedule`"),
        ("waves=8, schedule=interleave", "with waves=4, or no `schedule`"),
        ("waves=8, schedule=pingpong, stages=1", "schedule=plain, or no hint"),
        ("waves=4, waves_per_eu=8", "use smaller tiles, or a smaller `waves_per_eu` than 8"),
    ],
)
def test_advice_is_something_else_than_what_is_there(hints: str, advice: str) -> None:
    with pytest.raises(HkcError) as caught:
        hkc.compile(KERNEL.replace("HINTS", hints), "gfx950", BM=128, BN=128)
    assert caught.value.diagnostics[0].hint == advice


@pytest.mark.parametrize(
    ("waves", "advice"), [(1, "use smaller tiles, or more waves: `with waves=4`"), (8, "use smaller tiles")]
)
def test_more_waves_are_advised_only_where_they_bring_registers(waves: int, advice: str) -> None:
    with pytest.raises(HkcError) as caught:
        hkc.compile(KERNEL.replace("HINTS", f"waves={waves}"), "gfx950", BM=256, BN=256 * max(1, waves // 4), BK=256)
    assert caught.value.diagnostics[0].hint == advice
