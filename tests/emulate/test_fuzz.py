"""Damaged code objects end in an error or in a result: never in a traceback, a hang, or a bug report."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from hkc import emulate
from hkc.machine.codeobject import CodeObject
from hkc.support.errors import HkcError

DATA = Path(__file__).parent / "data"
FILES = sorted(path for path in DATA.glob("*.hsaco") if path.stat().st_size < 20_000)


def damage(data: bytes, source: random.Random) -> bytes:
    """Bits and bytes changed anywhere or in the machine code, a stretch removed, or the end."""
    content = bytearray(data)
    code = CodeObject.parse(data)
    segment = next(s for s in code.segments if s.executable)
    text = data.find(segment.content)
    kind = source.choice(("headers", "anywhere", "code", "code", "instruction", "cut", "remove"))
    if kind == "cut":
        return bytes(content[: source.randrange(len(content))])
    if kind == "remove":
        at = source.randrange(len(content))
        del content[at : at + source.choice((1, 4, 8, 64))]
        return bytes(content)
    low, high = {
        "headers": (0, 0x400), "anywhere": (0, len(content)), "code": (text, text + len(segment.content)),
        "instruction": (text, text + len(segment.content)),
    }[kind]  # fmt: skip
    for _ in range(source.choice((1, 2, 8, 32))):
        at = source.randrange(low, min(high, len(content)))
        if kind == "instruction":
            at &= ~3
            content[at : at + 4] = source.randbytes(4)
        else:
            content[at] ^= 1 << source.randrange(8)
    return bytes(content)


def execute(data: bytes) -> str:
    """Run the first kernel on small buffers; the code of the error, if any."""
    try:
        program = emulate.Program.load(data)
        kernel = program.code.kernels[0] if program.code.kernels else program.kernel(None)
        values = [
            np.zeros(1 << 14, np.uint8)
            if a.kind == "global_buffer"
            else (64 if a.size in (1, 2, 4, 8) else bytes(a.size))
            for a in emulate.explicit(kernel)
        ]
        lds = max(0, 16384 - kernel.descriptor.lds)
        emulate.run(program, *values, kernel=kernel.name, block=128, dynamic_lds=lds, limit=2000)
    except HkcError as failure:
        str(failure)
        return failure.diagnostics[0].code
    return "ran"


def fuzz(seeds: range) -> set[str]:
    return {execute(damage(FILES[seed % len(FILES)].read_bytes(), random.Random(seed))) for seed in seeds}


def test_damaged_code_objects() -> None:
    outcomes = fuzz(range(300))
    assert {"ran", "HK603", "HK701", "HK704"} <= outcomes


def test_an_argument_without_bytes() -> None:
    """Metadata whose sizes are damaged: 0 bytes hold no number."""
    assert fuzz(range(9327, 9328)) == {"HK712"}


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_many_damaged_code_objects(part: int) -> None:
    fuzz(range(1000 + 500 * part, 1500 + 500 * part))
