"""A chip that nobody built: other banks, other LDS, other matrix instructions, and no line of Python changed for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from invented import BANKS, LDS, NAME, invent
from matrix_products import compiled, gemm, operands

from hkc import pipeline
from hkc.api import CompiledKernel
from hkc.emulate.bank_conflicts import BankObserver
from hkc.runtime.emulator import Emulator
from hkc.support import worker
from hkc.support.errors import HkcError, Source
from hkc.targets.chip import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return invent(tmp_path_factory.mktemp("chips"))


def build(form: str, folder: Path, **constants: str) -> CompiledKernel:
    checked = pipeline.check(Source("gemm.hk", gemm(form)), constants)
    return CompiledKernel(worker.call("invented:compile_for", checked, folder), checked)


@pytest.mark.parametrize("form", ["NT", "TN"])
def test_third_chip(form: str, folder: Path) -> None:
    kernel, known = build(form, folder), compiled(form, NAME)
    chip = load(NAME, folder)
    assert [b.map for b in kernel.binary.lds] != [b.map for b in known.binary.lds]
    assert all(a.cycles == a.minimum for b in kernel.binary.lds for a in b.accesses)
    assert {len(chip.lds.access(a.mnemonic).phases) for b in kernel.binary.lds for a in b.accesses} <= {4, 8, 16}
    assert chip.lds.access("ds_read_b64").banks == BANKS
    observer = BankObserver(chip)
    a, b, wanted = operands(form, "bf16", 72, 72, 72)
    arguments = kernel.bind(a, b)
    kernel.launch(arguments, Emulator(observers=[observer]))
    assert np.array_equal(arguments.results(kernel.info)[0], wanted)
    assert "v_mfma_f32_32x32x8" in kernel.texts["asm"] and "16x16x16" not in kernel.texts["asm"]
    assert all(set(made.clocks) == {made.minimum} for made in observer.instructions())


def test_its_lds_is_smaller(folder: Path) -> None:
    with pytest.raises(HkcError, match=f"a workgroup of {NAME} has {LDS}"):
        build("NT", folder, T="f32", BM="256", BN="32", BK="64")
