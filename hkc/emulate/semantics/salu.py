"""Scalar arithmetic and logic (SOP1, SOP2, SOPC, SOPK)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hkc.emulate.operands import Array
from hkc.emulate.scalar import salu

_FULL = np.uint64(0xFFFFFFFF)


def _wide(a: Array) -> Array:
    return a.astype(np.int64)


def _fits(exact: Array) -> Array:
    result: Array = exact != exact.astype(np.int32)
    return result


def population(a: Array) -> Array:
    """The number of set bits of each element."""
    raw = np.ascontiguousarray(a)[..., None].view(np.uint8)
    count: Array = np.unpackbits(raw, axis=-1).sum(axis=-1, dtype=np.uint32)
    return count


def find_low(a: Array) -> Array:
    """The lowest set bit's number, -1 for none."""
    kind = a.dtype.type
    lowest = a & (~a + kind(1))
    return np.where(a == 0, -1, population(lowest - kind(1)).view(np.int32))


def find_high(a: Array) -> Array:
    """How many zeros stand above the highest set bit, -1 for none."""
    bits = a.dtype.itemsize * 8
    filled = a.copy()
    for step in (1, 2, 4, 8, 16, 32)[: bits.bit_length() - 1]:
        filled |= filled >> a.dtype.type(step)
    return np.where(a == 0, -1, bits - population(filled).astype(np.int32))


def reverse_bits(a: Array) -> Array:
    """Bit 0 becomes the highest."""
    raw = np.ascontiguousarray(a)[..., None].view(np.uint8)
    bits = np.unpackbits(raw, axis=-1, bitorder="little")[..., ::-1]
    return np.packbits(bits, axis=-1, bitorder="little").view(a.dtype)[..., 0]


# addition and multiplication

salu("u32 scc = u32 u32", "s_add_u32")(lambda a, b: (a + b, a + b < a))
salu("u32 scc = u32 u32", "s_sub_u32")(lambda a, b: (a - b, b > a))
salu("u32 scc = i32 i32", "s_add_i32")(lambda a, b: (a + b, _fits(_wide(a) + b)))
salu("u32 scc = i32 i32", "s_sub_i32")(lambda a, b: (a - b, _fits(_wide(a) - b)))
salu("i32 scc = dst k", "s_addk_i32")(lambda a, k: (a + k, _fits(_wide(a) + k)))
salu("i32 = dst k", "s_mulk_i32")(lambda a, k: a * k)
salu("u32 = u32 u32", "s_mul_i32")(lambda a, b: a * b)
salu("u32 = u32 u32", "s_mul_hi_u32")(lambda a, b: a.astype(np.uint64) * b >> np.uint64(32))
salu("u32 = i32 i32", "s_mul_hi_i32")(lambda a, b: _wide(a) * b >> 32)
salu("i32 scc = i32", "s_abs_i32")(lambda a: (np.abs(a), a != 0))
salu("i32 scc = i32 i32", "s_absdiff_i32")(lambda a, b: (np.abs(_wide(a) - b), a != b))


