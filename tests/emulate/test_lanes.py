"""Data that changes lanes: DPP, permutations, scalar lanes, transposed loads."""

import numpy as np
import pytest
from emulated import CHIPS, NEVER, Wave

LANE = np.arange(64)
ROW = LANE // 16 * 16
DPP: dict[str, list[int]] = {
    "quad_perm:[1,0,3,2]": (LANE ^ 1).tolist(),
    "row_shl:3": [x + 3 if x % 16 + 3 < 16 else -1 for x in range(64)],
    "row_shr:3": [x - 3 if x % 16 - 3 >= 0 else -1 for x in range(64)],
    "row_ror:3": (ROW + (LANE - 3) % 16).tolist(),
    "wave_shl:1": [*range(1, 64), -1],
    "wave_shr:1": [-1, *range(63)],
    "wave_rol:1": [*range(1, 64), 0],
    "wave_ror:1": [63, *range(63)],
    "row_mirror": (ROW + 15 - LANE % 16).tolist(),
    "row_half_mirror": (LANE ^ 7).tolist(),
    "row_bcast:15": [-1] * 16 + [15] * 16 + [31] * 16 + [47] * 16,
    "row_bcast:31": [-1] * 32 + [31] * 32,
    "row_newbcast:5": (ROW + 5).tolist(),
}


@pytest.mark.parametrize("arch", CHIPS)
def test_every_dpp_control(arch: str) -> None:
    for control, source in DPP.items():
        wave = Wave(arch)
        wave.vector(1, LANE + 100)
        wave.vector(0, np.full(64, 7))
        wave.vector(2, np.full(64, 7))
        wave.run(
            f"v_mov_b32_dpp v0, v1 {control} row_mask:0xf bank_mask:0xf",
            f"v_mov_b32_dpp v2, v1 {control} row_mask:0xf bank_mask:0xf bound_ctrl:0",
        )
        assert wave.v(0).tolist() == [s + 100 if s >= 0 else 7 for s in source], control
        assert wave.v(2).tolist() == [s + 100 if s >= 0 else 0 for s in source], control


@pytest.mark.parametrize("arch", CHIPS)
def test_dpp_masks_and_inactive_sources(arch: str) -> None:
    wave = Wave(arch)
    wave.vector(1, LANE + 100)
    wave.vector(0, np.full(64, 7))
    wave.active(~(1 << 20) & (1 << 64) - 1)
    wave.run(
        "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xa bank_mask:0x3",
        "v_add_u32_dpp v1, v1, v1 row_ror:1 row_mask:0xf bank_mask:0xf",
    )
    expected = [(x ^ 1) + 100 if x // 16 in (1, 3) and x % 16 < 8 and x not in (20, 21) else 7 for x in range(64)]
    assert wave.v(0).tolist() == expected
    # in place: all sources are read before anything is written
    assert wave.v(1)[:16].tolist() == [x + 100 + (x - 1) % 16 + 100 for x in range(16)]


@pytest.mark.parametrize("arch", CHIPS)
def test_scalar_lanes(arch: str) -> None:
    wave = Wave(arch)
    wave.vector(1, LANE * 3)
    wave.active(0xF0)
    wave.scalar(2, 77)
    wave.run("v_readfirstlane_b32 s0, v1", "v_readlane_b32 s1, v1, 63", "v_writelane_b32 v1, s2, 1")
    assert (wave.s(0), wave.s(1), wave.v(1)[1], wave.v(1)[4]) == (12, 189, 77, 12)


@pytest.mark.parametrize("arch", CHIPS)
def test_permutations_through_lds(arch: str) -> None:
    wave = Wave(arch)
    wave.vector(1, LANE + 100)
    wave.vector(2, (LANE * 5 + 3) % 64 * 4)
    wave.run("ds_bpermute_b32 v3, v2, v1", "ds_permute_b32 v4, v2, v1", "ds_swizzle_b32 v5, v1 offset:0x8055",
             "ds_swizzle_b32 v6, v1 offset:0x041f", "s_waitcnt lgkmcnt(0)")  # fmt: skip
    target = (LANE * 5 + 3) % 64
    sent = np.zeros(64, np.int64)
    sent[target] = LANE + 100
    assert (wave.v(3) == target + 100).all() and (wave.v(4) == sent).all()
    assert (wave.v(5) == LANE // 4 * 4 + 1 + 100).all() and (wave.v(6) == (LANE ^ 1) + 100).all()


@pytest.mark.parametrize("arch", CHIPS)
def test_bytes_chosen_by_a_constant(arch: str) -> None:
    high, low = 0x80337F11, 0xC4F32211
    for code, byte in enumerate([0x11, 0x22, 0xF3, 0xC4, 0x11, 0x7F, 0x33, 0x80, 0, 255, 0, 255, 0, 255]):
        wave = Wave(arch, waves=2)
        wave.vector(1, np.full(64, high))
        wave.vector(2, np.full(64, low))
        wave.vector(4, np.full(64, 0x0C0C000C | code << 8))
        wave.scalar(0, 0x0C0C000C | code << 8)
        wave.run("v_perm_b32 v0, v1, v2, v4", "v_perm_b32 v5, v1, v2, s0")
        assert [int(wave.v(r)[0]) >> 8 & 255 for r in (0, 5)] == [byte, byte], code
        assert (wave.v(0) == wave.v(5)).all()


def test_lane_swaps_of_the_newer_chip() -> None:
    wave = Wave("gfx950")
    for i in range(4):
        wave.vector(i, LANE + 100 * i)
    wave.run("v_permlane32_swap_b32_e32 v0, v1", "v_permlane16_swap_b32_e32 v2, v3")
    high, odd = LANE >= 32, LANE // 16 % 2 == 1
    assert (wave.v(0) == np.where(high, LANE - 32 + 100, LANE)).all()
    assert (wave.v(1) == np.where(high, LANE + 100, LANE + 32)).all()
    assert (wave.v(2) == np.where(odd, LANE - 16 + 300, LANE + 200)).all()
    assert (wave.v(3) == np.where(odd, LANE + 300, LANE + 16 + 200)).all()


@pytest.mark.parametrize("bits", [16, 8])
def test_transposed_loads_of_the_newer_chip(bits: int) -> None:
    """16 lanes read 16 rows of 8 bytes: dst[l][n] = src[(l & ~15) + (l >> s & h) + (h + 1) n][l & m]."""
    wave = Wave("gfx950", lds=1024)
    kind = np.uint16 if bits == 16 else np.uint8
    count = 64 // bits
    content = np.arange(64 * count).astype(kind).reshape(64, count)
    wave.state.lds.fill(0, content.reshape(-1).view(np.uint8))
    wave.vector(2, LANE * 8)
    wave.run(f"ds_read_b64_tr_b{bits} v[0:1], v2", "s_waitcnt lgkmcnt(0)")
    found = np.stack([wave.v(0), wave.v(1)], axis=1).view(kind)
    n = np.arange(count)
    if bits == 16:
        source = (LANE & ~15)[:, None] + (LANE >> 2 & 3)[:, None] + 4 * n
        wanted = content[source, (LANE & 3)[:, None]]
    else:
        source = (LANE & ~15)[:, None] + (LANE >> 3 & 1)[:, None] + 2 * n
        wanted = content[source, (LANE & 7)[:, None]]
    assert (found == wanted).all()
    assert NEVER not in found
