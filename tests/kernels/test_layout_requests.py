"""Hints about layouts: honoured and to be seen, or refused with the reason."""

from __future__ import annotations

import numpy as np
import pytest
from matrix_products import CHIPS, gemm, operands, run

import hkc
from hkc.api import CompiledKernel
from hkc.support.errors import HkcError


def compiled(arch: str, hints: str, form: str = "NT", **constants: str | int) -> CompiledKernel:
    text = gemm(form).replace("C: global[OUT, M, N]):", f"C: global[OUT, M, N]) with {hints}:")
    return hkc.compile(text, arch, **constants)


def refused(arch: str, hints: str, **constants: str | int) -> tuple[str, str, str | None]:
    with pytest.raises(HkcError) as caught:
        compiled(arch, hints, **constants)
    (problem,) = caught.value.diagnostics
    assert problem.spans
    return problem.code, problem.message, problem.hint


def check(kernel: CompiledKernel, form: str = "NT", element: str = "bf16") -> None:
    a, b, wanted = operands(form, element, 70, 65, 80)
    found, happened, _ = run(kernel, a, b)
    assert np.array_equal(found, wanted)
    assert happened.findings == ()


@pytest.mark.parametrize(("arch", "asked", "element"), [
    ("gfx942", "32x32x8", "bf16"), ("gfx942", "16x16x4", "f32"), ("gfx950", "16x16x16", "f16"),
    ("gfx950", "32x32x16", "bf16"),
])  # fmt: skip
def test_a_matrix_instruction_by_its_shape(arch: str, asked: str, element: str) -> None:
    kernel = compiled(arch, f'mfma="{asked}"', T=element)
    (dot,) = {choice.chosen.split(",")[0] for choice in kernel.binary.choices if choice.subject == "dot"}
    assert asked in dot
    check(kernel, element=element)


def test_a_matrix_instruction_by_its_name() -> None:
    kernel = compiled("gfx942", "mfma=v_mfma_f32_16x16x16_bf16")
    assert {c.chosen.split(",")[0] for c in kernel.binary.choices if c.subject == "dot"} == {"v_mfma_f32_16x16x16_bf16"}


def test_a_matrix_instruction_that_there_is_not() -> None:
    code, message, hint = refused("gfx942", 'mfma="16x16x32"')
    assert (code, message) == (
        "HK450",
        "`mfma=16x16x32` can't be honoured: gfx942 has no such instruction for bf16 x bf16 into f32",
    )
    assert hint is not None and "16x16x16" in hint and "32x32x8" in hint
    code, message, hint = refused("gfx942", "mfma=16")
    assert (code, message, hint) == ("HK307", "`mfma` can't be the number 16", 'a text like "16x16x32"')


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("style", ["none", "pad", "xor", '"4^7,5^8"'])
def test_a_kind_of_byte_maps(arch: str, style: str) -> None:
    kernel = compiled(arch, f"swizzle={style}", BK=64)
    maps = [buffer.map for buffer in kernel.binary.lds]
    padded = [buffer.bytes > 64 * 64 * 2 for buffer in kernel.binary.lds]
    assert maps and all(padded) if style == "pad" else not any(padded)
    assert any(" xor " in m for m in maps) == (style not in ("none", "pad"))
    assert style[0] != '"' or all(m.endswith("xor 4^7,5^8") for m in maps)
    check(kernel)


def test_byte_maps_that_can_not_be() -> None:
    code, message, _ = refused("gfx942", 'swizzle="4^30"')
    assert code == "HK450"
    assert message == "`swizzle=4^30` can't be honoured: no such map of the 64x32 tile serves its accesses"
    assert refused("gfx942", "swizzle=all")[0] in ("HK307", "HK301")
    with pytest.raises(HkcError, match="no tile of this kernel goes through LDS"):
        hkc.compile(
            "kernel k(A: global[f32, M], B: global[f32, M]) with swizzle=xor:\n"
            "    i = tile_ids(cdiv(M, 256))\n    store(B, [i*256], load(A, [i*256], [256]))\n",
            "gfx942",
        )


def test_alignment_of_all_tensors() -> None:
    """The launch asks for it, and a kernel without tensors of undeclared alignment has nothing to gain."""
    kernel = compiled("gfx942", "align=16")
    assert sum(type(c).__name__ == "Aligned" and c.bytes == 16 for c in kernel.info.requires) == 3
    a, b, wanted = operands("NT", "bf16", 64, 64, 64)
    assert np.array_equal(kernel(a, b), wanted)
    shifted = np.zeros(64 * 64 + 1, a.dtype)[1:].reshape(64, 64)
    with pytest.raises(HkcError, match=r"align|multiple"):
        kernel(shifted, b)
    with pytest.raises(HkcError, match=r"HK308.*has no effect"):
        hkc.compile(
            "kernel k(A: global[f32, M](align=4)) with align=16:\n    i = tile_ids(M)\n"
            "    store(A, [i], load(A, [i], [1]))\n",
            "gfx942",
        )