@salu("u32 scc = u32 u32 scc", "s_addc_u32")
def _(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    exact = a.astype(np.uint64) + b + carry
    return exact & _FULL, exact > _FULL


@salu("u32 scc = u32 u32 scc", "s_subb_u32")
def _(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    exact = a.astype(np.int64) - b - borrow
    return exact, exact < 0


def _shift_add(n: int) -> Callable[[Array, Array], tuple[Array, Array]]:
    def run(a: Array, b: Array) -> tuple[Array, Array]:
        exact = (a.astype(np.uint64) << np.uint64(n)) + b
        return exact & _FULL, exact > _FULL

    return run


for _n in (1, 2, 3, 4):
    salu("u32 scc = u32 u32", f"s_lshl{_n}_add_u32")(_shift_add(_n))

# minimum, maximum, selection

salu("u32 scc = i32 i32", "s_min_i32")(lambda a, b: (np.minimum(a, b), a < b))
salu("u32 scc = u32 u32", "s_min_u32")(lambda a, b: (np.minimum(a, b), a < b))
salu("u32 scc = i32 i32", "s_max_i32")(lambda a, b: (np.maximum(a, b), a > b))
salu("u32 scc = u32 u32", "s_max_u32")(lambda a, b: (np.maximum(a, b), a > b))
salu("u32 = u32 u32 scc", "s_cselect_b32")(lambda a, b, c: np.where(c, a, b))
salu("u64 = u64 u64 scc", "s_cselect_b64")(lambda a, b, c: np.where(c, a, b))
salu("u32 = u32", "s_mov_b32", bitwise=True)(lambda a: a)
salu("u64 = u64", "s_mov_b64", bitwise=True)(lambda a: a)
salu("u32 = dst u32 scc", "s_cmov_b32")(lambda d, a, c: np.where(c, a, d))
salu("u64 = dst u64 scc", "s_cmov_b64")(lambda d, a, c: np.where(c, a, d))
salu("i32 = k", "s_movk_i32")(lambda k: k)
salu("i32 = dst k scc", "s_cmovk_i32")(lambda d, k, c: np.where(c, k, d))

# logic: every one sets SCC to "result is not 0"

LOGIC: dict[str, Callable[[Array, Array], Array]] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b, "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b), "nor": lambda a, b: ~(a | b), "xnor": lambda a, b: ~(a ^ b),
}  # fmt: skip
"""Two-operand logic by name."""

LOGIC_FIRST: dict[str, Callable[[Array, Array], Array]] = {
    "andn1": lambda a, b: ~a & b, "orn1": lambda a, b: ~a | b,
}  # fmt: skip
"""The forms that exist only together with EXEC."""


def _with_condition(function: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    def run(*arguments: Array) -> tuple[Array, Array]:
        result = function(*arguments)
        return result, result != 0

    return run


for _name, _function in LOGIC.items():
    salu("u32 scc = u32 u32", f"s_{_name}_b32", bitwise=True)(_with_condition(_function))
    salu("u64 scc = u64 u64", f"s_{_name}_b64", bitwise=True)(_with_condition(_function))
for _kind, _bits in (("u32", "b32"), ("u64", "b64")):
    salu(f"{_kind} scc = {_kind}", f"s_not_{_bits}", bitwise=True)(_with_condition(lambda a: ~a))
    salu(f"{_kind} = {_kind}", f"s_brev_{_bits}")(reverse_bits)
    salu(f"u32 scc = {_kind}", f"s_bcnt1_i32_{_bits}")(_with_condition(population))
    salu(f"u32 scc = {_kind}", f"s_bcnt0_i32_{_bits}")(_with_condition(lambda a: population(~a)))
    salu(f"i32 = {_kind}", f"s_ff1_i32_{_bits}")(find_low)
    salu(f"i32 = {_kind}", f"s_ff0_i32_{_bits}")(lambda a: find_low(~a))
    salu(f"i32 = {_kind}", f"s_flbit_i32_{_bits}")(find_high)
salu("i32 = i32", "s_flbit_i32")(lambda a: find_high(np.where(a < 0, ~a, a).view(np.uint32)))
salu("i32 = i64", "s_flbit_i32_i64")(lambda a: find_high(np.where(a < 0, ~a, a).view(np.uint64)))


def _whole_quads(a: Array) -> Array:
    """Every group of four bits becomes all ones where any of them is set."""
    raw = np.unpackbits(np.ascontiguousarray(a)[..., None].view(np.uint8), axis=-1, bitorder="little")
    quads = np.repeat(raw.reshape(*raw.shape[:-1], -1, 4).any(axis=-1, keepdims=True), 4, axis=-1).reshape(raw.shape)
    return np.packbits(quads, axis=-1, bitorder="little").view(a.dtype)[..., 0]


for _kind, _bits in (("u32", "b32"), ("u64", "b64")):
    salu(f"{_kind} scc = {_kind}", f"s_wqm_{_bits}")(_with_condition(_whole_quads))


def _quad_mask(a: Array) -> Array:
    """One bit per group of four: whether any of them is set."""
    raw = np.unpackbits(np.ascontiguousarray(a)[..., None].view(np.uint8), axis=-1, bitorder="little")
    packed = np.packbits(raw.reshape(*raw.shape[:-1], -1, 4).any(axis=-1), axis=-1, bitorder="little")
    return sum((packed[..., i].astype(a.dtype) << a.dtype.type(8 * i) for i in range(packed.shape[-1])), a * 0)


def _replicate(a: Array) -> Array:
    """Every bit twice."""
    raw = np.unpackbits(np.ascontiguousarray(a)[..., None].view(np.uint8), axis=-1, bitorder="little")
    doubled: Array = np.packbits(np.repeat(raw, 2, axis=-1), axis=-1, bitorder="little").view(np.uint64)[..., 0]
    return doubled


salu("u32 scc = u32", "s_quadmask_b32")(_with_condition(_quad_mask))
salu("u64 scc = u64", "s_quadmask_b64")(_with_condition(_quad_mask))
salu("u64 = u32", "s_bitreplicate_b64_b32")(_replicate)

# shifts and bit fields


def _shift(function: Callable[[Array, Array], Array], mask: int) -> Callable[[Array, Array], tuple[Array, Array]]:
    return _with_condition(lambda a, n: function(a, (n & np.uint32(mask)).astype(a.dtype)))


salu("u32 scc = u32 u32", "s_lshl_b32")(_shift(np.left_shift, 31))
salu("u32 scc = u32 u32", "s_lshr_b32")(_shift(np.right_shift, 31))
salu("i32 scc = i32 u32", "s_ashr_i32")(_shift(np.right_shift, 31))
salu("u64 scc = u64 u32", "s_lshl_b64")(_shift(np.left_shift, 63))
salu("u64 scc = u64 u32", "s_lshr_b64")(_shift(np.right_shift, 63))
salu("i64 scc = i64 u32", "s_ashr_i64")(_shift(np.right_shift, 63))
salu("i32 = u32", "s_sext_i32_i8")(lambda a: a.astype(np.int8))
salu("i32 = u32", "s_sext_i32_i16")(lambda a: a.astype(np.int16))


def _field(kind: Any) -> Callable[[Array, Array], Array]:
    bits = np.dtype(kind).itemsize * 8

    def run(a: Array, control: Array) -> Array:
        offset = control & np.uint32(bits - 1)
        width = np.minimum(control >> np.uint32(16) & np.uint32(0x7F), np.uint32(bits))
        left = bits - np.minimum(width + offset, np.uint32(bits))
        up = (a << left.astype(a.dtype)).astype(kind)
        field = (
            up >> (left + offset).astype(kind) if bits == 64 else up >> (left + offset).clip(0, bits - 1).astype(kind)
        )
        result: Array = np.where(width == 0, kind(0), field)
        return result

    return run


salu("u32 scc = u32 u32", "s_bfe_u32")(_with_condition(_field(np.uint32)))
salu("i32 scc = i32 u32", "s_bfe_i32")(_with_condition(_field(np.int32)))
salu("u64 scc = u64 u32", "s_bfe_u64")(_with_condition(_field(np.uint64)))
salu("i64 scc = i64 u32", "s_bfe_i64")(_with_condition(_field(np.int64)))


def _mask(kind: Any) -> Callable[[Array, Array], Array]:
    bits = np.dtype(kind).itemsize * 8 - 1

    def run(width: Array, offset: Array) -> Array:
        one = kind(1)
        result: Array = ((one << (width & np.uint32(bits)).astype(kind)) - one) << (offset & np.uint32(bits)).astype(
            kind
        )
        return result

    return run


salu("u32 = u32 u32", "s_bfm_b32")(_mask(np.uint32))
salu("u64 = u32 u32", "s_bfm_b64")(_mask(np.uint64))
salu("u32 = dst u32", "s_bitset0_b32")(lambda d, n: d & ~(np.uint32(1) << (n & np.uint32(31))))
salu("u32 = dst u32", "s_bitset1_b32")(lambda d, n: d | np.uint32(1) << (n & np.uint32(31)))
salu("u64 = dst u32", "s_bitset0_b64")(lambda d, n: d & ~(np.uint64(1) << (n & np.uint32(63)).astype(np.uint64)))
salu("u64 = dst u32", "s_bitset1_b64")(lambda d, n: d | np.uint64(1) << (n & np.uint32(63)).astype(np.uint64))
_LOW, _HIGH = np.uint32(0xFFFF), np.uint32(16)
salu("u32 = u32 u32", "s_pack_ll_b32_b16")(lambda a, b: a & _LOW | b << _HIGH)
salu("u32 = u32 u32", "s_pack_lh_b32_b16")(lambda a, b: a & _LOW | b & ~_LOW)
salu("u32 = u32 u32", "s_pack_hh_b32_b16")(lambda a, b: a >> _HIGH | b & ~_LOW)

# comparisons

_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "lg": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
}  # fmt: skip
for _name, _compare in _COMPARE.items():
    salu("scc = i32 i32", f"s_cmp_{_name}_i32")(_compare)
    salu("scc = u32 u32", f"s_cmp_{_name}_u32")(_compare)
    # the first operand is a source here, not a result
    salu("scc = i32 k", f"s_cmpk_{_name}_i32")(_compare)
    salu("scc = u32 ku", f"s_cmpk_{_name}_u32")(_compare)
salu("scc = u64 u64", "s_cmp_eq_u64")(np.equal)
salu("scc = u64 u64", "s_cmp_lg_u64")(np.not_equal)
salu("scc = u32 u32", "s_bitcmp0_b32")(lambda a, n: a >> (n & np.uint32(31)) & np.uint32(1) == 0)
salu("scc = u32 u32", "s_bitcmp1_b32")(lambda a, n: a >> (n & np.uint32(31)) & np.uint32(1) == 1)
salu("scc = u64 u32", "s_bitcmp0_b64")(lambda a, n: a >> (n & np.uint32(63)).astype(np.uint64) & np.uint64(1) == 0)
salu("scc = u64 u32", "s_bitcmp1_b64")(lambda a, n: a >> (n & np.uint32(63)).astype(np.uint64) & np.uint64(1) == 1)
