"""From LLVM's disassembly text to operands and modifiers, once per instruction.

The text is the one authority on which field of which encoding means what; immediates that the text shows as names
(waits, branch targets, hardware registers) are taken from the encoding's low 16 bits instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from hkc.emulate.faults import unsupported

Kind = Literal["vgpr", "agpr", "sgpr", "int", "float", "special", "off", "text"]

VCC, M0, EXEC, FLAT_SCRATCH = 106, 124, 126, 102
"""Register numbers of the special scalar registers, as the scalar operand field encodes them."""

SGPR_COUNT = 128
"""Size of the scalar operand space: general registers, trap registers, vcc, m0, exec."""

_NAMED = {
    "vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1),
    "exec": (EXEC, 2), "exec_lo": (EXEC, 1), "exec_hi": (EXEC + 1, 1),
    "m0": (M0, 1),
    "flat_scratch": (FLAT_SCRATCH, 2), "flat_scratch_lo": (FLAT_SCRATCH, 1), "flat_scratch_hi": (FLAT_SCRATCH + 1, 1),
    "xnack_mask": (104, 2), "xnack_mask_lo": (104, 1), "xnack_mask_hi": (105, 1),
}  # fmt: skip
_SPECIAL = frozenset(
    "src_shared_base src_shared_limit src_private_base src_private_limit src_scc src_vccz src_execz scc vccz execz "
    "shared_base shared_limit private_base private_limit".split()
)
_SINGLE = re.compile(r"(ttmp|[vas])(\d+)$")
_RANGE = re.compile(r"(ttmp|[vas])\[(\d+):(\d+)\]$")
_INT = re.compile(r"-?(0x[0-9a-fA-F]+|\d+)$")
_FLOAT = re.compile(r"-?\d+\.\d+(e[-+]?\d+)?$")
_MODIFIER = re.compile(r"[a-z][a-z_0-9]*:")
_FLAGS = frozenset(
    "clamp offen idxen lds gds glc slc dlc sc0 sc1 nt scc tfe row_mirror row_half_mirror r128 unorm".split()
)
_SUFFIX = re.compile(r"_(e32|e64|sdwa|dpp|e64_dpp)$")

Modifier = int | str | tuple[int, ...]


@dataclass(frozen=True)
class Operand:
    """One operand: a register range, an immediate (`value`), a named special source, `off`, or plain text."""

    kind: Kind
    index: int = 0
    count: int = 1
    value: int | float = 0
    name: str = ""
    negative: bool = False
    absolute: bool = False
    extended: bool = False

    def __str__(self) -> str:
        letter = {"vgpr": "v", "agpr": "a", "sgpr": "s"}.get(self.kind)
        return f"{letter}{self.index}" if letter else self.name


@dataclass(frozen=True)
class Decoded:
    """One instruction of a code object. `base` is the mnemonic without its encoding suffix; sizes in bytes."""

    address: int
    size: int
    encoding: bytes
    text: str
    mnemonic: str = ""
    operands: tuple[Operand, ...] = ()
    modifiers: dict[str, Modifier] = field(default_factory=dict)

    @cached_property
    def base(self) -> str:
        """The mnemonic without the suffix of its encoding."""
        return _SUFFIX.sub("", self.mnemonic)

    @property
    def form(self) -> str:
        """The encoding suffix (`e32`, `e64`, `sdwa`, `dpp`) or an empty string."""
        found = _SUFFIX.search(self.mnemonic)
        return found.group(1) if found else ""

    @property
    def simm16(self) -> int:
        """The low 16 bits of the first word, unsigned."""
        return int.from_bytes(self.encoding[:2], "little")

    def flag(self, name: str) -> bool:
        """Whether a valueless modifier (or one that is not 0) is present."""
        return bool(self.modifiers.get(name, 0))

    def number(self, name: str, default: int = 0) -> int:
        """The integer modifier `name`."""
        value = self.modifiers.get(name, default)
        if not isinstance(value, int):
            raise unsupported(self, f"the modifier {name}:{value}")
        return value

    def bits(self, name: str, count: int, default: int) -> tuple[int, ...]:
        """The list modifier `name` (op_sel and kin), filled up with `default` to `count` entries."""
        value = self.modifiers.get(name, ())
        given = value if isinstance(value, tuple) else ()
        return (given + (default,) * count)[: max(count, len(given))]


def decode(address: int, encoding: bytes, text: str) -> Decoded:
    """Parse one line of LLVM's disassembly."""
    mnemonic, _, rest = text.strip().partition(" ")
    parts = _split(rest.strip(), ",")
    operands: list[Operand] = []
    modifiers: dict[str, Modifier] = {}
    for part in parts:
        for token in _split(part, " "):
            if token in _FLAGS:
                modifiers[token] = 1
            elif _MODIFIER.match(token):
                name, _, value = token.partition(":")
                modifiers[name] = _modifier(value)
            else:
                operands.append(operand(token))
    return Decoded(address, len(encoding), encoding, text.strip(), mnemonic, tuple(operands), modifiers)


def operand(token: str) -> Operand:
    """Parse one operand, sign and magnitude modifiers included."""
    negative = absolute = extended = False
    if token.startswith("-") and not (_INT.match(token) or _FLOAT.match(token)):
        negative, token = True, token[1:]
    if token.startswith("neg("):  # so spelled where a sign would make another constant: neg(0)
        negative, token = True, token[4:-1]
    if token.startswith("|"):
        absolute, token = True, token.strip("|")
    if token.startswith("sext("):
        extended, token = True, token[5:-1]
    if token.startswith("lit("):  # a literal whose value would have an inline encoding as well
        token = token[4:-1]
    plain = _plain(token)
    if not (negative or absolute or extended):
        return plain
    return Operand(plain.kind, plain.index, plain.count, plain.value, token, negative, absolute, extended)


def _plain(token: str) -> Operand:
    if token in _NAMED:
        index, count = _NAMED[token]
        return Operand("sgpr", index, count, name=token)
    if found := _SINGLE.match(token):
        return _register(found.group(1), int(found.group(2)), 1, token)
    if found := _RANGE.match(token):
        first, last = int(found.group(2)), int(found.group(3))
        return _register(found.group(1), first, last - first + 1, token)
    if _INT.match(token):
        return Operand("int", value=int(token, 0), name=token)
    if _FLOAT.match(token):
        return Operand("float", value=float(token), name=token)
    if token == "off":
        return Operand("off", name=token)
    return Operand("special" if token in _SPECIAL else "text", name=token)


def _register(letter: str, index: int, count: int, name: str) -> Operand:
    if letter == "ttmp":
        return Operand("sgpr", 108 + index, count, name=name)
    kinds: dict[str, Kind] = {"v": "vgpr", "a": "agpr", "s": "sgpr"}
    return Operand(kinds[letter], index, count, name=name)


def _modifier(value: str) -> Modifier:
    if value.startswith("[") and "FORMAT" not in value:
        return tuple(int(x, 0) for x in value[1:-1].split(","))
    return int(value, 0) if _INT.match(value) else value


def _split(text: str, separator: str) -> list[str]:
    """Split at `separator` outside brackets and parentheses; empty pieces vanish."""
    pieces, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "[(":
            depth += 1
        elif c in "])":
            depth -= 1
        elif c == separator and depth == 0:
            pieces.append(text[start:i])
            start = i + 1
    pieces.append(text[start:])
    return [p.strip() for p in pieces if p.strip()]
