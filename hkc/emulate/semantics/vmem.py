"""Global, flat and scratch instructions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hkc.emulate import access, atomics, spaces
from hkc.emulate.decode import M0, Decoded, Operand
from hkc.emulate.faults import unsupported, wrong_chip
from hkc.emulate.memory import Mask
from hkc.emulate.observe import announce, followed
from hkc.emulate.operands import SHARED_BASE, join, scalar_reader
from hkc.emulate.outstanding import Happen, Picked, Rows
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.waves import U64, Waves

Address = Callable[[Waves], U64]

_TARGETS = {"global": spaces.GLOBAL, "flat": spaces.FLAT, "scratch": spaces.SCRATCH}


def _address(instruction: Decoded, context: Context, vector: Operand, scalar: Operand | None) -> Address:
    """uint64 [waves, lanes] from a vector pair, or a scalar base with a 32-bit vector offset, and the immediate."""
    fixed = np.uint64(instruction.number("offset") & (1 << 64) - 1)
    register = context.vector(vector) if vector.kind == "vgpr" else None
    if vector.count == 2 and register is not None:
        return lambda w: join(w.read(register), w.read(register + 1)) + fixed
    if scalar is None or scalar.kind != "sgpr":
        raise unsupported(instruction, "this form of address")
    base = scalar_reader(scalar, 64, instruction)
    if register is None:
        return lambda w: np.broadcast_to((base(w) + fixed)[:, None], w.mask.shape)
    return lambda w: base(w)[:, None] + w.read(register) + fixed


def _scratch_address(instruction: Decoded, context: Context, vector: Operand, scalar: Operand | None) -> Address:
    """A byte offset into the lane's own scratch."""
    fixed = instruction.number("offset")
    register = context.vector(vector) if vector.kind == "vgpr" else None
    base = scalar_reader(scalar, 32, instruction) if scalar is not None and scalar.kind == "sgpr" else None

    def run(w: Waves) -> U64:
        total = np.full(w.mask.shape, fixed, np.int64)
        if register is not None:
            total = total + w.read(register)
        if base is not None:
            total = total + base(w)[:, None]
        return (total & 0xFFFFFFFF).astype(np.uint64)

    return run


def _addressing(instruction: Decoded, context: Context, vector: Operand, scalar: Operand | None) -> Address:
    rule = _scratch_address if instruction.base.startswith("scratch") else _address
    return rule(instruction, context, vector, scalar)


Issue = Callable[[Waves, access.Target, U64, Mask], None]


def _issuing(segment: str, address: Address, issue: Issue) -> Step:
    """The step of a load, store or atomic: what it does to the lanes of each kind of memory.

    A flat access counts on both counters, but its lanes in LDS arrive by the one and all others by the other, and it
    may overtake there what was issued before; only a wait for 0 is sensible (CDNA ISA guides, "FLAT"). So it counts
    where its lanes are and nowhere else: that is the least that a wait for another number vouches for.
    """
    if segment != "flat":
        return lambda w: issue(w, _TARGETS[segment], address(w), w.mask)

    def step(w: Waves) -> None:
        at = address(w)
        shared = (at >> np.uint64(32) == SHARED_BASE >> 32) & w.mask
        if not shared.any():
            issue(w, spaces.FLAT, at, w.mask)
            return
        parts = ((spaces.LDS, shared, at & np.uint64(0xFFFFFFFF)), (spaces.FLAT, w.mask & ~shared, at))
        for target, lanes, places in parts:
            rows = lanes.any(axis=1)
            if rows.any():
                issue(w.some(rows), target, places[rows], lanes[rows])

    return step


def _load(segment: str, form: access.Format) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        operands = instruction.operands
        address = _addressing(instruction, context, operands[1], operands[2] if len(operands) > 2 else None)
        register = context.vector(operands[0])

        def issue(w: Waves, target: access.Target, at: U64, mask: Mask) -> None:
            access.load(w, target, form, register, at, mask, mask)

        return _issuing(segment, address, issue)

    return build


