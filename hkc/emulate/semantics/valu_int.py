"""32-bit integer and bitwise vector instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.emulate.decode import Decoded
from hkc.emulate.operands import Array
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.semantics.salu import find_high, find_low, population, reverse_bits
from hkc.emulate.vector import source, step_of, valu
from hkc.emulate.waves import Waves

_31, _16 = np.uint32(31), np.uint32(0xFFFF)
_U64 = np.uint64


def _saturate_u32(exact: Array) -> Array:
    return np.clip(exact, 0, 0xFFFFFFFF).astype(np.uint32)


def _saturate_i32(exact: Array) -> Array:
    return np.clip(exact, -(1 << 31), (1 << 31) - 1).astype(np.int32)


def _wide(a: Array) -> Array:
    return a.astype(np.int64)


# moves and selection

valu("u32 = u32", "v_mov_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32")(lambda a: a)
valu("u32 = u32 u32 mask", "v_cndmask_b32")(lambda a, b, choose: np.where(choose, b, a))
valu("u32 = u32", "v_not_b32")(lambda a: ~a)
valu("u32 = u32", "v_bfrev_b32")(reverse_bits)

# addition and subtraction

valu("u32 = u32 u32", "v_add_u32", clamped=lambda a, b: _saturate_u32(_wide(a) + b))(lambda a, b: a + b)
valu("u32 = u32 u32", "v_sub_u32", clamped=lambda a, b: _saturate_u32(_wide(a) - b))(lambda a, b: a - b)
valu("u32 = u32 u32", "v_subrev_u32", clamped=lambda a, b: _saturate_u32(_wide(b) - a))(lambda a, b: b - a)
valu("i32 = i32 i32", "v_add_i32", clamped=lambda a, b: _saturate_i32(_wide(a) + b))(lambda a, b: a + b)
valu("i32 = i32 i32", "v_sub_i32", clamped=lambda a, b: _saturate_i32(_wide(a) - b))(lambda a, b: a - b)
valu("u32 = u32 u32 u32", "v_add3_u32")(lambda a, b, c: a + b + c)
valu("u32 = u32 u32 u32", "v_xad_u32")(lambda a, b, c: (a ^ b) + c)
valu("u32 = u32 u32 u32", "v_lshl_add_u32")(lambda a, n, c: (a << (n & _31)) + c)
valu("u32 = u32 u32 u32", "v_add_lshl_u32")(lambda a, b, n: a + b << (n & _31))


def _carry(a: Array, b: Array, carry: Any) -> tuple[Array, Array]:
    exact = a.astype(_U64) + b + np.asarray(carry, _U64)
    return exact.astype(np.uint32), exact > 0xFFFFFFFF


def _borrow(a: Array, b: Array, borrow: Any) -> tuple[Array, Array]:
    exact = _wide(a) - b - np.asarray(borrow, np.int64)
    return exact.astype(np.uint32), exact < 0


valu("u32 mask = u32 u32", "v_add_co_u32")(lambda a, b: (a + b, a + b < b))
valu("u32 mask = u32 u32", "v_sub_co_u32")(lambda a, b: (a - b, b > a))
valu("u32 mask = u32 u32", "v_subrev_co_u32")(lambda a, b: (b - a, a > b))
valu("u32 mask = u32 u32 mask", "v_addc_co_u32")(_carry)
valu("u32 mask = u32 u32 mask", "v_subb_co_u32")(_borrow)
valu("u32 mask = u32 u32 mask", "v_subbrev_co_u32")(lambda a, b, c: _borrow(b, a, c))


def prng(a: Array) -> Array:
    """One step of a linear feedback shift register (LLVM's description of `llvm.amdgcn.prng.b32`)."""
    return (a << np.uint32(1)) ^ np.where(a >> np.uint32(31) == 1, np.uint32(0xC5), np.uint32(0))


valu("u32 = u32", "v_prng_b32")(prng)

# multiplication

_24 = np.uint32(0xFFFFFF)


def _s24(a: Array) -> Array:
    signed: Array = (a << np.uint32(8)).view(np.int32) >> np.int32(8)
    return _wide(signed)


valu("u32 = u32 u32", "v_mul_lo_u32")(lambda a, b: a * b)
valu("u32 = u32 u32", "v_mul_hi_u32")(lambda a, b: (a.astype(_U64) * b >> _U64(32)).astype(np.uint32))
valu("i32 = i32 i32", "v_mul_hi_i32")(lambda a, b: (_wide(a) * b >> 32).astype(np.int32))
valu("u32 = u32 u32", "v_mul_u32_u24")(lambda a, b: (a & _24) * (b & _24))
valu("u32 = u32 u32", "v_mul_hi_u32_u24")(
    lambda a, b: ((a & _24).astype(_U64) * (b & _24) >> _U64(32)).astype(np.uint32)
)
valu("i32 = u32 u32", "v_mul_i32_i24")(lambda a, b: (_s24(a) * _s24(b)).astype(np.int32))
valu("i32 = u32 u32", "v_mul_hi_i32_i24")(lambda a, b: (_s24(a) * _s24(b) >> 32).astype(np.int32))
valu("u32 = u32 u32 u32", "v_mad_u32_u24")(lambda a, b, c: (a & _24) * (b & _24) + c)
valu("u32 = u32 u32 u32", "v_mad_i32_i24")(lambda a, b, c: (_s24(a) * _s24(b)).astype(np.uint32) + c)


# logic, shifts, bit fields

_TWO: dict[str, Callable[[Array, Array], Array]] = {
    "v_and_b32": lambda a, b: a & b, "v_or_b32": lambda a, b: a | b, "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_lshlrev_b32": lambda n, a: a << (n & _31), "v_lshrrev_b32": lambda n, a: a >> (n & _31),
    "v_bfm_b32": lambda width, n: ((np.uint32(1) << (width & _31)) - np.uint32(1)) << (n & _31),
}  # fmt: skip
for _name, _function in _TWO.items():
    valu("u32 = u32 u32", _name)(_function)
valu("i32 = u32 i32", "v_ashrrev_i32")(lambda n, a: a >> (n & _31).astype(np.int32))
valu("u32 = u32 u32 u32", "v_and_or_b32")(lambda a, b, c: a & b | c)
valu("u32 = u32 u32 u32", "v_or3_b32")(lambda a, b, c: a | b | c)
valu("u32 = u32 u32 u32", "v_lshl_or_b32")(lambda a, n, c: a << (n & _31) | c)
valu("u32 = u32 u32 u32", "v_bfi_b32")(lambda m, a, b: m & a | ~m & b)
valu("u32 = u32 u32 u32", "v_alignbit_b32")(
    lambda high, low, n: ((high.astype(_U64) << _U64(32) | low) >> (n & _31).astype(_U64)).astype(np.uint32)
)
valu("u32 = u32 u32 u32", "v_alignbyte_b32")(
    lambda high, low, n: ((high.astype(_U64) << _U64(32) | low) >> (n & np.uint32(3)).astype(_U64) * _U64(8)).astype(
        np.uint32
    )
)
valu("u32 = u32 u32", "v_bcnt_u32_b32")(lambda a, b: population(a) + b)
valu("i32 = u32", "v_ffbl_b32")(find_low)
valu("i32 = u32", "v_ffbh_u32")(find_high)
valu("i32 = i32", "v_ffbh_i32")(lambda a: find_high(np.where(a < 0, ~a, a).view(np.uint32)))


@valu("u32 = u32 u32 u32", "v_bfe_u32")
def _(a: Array, offset: Array, width: Array) -> Array:
    mask = (np.uint32(1) << (width & _31)) - np.uint32(1)
    result: Array = a >> (offset & _31) & mask
    return result


@valu("i32 = i32 u32 u32", "v_bfe_i32")
def _(a: Array, offset: Array, width: Array) -> Array:
    offset, width = offset & _31, width & _31
    # a field that sticks out at the top is extended from bit 31
    left = (32 - np.minimum(width + offset, 32)).astype(np.int32)
    return np.where(width == 0, 0, (a << left) >> np.minimum(left + offset.astype(np.int32), 31))


@valu("u32 = u32 u32 u32", "v_perm_b32")
def _(high: Array, low: Array, selector: Array) -> Array:
    if selector.size == 1:
        parts = [_constant_byte(high, low, int(selector.item()) >> 8 * i & 255, 8 * i) for i in range(4)]
        return parts[0] | parts[1] | parts[2] | parts[3]
    both = high.astype(_U64) << _U64(32) | low
    result = np.zeros(np.broadcast_shapes(both.shape, selector.shape), np.uint32)
    for shift in np.arange(0, 32, 8, dtype=np.uint32):
        choice = selector >> shift & np.uint32(255)
        byte = both >> (choice & np.uint32(7)).astype(_U64) * _U64(8) & _U64(255)
        # 8 to 11 replicate the signs of the bytes 1, 3, 5, 7; 12 is 0; more is 255
        sign = both >> ((choice & np.uint32(3)).astype(_U64) * _U64(16) + _U64(15)) & _U64(1)
        byte = np.where(choice >= 8, sign * _U64(255), byte)
        byte = np.where(choice == 12, _U64(0), np.where(choice > 12, _U64(255), byte))
        result |= byte.astype(np.uint32) << shift
    return result


def _constant_byte(high: Array, low: Array, choice: int, place: int) -> Array:
    """One byte of the result for a selector that is the same everywhere, the usual case."""
    if choice >= 12:
        return np.full(np.broadcast_shapes(high.shape, low.shape), 0 if choice == 12 else 255 << place, np.uint32)
    word = high if choice & (4 if choice < 8 else 2) else low
    if choice >= 8:
        shift = np.uint32(31 if choice & 1 else 15)
        return (word >> shift & np.uint32(1)) * np.uint32(255 << place)
    return (word >> np.uint32(8 * (choice & 3)) & np.uint32(255)) << np.uint32(place)


@op("v_bitop3_b32", "v_bitop3_b16")
def _(instruction: Decoded, context: Context) -> Step:
    """Any function of three bits, given as its truth table: bit (a << 2 | b << 1 | c)."""
    table = instruction.number("bitop3")

    def run(a: Array, b: Array, c: Array) -> Array:
        result = np.zeros((), a.dtype)
        for i in range(8):
            if table >> i & 1:
                result = result | (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
        return np.broadcast_to(result, np.broadcast_shapes(a.shape, b.shape, c.shape))

    kind = "u32" if instruction.base.endswith("b32") else "u16"
    return step_of(instruction, context, run, f"{kind} = {kind} {kind} {kind}")


# minimum, maximum, median

_SORTED: dict[str, Any] = {"i32": np.int32, "u32": np.uint32}
for _kind in _SORTED:
    valu(f"{_kind} = {_kind} {_kind}", f"v_min_{_kind}")(np.minimum)
    valu(f"{_kind} = {_kind} {_kind}", f"v_max_{_kind}")(np.maximum)
    valu(f"{_kind} = {_kind} {_kind} {_kind}", f"v_min3_{_kind}")(lambda a, b, c: np.minimum(np.minimum(a, b), c))
    valu(f"{_kind} = {_kind} {_kind} {_kind}", f"v_max3_{_kind}")(lambda a, b, c: np.maximum(np.maximum(a, b), c))
    valu(f"{_kind} = {_kind} {_kind} {_kind}", f"v_med3_{_kind}")(
        lambda a, b, c: np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    )


@op("v_swap_b32")
def _(instruction: Decoded, context: Context) -> Step:
    first, second = (context.vector(o) for o in instruction.operands)

    def step(w: Waves) -> None:
        a, b = w.read(first).copy(), w.read(second).copy()
        w.write(first, b)
        w.write(second, a)

    return step


@op("v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32")
def _(instruction: Decoded, context: Context) -> Step:
    """Count the set bits of a mask below this lane (each instruction sees half of the wave)."""
    mask, base = (source(instruction, context, o, "u32", n, None) for n, o in enumerate(instruction.operands[1:]))
    target = context.vector(instruction.operands[0])
    lanes = np.arange(64) - (32 if "hi" in instruction.base else 0)
    below = np.array([(1 << min(max(int(n), 0), 32)) - 1 for n in lanes], np.uint32)

    def step(w: Waves) -> None:
        w.write(target, population(np.broadcast_to(mask(w), w.mask.shape) & below) + base(w))

    return step
