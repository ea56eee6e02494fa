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

_ODD = {"M": 65, "N": 33, "K": 100, "skew": 1}
_SIZES = ((64, 64, 168), (65, 33, 232), (64, 64, 160), (64, 64, 40), (64, 64, 32), (65, 33, 40))

SUBJECTS: dict[str, tuple[dict[str, Any], tuple[dict[str, int], ...]]] = {
    "vector_add": ({}, ({"N": 2048}, {"N": 1001}, {"N": 2048, "skew": 1}, {"N": 1001, "skew": 1})),
    "softmax": ({}, tuple({"M": m, "N": n, "skew": s} for m, n, s in ((5, 512, 0), (3, 300, 0), (5, 512, 1)))),
    "attention": ({}, ({"M": 20, "N": 136}, {"M": 65, "N": 64}, {"M": 20, "N": 72, "skew": 1})),
    "gemm": (
        {"BM": 64, "BN": 64, "BK": 32},  # the loop over K: long, short, none; ragged or not; aligned or not
        (*({"M": m, "N": n, "K": k} for m, n, k in _SIZES), _ODD),
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
    unused = [reason for reason in made.harmless.values() if reason == UNUSED]
    assert len(unused) <= len(made.harmless) / 2 or len(unused) < 5, made.harmless
    for mutation, reason in made.harmless.items():
        print(f"{name} {arch}: {mutation}: {reason}")
