"""A kernel around one wave op: every lane loads its operands, runs the op and stores what it gives."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from contract import compiled, emulate, sample, split_types

from hkc.dialects.define import OpRecord, evaluate
from hkc.dialects.types import IndexType, OpaqueType, ScalarType, Type, VectorType
from hkc.dialects.wave.machine import Bytes, Workgroup
from hkc.layout import LdsMap, blocked
from hkc.support.dtypes import DTYPES
from hkc.targets.chip import Chip

LANES = 64
DATA = 4096
"""Bytes behind a pointer."""
IMAGE = 8192
"""Bytes of LDS that a kernel fills before and reads after the op."""
_MLIR = {d.mlir: d.name for d in DTYPES.values() if d.kind != "uint"}


@dataclass(frozen=True)
class Example:
    """An example of a wave op, taken apart."""

    record: OpRecord
    text: str
    operands: tuple[str, ...]
    types: tuple[str, ...]
    attributes: dict[str, Any]
    results: tuple[Type, ...]

    @classmethod
    def parse(cls, record: OpRecord, text: str) -> Example:
        found = re.search(r"\"\(([^)]*)\)(?: \{([^}]*)\})? : \((.*)\) -> (.*)$", text)
        assert found is not None
        operands, attributes, types, results = found.groups()
        pairs = re.findall(r"(\w+) = (?:\"([^\"]*)\"|(-?\d+) : i64)", attributes or "")
        return cls(
            record, text, tuple(o.strip() for o in operands.split(",") if o), tuple(split_types(types)),
            {n: int(number) if number else word for n, word, number in pairs},
            tuple(record_of(r) for r in split_types(results.strip("()"))),
        )  # fmt: skip

    @property
    def result(self) -> Type | None:
        """The type of the first result, if there is one."""
        return self.results[0] if self.results else None

    @property
    def waves(self) -> int:
        layout = str(self.attributes.get("layout", "w(0)"))
        return 1 if layout.endswith("w()") else 2


def record_of(text: str) -> Type:
    vector = re.fullmatch(r"vector<(\d+)x(\w+)>", text)
    if vector:
        return VectorType(int(vector[1]), _MLIR[vector[2]])
    return IndexType() if text == "index" else ScalarType(_MLIR[text]) if text in _MLIR else OpaqueType(text)


@dataclass
class Kernel:
    """The text of the kernel as it grows, and its buffers."""

    waves: int
    lines: list[str] = field(default_factory=list)
    buffers: list[Any] = field(default_factory=list)

    def argument(self, content: Any) -> str:
        self.buffers.append(content)
        return f"%arg{len(self.buffers) - 1}"

    def load(self, name: str, kind: VectorType, content: Any) -> None:
        """`name` becomes each lane's row of `content` [wave, lane, element]."""
        size = kind.size * DTYPES[kind.dtype].bytes
        text = f"vector<{kind.size}x{DTYPES[kind.dtype].mlir}>"
        self._offset(name, size)
        operands = f"{self.argument(content)}, {name}_at, %true"
        self.lines.append(
            f'{name} = "hkc_wave.global_load"({operands}) {{align = {size & -size} : i64}}'
            f" : (!llvm.ptr<1>, i64, i1) -> {text}"
        )

    def store(self, name: str, kind: VectorType) -> int:
        """Each lane's `name` goes into a new buffer, whose number is returned."""
        size = kind.size * DTYPES[kind.dtype].bytes
        text = f"vector<{kind.size}x{DTYPES[kind.dtype].mlir}>"
        self._offset(f"{name}_out", size)
        target = self.argument(np.zeros((self.waves, LANES, kind.size), DTYPES[kind.dtype].numpy))
        self.lines.append(
            f'"hkc_wave.global_store"({name}, {target}, {name}_out_at, %true) {{align = {size & -size} : i64}}'
            f" : ({text}, !llvm.ptr<1>, i64, i1) -> ()"
        )
        return len(self.buffers) - 1

    def _offset(self, name: str, size: int) -> None:
        self.lines += [
            f"{name}_size = arith.constant {size} : i64",
            f"{name}_at = arith.muli %thread, {name}_size : i64",
        ]

    def meet(self) -> None:
        """All LDS accesses so far are done, in all waves."""
        self.lines += [
            '"hkc_wave.wait"() {vm = -1 : i64, lgkm = 0 : i64} : () -> ()',
            '"hkc_wave.barrier"() : () -> ()',
        ]

    def image(self, content: Any | None) -> list[int]:
        """Fill LDS with bytes, or store what is in it; returns the numbers of the buffers stored to, in order."""
        layout = blocked((IMAGE,), self.waves, 16, 0)
        kind = f'!hkc_wave.lds<"{LdsMap.row_major((IMAGE,), 1).text()}">'
        name = "%fill" if content is not None else "%dump"
        self.lines.append(f'{name} = "hkc_wave.lds_alloc"() {{offset = 0 : i64}} : () -> {kind}')
        stored = []
        per_fragment = self.waves * LANES * 16
        for i in range(IMAGE // per_fragment):
            where = f'{{layout = "{layout.text()}", fragment = {i} : i64}}'
            if content is None:
                self.lines.append(f'{name}{i} = "hkc_wave.lds_read"({name}) {where} : ({kind}) -> vector<16xi8>')
                stored.append(self.store(f"{name}{i}", VectorType(16, "i8")))
            else:
                part = content[i * per_fragment :][:per_fragment].view(np.int8).reshape(self.waves, LANES, 16)
                self.load(f"{name}{i}", VectorType(16, "i8"), part)
                self.lines.append(f'"hkc_wave.lds_write"({name}{i}, {name}) {where} : (vector<16xi8>, {kind}) -> ()')
        self.meet()
        return stored

    def text(self) -> str:
        head = ", ".join(f"%arg{i}: !llvm.ptr<1>" for i in range(len(self.buffers)))
        start = [
            "%true = arith.constant true",
            '%lane_id = "hkc_wave.lane_id"() : () -> i32',
            '%wave_id = "hkc_wave.wave_id"() : () -> i32',
            "%lanes = arith.constant 64 : i32",
            "%before = arith.muli %wave_id, %lanes : i32",
            "%number = arith.addi %before, %lane_id : i32",
            "%thread = arith.extui %number : i32 to i64",
        ]
        body = "\n  ".join([*start, *self.lines, "return"])
        marks = f'{{hkc.kernel, hkc.entry = "general", hkc.waves = {self.waves} : i64}}'
        return f"func.func @k({head}) attributes {marks} {{\n  {body}\n}}\n"


def check(example: Example, chip: Chip, arch: str, values: dict[str, Any]) -> tuple[Any, Any]:
    """What the op gives (and leaves in memory and LDS) on the emulator, and what its meaning says, as lists of arrays.

    `values` holds what operands are instead of a sample: arrays [wave, lane].
    """
    kernel, machine = Kernel(example.waves), Workgroup(chip, example.waves)
    uses_lds = any("lds" in t for t in example.types)
    if uses_lds:
        machine.lds[:IMAGE] = sample(np.dtype(np.uint8), (IMAGE,), 7)
        kernel.image(machine.lds[:IMAGE].copy())
    meant: list[Any] = []
    memories: list[tuple[int, Bytes]] = []
    for i, (name, kind) in enumerate(zip(example.operands, example.types, strict=True)):
        meant.append(_operand(kernel, machine, name, kind, values.get(name), i, memories))
    kernel.lines.append(example.text)
    if example.record.name == "copy_to_lds":
        kernel.lines += ['"hkc_wave.async_mark"() : () -> ()', '"hkc_wave.wait_async"() {pending = 0 : i64} : () -> ()']
    wanted, stored = [], []
    result = evaluate(
        example.record.cls.meaning,
        machine,
        *example.record.bind(meant),
        result=example.result,
        **example.attributes,  # type: ignore[attr-defined]
    )
    names = example.text.split(" = ")[0].split(", ")
    values_given = result if len(example.results) > 1 else [result]
    for name, given, value in zip(names, example.results, values_given, strict=False):
        kind = _storable(kernel, name, given)
        stored.append(kernel.store(f"{name}_stored", kind))
        shape = (example.waves, LANES, kind.size)
        plain = (
            np.broadcast_to(np.asarray(value).reshape(-1, 1, 1) if np.ndim(value) == 0 else value, shape)
            if (isinstance(given, VectorType))
            else np.broadcast_to(np.asarray(value)[..., None], shape)
        )
        wanted.append(plain.astype(DTYPES[kind.dtype].numpy))
    stored += [number for number, _ in memories]
    wanted += [memory.data for _, memory in memories]
    if uses_lds:
        kernel.meet()
        parts = kernel.image(None)
        stored += parts
        wanted += list(machine.lds[:IMAGE].view(np.int8).reshape(len(parts), example.waves, LANES, 16))
    after = emulate(compiled(kernel.text(), arch, "wave"), "k", kernel.buffers)
    return [after[n] for n in stored], wanted


def _storable(kernel: Kernel, name: str, kind: Type) -> VectorType:
    stored = f"{name}_stored"
    if isinstance(kind, VectorType):
        kernel.lines.append(f"{stored} = vector.shuffle {name}, {name} {list(range(kind.size))} : {_pair(kind)}")
        return kind
    if isinstance(kind, IndexType):
        kernel.lines.append(f"{name}_narrow = arith.index_cast {name} : index to i32")
        name = f"{name}_narrow"
    kernel.lines.append(f"{stored} = vector.broadcast {name} : i32 to vector<1xi32>")
    return VectorType(1, "i32")


def _pair(kind: VectorType) -> str:
    text = f"vector<{kind.size}x{DTYPES[kind.dtype].mlir}>"
    return f"{text}, {text}"


def _operand(
    kernel: Kernel, machine: Workgroup, name: str, kind: str, value: Any, seed: int, memories: list[tuple[int, Bytes]]
) -> Any:
    """Code that makes an operand, and what it is to the meaning."""
    wanted = record_of(kind)
    if isinstance(wanted, VectorType):
        if value is None:
            value = sample(DTYPES[wanted.dtype].numpy, (kernel.waves, LANES, wanted.size), seed)
        kernel.load(name, wanted, value)
        return value
    if isinstance(wanted, ScalarType):
        assert value is not None, f"no value for {name}"
        if np.ndim(value) == 1:  # one number per wave, in equal steps from 0
            kernel.lines += [
                f"{name}_step = arith.constant {value[1] - value[0]} : i32",
                f"{name} = arith.muli %wave_id, {name}_step : i32",
            ]
            return value
        held = "i32" if wanted.dtype == "bool" else wanted.dtype
        kernel.load(f"{name}_v", VectorType(1, held), np.asarray(value).astype(DTYPES[held].numpy)[..., None])
        target = f"{name}_n" if wanted.dtype == "bool" else name
        kernel.lines.append(f"{target} = vector.extract {name}_v[0] : {held} from vector<1x{held}>")
        if wanted.dtype == "bool":
            kernel.lines += ["%nought = arith.constant 0 : i32", f"{name} = arith.cmpi ne, {target}, %nought : i32"]
        return value
    if "lds" in kind:
        kernel.lines.append(f'{name} = "hkc_wave.lds_alloc"() {{offset = 0 : i64}} : () -> {kind}')
        lds = LdsMap.parse(kind.split('"')[1])
        return Bytes(machine.lds[: lds.bytes]), lds
    data = sample(np.dtype(np.uint8), (DATA,), 3)
    pointer = kernel.argument(data.copy())
    memory = Bytes(data)
    memories.append((len(kernel.buffers) - 1, memory))
    if "descriptor" in kind:
        kernel.lines += [
            f"{name}_bytes = arith.constant {DATA} : i64",
            f'{name} = "hkc_wave.buffer"({pointer}, {name}_bytes) : (!llvm.ptr<1>, i64) -> {kind}',
        ]
    else:
        kernel.lines.append(f"{name} = llvm.bitcast {pointer} : !llvm.ptr<1> to !llvm.ptr<1>")
    return memory
