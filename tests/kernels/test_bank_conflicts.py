"""Bank conflicts of whole kernels: none in hot loops, and what the emulator counts is what was proved."""

from __future__ import annotations

import bisect
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from matrix_products import CHIPS, FORMS, compiled, operands, run

import hkc
from hkc.api import CompiledKernel
from hkc.emulate.bank_conflicts import BankObserver
from hkc.support.dtypes import dtype
from hkc.targets.chip import load

EXAMPLES = Path(__file__).parents[2] / "examples"


FP8 = {"fnuz": "f8e4m3fnuz", "ocp": "f8e4m3fn"}
"""The 8-bit float whose products a chip has instructions for."""


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


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("form", "element"), [*product(FORMS, ("bf16", "f32", "fp8", "i8")), ("NT", "f16")])
def test_products_have_no_conflicts(form: str, element: str, arch: str) -> None:
    element = FP8[load(arch).fp8] if element == "fp8" else element
    sums = {"OUT": "i32", "SUM": "i32"} if element == "i8" else {}
    kernel = compiled(form, arch, T=element, **sums)
    assert len(kernel.binary.lds) in (2, 4)  # both operands; twice each where one copy is filled while one is read
    for buffer in kernel.binary.lds:
        for access in buffer.accesses:
            assert access.cycles == access.minimum, access
    a, b, wanted = operands(form, element, 72, 72, 72)  # whole tiles and edges: every instruction is executed
    found, happened, observer = run(kernel, a, b)
    assert happened.findings == ()
    assert np.array_equal(found, wanted)
    assert check_counted(kernel, observer) == set()


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.hk")))
def test_counted_conflicts_are_the_proved_ones(name: str, arch: str) -> None:
    kernel = hkc.compile(EXAMPLES / f"{name}.hk", arch)
    rng = np.random.default_rng(0)
    dims = {"M": 136, "N": 136, "K": 72} | dict.fromkeys("DH", 64)
    arrays = {
        p.name: rng.standard_normal([dims.get(d, d) for d in p.dims]).astype(dtype(p.dtype).numpy)
        for p in kernel.info.params
        if p.name not in kernel.info.outputs
    }
    *_, observer = run(kernel, *arrays.values())
    assert check_counted(kernel, observer) == set()
