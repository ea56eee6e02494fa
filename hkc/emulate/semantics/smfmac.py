"""Sparse matrix instructions: two of every four elements of a along k are stored, an index register says which.

Index layout (AMD's matrix instruction calculator, "compression index"): each lane describes the elements that it holds
itself, two bits each, lowest first; where these take less than a register, `abid` chooses the part that counts, unless
`cbsz` is set. Sums follow the rule of the dense forms, over the stored elements in their order: inferred.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import Decoded
from hkc.emulate.operands import Array, word_reader
from hkc.emulate.registry import Context, Step, family
from hkc.emulate.semantics.mfma import accumulator, deliver, form_of, operand_reader, rule_of, whole_index
from hkc.emulate.waves import Waves
from hkc.targets.mfma import Mfma

Index = tuple[NDArray[np.int64], NDArray[np.int64]]


@cache
def _grids(form: Mfma) -> tuple[Index, Index, Index]:
    """(lane, element) of the stored a [1, m, k / 2], of b [1, n, k] and of the result [1, m, n]."""
    rows, columns = np.arange(form.m)[None, :, None], np.arange(form.n)[None, :, None]
    a = form.a_index(rows, np.arange(form.k // 2))
    b = form.b_index(np.arange(form.k), columns)
    c = form.acc_index(rows, np.arange(form.n))
    return whole_index(a), whole_index(b), whole_index(c)


def _positions(instruction: Decoded, context: Context, form: Mfma) -> Callable[[Waves], NDArray[np.int64]]:
    """Where along k each stored element stands: [waves, m, k / 2]."""
    read = word_reader(instruction.operands[3], instruction, context)
    lane, element = _grids(form)[0]
    bits = 2 * (int(element.max()) + 1)
    part = instruction.number("abid") % (32 // bits) if not instruction.number("cbsz") else 0
    shift = (2 * element[0] + part * bits).astype(np.uint32)
    block = np.arange(form.k // 2) // 2 * 4

    def run(w: Waves) -> NDArray[np.int64]:
        index = np.broadcast_to(read(w), w.mask.shape)[:, lane[0]]
        positions: NDArray[np.int64] = block + (index >> shift & np.uint32(3)).astype(np.int64)
        return positions

    return run


@family("v_smfmac_")
def _(instruction: Decoded, context: Context) -> Step:
    form = form_of(instruction, context)
    d, a, b = instruction.operands[:3]
    grids = _grids(form)
    take_a = operand_reader(context, a, form.a, grids[0], form.a_vgprs, None)
    take_b = operand_reader(context, b, form.b, grids[1], form.b_vgprs, None)
    take_c = accumulator(context, d, form, grids[2])
    positions, compute = _positions(instruction, context, form), rule_of(instruction, form, None)
    target = context.vector(d)

    def step(w: Waves) -> None:
        left, right, old = take_a(w), take_b(w), take_c(w).reshape(w.count, form.m, form.n)
        where = positions(w)
        # every row of a meets its own selection of b: one product of a row and a matrix each
        chosen: Array = np.take_along_axis(right[:, None], where[:, :, None, :], axis=3)
        rows = w.count * form.m
        result = compute(w, left.reshape(rows, 1, -1), chosen.reshape(rows, form.n, -1), old.reshape(rows, 1, form.n))
        deliver(w, target, form, grids[2], result.reshape(w.count, form.m, form.n))

    return step
