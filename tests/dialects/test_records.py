"""Every op of ours, by its examples: it is documented, reads back as printed, and refuses what its rule refuses."""

from __future__ import annotations

import pytest
from contract import as_module, split_types, verdict

import hkc.dialects.tile
import hkc.dialects.wave  # noqa: F401
from hkc.dialects.define import TILE_DIALECT, WAVE_DIALECT, OpRecord
from hkc.support import worker

RECORDS = [*TILE_DIALECT.ops.values(), *WAVE_DIALECT.ops.values()]
EXAMPLES = [pytest.param(r, e, id=f"{r.name}-{i}") for r in RECORDS for i, e in enumerate(r.examples)]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.full_name)
def test_every_op_has_words_meaning_and_examples(record: OpRecord) -> None:
    assert record.doc.endswith((".", ")"))
    assert hasattr(record.cls, "meaning")
    assert record.examples
    assert all(record.full_name in example for example in record.examples)


@pytest.mark.parametrize(("record", "example"), EXAMPLES)
def test_examples_read_back_as_printed(record: OpRecord, example: str) -> None:
    once, twice = worker.call("contract:round_trip", as_module(example))
    assert f'"{record.full_name}"' in once
    assert once == twice


WRONG = {
    "dot of other inner sizes": (
        '%d = "hkc_tile.dot"(%a, %b, %c) : (tensor<64x32xbf16>, tensor<16x64xbf16>, tensor<64x64xf32>)'
        ' -> tensor<64x64xf32>',
        "inner sizes differ",
    ),
    "dot of two dtypes": (
        '%d = "hkc_tile.dot"(%a, %b, %c) : (tensor<64x32xbf16>, tensor<32x64xf16>, tensor<64x64xf32>)'
        ' -> tensor<64x64xf32>',
        "one dtype",
    ),
    "dot into another shape": (
        '%d = "hkc_tile.dot"(%a, %b, %c) : (tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x32xf32>)'
        ' -> tensor<64x32xf32>',
        "the accumulator is",
    ),
    "dot of rank 1": (
        '%d = "hkc_tile.dot"(%a, %b, %c) : (tensor<64xf16>, tensor<32x64xf16>, tensor<64x64xf32>)'
        ' -> tensor<64x64xf32>',
        "rank 2",
    ),
    "load of another dtype": (
        '%t = "hkc_tile.load"(%A, %f, %i) : (memref<?xbf16, strided<[?]>>, bf16, index) -> tensor<64xf32>',
        "moves bf16 elements",
    ),
    "load with an offset too few": (
        '%t = "hkc_tile.load"(%A, %f, %i) : (memref<?x?xf32, strided<[?, ?]>>, f32, index) -> tensor<64x64xf32>',
        "needs 2 offsets",
    ),
    "load of another rank": (
        '%t = "hkc_tile.load"(%A, %f, %i) : (memref<?xf32, strided<[?]>>, f32, index) -> tensor<8x64xf32>',
        "can't cover",
    ),
    "load with another fill": (
        '%t = "hkc_tile.load"(%A, %f, %i) : (memref<?xf32, strided<[?]>>, f16, index) -> tensor<64xf32>',
        "the fill is f16",
    ),
    "store of another rank": (
        '"hkc_tile.store"(%t, %A, %i) : (tensor<8x64xf32>, memref<?xf32, strided<[?]>>, index) -> ()',
        "can't cover",
    ),
    "reduce along no axis": (
        '%s = "hkc_tile.reduce"(%x) {axis = 2 : i64, kind = "sum"} : (tensor<64x32xf32>) -> tensor<64x1xf32>',
        "axis 2 does not exist",
    ),
    "unknown reduction": (
        '%s = "hkc_tile.reduce"(%x) {axis = 1 : i64, kind = "mean"} : (tensor<64x32xf32>) -> tensor<64x1xf32>',
        "unknown reduction",
    ),
    "reduce to another shape": (
        '%s = "hkc_tile.reduce"(%x) {axis = 1 : i64, kind = "sum"} : (tensor<64x32xf32>) -> tensor<64xf32>',
        "the result should be 64x1 f32",
    ),
    "transpose by no permutation": (
        '%t = "hkc_tile.transpose"(%x) {permutation = array<i64: 0, 0>} : (tensor<64x32xf16>) -> tensor<64x64xf16>',
        "not a permutation",
    ),
    "reshape to more elements": (
        '%t = "hkc_tile.reshape"(%x) : (tensor<48x32xf32>) -> tensor<16x128xf32>',
        "keeps the elements",
    ),
    "broadcast of another extent": (
        '%t = "hkc_tile.broadcast"(%x) : (tensor<64x2xf32>) -> tensor<64x32xf32>',
        "doesn't broadcast",
    ),
    "cast to another shape": (
        '%t = "hkc_tile.cast"(%x) : (tensor<64x32xf32>) -> tensor<32x64xbf16>',
        "keeps the shape",
    ),
    "iota of floats": ('%t = "hkc_tile.iota"() {axis = 0 : i64} : () -> tensor<64xf32>', "gives i32"),
    "conversion to another dtype": (
        '%t = "hkc_tile.convert_layout"(%x) : (tensor<64x32xf16>) -> tensor<64x32xf32>',
        "keeps shape and dtype",
    ),
    "unknown workgroup order": (
        '%m = "hkc_tile.tile_id"(%g) {order = "diagonal"} : (index) -> index',
        "unknown workgroup order",
    ),
    "priority beyond 3": ('"hkc_wave.priority"() {level = 4 : i64} : () -> ()', "0 to 3"),
    "wait beyond the counters": ('"hkc_wave.wait"() {vm = 64 : i64, lgkm = 0 : i64} : () -> ()', "counters count"),
    "unknown instruction class": (
        '"hkc_wave.schedule_group"() {kind = "fpu", size = 2 : i64, group = 0 : i64} : () -> ()',
        "unknown instruction class",
    ),
    "a negative number of pending groups": (
        '"hkc_wave.wait_async"() {pending = -1 : i64} : () -> ()',
        "pending groups",
    ),
    "shuffle by nothing": (
        '%r = "hkc_wave.shuffle_xor"(%v) {mask = 0 : i64} : (vector<2xf32>) -> vector<2xf32>',
        "must be positive",
    ),
    "a direct copy of 8 bytes": (
        '"hkc_wave.copy_to_lds"(%s, %o, %b, %z) {bytes = 8 : i64} : (!hkc_wave.descriptor, i32, '
        '!hkc_wave.lds<"16x64:2 block 16x64 strides 2048,128 order 1,0">, i32) -> ()',
        "4, 12 or 16",
    ),
    "an LDS read of a fragment that isn't": (
        '%r = "hkc_wave.lds_read"(%b) {layout = "16x64 r(0,1 0,2 0,4 8,0) l(1,0 2,0 4,0 0,8 0,16 0,32) w()", '
        'fragment = 1 : i64} : (!hkc_wave.lds<"16x64:2 block 16x64 strides 2048,128 order 1,0">) -> vector<16xf16>',
        "fragment 1 does not exist",
    ),
    "an LDS read of another size": (
        '%r = "hkc_wave.lds_read"(%b) {layout = "16x64 r(0,1 0,2 0,4 8,0) l(1,0 2,0 4,0 0,8 0,16 0,32) w()", '
        'fragment = 0 : i64} : (!hkc_wave.lds<"16x64:2 block 16x64 strides 2048,128 order 1,0">) -> vector<8xf16>',
        "16 elements of 2 bytes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=lambda c: c.replace(" ", "-"))
def test_the_verifier_refuses(case: str) -> None:
    body, words = WRONG[case]
    found = verdict(as_module(body))
    assert found is not None and words in found


STRUCTURE = {
    "one operand too few": '%t = "hkc_tile.cast"() : () -> tensor<64xf32>',
    "an attribute missing": '%s = "hkc_tile.reduce"(%x) {axis = 1 : i64} : (tensor<64x32xf32>) -> tensor<64x1xf32>',
    "an accumulator of another type": (
        '%d = "hkc_tile.dot"(%a, %b, %c) : (tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>)'
        " -> tensor<64x64xf16>"
    ),
    "an index where a tile belongs": '%t = "hkc_tile.cast"(%x) : (index) -> tensor<64xf32>',
}


@pytest.mark.parametrize("case", STRUCTURE, ids=lambda c: c.replace(" ", "-"))
def test_irdl_refuses(case: str) -> None:
    assert verdict(as_module(STRUCTURE[case])) is not None


LOOSE = [(r, i) for r in RECORDS for i, f in enumerate(r.of("operand")) if f.constraint.base is None and not f.variadic]
KINDS = ("index", "f32", "i64", "tensor<64x32xf32>", "tensor<*xf32>", "memref<?xf32, strided<[?]>>", "vector<4xf32>")


@pytest.mark.parametrize(("record", "place"), [pytest.param(r, i, id=f"{r.name}-{i}") for r, i in LOOSE])
def test_operands_of_any_kind_are_taken_or_refused(record: OpRecord, place: int) -> None:
    """Where IRDL lets every type pass, the verifier refuses in words what it can't take: it never fails itself."""
    head, types = record.examples[0].rsplit(" : (", 1)
    operands, results = types.rsplit(") ->", 1)
    given = split_types(operands)
    for kind in KINDS:
        other = [*given[:place], kind, *given[place + 1 :]]
        found = verdict(as_module(f"{head} : ({', '.join(other)}) ->{results}"))
        assert found is None or record.full_name in found
