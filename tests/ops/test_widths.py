"""Reductions and scans of every width: what lies beyond a tensor's edge must not count."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from contract import CHIPS
from program import Program, mlir

from hkc.support.errors import HkcError

PADDED = (16, 48, 64, 96, 128, 256, 320)
"""Extents of tiles; a width uses the smallest that holds it."""

FAST = (1, 3, 16, 17, 63, 65, 100, 256, 257, 300)
WIDTHS = [pytest.param(n, marks=[] if n in FAST else [pytest.mark.long]) for n in range(1, 301)]


def kernel(x: Any, extent: int) -> Program:
    """Sum, maximum, place of the maximum, running sums both ways of rows of x, held in tiles 4 x extent."""
    program, rows = Program(), len(x)
    program.index("%z", 0)
    element = "i32" if x.dtype == np.int32 else "f32"
    kind, low = f"tensor<{rows}x{extent}x{element}>", "-2147483648" if element == "i32" else "0xFF800000"
    source = program.tensor("%x", x)
    for name, fill in (("%a", "0" if element == "i32" else "0.0"), ("%b", low)):
        program.lines += [
            f"{name}f = arith.constant {fill} : {element}",
            f'{name} = "hkc_tile.load"(%x, {name}f, %z, %z) : ({source}, {element}, index, index) -> {kind}',
        ]
    folded = [f"tensor<{rows}x1x{t}>" for t in (element, "i32")]
    lines = {
        "%sum": ('"hkc_tile.reduce"(%a) {axis = 1 : i64, kind = "sum"}', folded[0]),
        "%max": ('"hkc_tile.reduce"(%b) {axis = 1 : i64, kind = "max"}', folded[0]),
        "%arg": ('"hkc_tile.arg_reduce"(%b) {axis = 1 : i64, kind = "max"}', folded[1]),
        "%run": ('"hkc_tile.scan"(%a) {axis = 1 : i64, kind = "sum"}', kind),
        "%back": ('"hkc_tile.scan"(%a) {axis = 1 : i64, kind = "sum", reverse = true}', kind),
    }
    for name, (line, out) in lines.items():
        shape = (rows, 1) if out in folded else x.shape
        target = program.tensor(f"{name}_to", np.zeros(shape, np.int32 if name == "%arg" else x.dtype))
        program.lines += [
            f"{name} = {line} : ({kind}) -> {out}",
            f'"hkc_tile.store"({name}, {name}_to, %z, %z) : ({out}, {target}, index, index) -> ()',
        ]
    return program


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_width(width: int, dtype: Any, arch: str) -> None:
    rng = np.random.default_rng(width)
    x = rng.integers(-50, 50, (4, width)).astype(dtype)  # whole numbers: sums are exact in any order
    extent = next(n for n in PADDED if n >= width)
    found = kernel(x, extent).run(arch, "k" if width % 2 else "k__general")
    np.testing.assert_array_equal(found["%sum_to"], x.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(found["%max_to"], x.max(axis=1, keepdims=True))
    np.testing.assert_array_equal(found["%arg_to"], x.argmax(axis=1)[:, None])
    np.testing.assert_array_equal(found["%run_to"], x.cumsum(axis=1))
    np.testing.assert_array_equal(found["%back_to"], x[:, ::-1].cumsum(axis=1)[:, ::-1])


@pytest.mark.parametrize("arch", CHIPS)
def test_nan_and_ties(arch: str) -> None:
    x = np.zeros((4, 64), np.float32)
    x[0, [7, 40]] = 5
    x[1, [9, 50]] = np.nan
    x[2] = -np.inf
    x[3, 63] = np.inf
    found = kernel(x, 64).run(arch)
    np.testing.assert_array_equal(found["%max_to"][:, 0], [5, np.nan, -np.inf, np.inf])
    np.testing.assert_array_equal(found["%arg_to"][:, 0], [7, 9, 0, 63])


@pytest.mark.parametrize("arch", CHIPS)
def test_floor_division_of_negative_numbers(arch: str) -> None:
    a = np.arange(-24, 24, dtype=np.int32)
    program = Program()
    kind = program.load("%a", a)
    for i, b in enumerate((-7, -1, 1, 3, 5, 16)):
        program.constant(f"%b{i}", f"dense<{b}>", kind)
        for name in ("floordiv", "floormod"):
            program.lines.append(f'%{name}{i} = "hkc_tile.{name}"(%a, %b{i}) : ({kind}, {kind}) -> {kind}')
            program.store(f"%{name}{i}", a.shape, a.dtype)
    found = program.run(arch)
    for i, b in enumerate((-7, -1, 1, 3, 5, 16)):
        np.testing.assert_array_equal(found[f"%floordiv{i}_to"], a // b)
        np.testing.assert_array_equal(found[f"%floormod{i}_to"], a % b)


@pytest.mark.parametrize("arch", CHIPS)
def test_unsigned_numbers(arch: str) -> None:
    x = np.random.default_rng(6).integers(0, 2**32, 128, dtype=np.uint32)
    y = np.random.default_rng(7).integers(1, 2**32, 128, dtype=np.uint32)
    program = Program()
    kind = program.load("%x", x.view(np.int32))
    program.load("%y", y.view(np.int32))
    lines = {
        "%max": ("reduce", 'axis = 0 : i64, kind = "max"', "%x", "tensor<1xi32>", x.max(keepdims=True)),
        "%arg": ("arg_reduce", 'axis = 0 : i64, kind = "min"', "%x", "tensor<1xi32>", x.argmin(keepdims=True)),
        "%run": ("scan", 'axis = 0 : i64, kind = "max"', "%x", kind, np.maximum.accumulate(x)),
        "%div": ("floordiv", "", "%x, %y", kind, x // y),
        "%mod": ("floormod", "", "%x, %y", kind, x % y),
    }
    for name, (op, words, operands, out, _) in lines.items():
        marks = f"{{{words}{', ' if words else ''}unsigned = true}}"
        kinds = ", ".join([kind] * len(operands.split(", ")))
        program.lines.append(f'{name} = "hkc_tile.{op}"({operands}) {marks} : ({kinds}) -> {out}')
        program.store(name, (1,) if out != kind else (128,), np.int32)
    target = program.tensor("%t", np.full(128, 2**31 - 1, np.int32))
    program.index("%z", 0)
    program.lines.append(
        f'"hkc_tile.atomic"(%x, %t, %z) {{kind = "max", unsigned = true}} : ({kind}, {target}, index) -> ()'
    )
    found = program.run(arch)
    for name, (*_, wanted) in lines.items():
        np.testing.assert_array_equal(found[f"{name}_to"].view(np.uint32), wanted.astype(np.uint32), name)
    np.testing.assert_array_equal(found["%t"].view(np.uint32), np.maximum(x, 2**31 - 1))
    program.check(arch, exact=True)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("extent", [64, 256, 65536])
def test_odd_cuts_go_through_lds(extent: int, arch: str) -> None:
    program = Program()
    kind = program.load("%x", np.arange(extent, dtype=np.float32))
    program.lines.append(
        f'%r = "hkc_tile.slice"(%x) {{offsets = array<i64: 3>}} : ({kind}) -> tensor<{extent // 2}xf32>'
    )
    program.store("%r", (extent // 2,), np.float32)
    if extent > 256:  # more bytes than LDS has
        with pytest.raises(HkcError, match="HK453"):
            program.run(arch)
    else:
        program.check(arch, exact=True)


MOVES = (
    ("reshape", "", ((80, 16),), (16, 80)),
    ("reshape", "", ((80, 16),), (1280,)),
    ("reshape", "", ((48, 4, 8),), (8, 4, 48)),
    ("slice", "offsets = array<i64: 3, 5>", ((80, 16),), (32, 8)),
    ("slice", "offsets = array<i64: 16, 4>", ((80, 16),), (64, 8)),
    ("slice", "offsets = array<i64: 1, 7, 2>", ((4, 16, 8),), (2, 8, 4)),
    ("concat", "axis = 1 : i64", ((16, 16), (16, 16)), (16, 32)),
    ("concat", "axis = 0 : i64", ((1, 64), (1, 64)), (2, 64)),
    ("concat", "axis = 1 : i64", ((128, 1), (128, 1)), (128, 2)),
)
"""Ops that move elements between lanes: name, attributes, extents of the operands and of the result."""


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float64])
@pytest.mark.parametrize("waves", [1, 4])
def test_elements_change_lanes(waves: int, dtype: Any, arch: str) -> None:
    program = Program(waves)
    for n, (op, marks, shapes, out) in enumerate(MOVES):
        arrays = [np.arange(i, i + math.prod(s)).astype(dtype).reshape(s) for i, s in enumerate(shapes)]
        kinds = [program.load(f"%x{n}_{i}", a) for i, a in enumerate(arrays)]
        operands = ", ".join(f"%x{n}_{i}" for i in range(len(arrays)))
        result = f"tensor<{'x'.join(map(str, out))}x{mlir(arrays[0])}>"
        program.lines.append(f'%r{n} = "hkc_tile.{op}"({operands}) {{{marks}}} : ({", ".join(kinds)}) -> {result}')
        program.store(f"%r{n}", out, dtype)
    program.check(arch, exact=True)


@pytest.mark.parametrize("arch", CHIPS)
def test_a_loop_under_a_condition_carries_tiles(arch: str) -> None:
    """Halve a tile until its maximum is below 10: the condition is an element of a tile."""
    program = Program()
    kind = program.load("%x", np.arange(256, dtype=np.float32))
    program.constant("%bar", "10.0", "f32")
    program.constant("%half", "dense<0.5>", kind)
    program.constant("%none", "0", "i32")
    program.constant("%one", "1", "i32")
    program.lines += [
        f"%r:2 = scf.while (%t = %x, %n = %none) : ({kind}, i32) -> ({kind}, i32) {{",
        f'  %m = "hkc_tile.reduce"(%t) {{axis = 0 : i64, kind = "max"}} : ({kind}) -> tensor<1xf32>',
        '  %top = "hkc_tile.item"(%m) : (tensor<1xf32>) -> f32',
        "  %more = arith.cmpf oge, %top, %bar : f32",
        f"  scf.condition(%more) %t, %n : {kind}, i32",
        "} do {",
        f"^bb0(%t: {kind}, %n: i32):",
        f"  %less = arith.mulf %t, %half : {kind}",
        "  %next = arith.addi %n, %one : i32",
        f"  scf.yield %less, %next : {kind}, i32",
        "}",
        f"%done = arith.addf %r#0, %half : {kind}",
        "%count = tensor.splat %r#1 : tensor<16xi32>",
    ]
    program.store("%done", (256,), np.float32)
    program.store("%count", (16,), np.int32)
    program.check(arch, exact=True)
    assert set(program.run(arch)["%count_to"]) == {5}


@pytest.mark.parametrize("arch", CHIPS)
def test_a_branch_gives_tiles(arch: str) -> None:
    program = Program()
    kind = program.load("%x", np.arange(256, dtype=np.float32).reshape(16, 16))
    program.index("%zero", 0)
    program.lines += [
        "%n = memref.dim %x_from, %zero : memref<?x?xf32, strided<[?, ?]>>",
        "%c = arith.cmpi sgt, %n, %zero : index",
        f"%r = scf.if %c -> ({kind}) {{",
        f'  %t = "hkc_tile.transpose"(%x) {{permutation = array<i64: 1, 0>}} : ({kind}) -> {kind}',
        f"  scf.yield %t : {kind}",
        "} else {",
        f"  scf.yield %x : {kind}",
        "}",
    ]
    program.store("%r", (16, 16), np.float32)
    program.check(arch, exact=True)
