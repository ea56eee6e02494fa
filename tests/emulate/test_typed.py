"""Typed buffers: every instruction, every format; values by hand from the definitions of the formats."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from emulated import CHIPS, Wave

from examples import examples
from hkc.support.errors import HkcError

F = np.float32
DATA = ("INVALID 8 16 8_8 32 16_16 10_11_11 11_11_10 10_10_10_2 2_10_10_10 8_8_8_8 32_32 16_16_16_16 32_32_32 "
        "32_32_32_32").split()  # fmt: skip
NUMBERS = ["UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "", "FLOAT"]


def word(value: int) -> str:
    return value.to_bytes(4, "little").hex()


LOADS: dict[tuple[str, str, str], list[Any]] = {
    ("8", "UNORM", "ff"): [F(1), F(0), F(0), F(1)],
    ("8", "UNORM", "33"): [F(0.2), F(0), F(0), F(1)],
    ("8", "SNORM", "80"): [F(-1), F(0), F(0), F(1)],
    ("8_8", "SNORM", "81c0"): [F(-1), F(-64 / 127), F(0), F(1)],
    ("8", "USCALED", "c8"): [F(200), F(0), F(0), F(1)],
    ("8", "SSCALED", "c8"): [F(-56), F(0), F(0), F(1)],
    ("8", "UINT", "c8"): [200, 0, 0, 1],
    ("8", "SINT", "c8"): [-56, 0, 0, 1],
    ("16", "UNORM", "0180"): [F(32769 / 65535), F(0), F(0), F(1)],
    ("16", "FLOAT", "003c"): [F(1), F(0), F(0), F(1)],
    ("16_16", "FLOAT", "00c00100"): [F(-2), F(2.0**-24), F(0), F(1)],
    ("16_16", "SSCALED", "ffff0080"): [F(-1), F(-32768), F(0), F(1)],
    # from the lowest bit: 1.0 = 0x3c0, 1.5 = 0x3e0 of 11 bits, 2.0 = 0x200 of 10 bits
    ("10_11_11", "FLOAT", word(0x3C0 | 0x3E0 << 11 | 0x200 << 22)): [F(1), F(1.5), F(2), F(1)],
    ("11_11_10", "FLOAT", word(0x1E0 | 0x400 << 10 | 0x7C0 << 21)): [
        F(1),
        F(2),
        F("inf"),
        F(1),
    ],
    ("10_10_10_2", "UNORM", word(2 | 1023 << 2 | 341 << 22)): [F(2 / 3), F(1), F(0), F(1 / 3)],
    ("2_10_10_10", "UINT", word(1 | 2 << 10 | 1023 << 20 | 3 << 30)): [1, 2, 1023, 3],
    ("2_10_10_10", "SNORM", word(0x201 | 511 << 10 | 2 << 30)): [F(-1), F(1), F(0), F(-1)],
    ("8_8_8_8", "UNORM", "0080ff33"): [F(0), F(128 / 255), F(1), F(0.2)],
    ("32", "FLOAT", "0100807f"): [0x7F800001, F(0), F(0), F(1)],
    ("32", "SINT", "feffffff"): [-2, 0, 0, 1],
    ("32_32", "UINT", "ffffffff01000000"): [0xFFFFFFFF, 1, 0, 1],
    ("16_16_16_16", "SINT", "ffff010000800000"): [-1, 1, -32768, 0],
    ("32_32_32", "FLOAT", "0000803f0000004000004040"): [F(1), F(2), F(3), F(1)],
    ("32_32_32_32", "UINT", "01000000020000000300000004000000"): [1, 2, 3, 4],
}
STORES: dict[tuple[str, str, str], list[Any]] = {
    ("8", "UNORM", "80"): [F(0.5)],
    ("8_8_8_8", "UNORM", "ff000033"): [F(7), F(-1), F("nan"), F(0.2)],
    ("8_8", "SNORM", "81c0"): [F(-9), F(-0.5001)],
    ("16_16", "SSCALED", "fdff0080"): [F(-3.9), F(-1e9)],
    ("16", "USCALED", "ffff"): [F(1e9)],
    ("8_8", "SINT", "80ff"): [-128, -1],
    ("16", "FLOAT", "0158"): [F(128.1)],
    ("10_11_11", "FLOAT", word(0x3C0 | 0x3E0 << 11 | 0x200 << 22)): [F(1), F(1.5), F(2)],
    ("11_11_10", "FLOAT", word(0 | 0x7C0 << 10 | 0x3F << 21)): [
        F(-2),
        F("inf"),
        F(63 * 2.0**-20),
    ],
    ("10_10_10_2", "UNORM", word(2 | 1023 << 2 | 341 << 22)): [F(2 / 3), F(1), F(0), F(1 / 3)],
    ("2_10_10_10", "UINT", word(1 | 2 << 10 | 1023 << 20 | 3 << 30)): [1, 2, 1023, 3],
    ("32", "FLOAT", "0100807f"): [0x7F800001],
    ("32_32", "UINT", "ffffffff01000000"): [0xFFFFFFFF, 1],
    ("16_16_16_16", "SINT", "ffff010000800000"): [-1, 1, -32768, 0],
    ("32_32_32_32", "FLOAT", "0000803f00000040000040400000c0ff"): [F(1), F(2), F(3), 0xFFC00000],
}


def bits(value: Any) -> int:
    return int(value.view(np.uint32)) if isinstance(value, np.float32) else int(value) & 0xFFFFFFFF


def prepared(arch: str, data: str, numbers: str, content: bytes, select: int = 0o7654, records: int = 1 << 12) -> Wave:
    """A buffer in s[8:11] of which lane 0 alone uses byte 32 on."""
    wave = Wave(arch)
    memory = wave.memory.allocate(64)
    wave.memory.write(memory, bytes(32) + content.ljust(32, b"\xee"))
    wave.pair(8, memory)
    wave.scalar(10, records)
    wave.scalar(11, select | NUMBERS.index(numbers) << 12 | DATA.index(data) << 15)
    wave.vector(4, np.full(64, 32))
    for register in range(20, 24):
        wave.vector(register, np.full(64, 0xAAAA5555))
    wave.active(1)
    return wave


def content(wave: Wave, count: int) -> bytes:
    return wave.memory.read(wave.s(8) | wave.s(9) << 32, 64)[32 : 32 + count]


def instruction(what: str, count: int, data: str, numbers: str, typed: bool, first: int = 20, short: str = "") -> str:
    registers = -(-count // 2) if short else count
    last = f"v[{first}:{first + registers - 1}]" if registers > 1 else f"v{first}"
    name, form = (f"t{what}", f"format:[BUF_DATA_FORMAT_{data},BUF_NUM_FORMAT_{numbers}] ") if typed else (what, "")
    return f"{name}_format_{short}{'xyzw'[:count]} {last}, v4, s[8:11], 0 {form}offen"


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("typed", (False, True), ids=["descriptor", "instruction"])
def test_loads(arch: str, typed: bool) -> None:
    for (data, numbers, memory), expected in LOADS.items():
        wave = prepared(arch, *((data, numbers) if not typed else ("32", "UINT")), bytes.fromhex(memory))
        wave.run(instruction("buffer_load", 4, data, numbers, typed), "s_endpgm")
        assert [int(wave.v(20 + i)[0]) for i in range(4)] == [bits(e) for e in expected], (data, numbers, memory)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("typed", (False, True), ids=["descriptor", "instruction"])
def test_stores(arch: str, typed: bool) -> None:
    for (data, numbers, memory), given in STORES.items():
        wave = prepared(arch, *((data, numbers) if not typed else ("32", "UINT")), b"")
        for i, value in enumerate(given):
            wave.vector(20 + i, np.full(64, bits(value)))
        wave.run(instruction("buffer_store", len(given), data, numbers, typed), "s_endpgm")
        stored = bytes.fromhex(memory)
        assert content(wave, len(stored) + 1) == stored + b"\xee", (data, numbers, memory)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("typed", (False, True), ids=["descriptor", "instruction"])
def test_every_number_of_components(arch: str, typed: bool) -> None:
    """Of 16_16_16_16; halves of registers that nobody names stay, and so do components that aren't stored."""
    memory = bytes.fromhex("003c0040004200c4")
    whole, halves = [bits(F(x)) for x in (1, 2, 3, -4)], [0x3C00, 0x4000, 0x4200, 0xC400]
    for count in (1, 2, 3, 4):
        loads = [instruction("buffer_load", count, "16_16_16_16", "FLOAT", typed),
                 instruction("buffer_load", count, "16_16_16_16", "FLOAT", typed, 30, "d16_")]  # fmt: skip
        wave = prepared(arch, "16_16_16_16", "FLOAT", memory)
        for register in (30, 31):
            wave.vector(register, np.full(64, 0xAAAA5555))
        wave.run(*loads, "s_endpgm")
        assert [int(wave.v(20 + i)[0]) for i in range(4)] == whole[:count] + [0xAAAA5555] * (4 - count)
        kept = [0x5555, 0xAAAA, 0x5555, 0xAAAA]
        found = [int(wave.v(30 + i // 2)[0]) >> 16 * (i % 2) & 0xFFFF for i in range(4)]
        assert found == halves[:count] + kept[count:]
        for short, first in (("", 20), ("d16_", 30)):
            wave.memory.write(wave.s(8) | wave.s(9) << 32, bytes(32) + b"\xee" * 32)
            wave.run(instruction("buffer_store", count, "16_16_16_16", "FLOAT", typed, first, short), "s_endpgm")
            assert content(wave, 8) == memory[: 2 * count] + b"\xee" * (8 - 2 * count)


@pytest.mark.parametrize("arch", CHIPS)
def test_the_upper_half(arch: str) -> None:
    wave = prepared(arch, "16", "UINT", bytes.fromhex("3412"))
    wave.step(examples(arch)["buffer_load_format_d16_hi_x"])
    assert int(wave.v(8)[0]) == 0x1234DEAD  # the other half was never written
    wave.vector(8, np.full(64, 0xBEEF0000))
    wave.step(examples(arch)["buffer_store_format_d16_hi_x"])
    assert content(wave, 3) == bytes.fromhex("efbeee")


@pytest.mark.parametrize("arch", CHIPS)
def test_components_are_selected_and_bounds_hold(arch: str) -> None:
    """w, 1, 0, x; and an element of which a byte is outside reads as zeros and isn't stored."""
    load, store = (instruction(f"buffer_{what}", 4, "", "", False) for what in ("load", "store"))
    wave = prepared(arch, "8_8_8_8", "UNORM", bytes.fromhex("00408033"), select=7 | 1 << 3 | 4 << 9)
    wave.run(load, "s_endpgm")
    assert [wave.v(20 + i, F)[0] for i in range(4)] == [F(0.2), F(1), F(0), F(0)]
    wave = prepared(arch, "8_8_8_8", "UNORM", bytes.fromhex("00408033"), records=35)
    wave.run(load, store, "s_endpgm")
    assert [int(wave.v(20 + i)[0]) for i in range(4)] == [0] * 4
    assert content(wave, 4) == bytes.fromhex("00408033")


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("data", "numbers", "what"),
    [("32", "UNORM", "combination"), ("INVALID", "UINT", "combination"), ("8", "UINT", "can't hold"),
     ("2_10_10_10", "UNORM", "some components")],
)  # fmt: skip
def test_what_no_guide_defines_is_refused(arch: str, data: str, numbers: str, what: str) -> None:
    wave = prepared(arch, data, numbers, b"")
    with pytest.raises(HkcError, match=re.escape("HK702") + f".*{what}"):
        wave.run(instruction("buffer_store", 1, data, numbers, False), "s_endpgm")
