"""Tiles against the LDS of a workgroup: what fits compiles, what does not is refused with all that mends it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matrix_products import compiled, operands

import hkc
from hkc.support import worker
from hkc.support.errors import HkcError, Source

EXACTLY = [("gfx942", 256, 65536), pytest.param("gfx950", 640, 163840, marks=pytest.mark.long)]
"""Chip, rows of a tile of 64 f32 columns, and the bytes of the chip's LDS that it fills."""


@pytest.mark.parametrize(("arch", "rows", "limit"), EXACTLY)
def test_a_tile_as_large_as_the_lds(arch: str, rows: int, limit: int) -> None:
    kernel = compiled("NT", arch, T="f32", BM=rows, BN=16, BK=64)
    assert kernel.lds_bytes == limit == max(buffer.bytes for buffer in kernel.binary.lds)


@pytest.mark.parametrize(("arch", "rows", "limit"), EXACTLY)
def test_a_tile_beyond_the_lds(arch: str, rows: int, limit: int) -> None:
    with pytest.raises(HkcError) as refused:
        compiled("NT", arch, T="f32", BM=rows + 16, BN=16, BK=64)
    (problem,) = refused.value.diagnostics
    held = rows + 64  # four waves share 16 rows each
    need = held * 64 * 4
    assert problem.code == "HK453"
    assert problem.message == f"this kernel needs {need} bytes of LDS, but a workgroup of {arch} has {limit}"
    assert problem.spans and problem.spans[0].line == 11
    tiles = [
        f"{need} bytes, {48 * 64 * 4} of them padding for the {rows + 16}x64 f32 tile",
        "4096 bytes for the 64x16 f32 tile",
    ]
    assert [note.message for note in problem.notes] == tiles
    assert all(note.span and note.span.line == 11 for note in problem.notes)
    assert problem.hint == f"make the tile smaller: {rows}x64 would fit"


def test_what_the_hint_names_compiles() -> None:
    with pytest.raises(HkcError) as refused:
        compiled("NT", "gfx942", T="f32", BM=400, BN=16, BK=64)
    (problem,) = refused.value.diagnostics
    assert problem.hint == "make the tile smaller: 256x64 would fit"
    assert compiled("NT", "gfx942", T="f32", BM=256, BN=16, BK=64).lds_bytes <= 65536


@pytest.mark.long
def test_what_is_too_large_for_one_chip_may_fit_another() -> None:
    assert compiled("NT", "gfx950", T="f32", BM=272, BN=16, BK=64).lds_bytes <= 163840


def test_buffers_share_where_they_would_not_fit_side_by_side() -> None:
    """Two operands of 48 KiB: each has the LDS to itself in turn."""
    kernel = compiled("NT", "gfx942", T="f32", BM=192, BN=192, BK=64)
    assert [buffer.offset for buffer in kernel.binary.lds] == [0, 0]
    assert kernel.lds_bytes == 49152


def test_buffers_that_share_are_not_filled_ahead() -> None:
    a, b, exact = operands("NT", "bf16", 128, 64, 600)
    kernel = compiled("NT", "gfx942", BM=128, BN=64, BK=256)
    assert [buffer.offset for buffer in kernel.binary.lds] == [0, 0]
    assert np.array_equal(kernel(a, b, device="emulator"), exact)


PADDED = """
kernel k(A: global[f32, M, K], B: global[f32, N, K], C: global[f32, M, N]) with swizzle=STYLE:
    store(C, [0, 0], dot(load(A, [0, 0], [128, 128]), load(B, [0, 0], [16, 128]).T))
"""


def test_padding_counts() -> None:
    """A tile that fills the LDS to the last byte, and the same with padded rows."""
    assert hkc.compile(PADDED.replace("STYLE", "xor"), "gfx942").lds_bytes == 65536
    with pytest.raises(HkcError) as refused:
        hkc.compile(PADDED.replace("STYLE", "pad"), "gfx942")
    (problem,) = refused.value.diagnostics
    need = int(problem.message.split()[3])
    assert need > 65536
    padding = f"{need} bytes, {need - 65536} of them padding for the 128x128 f32 tile"
    assert padding in [note.message for note in problem.notes]
    assert hkc.compile(PADDED.replace("STYLE", "pad"), "gfx950").lds_bytes == need


def test_an_array_that_is_regrouped() -> None:
    """What goes through LDS is the array before it has its new extents."""
    with pytest.raises(HkcError) as refused:
        hkc.compile(REGROUPED, "gfx942")
    (problem,) = refused.value.diagnostics
    assert [note.message for note in problem.notes] == ["196608 bytes for the 48x1024 f32 tile"]
    assert problem.hint == "make the tile smaller: 48x336 would fit"


REGROUPED = """
kernel k(A: global[f32, M, K], C: global[f32, M, N]):
    store(C, [0, 0], reshape(load(A, [0, 0], [48, 1024]), [1024, 48]))
"""

PRODUCT = """
kernel k(A: global[bf16, M, K], B: global[bf16, N, K], C: global[f32, M, N]):
    store(C, [0, 0], dot(load(A, [0, 0], [64, 32]), load(B, [0, 0], [64, 32]).T))
"""


@pytest.mark.parametrize(("arch", "limit", "more"), [("gfx942", 65536, 256), ("gfx950", 163840, 16)])
def test_buffers_at_offsets_written_by_hand(arch: str, limit: int, more: int) -> None:
    """Wave IR says where its buffers lie: up to the last byte of LDS, and not beyond."""
    wave = hkc.compile(PRODUCT, arch, keep=["wave"]).texts["wave"]

    def placed(end: int) -> Source:
        return Source("k.mlir", re.sub(r"offset = \d+ : i64", f"offset = {end - 4096} : i64", wave))

    fits = worker.call("hkc.pipeline:compile_module", placed(limit), arch)
    assert {taken.lds_bytes for taken in fits.resources.values()} == {limit}
    with pytest.raises(HkcError) as refused:
        worker.call("hkc.pipeline:compile_module", placed(limit + more), arch)
    (problem,) = refused.value.diagnostics
    assert problem.code == "HK453" and problem.spans
    assert problem.message == (f"this kernel needs {limit + more} bytes of LDS, but a workgroup of {arch} has {limit}")
    said = [note.message for note in problem.notes]
    assert f"4096 bytes from byte {limit + more - 4096} on for a 64x32 tile" in said and all(
        note.span for note in problem.notes
    )
    assert problem.hint and "offset" in problem.hint


@pytest.mark.parametrize(("form", "tile"), [("TN", (160, 16, 96)), ("NT", (16, 160, 96))])
def test_padding_that_there_is_no_room_for_is_not_chosen(form: str, tile: tuple[int, int, int]) -> None:
    """Sixteen waves would hold 256 rows of 160, which do not fit; two hold them all, and the others copies."""
    kernel = compiled(form, "gfx942", "waves=16", T="f32", **dict(zip(("BM", "BN", "BK"), tile, strict=True)))
    assert kernel.lds_bytes == 160 * 96 * 4
    a, b, exact = operands(form, "f32", tile[0] + 3, tile[1], 191)
    assert np.array_equal(kernel(a, b, device="emulator"), exact)
