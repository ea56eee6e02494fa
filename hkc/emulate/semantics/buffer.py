"""Buffer instructions: a descriptor in four scalar registers bounds every access.

Range rule of the GFX9 ISA guides ("Memory Buffer Instructions", range checking): raw and unswizzled buffers compare
the byte offset, without the scalar offset, with the number of records less the scalar offset; structured, swizzled
ones compare the index with the number of records and the offset with the stride. Each dword of a wide access is checked
by itself. Vector and immediate offset add up in 32 bits, before any comparison: LLVM folds immediates into offsets that
are negative, which is right but for the newest chips, whose additions do not wrap (llvm-project #207796).

Whether the scalar offset is added with a carry, as the guides' rule has it, or in 32 bits, is disputed. By reports from
silicon an offset beyond the buffer stays there (triton #10690, rocm-systems #10928), or a scalar offset brings it back
(triton #10673). So what depends on it is a finding.
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
from hkc.emulate.waves import U32, U64, Waves

_SWIZZLE, _ADD_LANE = 1 << 31, 1 << 23
_ELEMENT = 4
"""Bytes that swizzling keeps together on these chips, and that are checked as one."""
_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Places:
    """Addresses [waves, lanes] and how many bytes behind each are in bounds (a negative number: none)."""

    addresses: U64
    left: NDArray[np.int64]

    def inside(self, nbytes: int) -> Mask:
        """Where the first `nbytes` are in bounds."""
        return self.left >= nbytes


def addressing(instruction: Decoded, context: Context) -> Callable[[Waves, int], Places]:
    """Where a buffer instruction leads that accesses so many bytes per lane. Raises HK702 for what a swizzled buffer
    scatters.

    The text's operands are: data, address (register, pair or off), descriptor, scalar offset.
    """
    operands = instruction.operands[-3:]
    vector, descriptor = operands[0], operands[1].index
    soffset = scalar_reader(operands[2], 32, instruction)
    indexed, offset_enabled = instruction.flag("idxen"), instruction.flag("offen")
    index = context.vector(vector) if indexed else None
    offset = context.vector(vector) + int(indexed) if offset_enabled else None
    fixed = instruction.number("offset")

    def run(w: Waves, nbytes: int) -> Places:
        words = [w.scalar(descriptor + i)[:, None] for i in range(4)]
        base = words[0].astype(np.int64) | (words[1] & np.uint32(0xFFFF)).astype(np.int64) << 32
        stride = (words[1] >> np.uint32(16) & np.uint32(0x3FFF)).astype(np.int64)
        inner = np.full(w.mask.shape, fixed, np.int64)
        if offset is not None:
            inner = inner + w.read(offset) & _WORD
        element = np.zeros(w.mask.shape, np.int64) if index is None else w.read(index).astype(np.int64)
        if (add_lane := words[3] & np.uint32(_ADD_LANE) != 0).any():
            element = element + np.where(add_lane, np.arange(64), 0)
            stride = np.where(
                add_lane, stride | (words[3] >> np.uint32(15) & np.uint32(0xF)).astype(np.int64) << 14, stride
            )
        scalar = soffset(w).astype(np.int64)[:, None]
        records = words[2].astype(np.int64)
        if (words[1] & np.uint32(_SWIZZLE)).any():
            if nbytes > _ELEMENT:
                raise unsupported(instruction, f"an access of {nbytes} bytes to a swizzled buffer")
            start = (base + scalar).astype(np.uint64)
            return _swizzled(instruction, start, words, stride, element, inner)
        inner = inner + element * stride
        size = np.where(stride == 0, records, records * stride)
        disputed = w.mask & (stride == 0) & (inner + scalar > _WORD)
        if disputed.any():
            _dispute(w, disputed, inner, scalar, size - min(nbytes, _ELEMENT))
        return Places((base + scalar + inner).astype(np.uint64), size - scalar - inner)

    return run


def _dispute(
    w: Waves, lanes: Mask, offset: NDArray[np.int64], scalar: NDArray[np.int64], last: NDArray[np.int64]
) -> None:
    """Report the first of `lanes`, which are out of range with a carry, whose offset in 32 bits is at most `last`."""
    wrapped = offset + scalar & _WORD
    back = lanes & (wrapped <= last)
    if back.any():
        wave, lane = (int(i[0]) for i in np.nonzero(back))
        message = (
            f"vector offset {offset[wave, lane]:#x} with scalar offset {scalar[wave, 0]:#x} is out of range, but in 32 "
            f"bits their sum is {wrapped[wave, lane]:#x}, which is in range: silicon may do either"
        )
        w.find("buffer range", message, back)


def _swizzled(
    instruction: Decoded, start: U64, words: list[U32], stride: NDArray[np.int64], index: NDArray[np.int64],
    offset: NDArray[np.int64],
) -> Places:  # fmt: skip
    """Records interleaved: 8, 16, 32 or 64 neighbours share a stretch in which each has every n-th dword."""
    if not (words[1] & np.uint32(_SWIZZLE)).all():
        raise unsupported(instruction, "waves with swizzled and plain buffers together")
    count = np.int64(8) << (words[3] >> np.uint32(21) & np.uint32(3)).astype(np.int64)
    block = index // count * stride + offset // _ELEMENT * _ELEMENT
    places = block * count + index % count * _ELEMENT + offset % _ELEMENT
    inside = (index < words[2].astype(np.int64)) & (offset < stride)
    # a dword at most lies together
    left = np.where(inside, _ELEMENT - offset % _ELEMENT, 0)
    return Places(start + places.astype(np.uint64), left)


def _load(form: access.Format) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        places = addressing(instruction, context)
        if instruction.flag("lds"):
            return _load_lds(instruction, context, form, places)
        register = context.vector(instruction.operands[0])

        def step(w: Waves) -> None:
            found = places(w, form.nbytes)
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


def _load_lds(
    instruction: Decoded, context: Context, form: access.Format, places: Callable[[Waves, int], Places]
) -> Step:
    check_width(instruction, context, form)
    offset = instruction.number("offset")

    def step(w: Waves) -> None:
        found = places(w, form.nbytes)
        direct_to_lds(w, form, found.addresses, w.mask & found.inside(form.nbytes), offset)

    return step


def _store(form: access.Format) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        places = addressing(instruction, context)
        register = context.vector(instruction.operands[0])

        def step(w: Waves) -> None:
            found = places(w, form.nbytes)
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
        places = addressing(instruction, context)
        register = context.vector(instruction.operands[0])
        result = register if instruction.flag("sc0") else None

        def step(w: Waves) -> None:
            found = places(w, 4 * keep)
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
