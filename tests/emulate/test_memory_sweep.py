"""Every load, store and atomic of every address space, lane by lane against plain Python on bytes and integers."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulated import CHIPS, Wave

from examples import examples, varied
from hkc.emulate.decode import Decoded, decode
from hkc.support.errors import HkcError

SIZE, STEP = 64 * 32, 32
RNG = np.random.default_rng(12)
START = RNG.integers(0, 256, SIZE + 64, np.uint8)
"""What memory holds at first: 32 bytes for each lane."""
DATA = RNG.integers(0, 1 << 32, (4, 64))
OLD = 0x7FC0DEAD

LOADS: dict[str, tuple[int, bool, str]] = {
    "ubyte": (1, False, ""), "sbyte": (1, True, ""), "ushort": (2, False, ""), "sshort": (2, True, ""),
    "u8": (1, False, ""), "i8": (1, True, ""), "u16": (2, False, ""), "i16": (2, True, ""), "short": (2, False, ""),
    "dword": (4, False, ""), "dwordx2": (8, False, ""), "dwordx3": (12, False, ""), "dwordx4": (16, False, ""),
    "b32": (4, False, ""), "b64": (8, False, ""), "b96": (12, False, ""), "b128": (16, False, ""),
}  # fmt: skip
STORES = {"byte": 1, "short": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16,
          "b8": 1, "b16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}  # fmt: skip


def signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> bits - 1 else x


def through(kind: Any, rule: Callable[[Any, Any], Any]) -> Callable[[int, int], int]:
    raw = {2: np.uint16, 4: np.uint32, 8: np.uint64}[np.dtype(kind).itemsize]

    def run(old: int, given: int) -> int:
        a, b = (np.array(x, raw).view(kind)[()] for x in (old, given))
        return int(np.array(rule(a, b), kind).view(raw))

    return run


def halves(rule: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda old, given: rule(old & 0xFFFF, given & 0xFFFF) | rule(old >> 16, given >> 16) << 16


def bf16_sum(a: int, b: int) -> int:
    total = np.array([a << 16, b << 16], np.uint32).view(np.float32).astype(np.float64).sum()
    whole = int(np.array(total, np.float32).view(np.uint32))
    return (whole + 0x7FFF + (whole >> 16 & 1)) >> 16


RULES: dict[str, Callable[[int, int, int], int]] = {
    "swap": lambda old, new, bits: new, "wrxchg": lambda old, new, bits: new,
    "add": lambda old, new, bits: old + new, "sub": lambda old, new, bits: old - new,
    "rsub": lambda old, new, bits: new - old, "and": lambda old, new, bits: old & new,
    "or": lambda old, new, bits: old | new, "xor": lambda old, new, bits: old ^ new,
    "inc": lambda old, new, bits: 0 if old >= new else old + 1,
    "dec": lambda old, new, bits: new if old == 0 or old > new else old - 1,
    "umin": lambda old, new, bits: min(old, new), "umax": lambda old, new, bits: max(old, new),
    "smin": lambda old, new, bits: min(old, new, key=lambda x: signed(x, bits)),
    "smax": lambda old, new, bits: max(old, new, key=lambda x: signed(x, bits)),
}  # fmt: skip
FLOATS: dict[str, Callable[[int, int], int]] = {
    "add_f32": through(np.float32, lambda a, b: a + b), "add_f64": through(np.float64, lambda a, b: a + b),
    "min_f32": through(np.float32, min), "max_f32": through(np.float32, max),
    "min_f64": through(np.float64, min), "max_f64": through(np.float64, max),
    "pk_add_f16": halves(through(np.float16, lambda a, b: a + b)), "pk_add_bf16": halves(bf16_sum),
}  # fmt: skip


def numbers(name: str, count: int) -> list[int]:
    """Operands of float atomics: ordinary numbers, as bits."""
    values = RNG.standard_normal((count, 2)) * 8
    if name.endswith("f64"):
        return [int(x) for x in values[:, 0].view(np.uint64)]
    if "pk" not in name:
        return [int(x) for x in values[:, 0].astype(np.float32).view(np.uint32)]
    if name.endswith("bf16"):
        low, high = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.int64).T
    else:
        low, high = values.astype(np.float16).view(np.uint16).astype(np.int64).T
    return [int(a | b << 16) for a, b in zip(low, high, strict=True)]


class Place:
    """A wave with 64 x 32 bytes of one address space, and registers that lead there."""

    def __init__(self, arch: str, space: str, start: np.ndarray) -> None:
        self.space = space
        self.wave = Wave(arch, lds=SIZE + 64, scratch=STEP)
        self.address = 0
        lane = np.arange(64)
        if space == "ds":
            self.wave.state.lds.fill(0, start)
            self.wave.vector(2, STEP * lane)
        elif space == "scratch":
            self.wave.state.scratch.fill(0, start[:SIZE])
        else:
            self.address = self.wave.memory.allocate(len(start), "memory")
            self.wave.memory.write(self.address, start)
            whole = self.address + STEP * lane
            self.wave.vector(4, STEP * lane if space == "buffer" else whole & 0xFFFFFFFF)
            if space != "buffer":
                self.wave.vector(5, whole >> 32)
            for i, word in enumerate((self.address & 0xFFFFFFFF, self.address >> 32, len(start), 0x27000)):
                self.wave.scalar(8 + i, word)

    def content(self) -> bytes:
        if self.space == "ds":
            return self.wave.state.lds.data[:SIZE].tobytes()
        if self.space == "scratch":
            return self.wave.state.scratch.data[:SIZE].tobytes()
        return self.wave.memory.read(self.address, SIZE)

    def at(self, lane: int, size: int) -> int:
        return int.from_bytes(self.content()[STEP * lane : STEP * lane + size], "little")


def words(wave: Wave, register: int, count: int, lane: int) -> int:
    return sum(int(wave.v(register + i)[lane]) << 32 * i for i in range(count))


def name_parts(name: str) -> tuple[str, str, str]:
    """(space, load/store/atomic, suffix)"""
    if name.startswith("ds_"):
        kind = {"read": "load", "write": "store"}.get(name.split("_")[1], "atomic")
        return "ds", kind, name.split("_", 2 if kind != "atomic" else 1)[-1]
    space, kind, suffix = name.split("_", 2)
    return space, kind, suffix


def select(pattern: str) -> list[str]:
    every = {name for arch in CHIPS for name in examples(arch)}
    return sorted(name for name in every if re.fullmatch(pattern, name))


SPACES = "(buffer|flat|global|scratch)"
SWEPT_LOADS = select(
    f"{SPACES}_load_(ubyte|sbyte|ushort|sshort|short|dword)(x.)?(_d16|_d16_hi)?|ds_read_[uib]\\d+(_d16(_hi)?)?"
)
SWEPT_STORES = select(f"{SPACES}_store_(byte|short|dword)(x.)?(_d16_hi)?|ds_write_b\\d+(_d16_hi)?")
SWEPT_ATOMICS = select(
    f"{SPACES}_atomic_.*|ds_(add|sub|rsub|inc|dec|min|max|and|or|xor|wrxchg|cmpst|pk_add)(_rtn)?_"
    "([uib]\\d+|f16|bf16|f32|f64)"
)
SWEPT_ATOMICS = [name for name in SWEPT_ATOMICS if not re.search("cmpst.*f", name)]


def registers(instruction: Decoded) -> list[int]:
    return [o.index for o in instruction.operands if o.kind == "vgpr"]


def known(arch: str, name: str) -> Decoded:
    if name not in examples(arch):
        pytest.skip("not on this chip")
    return examples(arch)[name]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", SWEPT_LOADS)
def test_loads(arch: str, name: str) -> None:
    instruction = known(arch, name)
    space, _, suffix = name_parts(name)
    base, _, half = suffix.partition("_d16")
    size, extended, _ = LOADS[base]
    place = Place(arch, space, START)
    place.wave.step(instruction)
    target = registers(instruction)[0]
    for lane in range(64):
        value = int.from_bytes(START[STEP * lane : STEP * lane + size].tobytes(), "little")
        if extended:
            value = signed(value, 8 * size) & 0xFFFFFFFF
        if "_d16" in suffix:
            value = (value & 0xFFFF) << 16 | OLD & 0xFFFF if half else value & 0xFFFF | OLD & 0xFFFF0000
        assert words(place.wave, target, max(1, size // 4), lane) == value


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", SWEPT_STORES)
def test_stores(arch: str, name: str) -> None:
    instruction = known(arch, name)
    space, _, suffix = name_parts(name)
    base, high, _ = suffix.partition("_d16_hi")
    size = STORES[base]
    place = Place(arch, space, START)
    source = registers(instruction)[0 if space == "buffer" else -1]
    for i in range(max(1, size // 4)):
        place.wave.vector(source + i, DATA[i])
    place.wave.step(instruction)
    wanted = bytearray(START[:SIZE].tobytes())
    for lane in range(64):
        value = sum(int(DATA[i][lane]) << 32 * i for i in range(4)) >> (16 if high else 0)
        wanted[STEP * lane : STEP * lane + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    assert place.content() == bytes(wanted)


def rule_of(space: str, suffix: str) -> tuple[str, int, Callable[[int, int], int]]:
    """(name, bits, function) of an atomic."""
    if space == "ds":
        plain = suffix.replace("_rtn", "")
        if plain in FLOATS:
            return plain, 64 if plain.endswith("f64") else 32, FLOATS[plain]
        name, _, kind = plain.rpartition("_")
        name = {"min_i": "smin", "max_i": "smax", "min_u": "umin", "max_u": "umax"}.get(f"{name}_{kind[0]}", name)
        bits = int(kind[1:])
    elif suffix in FLOATS:
        return suffix, 64 if suffix.endswith("f64") else 32, FLOATS[suffix]
    else:
        name, bits = suffix.removesuffix("_x2"), 64 if suffix.endswith("_x2") else 32
    if name in ("cmpswap", "cmpst"):
        return name, bits, lambda old, given: old
    return name, bits, lambda old, given: RULES[name](old, given, bits)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", SWEPT_ATOMICS)
@pytest.mark.parametrize("returned", (False, True))
def test_atomics(arch: str, name: str, returned: bool) -> None:
    instruction = known(arch, name)
    space, _, suffix = name_parts(name)
    operation, bits, rule = rule_of(space, suffix)
    size, count = bits // 8, bits // 32
    given, old = operands_of(operation, suffix.replace("_rtn", "") in FLOATS, bits)
    start = START.copy()
    for lane, value in enumerate(old):
        start[STEP * lane : STEP * lane + size] = np.frombuffer(value.to_bytes(size, "little"), np.uint8)
    place = Place(arch, space, start)
    if space == "ds" and returned != ("_rtn" in name):
        pytest.skip("another mnemonic")
    instruction, target, source = form_of(instruction, space, returned)
    new = [int(x) for x in RNG.integers(0, 1 << 32, 64)]
    fill(place.wave, space, operation, source, count, given, new)
    place.wave.step(instruction)
    for lane in range(64):
        wanted = rule(old[lane], given[lane]) & (1 << bits) - 1
        if operation in ("cmpswap", "cmpst") and old[lane] == given[lane]:
            wanted = new[lane]
        assert place.at(lane, size) == wanted, lane
        if returned:
            assert words(place.wave, target, count, lane) == old[lane]


def operands_of(operation: str, floating: bool, bits: int) -> tuple[list[int], list[int]]:
    """(given, old) of each lane; where it matters, every other pair is equal."""
    if floating:
        return numbers(operation, 64), numbers(operation, 64)
    given = [sum(int(DATA[i][n]) << 32 * i for i in range(bits // 32)) for n in range(64)]
    old = [int.from_bytes(START[STEP * n :][: bits // 8].tobytes(), "little") for n in range(64)]
    if operation in ("inc", "dec", "cmpswap", "cmpst"):
        old[::2] = given[::2]
    return given, old


def form_of(instruction: Decoded, space: str, returned: bool) -> tuple[Decoded, int, int]:
    """The form with or without a result, the result's register and the first data register."""
    if space == "buffer":
        chosen = varied(instruction, "sc0") if returned else instruction
        return chosen, registers(chosen)[0], registers(chosen)[0]
    if space == "ds":
        return instruction, registers(instruction)[0], registers(instruction)[2 if returned else 1]
    chosen = instruction if returned else without_result(instruction)
    return chosen, registers(chosen)[0], registers(chosen)[-1]


