"""No wait and no barrier can be taken out of a correct kernel, or made weaker, unseen: unless it does nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from emulated import CHIPS
from mutations import COVERED, IDLE, UNUSED, Subject, deletions, weakenings

import hkc
from hkc.emulate import Program
from hkc.emulate.decode import Decoded

EXAMPLES = Path(__file__).parents[2] / "examples"

_SIZES = ((64, 64, 168), (65, 33, 232), (64, 64, 160), (64, 64, 40), (64, 64, 32), (65, 33, 40))

SUBJECTS: dict[str, tuple[dict[str, Any], tuple[dict[str, int], ...]]] = {
    "vector_add": ({}, ({"N": 2048}, {"N": 1001})),
    "softmax": ({}, ({"M": 5, "N": 512}, {"M": 3, "N": 300})),
    "gemm": (
        {"BM": 64, "BN": 64, "BK": 32},  # the loop over K: long, short, none; ragged or not; aligned or not
        tuple({"M": m, "N": n, "K": k} for m, n, k in _SIZES),
    ),
}


@functools.cache
def subject(name: str, arch: str) -> Subject:
    constants, shapes = SUBJECTS[name]
    return Subject(hkc.compile(EXAMPLES / f"{name}.hk", arch, **constants), shapes)


def allowed(made: Subject) -> None:
    """Most mutations are found, and those that aren't were never reached or have a reason that was looked at."""
    assert made.found > 0
    for mutation, reason in made.harmless.items():
        assert reason in (UNUSED, IDLE, COVERED), mutation
    reached = [reason for reason in made.harmless.values() if reason != UNUSED]
    assert len(reached) <= made.found / 4, made.harmless


@pytest.mark.parametrize("arch", CHIPS)
def test_deletions_from_a_sum(arch: str) -> None:
    made = subject("vector_add", arch)
    for position, mutant in deletions(made.program):
        made.check(position, mutant)
    allowed(made)


@pytest.mark.parametrize("arch", CHIPS)
def test_some_deletions_from_a_product(arch: str) -> None:
    """The barriers and every fifth wait."""
    made = subject("gemm", arch)
    barriers = [(p, m) for p, m in deletions(made.program) if made.program.instructions[p].base == "s_barrier"]
    for position, mutant in [*barriers, *list(deletions(made.program))[::5]]:
        made.check(position, mutant)
    allowed(made)


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("mutate", [deletions, weakenings])
def test_everything(mutate: Callable[[Program], Iterator[tuple[int, Decoded]]], name: str, arch: str) -> None:
    made = subject(name, arch)
    for position, mutant in mutate(made.program):
        made.check(position, mutant)
    allowed(made)
    for mutation, reason in made.harmless.items():
        print(f"{name} {arch}: {mutation}: {reason}")
