"""A kernel with everything that hkc emits, for one chip: does this machine's toolchain compile it to the right code?

Each probe is an operation of MLIR's ROCDL or LLVM dialect and the instruction that must come out of it. What a chip
has is asked of its record, so that the same table serves every chip.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass

from hkc.backend.codegen import generate
from hkc.machine.codeobject import CodeObject
from hkc.support.disassembler import disassemble
from hkc.support.mlir import context, ir, llvm
from hkc.targets.chip import Chip, load
from hkc.targets.mfma import Mfma


@dataclass(frozen=True)
class Probe:
    """An operation (with what it needs before it, line by line), its result type ("" for none), a wildcard pattern for
    the start of the instruction that it becomes ("" where it leaves none), and the feature that the chip must have.

    Operands: %memory (global pointer), %buffer, %lds, %lane and %zero (i32, unknown), %none (i32, 0), %real (f32);
    `%self` stands for a name of the probe's own.
    """

    operation: str
    result: str
    expected: str
    needs: str = ""


_PAIR = "!llvm.struct<(i32, i32)>"
_PROBES = (
    Probe('"rocdl.workgroup.id.x"() : () -> i32', "i32", ""),
    Probe('"rocdl.readfirstlane"(%lane) : (i32) -> i32', "i32", "v_readfirstlane_b32"),
    Probe(
        '"rocdl.raw.ptr.buffer.load"(%buffer, %lane, %zero) {aux = 0 : i32}'
        " : (!llvm.ptr<8>, i32, i32) -> vector<4xi32>",
        "vector<4xi32>",
        "buffer_load_dwordx4 ",
    ),
    Probe(
        '"rocdl.raw.ptr.buffer.store"(%lane, %buffer, %lane, %zero) {aux = 0 : i32}'
        " : (i32, !llvm.ptr<8>, i32, i32) -> ()",
        "",
        "buffer_store_dword ",
    ),
    Probe('"rocdl.asyncmark"() : () -> ()', "", ""),
    Probe('"rocdl.wait.asyncmark"() {count = 0 : i16} : () -> ()', "", "s_waitcnt vmcnt(0)"),
    Probe('"rocdl.s.waitcnt"() {bitfield = 3952 : i32} : () -> ()', "", "s_waitcnt "),
    Probe('"rocdl.s.barrier"() : () -> ()', "", "s_barrier"),
    Probe('"rocdl.s.setprio"() {priority = 1 : i16} : () -> ()', "", "s_setprio 1"),
    Probe('"rocdl.sched.barrier"() {mask = #rocdl<sched_group_mask none>} : () -> ()', "", ""),
    Probe(
        '"rocdl.sched.group.barrier"() {mask = #rocdl<sched_group_mask mfma_wmma>, size = 1 : i32, groupId = 0 : i32}'
        " : () -> ()",
        "",
        "",
    ),
    Probe('"llvm.load"(%lds) : (!llvm.ptr<3>) -> vector<4xi32>', "vector<4xi32>", "ds_read_b128 "),
    Probe('"rocdl.ds_bpermute"(%lane, %lane) : (i32, i32) -> i32', "i32", "ds_bpermute_b32 "),
    Probe(
        '"rocdl.update.dpp"(%lane, %lane) {dppCtrl = 273 : i32, rowMask = 15 : i32, bankMask = 15 : i32,'
        " boundCtrl = false} : (i32, i32) -> i32",
        "i32",
        "v_mov_b32_dpp ",
    ),
    Probe('"rocdl.exp2"(%real) : (f32) -> f32', "f32", "v_exp_f32"),
    Probe('"rocdl.log"(%real) : (f32) -> f32', "f32", "v_log_f32"),
    Probe('"rocdl.rcp"(%real) : (f32) -> f32', "f32", "v_rcp_f32"),
    Probe('"llvm.fptrunc"(%real) : (f32) -> bf16', "bf16", "v_cvt_pk_bf16_f32 ", needs="bf16_convert"),
    Probe(
        f'"rocdl.permlane16.swap"(%lane, %zero) {{fi = false, boundControl = false}} : (i32, i32) -> {_PAIR}',
        _PAIR,
        "v_permlane16_swap_b32",
        needs="permlane_swap",
    ),
    Probe(
        f'"rocdl.permlane32.swap"(%lane, %zero) {{fi = false, boundControl = false}} : (i32, i32) -> {_PAIR}',
        _PAIR,
        "v_permlane32_swap_b32",
        needs="permlane_swap",
    ),
    Probe(
        '"rocdl.ds.read.tr16.b64"(%lds) : (!llvm.ptr<3>) -> vector<4xf16>',
        "vector<4xf16>",
        "ds_read_b64_tr_b16 ",
        needs="lds_read_transposed",
    ),
)
_DWORDS = {4: "", 12: "x3", 16: "x4"}

_KERNEL = """
llvm.mlir.global internal @lds() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<8192 x i8>
llvm.func @probe(%memory: !llvm.ptr<1>, %zero: i32) attributes {{
    rocdl.kernel, rocdl.flat_work_group_size = "256,256", passthrough = [["uniform-work-group-size", "true"]]}} {{
  %size = llvm.mlir.constant(65536 : i64) : i64
  %stride = llvm.mlir.constant(0 : i16) : i16
  %flags = llvm.mlir.constant(159744 : i32) : i32
  %buffer = rocdl.make.buffer.rsrc %memory, %stride, %size, %flags : !llvm.ptr<1> to !llvm.ptr<8>
  %base = llvm.mlir.addressof @lds : !llvm.ptr<3>
  %id = rocdl.workitem.id.x : i32
  %shift = llvm.mlir.constant(4 : i32) : i32
  %lane = llvm.shl %id, %shift : i32
  %lds = llvm.getelementptr %base[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
  %none = llvm.mlir.constant(0 : i32) : i32
  %real = llvm.bitcast %lane : i32 to f32
{body}
  llvm.return
}}
"""


def probes(chip: Chip) -> tuple[Probe, ...]:
    """What this chip must be able to do."""
    fixed = [p for p in _PROBES if not p.needs or chip.has(p.needs)]
    copies = [_direct_to_lds(size) for size in chip.direct_to_lds_bytes]
    rows = [row for row in chip.mfmas if row.has_layouts and row.a_format == row.b_format]  # mixtures add nothing
    return (*copies, *fixed, *map(_mfma, rows))


def prove(arch: str) -> tuple[int, tuple[str, ...]]:
    """How many probes there are for the chip, and the instructions that this machine's toolchain failed to generate.

    To be called in the worker process. Raises what a compilation raises.
    """
    wanted = probes(load(arch))
    text = _KERNEL.format(body="\n".join(line for n, p in enumerate(wanted) for line in _lines(p, n)))
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        made = generate(llvm.translate_module_to_llvmir(module.operation), arch)
    code = CodeObject.parse(made.hsaco)
    found = [words for _, _, words in disassemble(code.code(code.kernel()), arch)]
    return len(wanted), tuple(p.expected for p in wanted if not fnmatch.filter(found, f"{p.expected}*"))


def _lines(probe: Probe, number: int) -> Iterator[str]:
    """The operation in the kernel; its result is stored in a way that keeps it alive."""
    name = f"%v{number}"
    operation = probe.operation.replace("%self", name)
    if not probe.result:
        yield operation
        return
    *before, last = operation.split("\n")
    yield from before
    yield f"{name} = {last}"
    yield f"llvm.store volatile {name}, %memory : {probe.result}, !llvm.ptr<1>"


def _direct_to_lds(size: int) -> Probe:
    operation = (
        f"%self_size = llvm.mlir.constant({size} : i32) : i32\n"
        '"rocdl.raw.ptr.buffer.load.async.lds"(%buffer, %base, %self_size, %lane, %zero, %none) {aux = 0 : i32}'
        " : (!llvm.ptr<8>, !llvm.ptr<3>, i32, i32, i32, i32) -> ()"
    )
    return Probe(operation, "", f"buffer_load_dword{_DWORDS[size]} * lds")


def _mfma(row: Mfma) -> Probe:
    """A matrix instruction on operands from memory, in the op's own form: the kind of its last attribute differs."""
    types = (row.a_type, row.b_type, row.acc_type)
    loads = "".join(
        f"%self_{operand} = llvm.load volatile %memory : !llvm.ptr<1> -> {kind}\n"
        for operand, kind in zip("abc", types, strict=True)
    )
    operands, kinds, rest = "%self_a, %self_b, %self_c", ", ".join(types), "0, 0, none"
    if row.a_format:  # the op that takes scales also stands for the unscaled instruction: its scales are constants 0
        scales = ("%lane", "%lane") if row.scaled else ("%none", "%none")
        rest = f"{row.a_format}, {row.b_format}, 0, {scales[0]}, 0, {scales[1]}"
        kinds += ", i32, i32"
    operation = f"{row.rocdl} {operands}, {rest} : ({kinds}) -> {row.acc_type}"
    return Probe(loads + operation, row.acc_type, row.mnemonic + " ")
