"""Scalar registers counted from m0, and branches that ask for a debugger, of which there is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hkc.emulate.decode import M0, SGPR_COUNT, Decoded
from hkc.emulate.faults import unsupported
from hkc.emulate.operands import scalar_reader
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


@op("s_cbranch_cdbgsys", "s_cbranch_cdbguser", "s_cbranch_cdbgsys_or_user", "s_cbranch_cdbgsys_and_user")
def _(instruction: Decoded, context: Context) -> Step:
    """Never taken: the conditional-debug bits of the status register are set by a debugger alone."""
    return lambda w: None


@op("s_atc_probe", "s_atc_probe_buffer", "v_clrexcp")
def _(instruction: Decoded, context: Context) -> Step:
    """Translations are always there; exceptions are not recorded."""
    return lambda w: None
