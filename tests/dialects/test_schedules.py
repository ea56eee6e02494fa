"""Schedules written by hand in the wave dialect: the instructions they ask for, and the right numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract import CHIPS, compiled, emulate, sample
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser

from hkc.layout import DistributedLayout
from hkc.targets.chip import load

GOLDEN = Path(__file__).parents[1] / "golden" / "wave"
SEEDS = (0, 1, 2)
"""Orders in which the emulator interleaves waves."""


def checked(name: str, arch: str) -> Any:
    """The compiled file, its assembly checked against the file's directives."""
    path = GOLDEN / name
    code = compiled(path.read_text(), arch, "wave", True)
    assembly = re.sub(r"^\s*\.loc.*\n", "", code.assembly, flags=re.MULTILINE)
    options = Options(str(path))
    assert Matcher(options, FInput("assembly", assembly), Parser.from_opts(options)).run() == 0, assembly
    return code


@pytest.mark.parametrize("arch", CHIPS)
def test_ping_pong(arch: str) -> None:
    code = checked("ping_pong.mlir", arch)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((128, 64), (64, 16)))
    at = load(arch).mfma("v_mfma_f32_16x16x16_f16").acc_layout().coordinates((16, 16))[0, :, :, 0]
    wanted = (a.astype(np.float32) @ b.astype(np.float32)).reshape(8, 16, 16)
    for seed in SEEDS:
        found = emulate(code, "k", [a, b, np.zeros((8, 64, 4), np.float32)], seed=seed)[2]
        np.testing.assert_array_equal(found, np.swapaxes(wanted[:, at[..., 0], at[..., 1]], 1, 2))


@pytest.mark.parametrize("arch", CHIPS)
def test_asynchronous_copy(arch: str) -> None:
    code = checked(f"async_copy.{arch}.mlir", arch)
    a = sample(np.dtype(np.float16), (2, 1024))
    held = DistributedLayout.parse("1024 r(1 2 512) l(4 8 16 32 64 128) w(256)").coordinates((1024,))[0, ..., 0]
    for seed in SEEDS:
        found = emulate(code, "k", [a, np.zeros((2, 2, 64, 8), np.float16)], seed=seed)[1]
        np.testing.assert_array_equal(found, np.moveaxis(a[:, held], (1, 2, 3), (3, 2, 1)))
