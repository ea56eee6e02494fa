"""Bank conflicts of whole kernels: none in hot loops, and what the emulator counts is what was proved."""

from __future__ import annotations

import bisect
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


def kind(arch: str, mnemonic: str) -> tuple[str, int, str]:
    """Instructions that the LDS serves alike: one of two parts counts like two."""
    access = load(arch).lds.access(mnemonic)
    return ("write" if "write" in mnemonic else "read", access.bytes, "tr" if "_tr_" in mnemonic else "")


def check_counted(kernel: CompiledKernel, observer: BankObserver) -> None:
    """Every LDS instruction that was executed took the clocks that were proved for its line and kind, and all that was
    proved was executed."""
    proved: dict[tuple[int | None, tuple[str, int, str]], set[int]] = {}
    for buffer in kernel.binary.lds:
        for access in buffer.accesses:
            proved.setdefault((access.line, kind(kernel.arch, access.mnemonic)), set()).add(access.cycles)
    lines = kernel.binary.lines
    starts = [line.address for line in lines]
    counted: dict[tuple[int | None, tuple[str, int, str]], set[int]] = {}
    for made in observer.instructions():
        line = lines[bisect.bisect(starts, made.address) - 1].line
        counted.setdefault((line, kind(kernel.arch, made.mnemonic)), set()).update(made.clocks)
    assert counted == proved


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("element", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("form", FORMS)
def test_products_have_no_conflicts(form: str, element: str, arch: str) -> None:
    kernel = compiled(form, arch, T=element)
    assert len(kernel.binary.lds) == 2
    for buffer in kernel.binary.lds:
        for access in buffer.accesses:
            assert access.cycles == access.minimum, access
    a, b, wanted = operands(form, element, 128, 128, 64)
    found, happened, observer = run(kernel, a, b)
    assert happened.findings == ()
    assert np.array_equal(found, wanted)
    check_counted(kernel, observer)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.hk")))
def test_counted_conflicts_are_the_proved_ones(name: str, arch: str) -> None:
    kernel = hkc.compile(EXAMPLES / f"{name}.hk", arch)
    rng = np.random.default_rng(0)
    dims = {"M": 128, "N": 128, "K": 64} | dict.fromkeys("DH", 64)
    arrays = {
        p.name: rng.standard_normal([dims.get(d, d) for d in p.dims]).astype(dtype(p.dtype).numpy)
        for p in kernel.info.params
        if p.name not in kernel.info.outputs
    }
    *_, observer = run(kernel, *arrays.values())
    check_counted(kernel, observer)
