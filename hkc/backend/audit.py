"""What the final machine code does: its hot loops in numbers, and which waits are not proved."""

from __future__ import annotations

from dataclasses import dataclass

from hkc.machine import waits
from hkc.machine.codeobject import CodeObject
from hkc.machine.control import hot_loop
from hkc.machine.disassemble import listing


@dataclass(frozen=True)
class Audit:
    """One kernel of a code object: instructions of its hot loop (all of them, MFMAs, other vector instructions, waits,
    waits for all vector memory, barriers; 0 without a loop), and what is not proved to be behind a wait."""

    instructions: int
    mfma: int
    valu: int
    waits: int
    vmcnt0: int
    barriers: int
    unproved: tuple[str, ...]


def audit(hsaco: bytes) -> dict[str, Audit]:
    """The kernels of a code object, by symbol."""
    code = CodeObject.parse(hsaco)
    return {kernel.name: _audit(listing(code, kernel)) for kernel in code.kernels}


def _audit(code: waits.Code) -> Audit:
    loop = hot_loop(code)
    unproved = tuple(map(str, waits.verify(code)))
    if loop is None:
        return Audit(0, 0, 0, 0, 0, 0, unproved)
    return Audit(
        len(loop.body),
        loop.count(r"v_mfma"),
        loop.count(r"v_(?!mfma)"),
        loop.count(r"s_waitcnt"),
        loop.count(r"s_waitcnt", "vmcnt(0)"),
        loop.count(r"s_barrier"),
        unproved,
    )
