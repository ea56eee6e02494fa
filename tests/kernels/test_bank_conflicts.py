"""Bank conflicts of whole kernels: none in hot loops, and what the emulator counts is what was proved."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from counted import check_counted
from matrix_products import CHIPS, FORMS, compiled, operands, run

import hkc
from hkc.support.dtypes import dtype
from hkc.targets.chip import load

EXAMPLES = Path(__file__).parents[2] / "examples"


FP8 = {"fnuz": "f8e4m3fnuz", "ocp": "f8e4m3fn"}
"""The 8-bit float whose products a chip has instructions for."""


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("form", "element"), [*product(FORMS, ("bf16", "f32", "fp8", "i8")), ("NT", "f16")])
def test_products_have_no_conflicts(form: str, element: str, arch: str) -> None:
    element = FP8[load(arch).fp8] if element == "fp8" else element
    sums = {"OUT": "i32", "SUM": "i32"} if element == "i8" else {}
    kernel = compiled(form, arch, T=element, **sums)
    places = {buffer.offset for buffer in kernel.binary.lds}
    assert len(places) in (2, 4)  # both operands; twice each where one copy is filled while one is read
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
