"""Which instructions need wait states between them, matrix instructions apart: what each makes and what each needs.

A fact such as "vector ALU wrote scalar register 4" is a key. An instruction makes keys, and needs some of them to be
old enough. How old: the chip's `isa.toml`, valu_hazards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hkc.emulate.decode import EXEC, M0, VCC, Decoded, Operand
from hkc.emulate.roles import EXCHANGES, results

Key = tuple[str, str, int]
"""(how it was made, register file, number)."""

_TRANSCENDENTAL = ("v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_")
_LANE = ("v_readlane_b32", "v_readfirstlane_b32", "v_writelane_b32")
_VECTOR_MEMORY = ("buffer_", "tbuffer_", "global_", "flat_", "scratch_")
_ADDS_TO_RESULT = ("v_fmac", "v_mac", "v_pk_fmac", "v_dot2c", "v_dot4c", "v_dot8c")
_PACKED = ("v_pk_", "v_dot", "v_fma_mix", "v_mfma", "v_smfmac")
_READS_M0 = ("s_movrel", "s_sendmsg", "s_ttracedata", "ds_read_addtid", "ds_write_addtid", "ds_gws_")


@dataclass(frozen=True)
class Need:
    """`key` must be `states` wait states old; `what` says what happens otherwise, for the message.

    Facts about `unless`, the mnemonic of who made it, don't count.
    """

    key: Key
    states: int
    what: str
    unless: str = ""


def made(instruction: Decoded) -> tuple[Key, ...]:
    """What the instruction leaves behind."""
    base = instruction.base
    if base.startswith("s_setreg"):
        return (("set", _hardware_register(instruction), 0),)
    if base.startswith("s_"):
        written = [] if base.startswith("s_cmp") else _registers(instruction.operands[:1])
        return tuple(("scalar", kind, n) for kind, n in written if (kind, n) == ("sgpr", M0))
    if base.startswith(_VECTOR_MEMORY):
        return tuple(("stored", kind, n) for kind, n in _late_data(instruction))
    if not base.startswith("v_"):
        return ()
    written = list(_results(instruction))
    ways = ["vector"]
    ways += ["transcendental"] * base.startswith(_TRANSCENDENTAL)
    ways += ["part"] * _writes_part(instruction)
    ways += ["dot"] * base.startswith("v_dot")
    keys = [(way, kind, n) for way in ways for kind, n in written]
    if base.startswith("v_cmpx"):
        keys += [("vector", "sgpr", EXEC), ("vector", "sgpr", EXEC + 1), ("compared", "exec", 0)]
    if base.startswith("v_mfma_f64"):
        keys.append(("matrix", "f64", 0))
    return tuple(keys)


def needed(instruction: Decoded, states: Mapping[str, int]) -> tuple[Need, ...]:
    """What must be old enough before the instruction, the longest first."""
    base = instruction.base
    found: list[Need] = []
    if base.startswith(("s_setreg", "s_getreg")):
        found.append(Need(("set", _hardware_register(instruction), 0), states["set"], "is used"))
    if base.startswith(_READS_M0) or _to_lds(instruction):
        found.append(Need(("scalar", "sgpr", M0), states["m0"], "is read"))
    memory = base.startswith(_VECTOR_MEMORY)
    if memory:
        named = list(_registers(instruction.operands, "sgpr")) + [("sgpr", M0)] * _to_lds(instruction)
        found += [Need(("vector", *r), states["memory_scalar"], "is read by a memory instruction") for r in named]
    if base.startswith("v_") and not base.startswith(("v_mfma", "v_smfmac")):
        found += _vector_needs(instruction, states)
    if memory or base.startswith("ds_"):
        registers = _registers(instruction.operands, "vgpr", "agpr")
        found += [Need(("dot", *r), states["dot"], "is used") for r in registers]
    return tuple(sorted((n for n in found if n.states), key=lambda n: -n.states))


def _vector_needs(instruction: Decoded, states: Mapping[str, int]) -> Iterator[Need]:
    base, sources = instruction.base, list(_sources(instruction))
    vectors = [r for r in sources if r[0] != "sgpr"]
    yield from (Need(("vector", *r), states["scalar"], "is read") for r in sources if r[0] == "sgpr")
    late = ("part",) if base.startswith(_TRANSCENDENTAL) else ("part", "transcendental")
    yield from (Need((way, *r), states[way], "is read") for r in vectors for way in late)
    yield from (Need(("stored", *r), states["store_data"], "is overwritten") for r in _results(instruction))
    yield from _dot_needs(instruction, vectors, states["dot"])
    yield from _crossing_needs(instruction, vectors, states)
    if base in _LANE:
        yield from _lane_needs(instruction, vectors, states)
    if base.startswith("v_div_fmas"):
        yield from (Need(("vector", "sgpr", half), states["div_fmas"], "is read") for half in (VCC, VCC + 1))
    if base in ("v_fma_f64", "v_fmac_f64"):
        yield Need(("matrix", "f64", 0), states["matrix_f64"], "precedes v_fma_f64")


def _crossing_needs(instruction: Decoded, vectors: list[tuple[str, int]], states: Mapping[str, int]) -> Iterator[Need]:
    """Values that come from other lanes."""
    name = "dpp" if instruction.form.endswith("dpp") else "permlane"
    if name == "permlane" and not instruction.base.startswith("v_permlane"):
        return
    yield from (Need(("vector", *r), states[name], "is read from other lanes") for r in vectors)
    if name == "dpp":
        yield from _exec(states["dpp_exec"], "precedes DPP")
    else:
        yield Need(("compared", "exec", 0), states["permlane_exec"], "precedes a permutation")


def _lane_needs(instruction: Decoded, vectors: list[tuple[str, int]], states: Mapping[str, int]) -> Iterator[Need]:
    yield from _exec(states["lane_exec"], "precedes an access to one lane")
    if instruction.base != "v_writelane_b32":
        for register in vectors:
            yield Need(("vector", *register), states["lane_vector"], "is read in one lane")
    for register in _registers(instruction.operands[2:], "sgpr"):
        yield Need(("vector", *register), states["lane_select"], "chooses a lane")


def _dot_needs(instruction: Decoded, vectors: list[tuple[str, int]], states: int) -> Iterator[Need]:
    """A dot product may add to the result of the same one at once; all else has to wait."""
    same = instruction.base if instruction.base.startswith("v_dot") else ""
    addend = set(_registers(instruction.operands[3:4] or instruction.operands[:1])) if same else set()
    for register in vectors:
        yield Need(("dot", *register), states, "is read", same if register in addend else "")
    for register in _results(instruction):
        yield Need(("dot", *register), states, "is overwritten", same)


def _exec(states: int, what: str) -> Iterator[Need]:
    for half in (EXEC, EXEC + 1):
        yield Need(("vector", "sgpr", half), states, what)


def _registers(operands: Iterable[Operand], *kinds: str) -> Iterator[tuple[str, int]]:
    for operand in operands:
        if operand.kind in (kinds or ("vgpr", "agpr", "sgpr")):
            yield from ((operand.kind, operand.index + i) for i in range(operand.count))


def _results(instruction: Decoded) -> Iterator[tuple[str, int]]:
    return _registers(instruction.operands[: results(instruction)])


def _sources(instruction: Decoded) -> Iterator[tuple[str, int]]:
    both = instruction.base.startswith((*_ADDS_TO_RESULT, *EXCHANGES))
    return _registers(instruction.operands[0 if both else results(instruction) :])


def _writes_part(instruction: Decoded) -> bool:
    """Only some bits of the result register: by SDWA, or by op_sel, whose list names the sources, then the result.

    Conversions to 8 and 4 bits choose a byte by two bits of it, and those that round at random merge in any case.
    """
    if instruction.form == "sdwa":
        return instruction.modifiers.get("dst_sel", "DWORD") != "DWORD"
    if instruction.base.startswith("v_cvt_scalef32_sr_pk_fp4"):
        return True
    chosen = instruction.modifiers.get("op_sel", ())
    if not isinstance(chosen, tuple) or instruction.base.startswith(_PACKED):
        return False
    if instruction.base.startswith("v_cvt_"):
        return any(chosen[2:])
    return len(chosen) >= len(instruction.operands) and bool(chosen[-1])


def _late_data(instruction: Decoded) -> Iterator[tuple[str, int]]:
    """The data of stores of more than 8 bytes is read after the instruction was issued.

    A buffer with a scalar offset register takes a cycle more and so is safe.
    """
    base, operands = instruction.base, instruction.operands
    if "_store_" not in base and "_atomic_" not in base:
        return iter(())
    buffer = base.startswith(("buffer_", "tbuffer_"))
    if buffer and operands[-1].kind == "sgpr":
        return iter(())
    data = operands[:1] if buffer else operands[1:2]
    return _registers((o for o in data if o.count > 2), "vgpr", "agpr")


def _to_lds(instruction: Decoded) -> bool:
    return instruction.flag("lds") or "_load_lds_" in instruction.base


def _hardware_register(instruction: Decoded) -> str:
    return instruction.text.partition("hwreg(")[2].partition(",")[0].rstrip(")")
