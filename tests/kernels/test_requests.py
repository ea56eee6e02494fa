"""Hints that can't be honoured are refused where they stand, with the reason; those that can change the code."""

from __future__ import annotations

import pytest
from matrix_products import CHIPS
from test_schedules_of_loops import KERNEL, compiled

import hkc
from hkc.support.errors import HkcError

MAP = """
kernel double(A: global[f32, M], B: global[f32, M]) with HINTS:
    i = tile_ids(cdiv(M, 256))
    store(B, [i*256], load(A, [i*256], [256]) * 2.0)
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
def test_registers_are_predicted(arch: str) -> None:
    kernel = compiled(arch, "waves=8", BM=256, BN=256, BK=64)
    (told,) = (choice.chosen for choice in kernel.binary.choices if choice.subject == "registers")
    predicted, of, limit, *_ = told.split()
    taken = kernel.resources["gemm"]
    assert (of, limit, taken.vgpr_spills) == ("of", "256", 0)
    assert abs(int(predicted) - taken.vgpr) <= 32
