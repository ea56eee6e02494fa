"""What the lowerings of wave ops build with: the builtin helpers of `hkc.dialects.build` and the chip's own idioms.

Worker process only. One `Rocdl` serves one kernel function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hkc.dialects import build
from hkc.dialects.types import OpaqueType
from hkc.dialects.wave.address import Access, LaneBase, accesses
from hkc.dialects.wave.ids import LaneId, WaveId
from hkc.dialects.wave.lds import buffer_map
from hkc.dialects.wave.swapping import MONOTONIC, SCOPE
from hkc.layout import DistributedLayout
from hkc.layout.accesses import Kind, Use
from hkc.support.mlir import ir, places
from hkc.targets.chip import Chip

LDS_SYMBOL = "lds"
"""The one global that is a kernel's LDS; buffers lie in it at fixed offsets."""


IMMEDIATES = 1 << 16
"""Bytes that an LDS instruction reaches from its address register by an immediate offset (ISA: 16 bits)."""


POINTER = 8
"""Bytes of a pointer argument."""


@dataclass(frozen=True, eq=False)
class Ids:
    """The numbers of this lane and this wave, and a place behind them, where what every address starts from is computed
    once."""

    top: Any
    lane: Any
    wave: Any


class Rocdl:
    """Builds ROCDL and LLVM ops for one kernel of `waves` waves on `chip`, at the current insertion point."""

    op = staticmethod(build.op)
    i32 = staticmethod(build.i32)
    constant = staticmethod(build.constant)
    int_type = staticmethod(build.int_type)
    int_attr = staticmethod(build.int_attr)
    to_index = staticmethod(build.to_index)
    binary = staticmethod(build.binary)
    cmp = staticmethod(build.cmp)
    mul = staticmethod(build.mul)
    select = staticmethod(build.select)
    if_else = staticmethod(build.if_else)
    extract = staticmethod(build.extract)
    pack = staticmethod(build.pack)
    zero = staticmethod(build.zero)
    is_float = staticmethod(build.is_float)
    type = staticmethod(ir.Type.parse)
    text = staticmethod(ir.StringAttr.get)
    unit = staticmethod(ir.UnitAttr.get)
    positions = staticmethod(ir.DenseI64ArrayAttr.get)

    def __init__(self, chip: Chip, waves: int, top: Any) -> None:
        """`top` is the insertion point at the kernel's top."""
        self.chip = chip
        self.waves = waves
        self._segments: dict[Any, Any] = {}
        self._offsets: dict[Any, int] = {}
        self._far: dict[tuple[Ids, LaneBase, int], Any] = {}
        with top:
            self._ids = Ids(top, LaneId.lower(self, None)[0], WaveId.lower(self, None)[0])
        self._later: dict[Any, Ids] = {}

    def place(self, op: Any) -> str:
        """`line:column` of what an op comes from."""
        return ", ".join(f"{at.line}:{at.column}" for at in places(op.location))

    def attribute(self, text: str) -> Any:
        """An attribute by its text."""
        return ir.Attribute.parse(text)

    def pointer(self, space: int) -> Any:
        """`!llvm.ptr<space>`."""
        return ir.Type.parse(f"!llvm.ptr<{space}>")

    def ids_again(self, op: Any) -> tuple[Any, Any]:
        """This lane and wave once more, for what follows `op` in its block."""
        # How many of a mask's bits are below this lane's: no register needs to hold that.
        mask = self.hidden(build.i32(-1), "s", here=True)
        low = build.op("rocdl.mbcnt.lo", [mask, build.i32(0)], [mask.type])
        lane = build.op("rocdl.mbcnt.hi", [mask, low], [mask.type])
        wave = self._ids.wave if self.waves == 1 else self.hidden(self._ids.wave, "s", here=True)
        self._later[op.block] = Ids(ir.InsertionPoint(op), lane, wave)
        return lane, wave

    def _ids_at(self, op: Any) -> Ids:
        """The latest ids before an op."""
        while op.name != "func.func":
            if op.block in self._later:
                return self._later[op.block]
            op = op.parent.operation
        return self._ids

    def workitem(self) -> Any:
        """The number of this lane in its workgroup, i32."""
        return build.op("rocdl.workitem.id.x", results=[build.int_type(32)])

    def kernel_arguments(self) -> Any:
        """A global pointer to the kernel-argument segment: memory that is always mapped."""
        return build.op("llvm.addrspacecast", [self._segment()], [self.pointer(1)])

    def _segment(self) -> Any:
        empty = ir.DenseI32ArrayAttr.get([])
        return ir.Operation.create(
            "llvm.call_intrinsic",
            results=[self.pointer(4)],
            attributes={
                "intrin": ir.StringAttr.get("llvm.amdgcn.kernarg.segment.ptr"),
                "op_bundle_sizes": empty,
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
            },
        ).result

    def argument_again(self, op: Any, value: Any) -> Any:
        """A kernel argument, read where `op` is. The code generator doesn't know the address, so it reads it there."""
        sizes = [a.type.width // 8 if hasattr(a.type, "width") else POINTER for a in value.owner.arguments]
        offset = 0
        for size in sizes[: value.arg_number]:
            offset += -offset % size + size
        offset += -offset % sizes[value.arg_number]
        load = {"alignment": build.int_attr(sizes[value.arg_number]), "invariant": ir.UnitAttr.get()}
        return build.op("llvm.load", [self.gep(self._hidden_arguments(op), offset)], [value.type], **load)

    def _hidden_arguments(self, op: Any) -> Any:
        """The kernel-argument segment, once per block."""
        if op.block not in self._segments:
            self._segments[op.block] = self.hidden(self._segment(), "s", here=True)
        return self._segments[op.block]

    def hidden(self, value: Any, registers: str, here: bool) -> Any:
        """The same value in a register (`s` or `v`), which the code generator doesn't know; nor does it move what makes
        it so, where that is to be `here`."""
        effects = {"has_side_effects": self.unit()} if here else {}
        constraints = self.text(f"={registers},0")
        return build.op(
            "llvm.inline_asm", [value], [value.type], asm_string=self.text(""), constraints=constraints, **effects
        )

    def gep(self, pointer: Any, offset: Any) -> Any:
        """Pointer plus bytes: an integer value, or a constant."""
        fixed = isinstance(offset, int)
        return build.op(
            "llvm.getelementptr",
            [pointer] if fixed else [pointer, offset],
            [pointer.type],
            elem_type=ir.TypeAttr.get(build.int_type(8)),
            rawConstantIndices=ir.DenseI32ArrayAttr.get([offset if fixed else -(2**31)]),
        )

    def compare_and_swap(self, pointer: Any, expected: Any, value: Any, align: int) -> Any:
        """What was at a pointer, which becomes `value` if that was `expected`, and whether it was, as a struct."""
        ordering = build.int_attr(MONOTONIC)
        return build.op(
            "llvm.cmpxchg",
            [pointer, expected, value],
            [ir.Type.parse(f"!llvm.struct<({value.type}, i1)>")],
            success_ordering=ordering,
            failure_ordering=ordering,
            syncscope=ir.StringAttr.get(SCOPE),
            alignment=build.int_attr(align),
        )

    def lds_pointer(self, offset: int) -> Any:
        """The address of a byte of the workgroup's LDS."""
        base = build.op(
            "llvm.mlir.addressof", results=[self.pointer(3)], global_name=ir.FlatSymbolRefAttr.get(LDS_SYMBOL)
        )
        pointer = self.gep(base, offset) if offset else base
        self._offsets[pointer] = offset
        return pointer

    def lds_fence(self, ordering: str) -> None:
        """Order this wave's LDS accesses against the other waves' (global memory is left alone)."""
        local = self.attribute('#llvm.mmra_tag<"amdgpu-synchronize-as":"local">')
        orderings = {"acquire": 4, "release": 5}
        made = build.int_attr(orderings[ordering])
        ir.Operation.create(
            "llvm.fence",
            attributes={"ordering": made, "syncscope": ir.StringAttr.get("workgroup"), "llvm.mmra": local},
        )

    # -- vectors as the registers that memory and lane instructions move

    def raw_type(self, vector: Any) -> Any:
        """The integer type with as many bits: i8, i16, i32, or a vector of i32."""
        bits = vector.shape[0] * vector.element_type.width
        if bits <= 32:
            return build.int_type(bits)
        if bits % 32:
            raise TypeError(f"{vector} is not a whole number of 32-bit registers")
        return build.vector_type(bits // 32, build.int_type(32))

    def to_raw(self, value: Any) -> Any:
        """A vector as its `raw_type`."""
        return build.op("llvm.bitcast", [value], [self.raw_type(value.type)])

    def from_raw(self, value: Any, vector: Any) -> Any:
        """The inverse of `to_raw`."""
        return build.op("llvm.bitcast", [value], [vector])

    def to_words(self, value: Any) -> list[Any]:
        """A vector as i32 values; a rest of 8 or 16 bits is widened."""
        raw = self.to_raw(value)
        if isinstance(raw.type, ir.VectorType):
            return [build.extract(raw, i) for i in range(raw.type.shape[0])]
        return [raw if raw.type.width == 32 else build.op("arith.extui", [raw], [build.int_type(32)])]

    def from_words(self, words: list[Any], vector: Any) -> Any:
        """The inverse of `to_words`."""
        raw = self.raw_type(vector)
        if isinstance(raw, ir.VectorType):
            return self.from_raw(build.pack(words), vector)
        narrow = words[0] if raw.width == 32 else build.op("arith.trunci", words, [raw])
        return self.from_raw(narrow, vector)

    def as_operand(self, value: Any, kind: Any, bits: int = 8) -> Any:
        """A vector as the type that a matrix instruction's op asks for (its text); elements of fewer than 8 `bits`, a
        byte each, are packed."""
        wanted = ir.Type.parse(kind)
        if bits < 8:
            value = build.op("llvm.bitcast", [self._packed(value, bits)], [wanted])
        return value if value.type == wanted else build.op("llvm.bitcast", [value], [wanted])

    def _packed(self, value: Any, bits: int) -> Any:
        """The low `bits` of each byte of a vector, one after another, as i32 words."""
        size = value.type.shape[0]
        words = [build.i32(0)] * (size * bits // 32)
        for i in range(size):
            element = build.op("arith.extui", [build.extract(value, i)], [build.int_type(32)])
            code = build.binary("andi", element, (1 << bits) - 1)
            word, shift = divmod(i * bits, 32)
            words[word] = build.binary("ori", words[word], build.binary("shli", code, shift))
            if shift + bits > 32:
                words[word + 1] = build.binary("ori", words[word + 1], build.binary("shrui", code, 32 - shift))
        return build.pack(words)

    # -- LDS

    def lds_read(self, op: Any, buffer: Any) -> Any:
        """The fragment that `op` (an `lds_read`) names, from the buffer at pointer `buffer`."""
        element = op.results[0].type.element_type
        found: dict[int, Any] = {}
        for access in self._accesses("read", op, op.operands[0].type):
            kind = build.vector_type(len(access.registers), element)
            part = build.op("llvm.load", [self._address(op, buffer, access)], [kind], alignment=self._alignment(kind))
            found |= {register: build.extract(part, i) for i, register in enumerate(access.registers)}
        return build.pack([found[register] for register in sorted(found)])

    def lds_read_transposed(self, op: Any, buffer: Any) -> Any:
        """The fragment that `op` (an `lds_read_transposed`) names: registers come in the order of the fragment."""
        element = op.results[0].type.element_type
        words, found = build.vector_type(2, build.int_type(32)), []
        for access in self._accesses("read_transposed", op, op.operands[0].type):
            count = len(access.registers)
            kind = build.vector_type(count, element)
            raw = words if element.width == 8 else build.vector_type(count, build.int_type(16))
            name = f"rocdl.ds.read.tr{element.width}.b64"
            found.append(build.bitcast(build.op(name, [self._address(op, buffer, access)], [raw]), kind))
        return build.concat(found)

    def lds_write(self, op: Any, value: Any, buffer: Any) -> None:
        """Write the fragment that `op` (an `lds_write`) names; of copies only one writes."""

        def write() -> None:
            for access in self._accesses("write", op, op.operands[1].type):
                part = build.pick(value, access.registers)
                build.op("llvm.store", [part, self._address(op, buffer, access)], alignment=self._alignment(part.type))

        original = self.holds_original(DistributedLayout.parse(op.attributes["layout"].value))
        if original is None:
            write()
        else:
            build.if_else(original, [], write, None)

    def holds_original(self, layout: DistributedLayout) -> Any | None:
        """An i1: this lane and wave hold no mere copies in `layout`; None where none do."""
        lane, wave = layout.replication()
        checks = [
            build.cmp("eq", build.binary("andi", getattr(self._ids, source), mask), 0)
            for source, mask in (("lane", lane), ("wave", wave))
            if mask
        ]
        return build.both(*checks) if checks else None

    def _accesses(self, kind: Kind, op: Any, buffer: Any) -> tuple[Access, ...]:
        use = Use(kind, DistributedLayout.parse(op.attributes["layout"].value))
        return accesses(use, buffer_map(OpaqueType(str(buffer))))[op.attributes["fragment"].value]

    def _alignment(self, vector: Any) -> Any:
        return build.int_attr(vector.shape[0] * vector.element_type.width // 8)

    def _address(self, op: Any, buffer: Any, access: Access) -> Any:
        ids = self._ids_at(op)
        block = (self._offsets[buffer] + access.constant) // IMMEDIATES
        if block:
            pointer, constant = self._far_base(ids, access.base, block), access.constant + self._offsets[buffer]
        else:
            pointer, constant = self.gep(buffer, _lane_offset(ids, access.base)), access.constant
        return self.gep(pointer, constant % IMMEDIATES) if constant else pointer

    def _far_base(self, ids: Ids, base: LaneBase, block: int) -> Any:
        """A lane's place in a block of LDS beyond the reach of immediate offsets. The code generator doesn't see how it
        came about: it would add up the constants of each access and give every sum a register of its own."""
        if (ids, base, block) not in self._far:
            with ids.top:
                at = build.add(_lane_offset(ids, base), block * IMMEDIATES)
                self._far[ids, base, block] = self.gep(self.lds_pointer(0), self.hidden(at, "v", here=False))
        return self._far[ids, base, block]


def _lane_offset(ids: Ids, base: LaneBase) -> Any:
    """A per-lane byte offset as i32."""
    total = build.i32(base.start)
    for t in base.terms:
        source = getattr(ids, t.source)
        bits = build.binary("shrui", source, t.low_bit) if t.low_bit else source
        part = build.mul(build.binary("andi", bits, (1 << t.width) - 1), t.scale)
        total = build.binary(t.join, total, part)
    return build.binary("xori", total, base.flip) if base.flip else total
