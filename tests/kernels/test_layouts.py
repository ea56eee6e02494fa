"""What layout selection achieves on whole kernels."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from matrix_products import CHIPS, compiled, gemm, operands, run

import hkc

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_the_weights_of_attention_stay_in_registers(dtype: str, arch: str) -> None:
    """Q, K and V go through LDS and nothing else does: one dot's result is the next one's operand as it lies."""
    kernel = hkc.compile(EXAMPLES / "attention.hk", arch, T=dtype)
    uses = {(access.line, access.op.split("_")[1]) for buffer in kernel.binary.lds for access in buffer.accesses}
    text = (EXAMPLES / "attention.hk").read_text().splitlines()
    assert len({buffer.map for buffer in kernel.binary.lds}) == 3  # whatever a pipelined loop has two copies of
    assert {text[line - 1].split("=")[0].strip() for line, _ in uses if line} == {"s", "acc"}
    assert all(access.cycles == access.minimum for buffer in kernel.binary.lds for access in buffer.accesses)


@pytest.mark.parametrize("arch", CHIPS)
def test_columns_are_written_in_runs_or_read_transposed(arch: str) -> None:
    """Where memory holds no runs along k, either lanes turn blocks of elements before they write them, or 16 lanes
    transpose while they read; element by element would take four times as many instructions."""
    kernel = compiled("TN", arch, BM=128, BN=128, BK=64)
    wide = {"ds_write_b64", "ds_write_b128", "ds_read_b64", "ds_read_b128", "ds_read_b64_tr_b16"}
    assert kernel.lds and {access.mnemonic for buffer in kernel.lds for access in buffer.accesses} <= wide


def test_runs_along_k_are_as_wide_as_reads() -> None:
    """The order along k is free: a lane's f32 operands of four instructions lie side by side."""
    kernel = compiled("NT", "gfx942", T="f32")
    assert {access.mnemonic for buffer in kernel.binary.lds for access in buffer.accesses} == {
        "ds_write_b128",
        "ds_read_b128",
    }


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.hk")))
def test_no_example_spills_a_register(name: str, arch: str) -> None:
    kernel = hkc.compile(EXAMPLES / f"{name}.hk", arch)
    for taken in kernel.resources.values():
        assert (taken.vgpr_spills, taken.sgpr_spills, taken.scratch) == (0, 0, 0)


@pytest.mark.parametrize(("arch", "element"), [("gfx942", "f8e4m3fnuz"), ("gfx950", "f8e4m3fn")])
def test_products_of_bytes_are_stored_by_words_in_either_order(arch: str, element: str) -> None:
    """Rows or columns of the result one after another in memory: whole tiles are written by as many instructions."""
    plain = gemm("NT")
    turned = plain.replace("global[OUT, M, N]", "global[OUT, N, M]").replace(
        "store(C, [m*BM, n*BN], cast(acc, OUT))", "store(C, [n*BN, m*BM], cast(acc, OUT).T)"
    )
    counts = []
    a, b, wanted = operands("NT", element, 128, 128, 64)
    for text, product in ((plain, wanted), (turned, wanted.T)):
        kernel = hkc.compile(text, arch, T=element, OUT=element, BM=128, BN=128, keep=["asm"])
        body = kernel.texts["asm"].split("gemm__general:")[0]
        counts.append(len(re.findall(r"buffer_store_dword", body)))
        found, happened, _ = run(kernel, a, b)
        assert np.array_equal(found, product.astype(a.dtype)) and happened.findings == ()
    assert counts[0] == counts[1] > 0
