"""Instructions for pixels: sums of absolute differences, averages of bytes, cube maps, saturating packs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hkc.emulate.decode import Decoded
from hkc.emulate.operands import Array, join, word_reader
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.semantics.convert import normalised, to_byte
from hkc.emulate.vector import valu
from hkc.emulate.waves import Waves

_BYTES = np.arange(0, 32, 8, dtype=np.uint32)
_BYTE, _HALF = np.uint32(255), np.uint32(0xFFFF)


def _distance(a: Array, b: Array) -> Array:
    return np.where(a > b, a - b, b - a)


def _sad(a: Array, b: Array, masked: bool = False) -> Array:
    """The sum over bytes of |a - b|; `masked` leaves out bytes where b is 0."""
    total: Array = np.zeros((), np.uint32)
    for shift in _BYTES:
        x, y = a >> shift & _BYTE, b >> shift & _BYTE
        difference = _distance(x, y)
        total = total + (np.where(y == 0, np.uint32(0), difference) if masked else difference)
    return total


def _sad16(a: Array, b: Array) -> Array:
    result: Array = _distance(a & _HALF, b & _HALF) + _distance(a >> np.uint32(16), b >> np.uint32(16))
    return result


valu("u32 = u32 u32 u32", "v_sad_u32")(lambda a, b, c: _distance(a, b) + c)
valu("u32 = u32 u32 u32", "v_sad_u16")(lambda a, b, c: _sad16(a, b) + c)
valu("u32 = u32 u32 u32", "v_sad_u8")(lambda a, b, c: _sad(a, b) + c)
valu("u32 = u32 u32 u32", "v_sad_hi_u8")(lambda a, b, c: (_sad(a, b) << np.uint32(16)) + c)
valu("u32 = u32 u32 u32", "v_msad_u8")(lambda a, b, c: _sad(a, b, masked=True) + c)


@valu("u32 = u32 u32 u32", "v_lerp_u8")
def _(a: Array, b: Array, c: Array) -> Array:
    """The average of each byte, rounded up where the lowest bit of c's byte is set."""
    total: Array = np.zeros((), np.uint32)
    for shift in _BYTES:
        average = (a >> shift & _BYTE) + (b >> shift & _BYTE) + (c >> shift & np.uint32(1)) >> np.uint32(1)
        total = total | average << shift
    return total


@op("v_qsad_pk_u16_u8", "v_mqsad_pk_u16_u8", "v_mqsad_u32_u8")
def _(instruction: Decoded, context: Context) -> Step:
    """Four sums of absolute differences: at each byte offset of the first source, 64 bits wide."""
    target, first, second, third = instruction.operands
    low, high = (word_reader(first, instruction, context, i, 64) for i in (0, 1))
    other = word_reader(second, instruction, context)
    addends = [word_reader(third, instruction, context, i, 64) for i in range(target.count)]
    register, masked, packed = context.vector(target), "mqsad" in instruction.base, target.count == 2

    def step(w: Waves) -> None:
        wide, b = join(low(w), high(w)), other(w)
        sums = [_sad((wide >> np.uint64(8 * i)).astype(np.uint32), b, masked) for i in range(4)]
        old = [read(w) for read in addends]
        if packed:
            sixteen = np.uint32(16)
            halves = [sums[i] + (old[i // 2] >> sixteen * np.uint32(i % 2)) & _HALF for i in range(4)]
            results = [halves[0] | halves[1] << sixteen, halves[2] | halves[3] << sixteen]
        else:
            results = [sums[i] + old[i] for i in range(4)]
        taint = w.taint
        for i, value in enumerate(results):
            w.taint = taint
            w.write(register + i, value)

    return step


# cube maps: the largest coordinate decides on the face; z wins ties, then y

Cube = Callable[[Array, Array, Array], Array]


def _by_axis(z_face: Cube, y_face: Cube, x_face: Cube) -> Cube:
    def run(x: Array, y: Array, z: Array) -> Array:
        ax, ay, az = np.abs(x), np.abs(y), np.abs(z)
        chosen = np.where(ay >= ax, y_face(x, y, z), x_face(x, y, z))
        return np.where((az >= ax) & (az >= ay), z_face(x, y, z), chosen).astype(np.float32)

    return run


def _flipped(flip: Array, value: Array) -> Array:
    return np.where(flip, -value, value)


valu("f32 = f32 f32 f32", "v_cubeid_f32")(
    _by_axis(
        lambda x, y, z: np.where(z < 0, 5.0, 4.0),
        lambda x, y, z: np.where(y < 0, 3.0, 2.0),
        lambda x, y, z: np.where(x < 0, 1.0, 0.0),
    )
)
valu("f32 = f32 f32 f32", "v_cubesc_f32")(
    _by_axis(lambda x, y, z: _flipped(z < 0, x), lambda x, y, z: x, lambda x, y, z: _flipped(~(x < 0), z))
)
valu("f32 = f32 f32 f32", "v_cubetc_f32")(
    _by_axis(lambda x, y, z: -y, lambda x, y, z: _flipped(y < 0, z), lambda x, y, z: -y)
)
valu("f32 = f32 f32 f32", "v_cubema_f32")(_by_axis(lambda x, y, z: z * 2, lambda x, y, z: y * 2, lambda x, y, z: x * 2))

# saturating packs


@valu("u16 = u32", "v_sat_pk_u8_i16")
def _(a: Array) -> Array:
    """Two i16 as two u8."""
    halves = [np.clip((a >> np.uint32(s)).astype(np.uint16).view(np.int16), 0, 255) for s in (0, 16)]
    return (halves[0] | halves[1] << 8).astype(np.uint16)


@valu("u32 = f32 u32 dst", "v_cvt_pkaccum_u8_f32")
def _(a: Array, byte: Array, old: Array) -> Array:
    return to_byte(a, byte, old)


valu("i16 = f16", "v_cvt_norm_i16_f16")(lambda a: normalised(a, 0x7FFF, np.int16))
valu("u16 = f16", "v_cvt_norm_u16_f16")(lambda a: normalised(a, 0xFFFF, np.uint16).view(np.uint16))
