"""The shapes that `hkc check` runs with."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hkc import pipeline
from hkc.cli.shapes import Names, shapes
from hkc.frontend.parse import read
from hkc.machine.abi import KernelInfo
from hkc.support.errors import Source

EXAMPLES = Path(__file__).parents[2] / "examples"


def made(source: Source, known: Names, fixed: set[str] | None = None) -> tuple[KernelInfo, list[Names]]:
    checked = pipeline.check(source, {})
    info = checked.info(pipeline.only_kernel(checked))
    return info, shapes(checked, info, known, fixed or set())


def test_dims_go_around_the_tile_sizes_each_at_its_own_pace() -> None:
    known: Names = {"M": 256, "K": 256, "N": 256}
    _, found = made(read(EXAMPLES / "gemm.hk"), known)  # tiles of 128 x 128 x 32
    assert found[0] == known and {"M": 1, "K": 1, "N": 1} in found
    for dim in known:
        assert {0, 1, 31, 33, 127, 128, 129, 272} <= {shape[dim] for shape in found}
    assert sum(len(set(shape.values())) == 3 for shape in found) >= 7
    aligned = [s for s in found if all(x % 16 == 0 and x % 128 for x in s.values())]  # edges of wide accesses
    assert len(aligned) == 2 and all(len(set(s.values())) == 3 and s["K"] >= 3 * 32 for s in aligned)
    assert len(found) == len({tuple(shape.items()) for shape in found}) < 18


def test_what_is_set_stays() -> None:
    _, found = made(read(EXAMPLES / "gemm.hk"), {"M": 7, "K": 256, "N": 9}, {"M", "N"})
    assert {(shape["M"], shape["N"]) for shape in found} == {(7, 9)} and len(found) > 7
    _, found = made(read(EXAMPLES / "gemm.hk"), {"M": 7, "K": 5, "N": 9}, {"M", "K", "N"})
    assert found == [{"M": 7, "K": 5, "N": 9}]


COPY = """
kernel copy(A: global[f32, M, N](align=16, contiguous=True), B: global[f32, M, N]):
    i = tile_ids(cdiv(M, 16))
    store(B, [i*16, 0], load(A, [i*16, 0], [16, 32]))
"""


def test_declarations_are_respected() -> None:
    info, found = made(Source("copy.hk", COPY), {"M": 64, "N": 64})
    assert info.requires and len({shape["N"] for shape in found}) > 3
    assert all(shape["N"] % 4 == 0 or shape["M"] <= 1 for shape in found), found
    assert any(shape["M"] % 2 for shape in found if shape["M"] > 1) or all(s["M"] % 4 == 0 for s in found)


@pytest.mark.parametrize("rank", [3, 5])
def test_no_tensor_is_too_large(rank: int) -> None:
    dims = ", ".join(f"D{i}" for i in range(rank))
    zeros = ", ".join(["0"] * rank)
    ones = ", ".join(["1"] * (rank - 1))
    text = f"""
kernel copy(A: global[f32, {dims}], B: global[f32, {dims}]):
    store(B, [{zeros}], load(A, [{zeros}], [{ones}, 64]))
"""
    _, found = made(Source("copy.hk", text), {f"D{i}": 2 for i in range(rank)})
    assert max(math.prod(shape.values()) for shape in found) <= 1 << 21
    assert len(found) > 7 and any(63 in shape.values() for shape in found)
