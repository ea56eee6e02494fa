"""Machine code as instructions: LLVM's disassembler (in the worker process) and the anatomy of its text."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from hkc.support import worker

if TYPE_CHECKING:
    from hkc.machine.codeobject import CodeObject, Kernel

_TARGET = "hkc.support.disassembler:disassemble"
_WORD = re.compile(r",|(?:\[[^\]]*\]|\([^)]*\)|[^\s,\[(])+")  # a comma, or a word whose brackets may hold anything
_VALUED = re.compile(r"([a-z]\w*):(.+)|(\w*cnt)\((.+)\)")  # `offset:16`, `vmcnt(3)`; but no register such as `s[0:1]`
_CACHE_FLAGS = frozenset({"sc0", "sc1", "nt", "glc", "slc"})  # the flags of instructions without operands


@dataclass(frozen=True)
class Instruction:
    """One instruction: its address, its bytes, and LLVM's text. Bytes that are none read `.long 0x…`."""

    address: int
    size: int
    encoding: bytes
    text: str

    @property
    def mnemonic(self) -> str:
        """The first word, `v_add_f32_e32` for instance."""
        return self.text.partition(" ")[0]

    @property
    def operands(self) -> tuple[str, ...]:
        """What stands between the commas: `("v0", "v[2:3]", "-|s1|")`; modifiers left out."""
        return self._parts[0]

    @property
    def modifiers(self) -> Mapping[str, str]:
        """`offen offset:16 quad_perm:[1,0,3,2]` as a mapping; a bare flag has the value ""."""
        return self._parts[1]

    @functools.cached_property
    def _parts(self) -> tuple[tuple[str, ...], Mapping[str, str]]:
        return _split(self.text.partition(" ")[2])


def listing(code: CodeObject, kernel: Kernel) -> tuple[Instruction, ...]:
    """The instructions of a kernel, in order of address."""
    return disassemble(code.code(kernel), code.arch, kernel.entry)


@functools.lru_cache(maxsize=64)
def disassemble(code: bytes, arch: str, base: int = 0) -> tuple[Instruction, ...]:
    """The instructions of `code` for the chip `arch`, which lies at address `base`, without gaps.

    Raises `HkcUsageError` HK652 for a chip that LLVM doesn't know.
    """
    found: list[tuple[int, int, str]] = worker.call(_TARGET, code, arch, base)
    return tuple(Instruction(at, size, code[at - base : at - base + size], text) for at, size, text in found)


def _split(text: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Operands and modifiers. Modifiers have no commas between them and come after the last operand."""
    words = _WORD.findall(text)
    operands: list[str] = []
    modifiers: dict[str, str] = {}
    expected = True  # an operand comes first and after each comma
    for word in words:
        if word == ",":
            expected = True
        elif expected and not _VALUED.fullmatch(word) and not (not operands and word in _CACHE_FLAGS):
            operands.append(word)
            expected = False
        else:
            modifiers.update(_modifier(word))
    return tuple(operands), MappingProxyType(modifiers)


def _modifier(word: str) -> dict[str, str]:
    if valued := _VALUED.fullmatch(word):
        return {valued[1] or valued[3]: valued[2] or valued[4]}
    return {word: ""}
