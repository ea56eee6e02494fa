"""Buffer instructions: a descriptor in four scalar registers bounds every access.

Range rule of the GFX9 ISA guides ("Memory Buffer Instructions", range checking): raw and unswizzled buffers compare
the byte offset, without the scalar offset, with the number of records less the scalar offset; structured, swizzled
ones compare the index with the number of records. Each dword of a wide access is checked by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hkc.emulate import access, atomics, spaces
from hkc.emulate.decode import Decoded
from hkc.emulate.faults import unsupported
from hkc.emulate.memory import Mask
from hkc.emulate.operands import scalar_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.semantics.vmem import check_width, direct_to_lds
from hkc.emulate.waves import U64, Waves

_SWIZZLE, _ADD_LANE = 1 << 31, 1 << 23


@dataclass(frozen=True)
class Places:
    """Addresses [waves, lanes] and how many bytes behind each are in bounds (a negative number: none)."""

    addresses: U64
    left: NDArray[np.int64]

    def inside(self, nbytes: int) -> Mask:
        """Where the first `nbytes` are in bounds."""
        return self.left >= nbytes


def _addressing(instruction: Decoded, context: Context) -> Callable[[Waves], Places]:
    """The text's operands are: data, address (register, pair or off), descriptor, scalar offset."""
    operands = instruction.operands[-3:]
    vector, descriptor = operands[0], operands[1].index
    soffset = scalar_reader(operands[2], 32, instruction)
    indexed, offset_enabled = instruction.flag("idxen"), instruction.flag("offen")
    index = context.vector(vector) if indexed else None
    offset = context.vector(vector) + int(indexed) if offset_enabled else None
    fixed = instruction.number("offset")

    def run(w: Waves) -> Places:
        words = [w.scalar(descriptor + i)[:, None] for i in range(4)]
        if (words[1] & np.uint32(_SWIZZLE)).any() or (words[3] & np.uint32(_ADD_LANE)).any():
            raise unsupported(instruction, "swizzled buffers")
        base = words[0].astype(np.int64) | (words[1] & np.uint32(0xFFFF)).astype(np.int64) << 32
        stride = (words[1] >> np.uint32(16) & np.uint32(0x3FFF)).astype(np.int64)
        inner = np.full(w.mask.shape, fixed, np.int64)
        if offset is not None:
            inner = inner + w.read(offset)
        if index is not None:
            inner = inner + w.read(index) * stride
        scalar = soffset(w).astype(np.int64)[:, None]
        records = words[2].astype(np.int64)
        size = np.where(stride == 0, records, records * stride)
        return Places((base + scalar + inner).astype(np.uint64), size - scalar - inner)

    return run


def _load(form: access.Format) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        places = _addressing(instruction, context)
        if instruction.flag("lds"):
            return _load_lds(instruction, context, form, places)
        register = context.vector(instruction.operands[0])

        def step(w: Waves) -> None:
            found = places(w)
            whole = w.mask & found.inside(form.nbytes)
            if form.words == 1 or _all_or_nothing(found, w.mask, form):
                access.load(w, spaces.GLOBAL, form, register, found.addresses, whole, w.mask)
                return
            single = access.FORMATS["dword"]
            for i in range(form.words):
                lanes = w.mask & found.inside(4 * i + 4)
                access.load(w, spaces.GLOBAL, single, register + i, found.addresses + np.uint64(4 * i), lanes, w.mask)
                if i < form.words - 1:
                    w.state.outstanding.same_operation("vm", w.rows)

        return step

    return build


def _all_or_nothing(found: Places, mask: Mask, form: access.Format) -> bool:
    """No lane is cut in the middle of its access."""
    cut = mask & found.inside(4) & ~found.inside(form.nbytes)
    return not cut.any()


def _load_lds(instruction: Decoded, context: Context, form: access.Format, places: Callable[[Waves], Places]) -> Step:
    check_width(instruction, context, form)
    offset = instruction.number("offset")

    def step(w: Waves) -> None:
        found = places(w)
        direct_to_lds(w, form, found.addresses, w.mask & found.inside(form.nbytes), offset)

    return step


def _store(form: access.Format) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        places = _addressing(instruction, context)
        register = context.vector(instruction.operands[0])

        def step(w: Waves) -> None:
            found = places(w)
            if form.words == 1 or _all_or_nothing(found, w.mask, form):
                lanes = w.mask & found.inside(form.nbytes)
                access.store(w, spaces.GLOBAL, form, register, found.addresses, lanes)
                return
            single = access.STORES["dword"]
            for i in range(form.words):
                lanes = w.mask & found.inside(4 * i + 4)
                access.store(w, spaces.GLOBAL, single, register + i, found.addresses + np.uint64(4 * i), lanes)
                if i < form.words - 1:
                    w.state.outstanding.same_operation("vm", w.rows)

        return step

    return build


def _atomic(name: str) -> Callable[[Decoded, Context], Step]:
    combine, keep, given = atomics.table()[name]

    def build(instruction: Decoded, context: Context) -> Step:
        places = _addressing(instruction, context)
        register = context.vector(instruction.operands[0])
        result = register if instruction.flag("sc0") else None

        def step(w: Waves) -> None:
            found = places(w)
            words = access.data(w, access.Format(4 * given), register)
            lanes = w.mask & found.inside(4 * keep)
            access.atomic(w, spaces.GLOBAL, combine, words, keep, result, found.addresses, lanes)

        return step

    return build


for _suffix, _form in access.FORMATS.items():
    op(f"buffer_load_{_suffix}")(_load(_form))
for _suffix, _form in access.STORES.items():
    op(f"buffer_store_{_suffix}")(_store(_form))
for _suffix in atomics.GLOBAL:
    op(f"buffer_atomic_{_suffix}")(_atomic(_suffix))
