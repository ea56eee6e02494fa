"""Attention's exponentials come between the MFMAs that multiply by others of them, and its results stay right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matrix_products import CHIPS

import hkc
from hkc.api import CompiledKernel
from hkc.machine.codeobject import CodeObject
from hkc.machine.control import hot_loop
from hkc.machine.disassemble import listing
from hkc.support.dtypes import dtype
from hkc.targets.chip import load

KERNEL = Path(__file__).parents[2] / "examples/attention.hk"
KEYS = 64
"""Keys that a trip of the loop takes. A wave has 16 of the queries, a lane one of them and every fourth key."""


def between(kernel: CompiledKernel) -> list[int]:
    """How many exponentials of the hot loop stand before its first MFMA, between two, and behind the last."""
    code = CodeObject.parse(kernel.hsaco)
    loop = hot_loop(listing(code, code.kernel(kernel.symbol)))
    assert loop is not None
    counts = [0]
    for instruction in loop.body:
        if instruction.mnemonic.startswith("v_mfma"):
            counts.append(0)
        counts[-1] += instruction.mnemonic.startswith("v_exp")
    return counts


@pytest.mark.parametrize("arch", CHIPS)
def test_exponentials_come_between_mfmas(arch: str) -> None:
    """Only those of the first slice of keys come before the products of a trip, and the one that rescales its sums."""
    kernel = hkc.compile(KERNEL, arch)
    slices = KEYS // max(row.k for row in load(arch).mfma_for("bf16", "bf16", "f32") if (row.m, row.n) == (16, 16))
    found = between(kernel)
    assert sum(found) % (KEYS // 4 + 1) == 0
    assert max(found) <= KEYS // 4 // slices + 1
    assert not any(r.spills for r in kernel.resources.values())
    said = [c.chosen for c in kernel.binary.choices if c.subject == "loop"]
    assert any("transcendentals between MFMAs" in text for text in said)


@pytest.mark.parametrize("arch", CHIPS)
def test_attention_is_right(arch: str) -> None:
    kernel = hkc.compile(KERNEL, arch)
    rng = np.random.default_rng(3)
    for queries, keys in ((64, 192), (70, 131)):
        q, k, v = (rng.normal(size=(n, 64)).astype(dtype("bf16").numpy) for n in (queries, keys, keys))
        found = kernel(q, k, v, device="emulator").astype(np.float64)
        scores = q.astype(np.float64) @ k.astype(np.float64).T / 8
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        # Weights, before they are divided by their sum, and the result are rounded to 8 bits.
        bound = 2.0**-8 * (2 * weights @ np.abs(v.astype(np.float64)) + np.abs(found)) + 1e-5
        assert np.all(np.abs(found - weights @ v.astype(np.float64)) <= bound)
