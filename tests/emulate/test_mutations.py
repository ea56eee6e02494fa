"""No wait and no barrier can be taken out of a correct kernel, or made weaker, unseen: unless it is harmless.

Harmless means: on every path that any shape takes all registers are behind their waits without it (the static proof of
`hkc.machine.waits`), and in no shape, in whatever order the waves run, do LDS accesses clash that another barrier does
not order (counted by `epochs`). Neither shares code with the emulator's checkers. On paths that no shape takes, the
proof alone must find it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulated import CHIPS
from epochs import clashes
from mutations import FOUND, UNUSED, Subject, Verdict, deletions, weakenings

import hkc
from hkc.emulate.decode import Decoded

EXAMPLES = Path(__file__).parents[2] / "examples"


def products(depth: int) -> tuple[dict[str, int], ...]:
    """The loop over K in steps of `depth`: long, short, once, not at all; whole tiles or ragged; rows that are aligned
    but end in the middle of 16 bytes; nothing aligned."""
    aligned = (*(5 * depth + 8, 6 * depth, 3 * depth, 2 * depth, depth + 8, depth, 8, 0),)
    crooked = (3 * depth + 4, depth + 4, 4, 0)
    whole = [{"M": 64, "N": 64, "K": k} for k in aligned if k % depth == 0]
    ragged = [{"M": 65, "N": 33, "K": k} for k in aligned if k % depth]
    short = [{"M": 65, "N": 40, "K": k, "short": 7} for k in (2 * depth + 16, depth + 8, 16)]
    return (*ragged, *whole, *short, *({"M": 65, "N": 33, "K": k, "skew": 1} for k in crooked))


def attentions() -> tuple[dict[str, int], ...]:
    """The loop over N in steps of 64: often, once, not at all."""
    aligned = [{"M": 20, "N": n} for n in (136, 256, 192, 8, 0)]
    other = [{"M": 20, "N": n, odd: 3} for n in (136, 64, 0) for odd in ("short", "short K", "short V", "skew")]
    return (*aligned, {"M": 65, "N": 64}, *other)


SOFTMAX = ((5, 1000, 0), (3, 300, 0), (4, 1024, 0), (4, 1024, 1), (5, 513, 1))
SUBJECTS: dict[str, tuple[dict[str, Any], str, tuple[dict[str, int], ...]]] = {
    "vector_add": ({}, "", ({"N": 2048}, {"N": 1001}, {"N": 2048, "skew": 1}, {"N": 1001, "skew": 1})),
    "softmax": ({}, "", tuple({"M": m, "N": n, "skew": s} for m, n, s in SOFTMAX)),
    "attention": ({}, "", attentions()),
    "gemm": ({"BM": 64, "BN": 64, "BK": 32}, "", products(32)),
    "pingpong": ({"BM": 64, "BN": 64, "BK": 64}, "waves=8, schedule=pingpong", products(64)),
}


@functools.cache
def subject(name: str, arch: str) -> Subject:
    constants, hints, shapes = SUBJECTS[name]
    text = (EXAMPLES / f"{'gemm' if hints else name}.hk").read_text()
    text = text.replace("OUT, M, N]):", f"OUT, M, N]) with {hints}:") if hints else text
    return Subject(hkc.compile(text, arch, **constants), shapes)


def judged(made: Subject, mutations: Iterable[tuple[int, Decoded]]) -> list[Verdict]:
    """Each is found, or harmless for a reason on which independent checks agree; most are found."""
    verdicts = [made.check(position, mutant) for position, mutant in mutations]
    assert [f"{v}: {v.objection()}" for v in verdicts if v.objection()] == []
    assert sum(v.outcome == FOUND for v in verdicts) > 0
    return verdicts


@pytest.mark.parametrize("arch", CHIPS)
def test_deletions_from_a_sum(arch: str) -> None:
    made = subject("vector_add", arch)
    judged(made, deletions(made.program))


@pytest.mark.parametrize("arch", CHIPS)
def test_some_deletions_from_a_product(arch: str) -> None:
    """Of waves that take turns: some barriers and waits in and around the loop."""
    made = subject("pingpong", arch)
    verdicts = judged(made, list(deletions(made.program))[::6])
    assert {v.barrier for v in verdicts if v.outcome == FOUND} == {False, True}


@pytest.mark.long
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", SUBJECTS)
def test_everything(name: str, arch: str) -> None:
    """Prints what is harmless, and why."""
    made = subject(name, arch)
    verdicts = judged(made, [*deletions(made.program), *weakenings(made.program)])
    unused = sum(v.outcome == UNUSED for v in verdicts)
    assert unused <= len(verdicts) / 10, [str(v) for v in verdicts if v.outcome == UNUSED]
    print(f"{name} {arch}: {sum(v.outcome == FOUND for v in verdicts)} of {len(verdicts)} are found")
    for verdict in verdicts:
        if verdict.outcome != FOUND:
            print(f"{name} {arch}: {verdict}")


def test_accesses_that_meet() -> None:
    """[byte, first epoch, last epoch, wave, is a write], by hand."""
    write, read = (0, 1, 1, 0, 1), (0, 2, 2, 1, 0)
    assert clashes(np.array([write, read]).T) == 0
    assert clashes(np.array([(0, 1, 2, 0, 1), read]).T) == 1  # waited for too late
    assert clashes(np.array([(0, 1, 2, 0, 1), (1, 2, 2, 1, 0)]).T) == 0  # another byte
    assert clashes(np.array([(0, 1, 2, 1, 1), read]).T) == 0  # the same wave
    assert clashes(np.array([(0, 1, 3, 0, 0), read]).T) == 0  # both read
    assert clashes(np.array([(0, 1, 3, 0, 0), (5, 1, 1, 0, 1), read, (0, 3, 3, 2, 1)]).T) == 1
