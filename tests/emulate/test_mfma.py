"""Every dense matrix instruction on small integers, whose sums are exact: which lane and register holds what."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from emulated import CHIPS, Wave, assembled
from numpy.typing import NDArray

from hkc.targets import chip as chips
from hkc.targets.mfma import Mfma

LANE = np.arange(64)
NUMPY: dict[str, Any] = {
    "f64": np.float64, "f32": np.float32, "xf32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f6e2m3": ml_dtypes.float6_e2m3fn, "f6e3m2": ml_dtypes.float6_e3m2fn,
    "f4e2m1": ml_dtypes.float4_e2m1fn, "i32": np.int32,
}  # fmt: skip
BITS = {"f6e2m3": 6, "f6e3m2": 6, "f4e2m1": 4}

FORMS = {arch: [form for form in chips.load(arch).mfmas if not form.sparse] for arch in CHIPS}
CASES = [(arch, number) for arch in CHIPS for number in range(len(FORMS[arch]))]


def line(form: Mfma) -> str:
    """Operands in v[0:…], v[16:…] and v[64:…], the result in v[128:…], scales in v200."""
    d = f"v[128:{127 + form.acc_vgprs}]"
    sources = f"v[0:{form.a_vgprs - 1}], v[16:{15 + form.b_vgprs}], v[64:{63 + form.acc_vgprs}]"
    text = f"{form.mnemonic} {d}, {sources}".replace("v[0:0]", "v0").replace("v[16:16]", "v16")
    if form.scaled:
        text += ", v200, v200 op_sel:[1,0,0] op_sel_hi:[0,1,0]"  # byte 1 of a's scales, byte 2 of b's
    return text + (f" cbsz:{form.a_code} blgp:{form.b_code}" if form.a_format else "")


def pack(values: NDArray[Any], dtype: str) -> NDArray[np.uint32]:
    """[lanes, elements] → [registers, lanes]."""
    raw = np.ascontiguousarray(values.astype(NUMPY[dtype]))
    size = BITS.get(dtype, raw.itemsize * 8)
    if size >= 8:
        return raw.view(np.uint32).T
    codes = raw.view(np.uint8)
    flat = (codes[:, :, None] >> np.arange(size) & 1).reshape(64, -1)
    return np.packbits(flat, axis=1, bitorder="little").view(np.uint32).T


def operand(matrix: NDArray[Any], form: Mfma, dtype: str) -> NDArray[Any]:
    """[block, row, k] spread over lanes: a lane holds one row, its k contiguous (or in chunks of 16)."""
    blocks, rows, depth = matrix.shape
    groups = 64 // (rows * blocks)
    per_lane = depth // groups
    row, block, group = LANE % rows, LANE // rows % blocks, LANE // (rows * blocks)
    element = np.arange(per_lane)
    k = group[:, None] * per_lane + element
    if form.a_format and BITS.get(dtype, 8) == 8 and per_lane > 16:
        k = element // 16 * 16 * groups + group[:, None] * 16 + element % 16
    return matrix[block[:, None], row[:, None], k]


def result(registers: NDArray[Any], form: Mfma) -> NDArray[Any]:
    """[register, lane] → [block, row, column]."""
    d = np.zeros((form.blocks, form.m, form.n), registers.dtype)
    for r in range(registers.shape[0]):
        for lane in range(64):
            block, row, column = place(form, r, lane)
            d[block, row, column] = registers[r, lane]
    return d


def place(form: Mfma, r: int, lane: int) -> tuple[int, int, int]:
    if form.acc == "f64":
        if form.n == 4:
            return lane // 4 % 4, lane // 16, lane % 4
        return 0, 4 * r + lane // 16, lane % 16
    if form.n == 32:
        return r // 16, 8 * (r % 16 // 4) + 4 * (lane // 32) + r % 4, lane % 32
    if form.n == 16:
        return r // 4, 4 * (lane // 16) + r % 4, lane % 16
    return lane // 4, r, lane % 4


@pytest.mark.parametrize(("arch", "number"), CASES, ids=[f"{a}-{n}-{FORMS[a][n].mnemonic}" for a, n in CASES])
def test_every_form_on_small_integers(arch: str, number: int) -> None:
    form = FORMS[arch][number]
    rng = np.random.default_rng(form.k)
    top = 2 if form.a.startswith("f4") or form.b.startswith("f4") else 3
    a, b = (rng.integers(-top, top, (form.blocks, n, form.k), endpoint=True) for n in (form.m, form.n))
    c = rng.integers(-50, 50, (form.blocks, form.m, form.n))
    wave = Wave(arch)
    for first, matrix, dtype in ((0, a, form.a), (16, b, form.b)):
        for i, words in enumerate(pack(operand(matrix, form, dtype), dtype)):
            wave.vector(first + i, words)
    words = 2 if form.acc == "f64" else 1
    flat = np.zeros((form.acc_vgprs // words, 64), NUMPY[form.acc])
    for r in range(flat.shape[0]):
        for lane in range(64):
            flat[r, lane] = c[place(form, r, lane)]
    halves = flat.view(np.uint32).reshape(-1, 64, words)
    for i in range(form.acc_vgprs):
        wave.vector(64 + i, halves[i // words, :, i % words])
    wave.active(0)  # matrix instructions don't look at EXEC
    wave.vector(200, np.full(64, 0x7F80_7E7F, np.int64))  # scales 0.5 and 2
    wave.step(assembled(tuple(line(f) for f in FORMS[arch]), arch)[number])
    raw = np.stack([wave.v(128 + i) for i in range(form.acc_vgprs)])
    values = np.ascontiguousarray(raw.reshape(-1, words, 64).swapaxes(1, 2)).view(NUMPY[form.acc])[..., 0]
    np.testing.assert_array_equal(result(values, form), c + a @ b.swapaxes(1, 2))
    assert not wave.found


@pytest.mark.parametrize("arch", CHIPS)
def test_accumulation_registers_serve_as_every_operand(arch: str) -> None:
    wave = Wave(arch)
    for i in range(2):
        wave.state.registers[256 + i][:] = np.uint32(0x3C003C00)
        wave.state.registers[260 + i][:] = np.uint32(0x40004000)
        wave.state.flags[256 + i] = wave.state.flags[260 + i] = 0
    wave.run("v_mfma_f32_16x16x16_f16 a[8:11], a[0:1], a[4:5], 1.0", "v_accvgpr_read_b32 v0, a9")
    assert (wave.v(0, np.float32) == 33).all()


@pytest.mark.parametrize("arch", CHIPS)
def test_broadcast_and_rotation_of_blocks(arch: str) -> None:
    wave = Wave(arch)
    wave.vector(0, (LANE // 4).astype(np.float32))
    wave.vector(1, np.ones(64, np.float32))
    wave.run(
        "v_mfma_f32_4x4x1_16b_f32 v[4:7], v0, v1, 0 cbsz:2 abid:1", "v_mfma_f32_4x4x1_16b_f32 v[8:11], v1, v0, 0 blgp:3"
    )
    assert (wave.v(4, np.float32) == LANE // 4 // 4 * 4 + 1).all()
    assert (wave.v(8, np.float32) == (LANE + 16) % 64 // 4).all()
