"""What the emulator counts at the LDS against what was proved of the same kernel."""

from __future__ import annotations

import bisect

from hkc.api import CompiledKernel
from hkc.emulate.bank_conflicts import BankObserver
from hkc.targets.chip import load


def kind(arch: str, mnemonic: str) -> tuple[str, int, str]:
    """Instructions that the LDS serves alike: one of two parts counts like two."""
    access = load(arch).lds.access(mnemonic)
    return ("write" if "write" in mnemonic else "read", access.bytes, "tr" if "_tr_" in mnemonic else "")


def check_counted(kernel: CompiledKernel, observer: BankObserver) -> set[tuple[str, int, str]]:
    """Every LDS instruction that was executed took the clocks that were proved for its kind, and for its line where the
    compiler still knew one. Returns the kinds that were proved and not executed, but for the writes of tiles that come
    straight from memory: lanes write those only where memory doesn't allow that."""
    proved: dict[tuple[str, int, str], dict[int | None, set[int]]] = {}
    for buffer in kernel.binary.lds:
        for access in buffer.accesses:
            clocks = proved.setdefault(kind(kernel.arch, access.mnemonic), {}).setdefault(access.line, set())
            clocks.add(access.cycles)
    starts = [line.address for line in kernel.binary.lines]
    executed = set()
    for made in observer.instructions():
        line = kernel.binary.lines[bisect.bisect(starts, made.address) - 1].line
        by_line = proved[kind(kernel.arch, made.mnemonic)]
        assert set(made.clocks) <= (by_line[line] if line else set().union(*by_line.values())), made
        executed.add(kind(kernel.arch, made.mnemonic))
    direct = any(conversion.way == "direct" for conversion in kernel.binary.layouts.conversions)
    return {kind for kind in set(proved) - executed if not (direct and kind[0] == "write")}
