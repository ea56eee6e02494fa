"""The loop over K of every transposition has no masks and no branches, whatever the sizes, and its product is exact."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matrix_products import CHIPS, FORMS, gemm, operands

import hkc
from hkc.api import CompiledKernel


def loops(asm: str) -> list[list[str]]:
    """The mnemonics of every innermost loop of the first kernel in an assembly text."""
    lines = asm.split("s_endpgm")[0].splitlines()
    labels: dict[str, int] = {}
    found = []
    for i, line in enumerate(lines):
        if label := re.match(r"(\.LBB\w+):", line):
            labels[label[1]] = i
        if (jump := re.match(r"\s+s_c?branch\w*\s+(\.LBB\w+)", line)) and jump[1] in labels:
            body = lines[labels[jump[1]] : i + 1]
            found.append([m[1] for text in body if (m := re.match(r"\s+([a-z]\w+)", text))])
    return found


def padded(array: np.ndarray) -> np.ndarray:
    """The same content in rows that start at multiples of 16 bytes, with gaps between them."""
    memory = np.full((array.shape[0], array.shape[1] // 8 * 8 + 16), np.nan, array.dtype)
    memory[:, : array.shape[1]] = array
    return memory[:, : array.shape[1]]


@pytest.fixture(scope="module", params=[(f, c) for f in FORMS for c in CHIPS], ids="-".join)
def product(request: pytest.FixtureRequest) -> tuple[str, CompiledKernel]:
    form, chip = request.param
    return form, hkc.compile(gemm(form), chip, keep=["asm"], BM=128, BN=128, BK=64)


def test_no_branch_and_no_mask(product: tuple[str, CompiledKernel]) -> None:
    _, kernel = product
    hot = [loop for loop in loops(kernel.texts["asm"]) if sum("branch" in m for m in loop) == 1]
    hot = [loop for loop in hot if any("mfma" in m for m in loop) and any("buffer_load" in m for m in loop)]
    assert len(hot) == 1
    assert not [m for m in hot[0] if m.startswith(("v_cmp", "v_cndmask"))]
    assert not kernel.resources[kernel.symbol].spills
    assert any("tiles come in" in str(choice) for choice in kernel.binary.choices), "ahead of the trips"


def test_tiles_come_in_ahead(product: tuple[str, CompiledKernel]) -> None:
    """Also those that lanes take to LDS in other runs than they come in, as pieces of several fetches."""
    _, kernel = product
    said = [choice.chosen for choice in kernel.binary.choices if choice.subject == "loop"]
    assert any(text.startswith("tiles come in 1 trip(s) ahead, through 2 buffers") for text in said)


def test_tiles_wait_in_memory_where_registers_would_not_suffice() -> None:
    """Code generators take minutes over kernels with far too many registers."""
    kernel = hkc.compile(gemm("TN").replace("N]):", "N]) with waves=1:"), "gfx950", T="f32", BM=128, BN=96, BK=64)
    said = [choice.chosen for choice in kernel.binary.choices if choice.subject == "loop"]
    assert "tiles don't come in ahead: they would take 448 registers, 668 with all others of 512" in said
    a, b, exact = operands("TN", "f32", 128, 96, 128)
    assert np.array_equal(kernel(a, b, device="emulator"), exact)


@pytest.mark.parametrize("size", [(256, 256, 64), (200, 136, 72), (130, 72, 33), (3, 100, 40)])
def test_every_size_is_exact(product: tuple[str, CompiledKernel], size: tuple[int, int, int]) -> None:
    form, kernel = product
    a, b, exact = operands(form, "bf16", *size)
    assert np.array_equal(kernel(a, b, device="emulator"), exact)
    assert np.array_equal(kernel(padded(a), padded(b), device="emulator"), exact)
