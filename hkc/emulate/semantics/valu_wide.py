"""64-bit integer and bitwise vector instructions."""

from __future__ import annotations

import numpy as np

from hkc.emulate.decode import Decoded
from hkc.emulate.operands import join, lanes_index, split, word_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.vector import valu
from hkc.emulate.waves import Waves

_63 = np.uint32(63)

valu("u64 = u64", "v_mov_b64")(lambda a: a)
valu("u64 = u32 u64", "v_lshlrev_b64")(lambda n, a: a << (n & _63).astype(np.uint64))
valu("u64 = u32 u64", "v_lshrrev_b64")(lambda n, a: a >> (n & _63).astype(np.uint64))
valu("i64 = u32 i64", "v_ashrrev_i64")(lambda n, a: a >> (n & _63).astype(np.int64))
valu("u64 = u64 u32 u64", "v_lshl_add_u64")(lambda a, n, c: (a << (n & np.uint32(7)).astype(np.uint64)) + c)


@op("v_mad_u64_u32", "v_mad_i64_i32")
def _(instruction: Decoded, context: Context) -> Step:
    """a·b + c, and a lane mask of bit 64 of the exact result (signed: its sign).

    Compilers use it for 32-bit sums too and leave the upper word of c undefined then, so only the upper word of the
    result counts as depending on it.
    """
    target, flags, *sources = instruction.operands
    a, b = (word_reader(o, instruction, context) for o in sources[:2])
    low, high = (word_reader(sources[2], instruction, context, word, 64) for word in (0, 1))
    register, carries = context.vector(target), lanes_index(flags, instruction)
    signed = instruction.base == "v_mad_i64_i32"

    def step(w: Waves) -> None:
        x, y, c0 = a(w), b(w), low(w)
        taint = w.taint
        addend = join(c0, high(w))
        taint_high = w.taint
        if signed:
            product = (x.view(np.int32).astype(np.int64) * y.view(np.int32)).view(np.uint64)
            total = product + addend
            overflow = (product ^ total) & (addend ^ total)
            carry = (total ^ overflow).view(np.int64) < 0
        else:
            total = x.astype(np.uint64) * y + addend
            carry = total < addend
        words = split(total)
        for i, stale in enumerate((taint, taint_high)):
            w.taint = stale
            w.write(register + i, words[i])
        w.taint = taint
        w.set_lanes(carries, carry)

    return step
