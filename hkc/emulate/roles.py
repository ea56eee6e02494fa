"""Which operands of a vector ALU instruction are results."""

from __future__ import annotations

from hkc.emulate.decode import Decoded

EXCHANGES = ("v_swap", "v_permlane16_swap", "v_permlane32_swap")
"""Instructions with two results that are sources as well."""

_SCALAR_CARRY = ("_co_u32", "v_div_scale", "v_mad_u64_u32", "v_mad_i64_i32")


def results(instruction: Decoded) -> int:
    """How many of the first operands are results: two for carries and exchanges."""
    base = instruction.base
    if not instruction.operands:
        return 0
    return 2 if base.startswith(EXCHANGES) or any(word in base for word in _SCALAR_CARRY) else 1