def _store(segment: str, form: access.Format) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        operands = instruction.operands
        address = _addressing(instruction, context, operands[0], operands[2] if len(operands) > 2 else None)
        register = context.vector(operands[1])

        def issue(w: Waves, target: access.Target, at: U64, mask: Mask) -> None:
            access.store(w, target, form, register, at, mask)

        return _issuing(segment, address, issue)

    return build


def _atomic(segment: str, name: str) -> Callable[[Decoded, Context], Step]:
    combine, keep, given = atomics.table()[name]

    def build(instruction: Decoded, context: Context) -> Step:
        returns = instruction.flag("sc0")
        operands = instruction.operands[1:] if returns else instruction.operands
        result = context.vector(instruction.operands[0]) if returns else None
        address = _addressing(instruction, context, operands[0], operands[2] if len(operands) > 2 else None)
        form, register = access.Format(4 * given), context.vector(operands[1])

        def issue(w: Waves, target: access.Target, at: U64, mask: Mask) -> None:
            access.atomic(w, target, combine, access.data(w, form, register), keep, result, at, mask)

        return _issuing(segment, address, issue)

    return build


for _segment in _TARGETS:
    for _suffix, _form in access.FORMATS.items():
        op(f"{_segment}_load_{_suffix}")(_load(_segment, _form))
    for _suffix, _form in access.STORES.items():
        op(f"{_segment}_store_{_suffix}")(_store(_segment, _form))
    if _segment != "scratch":
        for _suffix in atomics.GLOBAL:
            op(f"{_segment}_atomic_{_suffix}")(_atomic(_segment, _suffix))


def direct_to_lds(
    w: Waves, form: access.Format, addresses: U64, mask: Mask, offset: int, source: access.Target = spaces.GLOBAL
) -> None:
    """`source` → LDS at m0 + offset + lane · size; lanes outside `mask` write 0."""
    if w.taint is not None:
        w.consume("an address")
    state, by, active = w.state, w.by, w.mask
    base = w.scalar(M0).astype(np.uint64) + np.uint64(offset)
    size = max(form.nbytes, 4)
    places = base[:, None] + np.arange(64, dtype=np.uint64) * np.uint64(size)
    after: tuple[Happen, ...] = ()
    if state.listeners:
        mask, after = announce(w, source.name, "load", "vm", addresses, mask, form.nbytes)
        active, written = announce(w, "lds", "store", "vm", places, active, size)
        after += written

    def happen(rows: Rows, picked: Picked) -> None:
        lanes = mask[picked]
        words, stale = source.fetch(state, rows, addresses[picked], lanes, form.nbytes, by)
        if stale is not None:
            access.report_stale(state, source.name, by, rows, addresses[picked], stale & lanes[..., None])
        words = np.where(lanes[..., None], form.widen(words), np.uint32(0))
        spaces.LDS.put(state, rows, places[picked], active[picked], words, size, by)

    state.outstanding.defer("vm", w.rows, followed(happen, after))


def check_width(instruction: Decoded, context: Context, form: access.Format) -> None:
    """Refuse a direct-to-LDS load that is wider than the chip can do."""
    if form.nbytes not in context.isa.lds_load_bytes:
        raise wrong_chip(instruction, context.isa.chip)


def _load_lds(segment: str, form: access.Format) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        check_width(instruction, context, form)
        operands = instruction.operands
        offset = instruction.number("offset")
        address = _addressing(instruction, context, operands[0], operands[1] if len(operands) > 1 else None)

        def step(w: Waves) -> None:
            direct_to_lds(w, form, address(w), w.mask, offset, _TARGETS[segment])

        return step

    return build


for _suffix in ("ubyte", "sbyte", "ushort", "sshort", "dword", "dwordx3", "dwordx4"):
    for _segment in ("global",) if "x" in _suffix else ("global", "scratch"):
        op(f"{_segment}_load_lds_{_suffix}")(_load_lds(_segment, access.FORMATS[_suffix]))
