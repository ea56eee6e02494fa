"""The kernels' files, compiled once per process for a chip and a set of constants."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from hkc import api
from hkc.api import CompiledKernel
from hkc.support.dtypes import DTYPES
from hkc.support.errors import error

FOLDER = Path(__file__).parent
SPILLS = "HK518"
"""The code of the refusal of a kernel that spills registers."""


def path(name: str) -> Path:
    """The file of a kernel, such as `gemm` or `gemm_grouped`. Raises `KeyError` for a name that none has."""
    found = FOLDER / f"{name}.hk"
    if not found.is_file():
        raise KeyError(name)
    return found


@functools.cache
def compiled(name: str, arch: str, aligned: bool = False, **constants: Any) -> CompiledKernel:
    """A kernel for one chip. Raises `HkcError` HK518 where its registers would spill, which no kernel here may do: in
    any entry, or in the one for aligned operands."""
    made = api.compile(path(name), arch, **constants)
    for entry in made.info.entries[: 1 if aligned else None]:
        symbol, taken = entry.symbol, made.resources[entry.symbol]
        if taken.spills:
            raise error(SPILLS, f"`{symbol}` for {arch} spills {taken.spilled}", hint="choose smaller tiles")
    return made


def dtype_of(what: str, array: Any) -> str:
    """The name of the dtype of an array or tensor. Raises `HkcError` HK503 for one that hkc doesn't know."""
    found = str(array.dtype).removeprefix("torch.")
    name = next((d.name for d in DTYPES.values() if str(d.numpy) == found), None)
    if name is None:
        raise error("HK503", f"`{what}` holds {found}, which hkc doesn't know", hint=", ".join(DTYPES))
    return name
