"""Which kernel is meant: of several in a file, and of a Python file, which is read and never run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hkc as hkc_
from hkc.support.errors import HkcError, HkcUsageError
from hkc.targets.chip import names

Hkc = Callable[..., Any]
CHIP = names()[0]

TWO = """const T = f32
kernel double(A: global[T, N], B: global[T, N]):
    i = tile_ids(cdiv(N, 64)) * 64
    store(B, [i], load(A, [i], [64]) * 2.0)

kernel total(B: global[T, N], C: global[T, 1]):
    s = zeros[T, 1]
    for i in range(0, N, 64):
        s = s + sum(load(B, [i], [64]), axis=0, keepdims=True)
    store(C, [0], s)

example N = 100
reference:
    B = A * 2
    C = sum(B, axis=0, keepdims=True)
"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.hk"
    path.write_text(TWO)
    return path


def test_one_of_several_kernels_is_named(hkc: Hkc, two: Path) -> None:
    assert hkc("check-syntax", two).code == 0
    ran = hkc("compile", two, "--arch", CHIP)
    assert ran.code == 1 and "HK454" in ran.err and "--kernel double" in ran.err
    for name in ("double", "total"):
        for device in ("emulator", "reference"):
            ran = hkc("run", two, "--arch", CHIP, "--kernel", name, "--device", device, "--json")
            assert ran.code == 0 and ran.json["oracle"] == "the file's reference", ran.err
        assert (
            hkc("compile", two, "--arch", CHIP, "--kernel", name, "--report", "json")
            .json["kernels"][0]["symbol"]
            .startswith(name)
        )
    checked = hkc("check", two, "--arch", CHIP, "--kernel", "total", "--interleavings", "1", "--set", "N=70")
    assert checked.code == 0 and "total for" in checked.out
    wrong = hkc("run", two, "--arch", CHIP, "--kernel", "totel")
    assert wrong.code == 2 and "has no kernel `totel`" in wrong.err and "total" in wrong.err


def test_one_of_several_kernels_from_python(two: Path) -> None:
    b = np.arange(70, dtype=np.float32)
    assert hkc_.compile(two, CHIP, kernel="total")(b, device="emulator").tolist() == [b.sum()]
    with pytest.raises(HkcUsageError, match="no kernel `x`"):
        hkc_.compile(two, CHIP, kernel="x")


PYTHON = '''"""A module that must not be run."""

import hkc
import hkc.language as L
from hkc.language import Dim, cdiv, f32, global_, i32, load, store, tile_ids, tune
from elsewhere import SECRET

raise SystemExit("this file was run")

N = Dim
WIDTH = 2 * 32
BLOCK = tune(WIDTH, [32, WIDTH])
FACTOR = -1 / 4
if WIDTH > 3:
    LATER = 5


def scaled(x, by=FACTOR):
    return x * by


@hkc.kernel(waves=1)
def first(A: global_[f32, N], B: global_[f32, N]) -> None:
    i = tile_ids(L.cdiv(N, BLOCK)) * BLOCK
    store(B, [i], scaled(load(A, [i], [BLOCK])))


@hkc.kernel
def second(A: global_[f32, N], B: global_[f32, N]) -> None:
    i = tile_ids(cdiv(N, 64)) * 64
    store(B, [i], scaled(load(A, [i], [64]), 3.0))
'''


def test_a_python_file_is_read_and_not_run(hkc: Hkc, tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(PYTHON)
    assert hkc("check-syntax", path).out == f"{path}: ok\n"
    assert "HK454" in hkc("run", path, "--arch", CHIP, "--set", "N=70").err
    ran = hkc("run", path, "--arch", CHIP, "--kernel", "first", "--set", "N=70,BLOCK=32", "--json")
    assert ran.code == 0 and ran.json["ok"], ran.err
    assert hkc("check", path, "--arch", CHIP, "--kernel", "second", "--set", "N=70", "--interleavings", "1").code == 0
    a = np.arange(70, dtype=np.float32)
    kernel = hkc_.compile(path, CHIP, kernel="first")
    assert kernel.waves == 1 and kernel(a, device="emulator").tolist() == (a * -0.25).tolist()


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("scaled(load(A, [i], [64]), 3.0)", "load(A, [i], [64]) * SECRET", 31, "HK208]: only running this file"),
        ("scaled(load(A, [i], [64]), 3.0)", "load(A, [i], [LATER])", 31, "HK208]: only running this file"),
        ("cdiv(N, 64)) * 64", "cdiv(N, 64)) * 63.5", 30, "HK"),
        ("cdiv(N, 64)) * 64", "cdiv(N, 64)) ** ", 30, "HK101]: not Python"),
        ("tile_ids(cdiv(N, 64))", "tile_idz(cdiv(N, 64))", 30, "did you mean `tile_ids`"),
    ],
)
def test_mistakes_are_at_lines_of_the_python_file(
    old: str, new: str, line: int, said: str, hkc: Hkc, tmp_path: Path
) -> None:
    path = tmp_path / "k.py"
    path.write_text(PYTHON.replace(old, new))
    ran = hkc("check-syntax", path)
    assert ran.code == 1 and f"k.py:{line}:" in ran.err and said in ran.err, ran.err


def test_a_python_file_without_kernels(hkc: Hkc, tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("x = 1\n")
    ran = hkc("check-syntax", tmp_path / "k.py")
    assert ran.code == 1 and "HK122" in ran.err and "@hkc.kernel" in ran.err


def test_references_over_no_elements(hkc: Hkc, examples: Path) -> None:
    for name in ("softmax", "attention"):
        ran = hkc("run", examples / f"{name}.hk", "--arch", CHIP, "--set", "N=0", "--device", "reference", "--json")
        assert ran.code == 0 and ran.json["ok"], ran.err


def test_every_example_runs_by_the_reference_and_has_a_twin(hkc: Hkc, examples: Path) -> None:
    files = sorted(examples.glob("*.hk"))
    assert len(files) >= 4
    for path in files:
        ran = hkc("run", path, "--device", "reference", "--json")
        assert ran.code == 0 and ran.json["ok"], ran.err
        assert path.with_suffix(".py").exists()


def test_small_mistakes_at_the_door(hkc: Hkc, examples: Path, tmp_path: Path) -> None:
    ran = hkc("run", examples / "gemm.hk", "--arch", CHIP, "--set", "BM=-1")
    assert ran.code == 1 and "gemm.hk:8:22: error[HK431]" in ran.err and "-1" in ran.err
    (tmp_path / "bad.npy").write_text("junk")
    ran = hkc("run", examples / "vector_add.hk", "--arch", CHIP, "--input", f"A={tmp_path / 'bad.npy'}")
    assert ran.code == 1 and "error[HK520]: " in ran.err and "is no .npy file of numbers" in ran.err
    for text in ("", " \n"):
        with pytest.raises(HkcError, match="HK122"):
            hkc_.compile(text, CHIP)
