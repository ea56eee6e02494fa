"""Relative register addressing: between s_set_gpr_idx_on and s_set_gpr_idx_off registers are counted from m0.

The mode is a static property of straight-line code as compilers write it, so it is resolved when a program is loaded:
v_mov_b32 in such a stretch becomes `v_mov_indexed`; any other vector instruction there becomes one that nobody knows.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

from hkc.emulate.decode import Decoded, Modifier

_MODE = re.compile(r"gpr_idx\(([A-Z0-9,]*)\)")


def resolve(instructions: Iterable[Decoded]) -> Iterator[Decoded]:
    """The same with moves under relative addressing renamed; modifiers `source` and `target` say what is relative."""
    mode: set[str] | None = None
    for instruction in instructions:
        if instruction.mnemonic == "s_set_gpr_idx_on":
            found = _MODE.search(instruction.text)
            mode = set(found.group(1).split(",")) if found else {"unknown"}
        elif instruction.mnemonic == "s_set_gpr_idx_off":
            mode = None
        elif mode and instruction.mnemonic.startswith("v_"):
            yield _indexed(instruction, mode)
            continue
        yield instruction


def _indexed(instruction: Decoded, mode: set[str]) -> Decoded:
    if instruction.mnemonic != "v_mov_b32_e32" or not mode <= {"SRC0", "DST"}:
        return dataclasses.replace(instruction, mnemonic=f"{instruction.mnemonic} under relative addressing")
    modifiers: dict[str, Modifier] = {"source": int("SRC0" in mode), "target": int("DST" in mode)}
    return dataclasses.replace(instruction, mnemonic="v_mov_indexed", modifiers=modifiers)
