"""What a tile op means is what the compiled kernel stores: every op and builtin, both chips, both entries."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from contract import CHIPS, compiled, emulate, sample, split_types

import hkc.dialects.tile  # noqa: F401
from hkc.dialects.builtin import BUILTINS
from hkc.dialects.define import TILE_DIALECT
from hkc.reference import compare
from hkc.support import worker
from hkc.support.dtypes import DTYPES
from hkc.support.errors import HkcError

ELEMENTS = {d.mlir: d.numpy for d in DTYPES.values() if d.kind != "uint"}


def extents(tile: str) -> tuple[int, ...]:
    return tuple(int(n) for n in tile[7:-1].split("x")[:-1])


def element(kind: str) -> str:
    """The element of a tile or tensor type; a scalar type is its own."""
    return re.sub(r"^(tensor|memref)<[?x\d]*x|(, strided.*)?>$", "", kind)


def tensor(tile: str) -> str:
    rank = len(extents(tile))
    return f"memref<{'?x' * rank}{element(tile)}, strided<[{', '.join('?' * rank)}]>>"


def constant(name: str, kind: str, value: int = 0) -> str:
    if kind == "i1":
        return f"{name} = arith.constant {'true' if value else 'false'}"
    return f"{name} = arith.constant {value}{'.0' if 'f' in kind else ''} : {kind}"


def kernel(lines: list[str], inputs: dict[str, str], results: dict[str, str], offset: int = 0) -> str:
    """A kernel that loads tiles (all at `offset`), runs lines, and stores tiles at 0. Tiles are given by SSA name.

    An input that is a tensor is an argument; a scalar input is 1, an index `offset`.
    """
    head, text, stores = [], [constant("%at", "index", offset), constant("%zero", "index")], []
    for i, (name, kind) in enumerate((*inputs.items(), *results.items())):
        if not kind.startswith(("tensor", "memref")):
            text.append(constant(name, kind, offset if kind == "index" else 1))
            continue
        rank = kind.count("?") // 2 if kind.startswith("memref") else len(extents(kind))
        source, argument = (kind, name) if kind.startswith("memref") else (tensor(kind), f"%t{i}")
        dims = ", ".join(f'"d{i}_{d}"' for d in range(rank))
        head.append(f'{argument}: {source} {{hkc.name = "{name[1:]}", hkc.dims = [{dims}]}}')
        index, zeros, ats = (", ".join([word] * rank) for word in ("index", "%zero", "%at"))
        if name in results:
            stores.append(f'"hkc_tile.store"({name}, {argument}, {zeros}) : ({kind}, {source}, {index}) -> ()')
        elif kind.startswith("tensor"):
            text += [
                constant(f"%fill{i}", element(kind)),
                f'{name} = "hkc_tile.load"({argument}, %fill{i}, {ats})'
                f" : ({source}, {element(kind)}, {index}) -> {kind}",
            ]
    body = "\n  ".join([*text, *lines, *stores, "return"])
    attributes = '{hkc.kernel, hkc.grid = ["1"], hkc.hints = {}}'
    return f"func.func @k({', '.join(head)}) attributes {attributes} {{\n  {body}\n}}\n{COMBINE}"


COMBINE = """
func.func private @affine(%a: f32, %b: f32, %c: f32, %d: f32) -> (f32, f32) {
  %e = arith.mulf %a, %c : f32
  %f = arith.mulf %b, %c : f32
  %g = arith.addf %f, %d : f32
  return %e, %g : f32, f32
}
"""
"""What examples of scans combine with: maps x -> a x + b, one after the other."""


def check(text: str, tensors: dict[str, Any], arch: str, general: bool = True) -> None:
    """Each entry point leaves in all tensors, by name in the order of the arguments, what the meanings say, within the
    bounds."""
    wanted = worker.call("contract:run_tiles", text, tensors, True)
    code = compiled(text, arch, "tile")
    arguments = [(*a.shape, *(s // a.itemsize for s in a.strides)) for a in tensors.values()]
    for symbol in ("k", "k__general")[: 1 + general]:
        for name, found in zip(tensors, emulate(code, symbol, list(tensors.values()), arguments), strict=True):
            compared = compare(found, *wanted[name])
            assert compared.ok, f"{symbol} {name}: {compared}"


SPECIAL_FORM = {"tile_id", "tile_at", "assert", "print", "load", "item"}
"""Ops whose use is not to be seen in one tile: grids, what stops or prints, loads (below), scalars."""

QUICK = 2
"""Examples of an op that every run tries; the others take part in `./dev test-all`."""

EXAMPLES = [
    pytest.param(example, id=f"{name}-{i}", marks=[pytest.mark.long] if i >= QUICK else [])
    for name, record in TILE_DIALECT.ops.items()
    if name not in SPECIAL_FORM
    for i, example in enumerate(record.examples)
]
EXAMPLE = re.compile(r'(?:([%\w, ]+) = )?"[\w.]+"\(([^)]*)\)(?: \{[^}]*\})? : \((.*)\) -> (.*)$')


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("example", EXAMPLES)
def test_machine_code_does_what_the_op_means(example: str, arch: str) -> None:
    found = EXAMPLE.match(example)
    assert found is not None
    names, operands, types, kinds = (found[i] or "" for i in (1, 2, 3, 4))
    inputs = dict(zip([o.strip() for o in operands.split(",") if o], split_types(types), strict=True))
    results = dict(zip([n.strip() for n in names.split(",") if n], split_types(kinds.strip("()")), strict=True))
    covered = next(extents(t) for t in (*results.values(), *inputs.values()) if t.startswith("tensor"))
    tensors = {}
    for i, (name, kind) in enumerate(inputs.items()):
        if kind.startswith(("tensor", "memref")):
            shape = extents(kind) if kind.startswith("tensor") else tuple(n + 3 for n in covered)
            tensors[name[1:]] = sample(ELEMENTS[element(kind)], shape, i)
    tensors |= {n[1:]: np.zeros(extents(k), ELEMENTS[element(k)]) for n, k in results.items()}
    try:
        check(kernel([example], inputs, results), tensors, arch)
    except HkcError as refusal:
        if refusal.diagnostics[0].code != "HK451":
            raise
        pytest.skip(refusal.diagnostics[0].message)


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -3e-45, 1e-38, 88.7, -103.5, 65504.0, 6e-8, 3e38, 0.5]
"""What floating-point functions stumble over: subnormals, ends of ranges, what is no number."""


def numbers(kind: str, seed: int, nonzero: bool = False) -> Any:
    """A 16x32 tile of ordinary numbers; of floats, half of it pairs every special one with every other."""
    dtype = ELEMENTS[kind]
    if np.dtype(dtype).kind in "iu":
        x = sample(dtype, (16, 32), seed) * np.where(sample(np.dtype(bool), (16, 32), 9), 1, 10**5).astype(dtype)
        return np.where(x == 0, dtype.type(7), x) if nonzero else x
    with np.errstate(all="ignore"):
        x = (sample(np.dtype(np.float64), (16, 32), seed) * 8).astype(dtype)
        x[:, :16] = np.asarray(SPECIAL).astype(dtype) if seed else np.asarray(SPECIAL).astype(dtype)[:, None]
    return x


FLOATS = ["addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf"]
FUNCTIONS = ["math.absf", "math.exp", "math.exp2", "math.log", "math.log2", "math.sqrt", "math.rsqrt", "arith.negf"]
INTEGERS = [n for n in BUILTINS if re.search(r"(add|sub|mul|and|or|xor|max.|min.|div.|rem.)i$", n)]


def run_together(kind: str, arch: str, ops: dict[str, tuple[str, str]]) -> None:
    """Many ops on the same two tiles in one kernel; `ops`: result name to op (with attributes) and result element."""
    tile = f"tensor<16x32x{kind}>"
    lines, results = [], {}
    for name, (op, out) in ops.items():
        operands = "%a" if op in FUNCTIONS else "%a, %b"
        types = ", ".join([tile] * len(operands.split()))
        word, _, attributes = op.partition(" ")
        results[name] = f"tensor<16x32x{out}>"
        lines.append(f'{name} = "{word}"({operands}) {attributes} : ({types}) -> {results[name]}')
    text = kernel(lines, {"%a": tile, "%b": tile}, results)
    tensors = {"a": numbers(kind, 0), "b": numbers(kind, 1, nonzero=True)}
    tensors |= {name[1:]: np.zeros((16, 32), ELEMENTS[element(t)]) for name, t in results.items()}
    check(text, tensors, arch, general=False)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_float_builtins_keep_their_error(kind: str, arch: str) -> None:
    ops = [*(f"arith.{n}" for n in FLOATS), *FUNCTIONS]
    run_together(kind, arch, {f"%{op.split('.')[1]}": (op, kind) for op in ops})


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_integer_builtins_are_exact(kind: str, arch: str) -> None:
    run_together(kind, arch, {f"%{op.split('.')[1]}": (op, kind) for op in INTEGERS})


@pytest.mark.parametrize(("kind", "op", "count"), [("f32", "arith.cmpf", 16), ("i32", "arith.cmpi", 10)])
@pytest.mark.parametrize("arch", CHIPS)
def test_comparisons(kind: str, op: str, count: int, arch: str) -> None:
    run_together(kind, arch, {f"%p{p}": (f"{op} {{predicate = {p} : i64}}", "i1") for p in range(count)})


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("offset", [-5, 0, 3, 40, -100])
@pytest.mark.parametrize("kind", ["tensor<16x64xbf16>", "tensor<64xf32>", "tensor<8x16xi8>"])
def test_loads_beyond_the_edges_give_the_fill(kind: str, offset: int, arch: str) -> None:
    text = kernel(['%b = "hkc_tile.cast"(%a) : (' + kind + ") -> " + kind], {"%a": kind}, {"%b": kind}, offset)
    for reach in (8, 16):  # rows of 16-byte multiples, and others
        array = sample(ELEMENTS[element(kind)], tuple(n + reach for n in extents(kind)), 1)
        out = np.zeros(tuple(n - 3 for n in extents(kind)), ELEMENTS[element(kind)])
        check(text, {"a": array, "b": out if reach == 8 else np.zeros(extents(kind), out.dtype)}, arch)
