"""Functions of other files: found beside the file, with what they call, and mistakes in them shown where they stand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hkc
from hkc.support.errors import HkcError
from hkc.targets.chip import names as names_

LIBRARY = """
const FACTOR = 3

def twice(x):
    return plus(x, x)

def plus(x, y):
    return x + y

def thrice(x):
    return x * FACTOR
"""

KERNEL = """
from library import {names}

kernel k(A: global[f32, M], B: global[f32, M]):
    i = tile_ids(cdiv(M, 64)) * 64
    store(B, [i], {call}(load(A, [i], [64])))
"""


def kernel(folder: Path, names: str, call: str, library: str = LIBRARY) -> Path:
    (folder / "library.hk").write_text(library)
    path = folder / "kernel.hk"
    path.write_text(KERNEL.format(names=names, call=call))
    return path


@pytest.mark.parametrize("chip", names_())
def test_a_function_comes_with_what_it_calls(tmp_path: Path, chip: str) -> None:
    compiled = hkc.compile(
        kernel(tmp_path, "thrice_, twice", "twice", LIBRARY + "\ndef thrice_(x):\n    return x\n"), chip
    )
    a = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(compiled(a), 2 * a)


@pytest.mark.parametrize(
    ("names", "call", "library", "said"),
    [
        ("twise", "twise", LIBRARY, r"kernel.hk:2:21: error\[HK301\]: `library.hk` has no function `twise`"),
        ("thrice", "thrice", LIBRARY, r"library.hk:11:16: error\[HK301\]: unknown name `FACTOR`"),
        ("twice", "twice", "def twice(x:\n    return x\n", r"library.hk:1:12: error\[HK103\]"),
        (
            "twice",
            "twice",
            "from kernel import k\n",
            r"library.hk:1:6: error\[HK123\]: `kernel.hk` would import",
        ),
        ("twice", "twice", "from library import a\n", r"library.hk:1:6: error\[HK123\]: `library.hk` would import"),
    ],
)
def test_mistakes_stand_where_they_are(tmp_path: Path, names: str, call: str, library: str, said: str) -> None:
    path = kernel(tmp_path, names, call, library)
    with pytest.raises(HkcError, match=said):
        hkc.compile(path, names_()[0])


def test_a_text_without_a_folder_imports_nothing() -> None:
    with pytest.raises(HkcError, match=r"HK123.*there is no `library.hk` in the folder of this file"):
        hkc.compile(KERNEL.format(names="twice", call="twice"), names_()[0])
