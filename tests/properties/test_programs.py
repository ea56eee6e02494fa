"""A random program means the same to the reference, after every pass, and as machine code on the emulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import hypothesis
import numpy as np
import pytest
from programs import Program, programs
from real import real_programs
from wide import wide_programs

from hkc import api
from hkc.frontend.check import check
from hkc.frontend.parse import parse
from hkc.frontend.program import Checked
from hkc.machine.abi import GlobalParam
from hkc.support.errors import HkcError, Source
from hkc.support.worker import call
from hkc.targets.chip import names

Kind = Callable[[], hypothesis.strategies.SearchStrategy[Program]]

KINDS: dict[str, Kind] = {"narrow": programs, "integers": wide_programs, "floats": real_programs}

LIMITS = ("HK453", "HK434", "HK455", "HK459", "HK524")
"""Codes of programs that are right but too large for a chip, or have no error bounds to be compared within."""


def agree(program: Program, chip: str) -> None:
    """Run a program every way there is, and name the pass after which it means something else."""
    checked = check(parse(Source("random.hk", program.text)))
    scalars = {**dims(checked, program.arrays), **program.scalars}
    value, errors = call("hkc.reference:bound", checked, program.arrays, scalars)["OUT"]
    (_, wanted), *later = call("blame:after_each_pass", checked, chip, program.arrays, scalars)
    for name, found in later:
        np.testing.assert_array_equal(found, wanted, f"pass `{name}` changes the meaning of\n{program.text}")
    compiled = api.build(checked, chip)
    arguments = compiled.bind(**{n: a.copy() for n, a in program.arrays.items()}, **program.scalars)
    compiled.launch(arguments, "emulator")
    found = np.asarray(arguments.results(compiled.info)[0], np.float64)
    same = (found == value) | (np.isnan(found) & np.isnan(value)) | (np.abs(found - value) <= errors)
    assert same.all(), f"machine code for {chip} differs at {np.argwhere(~same)[:4].tolist()} in\n{program.text}"


def dims(checked: Checked, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    """The values of a kernel's symbolic dims."""
    tensors = [p for p in checked.kernels[0].params if isinstance(p, GlobalParam)]
    return {str(d): n for p in tensors for d, n in zip(p.dims, arrays[p.name].shape, strict=True)}


def within_limits(program: Program, chip: str) -> None:
    try:
        agree(program, chip)
    except HkcError as problem:
        if not any(d.code in LIMITS for d in problem.diagnostics):
            raise


@hypothesis.settings(max_examples=60)
@hypothesis.given(programs())
def test_random_programs_are_well_typed(program: Program) -> None:
    checked = check(parse(Source("random.hk", program.text)))
    assert checked.kernels[0].outputs == ("OUT",)


def explore(kind: Kind, chip: str, examples: int, seed: int) -> None:
    """Run so many random programs, the same for the same seed."""

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=examples, suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(program=kind())
    def each(program: Program) -> None:
        within_limits(program, chip)

    each()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chip", names())
def test_random_programs(chip: str, kind: str) -> None:
    explore(KINDS[kind], chip, 30, seed=0)


@pytest.mark.long
@pytest.mark.parametrize("part", range(7))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chip", names())
def test_two_thousand_random_programs(chip: str, kind: str, part: int) -> None:
    """2,100 for each chip, in parts that run side by side and fail apart."""
    explore(KINDS[kind], chip, 100, seed=part)
