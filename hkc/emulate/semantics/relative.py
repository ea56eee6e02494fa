"""Registers counted from m0, skipping, and branches that ask for a debugger, of which there is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hkc.emulate.decode import M0, SGPR_COUNT, Decoded
from hkc.emulate.faults import unsupported
from hkc.emulate.modes import GPR_INDEX, SKIP
from hkc.emulate.operands import Array, scalar_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.waves import Waves


def _same(w: Waves, instruction: Decoded, first: int, words: int) -> int:
    """The register that m0 leads to, one for all waves that are here."""
    offsets = np.unique(w.scalar(M0))
    if len(offsets) != 1:
        raise unsupported(instruction, "waves with different m0 that run together, as")
    register = first + int(offsets[0])
    if register + words > SGPR_COUNT:
        raise unsupported(instruction, f"the scalar register {register}")
    return register


def _move(words: int, source: bool) -> Callable[[Decoded, Context], Step]:
    def build(instruction: Decoded, context: Context) -> Step:
        target, origin = instruction.operands
        read = scalar_reader(origin, 32 * words, instruction)

        def step(w: Waves) -> None:
            if source:
                register = _same(w, instruction, origin.index, words)
                value = w.scalar64(register) if words == 2 else w.scalar(register)
            else:
                value = read(w)
            to = target.index if source else _same(w, instruction, target.index, words)
            if words == 2:
                w.set_scalar64(to, value.astype(np.uint64))
            else:
                w.set_scalar(to, value.astype(np.uint32))

        return step

    return build


for _words, _bits in ((1, "b32"), (2, "b64")):
    op(f"s_movrels_{_bits}")(_move(_words, True))
    op(f"s_movreld_{_bits}")(_move(_words, False))


def _set_m0(w: Waves, keep: int, fresh: Array) -> None:
    kept = w.scalar(M0) & np.uint32(keep)
    w.taint = w.scalar_taint = None  # the rest of m0 stays what it was, written or not
    w.set_scalar(M0, kept | fresh)


@op("s_set_gpr_idx_on")
def _(instruction: Decoded, context: Context) -> Step:
    """The index goes to m0[7:0], and m0[15:12] says to which registers it is added: see `modes`."""
    index = scalar_reader(instruction.operands[0], 32, instruction)
    chosen = np.uint32((instruction.encoding[1] & 0xF) << 12)  # the second source's field is a number

    def step(w: Waves) -> None:
        w.state.mode[w.rows] |= np.uint32(GPR_INDEX)
        _set_m0(w, 0xFFFF0F00, index(w) & np.uint32(0xFF) | chosen)

    return step


@op("s_set_gpr_idx_idx")
def _(instruction: Decoded, context: Context) -> Step:
    index = scalar_reader(instruction.operands[0], 32, instruction)
    return lambda w: _set_m0(w, 0xFFFFFF00, index(w) & np.uint32(0xFF))


@op("s_set_gpr_idx_mode")
def _(instruction: Decoded, context: Context) -> Step:
    chosen = np.array([(instruction.simm16 & 0xF) << 12], np.uint32)
    return lambda w: _set_m0(w, 0xFFFF0FFF, chosen)


@op("s_set_gpr_idx_off")
def _(instruction: Decoded, context: Context) -> Step:
    def step(w: Waves) -> None:
        w.state.mode[w.rows] &= np.uint32(~GPR_INDEX & 0xFFFFFFFF)

    return step


@op("s_setvskip")
def _(instruction: Decoded, context: Context) -> Step:
    """Vector instructions are skipped from now on, or executed again: one bit of the first source."""
    word, bit = (scalar_reader(o, 32, instruction) for o in instruction.operands)

    def step(w: Waves) -> None:
        skip = word(w) >> (bit(w) & np.uint32(31)) & np.uint32(1)
        mode = w.state.mode[w.rows] & np.uint32(~SKIP & 0xFFFFFFFF)
        w.state.mode[w.rows] = np.where(skip != 0, mode | np.uint32(SKIP), mode)

    return step


@op("s_cbranch_cdbgsys", "s_cbranch_cdbguser", "s_cbranch_cdbgsys_or_user", "s_cbranch_cdbgsys_and_user")
def _(instruction: Decoded, context: Context) -> Step:
    """Never taken: the conditional-debug bits of the status register are set by a debugger alone."""
    return lambda w: None


@op("s_atc_probe", "s_atc_probe_buffer", "v_clrexcp")
def _(instruction: Decoded, context: Context) -> Step:
    """Translations are always there; exceptions are not recorded."""
    return lambda w: None
