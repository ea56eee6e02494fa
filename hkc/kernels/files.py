"""The kernels' files, compiled once per process for a chip and a set of constants."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hkc import api
from hkc.api import CompiledKernel
from hkc.support.errors import HkcError, error

FOLDER = Path(__file__).parent
SPILLS = "HK518"
"""The code of the refusal of a kernel that spills registers."""

T = TypeVar("T")


def path(name: str) -> Path:
    """The file of a kernel, such as `gemm` or `gemm_grouped`. Raises `KeyError` for a name that none has."""
    found = FOLDER / f"{name}.hk"
    if not found.is_file():
        raise KeyError(name)
    return found


def built(name: str, arch: str, keep: Sequence[str] = (), **constants: Any) -> CompiledKernel:
    """A kernel for one chip, with the texts of the stages `keep`, whether its registers spill or not: without a
    warning, unlike `hkc.compile`."""
    from hkc import pipeline
    from hkc.frontend.parse import read
    from hkc.targets.chip import load

    api.warm_up()
    values = {key: str(value) for key, value in constants.items()}
    return api.build(pipeline.check(read(path(name)), values), load(arch).name, keep)


@functools.cache
def compiled(name: str, arch: str, aligned: bool = False, **constants: Any) -> CompiledKernel:
    """The same, once per process. Raises `HkcError` HK518 where its registers would spill, which no kernel here may do:
    in any entry, or in the one for aligned operands."""
    made = built(name, arch, **constants)
    for symbol, spilled in made.spills.items():
        if symbol == made.symbol or not aligned:
            raise error(SPILLS, spilled, hint="choose smaller tiles")
    return made


def first_without_spills(make: Callable[[T], CompiledKernel], candidates: Iterable[T]) -> tuple[T, CompiledKernel]:
    """The first candidate whose kernel spills nothing, and that kernel. Raises `HkcError` HK518 if all do."""
    refused: HkcError | None = None
    for candidate in candidates:
        try:
            return candidate, make(candidate)
        except HkcError as refusal:
            refused = refusal
            if refusal.diagnostics[0].code != SPILLS:
                raise
    assert refused is not None, "there is a candidate"
    raise refused
