"""One kernel under every condition: in the interpreter, with every number of waves and every depth, its tensors in the
midst of guards, its waves in many orders."""

from __future__ import annotations

from typing import Any

import numpy as np
from interpret import bounds, checked, interpret

from hkc import api
from hkc.api import CompiledKernel
from hkc.emulate.checks import CHECKS, observers
from hkc.reference import compare
from hkc.runtime.emulator import Emulator
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError

Arrays = dict[str, np.ndarray[Any, Any]]

GUARD, BYTE = 4096, 0xA5
ORDERS = 20
REFUSED = {"HK307", "HK450"}
"""A number of waves that there is not, and a request that can't be met."""


def guarded(array: np.ndarray[Any, Any], output: bool) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The same strides and values in the midst of guards, and all the bytes. Around inputs (also in gaps between rows)
    is NaN, or -7; around outputs are bytes of no meaning."""
    low, high = np.lib.array_utils.byte_bounds(array)
    start = GUARD + array.__array_interface__["data"][0] - low
    size = -(-(high - low) // array.itemsize) * array.itemsize
    whole = np.full(2 * GUARD + size, BYTE, np.uint8)
    if not output and array.dtype != np.bool_:
        around = np.array(-7).astype(array.dtype) if array.dtype.kind in "iu" else np.array(np.nan).astype(array.dtype)
        whole = np.full(whole.size // array.itemsize, around).view(np.uint8)
    view = np.ndarray(array.shape, array.dtype, whole.data, start, array.strides)
    view[...] = array
    return view, whole


def launched(kernel: CompiledKernel, arrays: Arrays, scalars: dict[str, Any], seed: int) -> Arrays:
    """What one launch leaves in the outputs, while nothing else changes; all checkers look at the first one."""
    placed = {n: guarded(a, n in kernel.info.outputs) for n, a in arrays.items()}
    before = {n: whole.copy() for n, (_, whole) in placed.items()}
    arguments = kernel.bind(**{n: view for n, (view, _) in placed.items()}, **scalars)
    happened = kernel.launch(arguments, Emulator(seed, [] if seed else observers(CHECKS)))
    assert {f.kind for f in happened.findings} <= {"bank conflicts"}, happened.findings
    results = {n: a.copy() for n, a in zip(kernel.info.outputs, arguments.results(kernel.info), strict=True)}
    for name, (view, whole) in placed.items():
        if name in results:
            view[...] = arrays[name]
        assert np.array_equal(whole, before[name]), f"something outside of {name} changed"
    return results


def hinted(text: str, hints: str) -> str:
    """The text with hints behind its kernel's parameters."""
    head, kernel = text.split("\nkernel ", 1)
    return f"{head}\nkernel {kernel.replace('):', f') with {hints}:', 1)}"


def configurations(loops: bool) -> list[str]:
    """Hints: every number of waves, and for kernels with a loop every depth."""
    waves = [f"waves={n}" for n in (1, 2, 3, 4, 6, 8)]
    return waves + [f"waves=4, stages={n}" for n in (1, 2, 3)] if loops else waves


def outcomes(
    text: str, arrays: Arrays, machine: str, loops: bool = False, **scalars: Any
) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
    """By configuration: the outputs. A configuration may be refused for what it asks; at least one is not."""
    if machine == "reference":
        return {"reference": interpret(text, arrays, scalars)}
    found = {}
    for hints in configurations(loops):
        try:
            kernel = api.build(checked(hinted(text, hints)), machine)
        except HkcError as refusal:
            assert {d.code for d in refusal.diagnostics} <= REFUSED, refusal
            continue
        found[hints] = launched(kernel, arrays, scalars, 0)
    hints = next(h for h in ("waves=4", *found) if h in found)
    kernel = api.build(checked(hinted(text, hints)), machine)
    for seed in range(1, ORDERS):
        for name, array in launched(kernel, arrays, scalars, seed).items():
            assert array.tobytes() == found[hints][name].tobytes(), (name, seed)
    return found


def exactly(text: str, inputs: Arrays, wanted: Arrays, machine: str, loops: bool = False, **scalars: Any) -> None:
    """Every configuration leaves these very values, any NaN for NaN."""
    for hints, found in outcomes(text, blank(text, wanted) | inputs, machine, loops, **scalars).items():
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array, f"{name} with {hints}")


def nearly(text: str, inputs: Arrays, wanted: Arrays, machine: str, loops: bool = False, **scalars: Any) -> None:
    """Every configuration is as near to numbers of float64 as the arithmetic allows: the bound is derived from it."""
    arrays = blank(text, wanted) | inputs
    limits = bounds(text, arrays, scalars)
    for hints, found in outcomes(text, arrays, machine, loops, **scalars).items():
        for name, array in wanted.items():
            compared = compare(found[name], array, limits[name][1])
            assert compared.ok, f"{name} with {hints}: {compared}"


def blank(text: str, wanted: Arrays) -> Arrays:
    """Outputs that hold no number yet, in the dtypes of their parameters."""
    kinds = {p.name: dtype(p.dtype).numpy for p in checked(text).kernels[0].params}
    nothing = {n: 0x5A if np.dtype(kinds[n]).kind in "iub" else np.nan for n in wanted}
    return {n: np.full(w.shape, nothing[n]).astype(kinds[n]) for n, w in wanted.items()}
