"""Element types at the level of machine code: every 8-bit pattern, casts to them exhaustively, bf16 rounding, mixed
8-bit products, precision of f32 products, denormals."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from emulated import CHIPS, Wave, assembled, run_kernel

from hkc.emulate.decode import decode
from hkc.targets import chip as chips

KINDS: dict[str, dict[str, Any]] = {
    "gfx942": {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz},
    "gfx950": {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2},
}
LARGEST = {"gfx942": {"fp8": 240.0, "bf8": 57344.0}, "gfx950": {"fp8": 448.0, "bf8": 57344.0}}
CLAMP = 1 << 23


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("kind", ("fp8", "bf8"))
def test_every_byte_decodes(arch: str, kind: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    wave = Wave(arch)
    wave.vector(1, codes.view(np.uint32))
    lines = tuple(f"v_cvt_f32_{kind}_sdwa v{10 + n}, v1 src0_sel:BYTE_{n}" for n in range(4))
    wave.step(*assembled(lines, arch))
    found = np.stack([wave.v(10 + n, np.float32) for n in range(4)], axis=-1).ravel()
    np.testing.assert_array_equal(found, codes.view(KINDS[arch][kind]).astype(np.float32))
    anchors = {"fp8": {0x38: 1.0, 0x7F: np.nan}, "bf8": {0x7C: np.inf, 0x38: 0.5}}[kind]
    if arch == "gfx942":
        anchors = {"fp8": {0x38: 0.5, 0x7F: 240.0, 0x80: np.nan}, "bf8": {0x7F: 57344.0, 0x38: 0.25}}[kind]
    for code, value in anchors.items():
        np.testing.assert_equal(found[code], np.float32(value))


def decodings(arch: str, kind: str) -> dict[str, tuple[str, ...]]:
    """Dtype → an instruction for each byte of v1, in order, or for each half; their results go to v10, v12, …"""
    words = [f"v_cvt_pk_f32_{kind}_sdwa v[{10 + 2 * n}:{11 + 2 * n}], v1 src0_sel:WORD_{n}" for n in (0, 1)]
    found = {"f32": tuple(words)}
    if arch == "gfx950":
        high = ("", " op_sel:[1,0,0]")
        for wide, target in (("f32", "v[{}:{}]"), ("f16", "v{}"), ("bf16", "v{}")):
            found[f"scaled {wide}"] = tuple(
                f"v_cvt_scalef32_pk_{wide}_{kind} {target.format(10 + 2 * n, 11 + 2 * n)}, v1, v2{high[n]}"
                for n in (0, 1)
            )
    return found


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("kind", ("fp8", "bf8"))
def test_every_byte_decodes_in_pairs(arch: str, kind: str) -> None:
    """To f32, and where the chip can, to f16 and bf16, scaled by 1."""
    codes = np.arange(256, dtype=np.uint8)
    for name, lines in decodings(arch, kind).items():
        wide = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[name.split()[-1]]
        wave = Wave(arch)
        wave.vector(1, codes.view(np.uint32))
        wave.vector(2, np.ones(64, np.float32))
        wave.step(*assembled(lines, arch))
        size = 2 if wide is np.float32 else 1
        results = np.stack([wave.v(10 + 2 * n + i) for n in (0, 1) for i in range(size)], axis=-1)
        with np.errstate(all="ignore"):
            wanted = codes.view(KINDS[arch][kind]).astype(np.float32).astype(wide)
        found = np.ascontiguousarray(results).view(wide).ravel()
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


def converted(arch: str, kind: str, values: np.ndarray, clamp: bool) -> np.ndarray:
    """What v_cvt_pk makes of f32 values, as bytes."""
    code = decode(0, bytes(8), f"v_cvt_pk_{kind}_f32 v4, v1, v2")
    rows = -(-len(values) // 128)
    padded = np.resize(values, rows * 128).reshape(rows, 64, 2)
    wave = Wave(arch, waves=rows, agprs=0)
    wave.state.mode[:] = 0x3F0 | (CLAMP if clamp else 0)
    for register, part in ((1, padded[..., 0]), (2, padded[..., 1]), (4, np.zeros((rows, 64), np.float32))):
        wave.state.registers[register][:] = np.ascontiguousarray(part).view(np.uint32)
        wave.state.flags[register] = 0
    wave.step(code)
    words = wave.state.registers[4]
    return np.stack([words & 0xFF, words >> 8 & 0xFF], axis=-1).astype(np.uint8).ravel()[: len(values)]


def patterns(count: int) -> np.ndarray:
    """All f16 as f32, and random bit patterns of f32."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    bits = np.random.default_rng(0).integers(0, 1 << 32, count, np.uint32).view(np.float32)
    near = (np.random.default_rng(1).standard_normal(count // 4) * 300).astype(np.float32)
    return np.concatenate([halves, bits, near])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("kind", ("fp8", "bf8"))
@pytest.mark.parametrize("clamp", (False, True))
def test_casts_to_8_bits_exhaustively(arch: str, kind: str, clamp: bool) -> None:
    """Saturating, NaN stays NaN; the peer does not saturate, so its input is clamped by hand."""
    dtype, largest = KINDS[arch][kind], LARGEST[arch][kind]
    everything = patterns(1 << 20)
    for values in np.array_split(everything, 32):
        found = converted(arch, kind, values, clamp)
        wanted = (np.clip(values, -largest, largest) if clamp else values).astype(dtype)
        nan = np.isnan(wanted.astype(np.float32))
        np.testing.assert_array_equal(found[~nan], wanted.view(np.uint8)[~nan])
        assert np.isnan(found.view(dtype)[nan].astype(np.float32)).all()


def test_rounding_to_bf16() -> None:
    given = [0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF, 0x00018000, 0x80000000, 0x80008000]
    wanted = [0x3F80, 0x3F82, 0x3F81, 0x3F80, 0x7F80, 0x0002, 0x8000, 0x8000]
    wave = Wave("gfx950")
    wave.vector(1, np.resize(given, 64))
    wave.vector(2, np.resize([0x7F800001, 0x7FFF8C22], 64))
    wave.run("v_cvt_pk_bf16_f32 v3, v1, v2")
    assert (wave.v(3)[:8] & 0xFFFF).tolist() == wanted
    assert all(x & 0x7FFF > 0x7F80 for x in (wave.v(3)[:2] >> 16).tolist())


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("order", ("bf8_fp8", "fp8_bf8"))
@pytest.mark.parametrize("shape", ("16x16x32", "32x32x16"))
def test_products_of_two_8_bit_formats(arch: str, order: str, shape: str) -> None:
    """Even k 0x3c, odd k 0x40 against 0x38, then 0x3c: another sum for each assignment of formats."""
    form = chips.load(arch).mfma(f"v_mfma_f32_{shape}_{order}")
    k = np.arange(form.k)
    a = np.broadcast_to(np.where(k % 2, 0x40, 0x3C).astype(np.uint8), (form.m, form.k))
    b = np.broadcast_to(np.where(k < form.k // 2, 0x38, 0x3C).astype(np.uint8), (form.n, form.k))
    wave = Wave(arch)
    for first, codes in ((0, a), (16, b)):
        groups = 64 // form.m
        per_lane = form.k // groups
        lane = np.arange(64)
        k = lane[:, None] // form.m * per_lane + np.arange(per_lane)
        words = np.ascontiguousarray(codes[lane[:, None] % form.m, k])
        for i, word in enumerate(words.view(np.uint32).T):
            wave.vector(first + i, word)
    wave.run(f"v_mfma_f32_{shape}_{order} v[128:{127 + form.acc_vgprs}], v[0:1], v[16:17], 0")
    left, right = (KINDS[arch][name] for name in order.split("_"))
    exact = float((a[0].view(left).astype(np.float64) * b[0].view(right).astype(np.float64)).sum())
    if shape == "16x16x32":
        assert exact == {("bf8_fp8", "gfx950"): 60.0, ("bf8_fp8", "gfx942"): 15.0,
                         ("fp8_bf8", "gfx950"): 42.0, ("fp8_bf8", "gfx942"): 10.5}[order, arch]  # fmt: skip
    for i in range(form.acc_vgprs):
        assert set(wave.v(128 + i, np.float32).tolist()) == {exact}


@pytest.mark.parametrize("arch", CHIPS)
def test_f32_products_keep_24_bits(arch: str) -> None:
    wave = Wave(arch)
    lane = np.arange(64)
    one = np.float32(1 + 2.0**-20)
    wave.vector(0, np.where(lane < 32, one, 0).astype(np.float32))
    wave.vector(16, np.full(64, 1 + 2.0**-21, np.float32))
    wave.run("v_mfma_f32_32x32x2_f32 v[128:143], v0, v16, 0")
    assert wave.v(128, np.float32)[0] == np.float32(one * np.float32(1 + 2.0**-21))


@pytest.mark.parametrize("arch", CHIPS)
def test_denormals(arch: str) -> None:
    """Roots and logarithms of f32 flush denormals, arithmetic and conversions keep them (mode as compilers set it)."""
    wave = Wave(arch)
    wave.vector(1, np.full(64, 2.0**-140, np.float32))
    wave.vector(2, np.resize(np.array([-127, -140, -149, -150], np.float32), 64))
    wave.vector(3, np.full(64, 0x0001))
    for i in (4, 5):
        wave.vector(i, np.full(64, 0x00010001))
        wave.vector(2 + i, np.full(64, 0x7F007F00))
    wave.run("v_mul_f32_e32 v10, 1.0, v1", "v_log_f32_e32 v11, v1", "v_exp_f32_e32 v12, v2",
             "v_cvt_f32_f16_e32 v13, v3",
             "v_cvt_f16_f32_e32 v14, v13", "v_mfma_f32_16x16x16_bf16 v[128:131], v[4:5], v[6:7], 0")  # fmt: skip
    assert wave.v(10, np.float32)[0] == 2.0**-140 and wave.v(11, np.float32)[0] == -np.inf
    assert wave.v(12, np.float32)[:4].tolist() == [0, 0, 0, 0]
    assert wave.v(13, np.float32)[0] == 2.0**-24 and wave.v(14)[0] == 1
    assert wave.v(128, np.float32)[0] == 16 * 2.0**-133 * 2.0**127


FUNCTIONS = """
declare float @llvm.exp.f32(float)
declare float @llvm.exp2.f32(float)
declare float @llvm.log.f32(float)
declare float @llvm.sqrt.f32(float)
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) #0 {
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %p = getelementptr float, ptr addrspace(1) %in, i32 %i
 %x = load float, ptr addrspace(1) %p
 STORES
 ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="64,64" denormal_fpenv(float: MODE) }
"""
STORE = """
 %{f} = call float @llvm.{f}.f32(float %x)
 %o{f} = getelementptr [64 x float], ptr addrspace(1) %out, i32 {n}, i32 %i
 store float %{f}, ptr addrspace(1) %o{f}"""
TINY = float(np.finfo(np.float32).tiny)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("mode", ("ieee", "preservesign"))
def test_functions_at_denormals_as_compilers_make_them(arch: str, mode: str) -> None:
    """Operands and results are kept or flushed as the whole kernel's mode says, on both chips."""
    names = ("exp", "exp2", "log", "sqrt")
    given = [-88, -95, -100, -104, -127, -140, -149, -150, 2.0**-140, 2.0**-149, 1.0]
    stores = "".join(STORE.format(f=f, n=n) for n, f in enumerate(names))
    text = FUNCTIONS.replace("STORES", stores).replace("MODE", mode)
    (_, found), _ = run_kernel(text, arch, "k", [np.resize(np.float32(given), 64), np.zeros((4, 64), np.float32)])
    keeps = mode == "ieee"
    x = np.resize(np.float32(given), 64).astype(np.float64)
    x = x if keeps else np.where(np.abs(x) < TINY, 0.0, x)
    with np.errstate(all="ignore"):
        wanted = np.stack([np.exp(x), np.exp2(x), np.log(x), np.sqrt(x)])
    wanted = wanted if keeps else np.where(np.abs(wanted) < TINY, 0.0, wanted)
    for n, name in enumerate(names):
        unit = np.maximum(np.abs(wanted[n]) * 2.0**-23, 2.0**-149)
        sure = np.isfinite(wanted[n])
        close = (found[n] == wanted[n]) | np.isnan(wanted[n])
        close[sure] |= np.abs(found[n][sure] - wanted[n][sure]) <= 2 * unit[sure]
        assert close[:11].all(), (name, found[n, :11], wanted[n, :11])
    if keeps:
        assert 6.05e-39 < found[0, 0] < 6.06e-39 and 5.5e-42 < found[0, 1] < 5.53e-42 and found[0, 3] == 0
        assert found[3, 8] == 2.0**-70 and found[1, 4:8].tolist() == [2.0**-127, 2.0**-140, 2.0**-149, 0.0]
        assert abs(found[2, 8] + 97.04) < 0.01
    else:
        assert (found[0, :4] == 0).all() and (found[1, 4:8] == 0).all() and found[2, 8] == -np.inf


NARROWED = """
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) "amdgpu-flat-work-group-size"="64,64" {
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %p = getelementptr KIND, ptr addrspace(1) %in, i32 %i
 %x = load KIND, ptr addrspace(1) %p
 %y = CAST KIND %x to bfloat
 %o = getelementptr bfloat, ptr addrspace(1) %out, i32 %i
 store bfloat %y, ptr addrspace(1) %o
 ret void
}
"""


@pytest.mark.parametrize("arch", CHIPS)
def test_casts_to_bf16_as_compilers_make_them(arch: str) -> None:
    """By an instruction on the newer chip, by many on the older one; both to nearest even, NaN stays NaN."""
    given = [0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF, 0x00018000, 0x80000000, 0x7F800001, 0x7FFF8C22]
    wanted = [0x3F80, 0x3F82, 0x3F81, 0x3F80, 0x7F80, 0x0002, 0x8000]
    text = NARROWED.replace("KIND", "float").replace("CAST", "fptrunc")
    (_, found), _ = run_kernel(text, arch, "k", [np.resize(given, 64).astype(np.uint32), np.zeros(64, np.uint16)])
    assert found[:7].tolist() == wanted and all(x & 0x7FFF > 0x7F80 for x in found[7:9].tolist())
    whole = np.resize(np.array([259, -259, 33000, 0, 1 << 24], np.int32), 64)
    text = NARROWED.replace("KIND", "i32").replace("CAST", "sitofp")
    (_, found), _ = run_kernel(text, arch, "k", [whole, np.zeros(64, np.uint16)])
    assert found.view(ml_dtypes.bfloat16)[:5].astype(np.float32).tolist() == [260, -260, 33024, 0, 1 << 24]


DRIFT = """
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %r, ptr addrspace(1) %d) "amdgpu-flat-work-group-size"="64,64" {
entry:
 %i = call i32 @llvm.amdgcn.workitem.id.x()
 %p = getelementptr bfloat, ptr addrspace(1) %r, i32 %i
 %start = load bfloat, ptr addrspace(1) %p
 br label %loop
loop:
 %n = phi i32 [ 0, %entry ], [ %next, %loop ]
 %x = phi bfloat [ %start, %entry ], [ %y, %loop ]
 %q = getelementptr [64 x float], ptr addrspace(1) %d, i32 %n, i32 %i
 %step = load float, ptr addrspace(1) %q
 %wide = fpext bfloat %x to float
 %sum = fadd float %wide, %step
 %y = fptrunc float %sum to bfloat
 %next = add i32 %n, 1
 %more = icmp slt i32 %next, 72
 br i1 %more, label %loop, label %end
end:
 store bfloat %y, ptr addrspace(1) %p
 ret void
}
"""


@pytest.mark.parametrize("arch", CHIPS)
def test_bf16_does_not_drift(arch: str) -> None:
    """72 sums rounded to bf16: rounding to nearest keeps the norm, cutting off would lose a tenth of it."""
    random = np.random.default_rng(26)
    start = random.standard_normal(64).astype(ml_dtypes.bfloat16)
    steps = np.abs(random.standard_normal((72, 64)) * 0.05).astype(np.float32)
    (found, _), _ = run_kernel(DRIFT, arch, "k", [start.view(np.uint16), steps])
    exact = start.astype(np.float64) + steps.astype(np.float64).sum(axis=0)
    ratio = np.linalg.norm(found.view(ml_dtypes.bfloat16).astype(np.float64)) / np.linalg.norm(exact)
    assert abs(ratio - 1) < 0.005