def without_result(instruction: Decoded) -> Decoded:
    """The form without a result: no first operand, no sc0."""
    mnemonic, _, rest = instruction.text.partition(" ")
    return decode(0x100, instruction.encoding, f"{mnemonic} {rest.partition(', ')[2].replace(' sc0', '')}")


def fill(wave: Wave, space: str, operation: str, source: int, count: int, given: list[int], new: list[int]) -> None:
    """Data registers: compare and new value in the order of the address space, or the operand."""
    parts = {"cmpswap": [new, given], "cmpst": [given, new]}.get(operation, [given])
    step = 2 if space == "ds" else count
    for n, values in enumerate(parts):
        for i in range(count):
            wave.vector(source + n * step + i, np.array([v >> 32 * i & 0xFFFFFFFF for v in values], np.int64))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", select("ds_(read|write)2(st64)?_b(32|64)"))
def test_pairs(arch: str, name: str) -> None:
    instruction = varied(known(arch, name), "offset0:1 offset1:3")
    unit = int(name[-2:]) // 8
    far, step = (64 * unit, unit) if "st64" in name else (unit, 4 * unit)
    wave = Wave(arch, lds=SIZE + 64)
    wave.state.lds.fill(0, START)
    wave.vector(2, step * np.arange(64))
    first = registers(instruction)
    for i in range(4):
        wave.vector(4 + i, DATA[i])
    wave.step(instruction)
    for lane in range(64):
        for n, offset in enumerate((far, 3 * far)):
            at = step * lane + offset
            if "read" in name:
                wanted = int.from_bytes(START[at : at + unit].tobytes(), "little")
                assert words(wave, first[0] + n * unit // 4, unit // 4, lane) == wanted
            else:
                wanted = sum(int(DATA[first[1 + n] - 4 + i][lane]) << 32 * i for i in range(unit // 4))
                assert int.from_bytes(wave.state.lds.data[at : at + unit].tobytes(), "little") == wanted


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", select("global_load_lds_.*"))
def test_direct_to_lds(arch: str, name: str) -> None:
    instruction = known(arch, name)
    size, extended, _ = LOADS[name.split("_")[-1]]
    place = Place(arch, "global", START)
    place.wave.scalar(124, 64)
    place.wave.step(instruction)
    width = max(size, 4)
    for lane in range(64):
        value = int.from_bytes(START[STEP * lane : STEP * lane + size].tobytes(), "little")
        value = signed(value, 8 * size) & 0xFFFFFFFF if extended else value
        at = 64 + lane * width
        assert int.from_bytes(place.wave.state.lds.data[at : at + width].tobytes(), "little") == value


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("code", (0, 1, 2, 3))
def test_swizzled_buffers(arch: str, code: int) -> None:
    """Records of 16 bytes, 8 << code of them interleaved by dwords; the index is the lane."""
    wave = Wave(arch)
    base = wave.memory.allocate(4096, "memory")
    content = np.arange(1024, dtype=np.uint32)
    wave.memory.write(base, content)
    wave.scalar(8, base & 0xFFFFFFFF)
    wave.scalar(9, base >> 32 | 16 << 16 | 1 << 31)
    wave.scalar(10, 50)
    wave.scalar(11, 0x27000 | code << 21)
    wave.vector(4, np.arange(64))
    wave.vector(5, np.full(64, 4))
    wave.run("buffer_load_dword v20, v[4:5], s[8:11], 0 idxen offen offset:4",
             "buffer_load_dword v21, v4, s[8:11], 0 idxen offset:16")  # fmt: skip
    count = 8 << code
    for lane in range(64):
        place = (lane // count * 16 + 8) * count + lane % count * 4
        assert wave.v(20)[lane] == (content[place // 4] if lane < 50 else 0)
    assert not wave.v(21).any()
    with pytest.raises(HkcError, match=r"HK702.*swizzled"):
        wave.run("buffer_load_dwordx2 v[20:21], v4, s[8:11], 0 idxen")


@pytest.mark.parametrize("arch", CHIPS)
def test_buffers_that_add_the_lane(arch: str) -> None:
    """The lane's number is added to the index; the stride has four more bits, in place of the data format."""
    wave = Wave(arch)
    base = wave.memory.allocate(1 << 21, "memory")
    content = np.arange(1 << 19, dtype=np.uint32)
    wave.memory.write(base, content)
    for i, word in enumerate((base & 0xFFFFFFFF, base >> 32 | 8 << 16, 64, 0x7000 | 1 << 15 | 1 << 23)):
        wave.scalar(8 + i, word)
    wave.run("buffer_load_dword v20, off, s[8:11], 0 offset:4")
    stride = 8 | 1 << 14
    assert wave.v(20).tolist() == [content[(lane * stride + 4) // 4] for lane in range(64)]
