"""Atomic updates of 8 and 16 bits swap the word around an element: at the ends of tensors, in gaps, in odd places."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hkc
from hkc.cli import main
from hkc.runtime import emulator
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcBug
from hkc.targets.chip import names

CHIPS = names()
KERNEL = """kernel k(X: global[{0}, M], A: global[{0}, N]):
    i = tile_ids(cdiv(M, 64))
    x = load(X, [i * 64], [64])
    atomic_{1}(A, [0], x)

example M = 150, N = 5
"""
VIEWS: dict[str, Callable[[Any, int], Any]] = {
    "first": lambda room, n: room[:n],
    "one on": lambda room, n: room[1 : n + 1],
    "every second": lambda room, n: room[: 2 * n : 2],
    "every third": lambda room, n: room[: 3 * n : 3],
    "backwards": lambda room, n: room[n::-1][:n],
}


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("element", ["i8", "u8", "i16", "u16", "f16", "bf16"])
def test_tensors_that_end_inside_a_word(element: str, arch: str) -> None:
    """Two workgroups add to the same elements; the bytes around them stay."""
    kind = dtype(element).numpy
    kernel = hkc.compile(KERNEL.format(element, "add"), arch)
    x = (np.arange(150) % 5).astype(kind)
    for n in (1, 3, 5, 66):
        sums = np.add.reduceat(np.pad(x.astype(int), (0, 42)).reshape(3, 64), [0])[0]
        wanted = np.pad(sums, (0, 8))[:n] + 1
        for name, view in VIEWS.items():
            room = np.full(3 * n + 2, 9, kind)
            target = view(room, n)
            around = np.ones(room.shape, bool)
            view(around, n)[...] = False
            target[...] = 1
            result = kernel.launch(kernel.bind(x, target), "emulator")
            assert not result.findings
            np.testing.assert_array_equal(target.astype(int), wanted, name)
            assert (room[around].astype(int) == 9).all()


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("element", "kind"), [("u8", "max"), ("i8", "min"), ("bf16", "max"), ("f16", "min"), ("f32", "max")]
)
def test_extremes_that_need_a_loop(element: str, kind: str, arch: str) -> None:
    values = np.random.default_rng(2).integers(0 if element == "u8" else -90, 90, 150).astype(dtype(element).numpy)
    kernel = hkc.compile(KERNEL.format(element, kind), arch)
    target = np.full(5, 3, values.dtype)
    kernel.launch(kernel.bind(values, target), "emulator")
    parts = [values[at : at + 5].astype(float) for at in (0, 64, 128)]
    function: Any = np.maximum if kind == "max" else np.minimum
    np.testing.assert_array_equal(target.astype(float), function.reduce([*parts, np.full(5, 3.0)]))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("element", "kind"), [("i8", "add"), ("bf16", "add"), ("f32", "min")])
def test_loops_of_several_workgroups_are_no_races(
    element: str, kind: str, arch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.hk"
    path.write_text(KERNEL.format(element, kind))
    assert main(["check", str(path), "--arch", arch, "--interleavings", "2"]) == 0, capsys.readouterr().out


def test_bytes_beside_elements_that_change_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the words around elements filled with anything else, a kernel that stores there would go unseen."""
    kernel = hkc.compile(KERNEL.format("i8", "add"), CHIPS[0])
    arguments = kernel.bind(np.ones(150, np.int8), np.zeros(5, np.int8))
    original = emulator._Copies._copy

    def spoilt(self: Any, region: Any) -> None:
        original(self, region)
        copy = self._copies[region]
        copy.space.data[copy.beside] = 0

    monkeypatch.setattr(emulator._Copies, "_copy", spoilt)
    with pytest.raises(HkcBug, match="stored between the elements of A"):
        kernel.launch(arguments, "emulator")
