"""What kernels of this field ask of single ops: fills, packing, matrix products, atomics, functions, random numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from contract import CHIPS, sample
from program import Program, along, bits, mlir, tile

from hkc.dialects.tile.random import philox
from hkc.support.dtypes import DTYPES
from hkc.support.errors import HkcError

F8 = {n: DTYPES[n].numpy for n in ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")}


# Fills and packing.

FILLS = [(np.float32, f) for f in (0.0, -0.0, 1.0, -7.0, np.inf, np.nan)] + [
    (np.int8, -1), (np.bool_, True), (np.float16, -0.0), (ml_dtypes.bfloat16, -1.5), (F8["f8e4m3fn"], 2.0),
]  # fmt: skip
HEX = {np.inf: "0x7F800000", -np.inf: "0xFF800000"}


def literal(kind: Any, value: Any) -> str:
    if kind is np.bool_:
        return "true"
    if kind is np.float32 and not np.isfinite(value):
        return f"{'0x7FC00000' if np.isnan(value) else HEX[value]} : f32"
    return f"{value} : {mlir(np.zeros(1, kind))}"


@pytest.mark.parametrize("arch", CHIPS)
def test_fills_stand_where_the_tensor_ends(arch: str) -> None:
    program, wanted = Program(), {}
    for i, (kind, value) in enumerate(FILLS):
        array = sample(np.dtype(kind), (5,), i)
        source, element = program.tensor(f"%a{i}", array), mlir(array)
        program.index(f"%z{i}", 0)
        program.lines += [
            f"%f{i} = arith.constant {literal(kind, value)}",
            f'%x{i} = "hkc_tile.load"(%a{i}, %f{i}, %z{i}) : ({source}, {element}, index) -> tensor<16x{element}>',
        ]
        program.store(f"%x{i}", (16,), kind)
        wanted[f"%x{i}_to"] = np.concatenate([array, np.full(11, value, kind)])
    for symbol in ("k", "k__general"):
        found = program.run(arch, symbol)
        for name, array in wanted.items():
            np.testing.assert_array_equal(bits(found[name]), bits(array), name)


@pytest.mark.parametrize("arch", CHIPS)
def test_constant_tiles_of_every_width(arch: str) -> None:
    program, wanted = Program(), {}
    for i, (kind, value) in enumerate(((np.int8, -3), (np.int8, -56), (ml_dtypes.bfloat16, -1.5), (np.bool_, True))):
        element = mlir(np.zeros(1, kind))
        text = "true" if kind is np.bool_ else value
        program.constant(f"%c{i}", f"dense<{text}>", f"tensor<32x{element}>")
        for width in (1, 2, 3, 7, 16, 17):
            name = f"%o{i}_{width}"
            target = program.tensor(name, np.zeros(width + 3, kind))
            program.index(f"{name}_at", 3)
            program.lines.append(
                f'"hkc_tile.store"(%c{i}, {name}, {name}_at) : (tensor<32x{element}>, {target}, index) -> ()'
            )
            wanted[name] = np.concatenate([np.zeros(3, kind), np.full(width, value, kind)])
    found = program.run(arch)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, name)


# Matrix products.


def product(arch: str, a: Any, b: Any, total: Any, turned: tuple[bool, bool] = (False, False)) -> Any:
    """a @ b by `dot`, either operand loaded transposed."""
    program = Program()
    names = []
    for name, array, turn in (("%a", a, turned[0]), ("%b", b, turned[1])):
        stored = np.ascontiguousarray(array.T) if turn else array
        kind = program.load(name, stored)
        names.append(f"{name}t" if turn else name)
        if turn:
            program.lines.append(
                f'{name}t = "hkc_tile.transpose"({name}) {{permutation = array<i64: 1, 0>}} : ({kind}) -> {tile(array)}'
            )
    shape = (a.shape[0], b.shape[1])
    out = f"tensor<{shape[0]}x{shape[1]}x{mlir(np.zeros(1, total))}>"
    program.constant("%c", f"dense<{'0.0' if np.dtype(total).kind == 'f' else 0}>", out)
    program.lines.append(f'%d = "hkc_tile.dot"({", ".join(names)}, %c) : ({tile(a)}, {tile(b)}, {out}) -> {out}')
    program.store("%d", shape, total)
    return program.run(arch)["%d_to"]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("left", "right", "wanted"), [
    ("f8e5m2", "f8e4m3fn", 60.0), ("f8e5m2fnuz", "f8e4m3fnuz", 15.0),
    ("f8e4m3fn", "f8e5m2", 42.0), ("f8e4m3fnuz", "f8e5m2fnuz", 10.5),
])  # fmt: skip
def test_mixed_8_bit_products(left: str, right: str, wanted: float, arch: str) -> None:
    k = np.arange(32)
    a = np.broadcast_to(np.where(k % 2, 0x40, 0x3C), (16, 32)).astype(np.uint8).copy().view(F8[left])
    b = np.broadcast_to(np.where(k < 16, 0x38, 0x3C)[:, None], (32, 16)).astype(np.uint8).copy().view(F8[right])
    assert set(product(arch, a, b, np.float32).flat) == {wanted}


ONE_HOT = [(np.float16, 2048, np.float32), (ml_dtypes.bfloat16, 256, np.float32), (np.float32, 2048, np.float32),
           (np.int8, 128, np.int32), (F8["f8e4m3fn"], 16, np.float32), (F8["f8e5m2fnuz"], 4, np.float32),
           (np.float64, 2048, np.float64)]  # fmt: skip


TURNED = [(False, False), (False, True), (True, False), (True, True)]
PRODUCTS = [
    pytest.param(
        *case, turned, id=f"{np.dtype(case[0])}-{turned}", marks=[pytest.mark.long] if i and j != i % 4 else []
    )
    for i, case in enumerate(ONE_HOT)
    for j, turned in enumerate(TURNED)
]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("kind", "modulus", "total", "turned"), PRODUCTS)
def test_one_hot_rows_pick_rows(kind: Any, modulus: int, total: Any, turned: tuple[bool, bool], arch: str) -> None:
    depth, rows, columns = 64, 32, 48
    pick = (5 * np.arange(rows) + 3) % depth
    a = (pick[:, None] == np.arange(depth)).astype(kind)
    b = (np.arange(depth * columns) % modulus).reshape(depth, columns).astype(kind)
    np.testing.assert_array_equal(product(arch, a, b, total, turned), b[pick].astype(total))


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("size", [16, 32, 48, 64, 96])
@pytest.mark.parametrize(("kind", "modulus", "total"), ONE_HOT)
def test_one_hot_rows_of_every_size(kind: Any, modulus: int, total: Any, size: int, arch: str) -> None:
    for depth in (32, 64 if kind is np.float64 else 128):
        pick = (5 * np.arange(size) + 3) % depth
        a = (pick[:, None] == np.arange(depth)).astype(kind)
        b = (np.arange(depth * size) % modulus).reshape(depth, size).astype(kind)
        np.testing.assert_array_equal(product(arch, a, b, total), b[pick].astype(total))


@pytest.mark.parametrize("arch", CHIPS)
def test_f32_products_keep_all_digits(arch: str) -> None:
    a = (np.eye(32) * (1 + 2.0**-20)).astype(np.float32)
    b = np.full((32, 32), 1 + 2.0**-21, np.float32)
    np.testing.assert_array_equal(product(arch, a, b, np.float32), np.float32(1 + 2.0**-20) * b)


def test_scaled_products_are_refused_where_there_are_none() -> None:
    program = Program()
    for name, shape, kind in (("%a", (16, 128), "f8e4m3fn"), ("%b", (128, 16), "f8e4m3fn"), ("%s", (16, 4), "e8m0"),
                              ("%t", (4, 16), "e8m0")):  # fmt: skip
        program.load(name, np.ones(shape, np.float32).astype(DTYPES[kind].numpy))
    program.constant("%c", "dense<0.0>", "tensor<16x16xf32>")
    program.lines.append(
        '%d = "hkc_tile.dot_scaled"(%a, %s, %b, %t, %c) : (tensor<16x128xf8E4M3FN>, tensor<16x4xf8E8M0FNU>,'
        " tensor<128x16xf8E4M3FN>, tensor<4x16xf8E8M0FNU>, tensor<16x16xf32>) -> tensor<16x16xf32>"
    )
    program.store("%d", (16, 16), np.float32)
    assert set(program.run("gfx950")["%d_to"].flat) == {128.0}
    with pytest.raises(HkcError, match="gfx942 has no scaled matrix instruction"):
        program.run("gfx942")


@pytest.mark.parametrize("line", [
    '%r = arith.addf %x, %x : tensor<64xf8E4M3FN>',
    '%r = "hkc_tile.reduce"(%x) {axis = 0 : i64, kind = "sum"} : (tensor<64xf8E4M3FN>) -> tensor<1xf8E4M3FN>',
])  # fmt: skip
def test_arithmetic_on_narrow_floats_names_the_chip(line: str) -> None:
    program = Program()
    program.load("%x", np.ones(64, np.float32).astype(F8["f8e4m3fn"]))
    program.lines.append(line)
    program.store("%r", (64,) if "addf" in line else (1,), F8["f8e4m3fn"])
    with pytest.raises(HkcError, match="gfx942 computes with no f8e4m3fn"):
        program.run("gfx942")


# Atomics.


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.int64, np.float64])
def test_atomic_additions(kind: Any, arch: str) -> None:
    # The tile begins one element on, an odd place. 16-bit updates use the whole 32-bit word around them.
    x = np.tile(np.array([0, 1]), 257).astype(kind)
    program = Program()
    target, element = program.tensor("%x", x), mlir(x)
    program.index("%at", 1)
    program.constant("%one", "dense<1>" if np.dtype(kind).kind == "i" else "dense<1.0>", f"tensor<512x{element}>")
    program.lines.append(
        f'"hkc_tile.atomic"(%one, %x, %at) {{kind = "add"}} : (tensor<512x{element}>, {target}, index) -> ()'
    )
    wanted = np.concatenate([x[:1], x[1:513] + np.ones((), kind), x[513:]])
    for symbol in ("k", "k__general"):
        np.testing.assert_array_equal(program.run(arch, symbol)["%x"], wanted)


@pytest.mark.parametrize("arch", CHIPS)
def test_many_workgroups_and_lanes_add_to_one_cell(arch: str) -> None:
    program = Program()
    program.position("%at", 64, 1)
    program.index("%zero", 0)
    program.constant("%one", "dense<1>", "tensor<1xi32>")
    for name, kind in (("%x", np.int32), ("%y", np.float32)):
        program.tensor(name, np.zeros(1, kind))
    program.constant("%f", "dense<1.0>", "tensor<128xf32>")
    program.constant("%n", "dense<0>", "tensor<128xi32>")
    program.lines += [
        '"hkc_tile.atomic"(%one, %x, %zero) {kind = "add"} : (tensor<1xi32>, memref<?xi32, strided<[?]>>, index) -> ()',
        '"hkc_tile.scatter"(%f, %y, %n) {axis = 0 : i64, kind = "add"} : (tensor<128xf32>, memref<?xf32, strided<[?]>>,'
        " tensor<128xi32>) -> ()",
    ]
    found = program.run(arch)
    assert (found["%x"][0], found["%y"][0]) == (64, 64 * 128)


@pytest.mark.parametrize("arch", CHIPS)
def test_old_values_are_tickets(arch: str) -> None:
    """Every workgroup and wave draws a number from one counter: all see the same, and each number once."""
    program = Program(waves=4)
    program.position("%at", 16, 1)
    program.index("%zero", 0)
    program.tensor("%x", np.zeros(1, np.int32))
    program.constant("%one", "dense<1>", "tensor<1xi32>")
    program.lines += [
        '%old = "hkc_tile.atomic_fetch"(%one, %x, %zero) {kind = "add"}'
        " : (tensor<1xi32>, memref<?xi32, strided<[?]>>, index) -> tensor<1xi32>",
        '%wide = "hkc_tile.broadcast"(%old) : (tensor<1xi32>) -> tensor<256xi32>',
        '%row = "hkc_tile.reshape"(%wide) : (tensor<256xi32>) -> tensor<1x256xi32>',
        '"hkc_tile.store"(%row, %to, %at, %zero)'
        " : (tensor<1x256xi32>, memref<?x?xi32, strided<[?, ?]>>, index, index) -> ()",
    ]
    program.tensor("%to", np.zeros((16, 256), np.int32))
    found = program.run(arch)["%to"]
    assert sorted(found[:, 0]) == list(range(16)) and (found == found[:, :1]).all()


def test_atomics_of_other_dtypes_are_refused() -> None:
    program = Program()
    program.load("%x", np.ones(64, np.float32).astype(F8["f8e5m2"]))
    target = program.tensor("%y", np.zeros(64, np.float32).astype(F8["f8e5m2"]))
    program.index("%z", 0)
    program.lines.append(f'"hkc_tile.atomic"(%x, %y, %z) {{kind = "add"}} : (tensor<64xf8E5M2>, {target}, index) -> ()')
    with pytest.raises(HkcError, match="gfx950 has no atomic `add` for f8e5m2"):
        program.run("gfx950")


@pytest.mark.parametrize("arch", CHIPS)
def test_a_false_assertion_stops_the_kernel(arch: str) -> None:
    program = Program()
    kind = program.load("%x", np.arange(64, dtype=np.float32))
    program.constant("%c", "dense<63.0>", kind)
    program.lines += [
        f"%ok = arith.cmpf olt, %x, %c : {kind}",
        '"hkc_tile.assert"(%ok) {message = "below 63"} : (tensor<64xi1>) -> ()',
    ]
    program.store("%x", (64,), np.float32)
    with pytest.raises(HkcError, match="trap"):
        program.run(arch)
    with pytest.raises(HkcError, match=r"HK720.*below 63"):
        program.meant()
    program.arrays["%x_from"] = np.arange(64, dtype=np.float32) - 1
    program.check(arch, exact=True)


# Functions.


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("name", ["tanh", "erf", "sin", "cos"])
def test_functions_keep_their_bounds(name: str, element: str, arch: str) -> None:
    rng = np.random.default_rng(4)
    ends = [
        0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1e-40,
        -3e-45,
        0.5,
        1,
        3,
        6,
        0.55,
        0.921875,
        1e4,
        -1e4,
        3e38,
        1e15,
        22 / 7,
    ]
    with np.errstate(all="ignore"):
        x = np.concatenate([ends, rng.standard_normal(400) * 3, rng.standard_normal(94) * 1e5])
        x = x.astype(DTYPES[element].numpy)
    program = Program()
    kind = program.load("%x", x)
    program.lines.append(f'%r = "math.{name}"(%x) : ({kind}) -> {kind}')
    program.store("%r", x.shape, x.dtype)
    program.check(arch, ("k",))


@pytest.mark.parametrize("arch", CHIPS)
def test_limits_of_tanh_and_erf(arch: str) -> None:
    x = np.array([1e4, -1e4, 0.5, 1, 3, 6], np.float32)
    line = '%r = "math.{}"(%x0) : ({{x0}}) -> {{r}}'
    assert along(arch, line.format("tanh"), np.float32, x)[:2].tolist() == [1, -1]
    wanted = [1, -1, 0.5204999, 0.8427008, 0.9999779, 1]
    np.testing.assert_allclose(along(arch, line.format("erf"), np.float32, x), wanted, rtol=3e-7)
    softcap = 50 * along(arch, line.format("tanh"), np.float32, np.float32([1, 100, 1000, 3000, -1e4]) / np.float32(50))
    np.testing.assert_allclose(softcap, [0.99987, 48.2014, 50, 50, -50], rtol=1e-5)


@pytest.mark.parametrize("arch", CHIPS)
def test_subnormals_stay(arch: str) -> None:
    def apply(name: str, *values: float) -> list[float]:
        line = f'%r = "math.{name}"(%x0) : ({{x0}}) -> {{r}}'
        return list(along(arch, line, np.float32, np.array(values, np.float32)).astype(float))

    np.testing.assert_allclose(apply("exp", -88, -95, -100, -104), [6.0546e-39, 5.5211e-42, 3.783e-44, 0], rtol=2e-2)
    np.testing.assert_allclose(apply("exp2", -127, -140, -149, -150), [2.0**-127, 2.0**-140, 2.0**-149, 0])
    assert apply("sqrt", 2.0**-140) == [2.0**-70]
    np.testing.assert_allclose(apply("log", 2.0**-140), [-97.0406], rtol=1e-6)
    tiny = np.array([1, 0x3FF, 0x8001], np.uint16).view(np.float16)
    back = along(arch, '%w = "hkc_tile.cast"(%x0) : ({x0}) -> tensor<1024xf32>\n'
                 '%r = "hkc_tile.cast"(%w) : (tensor<1024xf32>) -> {r}', np.float16, tiny)  # fmt: skip
    np.testing.assert_array_equal(bits(back), bits(tiny))
    small = np.full((16, 16), 1e-39, ml_dtypes.bfloat16)
    exact = small[0, 0].astype(np.float32)
    kept = product(arch, small, np.eye(16).astype(ml_dtypes.bfloat16), np.float32)
    assert set(kept.flat) <= {exact, np.float32(0)} and len(set(kept.flat)) == 1


# Random numbers.


def test_philox_is_philox() -> None:
    """The known answers of the Random123 distribution."""
    zero = [int(w[0]) for w in philox([np.zeros(1)] * 4, (0, 0))]
    assert zero == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    full = 0xFFFFFFFF
    ones = [int(w[0]) for w in philox([np.full(1, full)] * 4, (full, full))]
    assert ones == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


def mask(arch: str, shape: tuple[int, int], waves: int, batch: int = 0, seed: int = 1234567890123) -> Any:
    """32x64 random words, made by tiles of some shape."""
    program = Program(waves=waves)
    target = program.tensor("%to", np.zeros((32, 64), np.int32))
    program.lines += [f"%seed = arith.constant {seed} : i64", f"%b = arith.constant {batch} : index"]
    for i, (r, c) in enumerate(np.ndindex(32 // shape[0], 64 // shape[1])):
        program.index(f"%r{i}", r * shape[0])
        program.index(f"%c{i}", c * shape[1])
        kind = f"tensor<{shape[0]}x{shape[1]}xi32>"
        program.lines += [
            f'%w{i} = "hkc_tile.random"(%seed, %b, %r{i}, %c{i}) : (i64, index, index, index) -> {kind}',
            f'"hkc_tile.store"(%w{i}, %to, %r{i}, %c{i}) : ({kind}, {target}, index, index) -> ()',
        ]
    return program.run(arch)["%to"].view(np.uint32)


@pytest.mark.parametrize("arch", CHIPS)
def test_random_numbers_depend_on_the_place_alone(arch: str) -> None:
    rows, columns = np.indices((32, 64))
    key = (1234567890123 & 0xFFFFFFFF, 1234567890123 >> 32)
    blocks = philox([columns // 4, rows, np.full_like(rows, 1), np.zeros_like(rows)], key)
    wanted = np.choose(columns % 4, blocks)
    for shape, waves in (((32, 64), 4), ((16, 16), 1), ((8, 32), 2)):
        np.testing.assert_array_equal(mask(arch, shape, waves, batch=1), wanted)
    other = [mask(arch, (32, 64), 4, batch=0), mask(arch, (32, 64), 4, batch=1, seed=7)]
    assert all((m != wanted).mean() > 0.99 for m in other)


@pytest.mark.parametrize("arch", CHIPS)
def test_random_numbers_are_uniform(arch: str) -> None:
    program = Program()
    program.index("%i", 5)
    program.lines.append("%seed = arith.constant 99 : i64")
    program.lines.append('%u = "hkc_tile.random"(%seed, %i, %i) : (i64, index, index) -> tensor<64x64xf32>')
    program.store("%u", (64, 64), np.float32)
    program.check(arch, exact=True)
    u = program.run(arch)["%u_to"]
    assert u.min() >= 0 and u.max() < 1
    for p in (0.1, 0.5):
        assert abs((u >= p).mean() - (1 - p)) < 4 * np.sqrt(p * (1 - p) / u.size)
