"""A trial run: values for dims and numbers, seeded inputs, and the comparison with an oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from hkc import pipeline
from hkc.frontend import reference as formulas
from hkc.frontend.program import Checked, Kernel
from hkc.machine.abi import GlobalParam, ScalarParam
from hkc.reference import Comparison, compare
from hkc.runtime.arguments import Arguments
from hkc.runtime.arrays import Array
from hkc.support import worker
from hkc.support.dtypes import DType, dtype
from hkc.support.errors import Diagnostic, HkcUsageError, Source, error
from hkc.support.extents import evaluate

LARGEST = 1 << 59
"""So many elements of 8 bytes and more of them can't even be counted in an address."""

FORMULA, MEANING = "the file's reference", "the tile operations"
"""The two oracles: the formula in the file where it has one, else what the ops of the kernel mean."""


def check(
    source: Source, settings: Sequence[tuple[str, str]], kernel: str | None = None
) -> tuple[Checked, dict[str, str]]:
    """The checked file under those settings that name its constants, and the others, which are for the run. `kernel`
    names the one that is meant."""
    constants = {c.binding.name.name for c in pipeline.parse(source).constants}
    given = dict(settings)
    checked = pipeline.check(source, {name: text for name, text in given.items() if name in constants}, kernel)
    return checked, {name: text for name, text in given.items() if name not in constants}


def values(
    checked: Checked, kernel: Kernel, settings: Mapping[str, str], files: Mapping[str, Array]
) -> dict[str, int | float | bool]:
    """A value for every dim and scalar: the setting, the extent of an input file, or the file's example.

    Raises `HkcUsageError` HK305 for a setting that fits nothing, HK519 for what has no value.
    """
    kinds = {dim: dtype("i64") for dim in kernel.dims}
    kinds |= {p.name: dtype(p.dtype) for p in kernel.params if isinstance(p, ScalarParam)}
    found: dict[str, int | float | bool] = {}
    for name, text in settings.items():
        if name not in kinds:
            names = [*(name for name, _ in checked.constants), *kinds]
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise _usage("HK305", f"{checked.source.name} has no constant, dim or scalar `{name}`", hint)
        found[name] = _number(name, text, kinds[name])
        if name in kernel.dims and found[name] < 0:
            raise error("HK505", f"`{name}` is {found[name]}; an extent is a whole number from 0")
    for p in kernel.params:
        if isinstance(p, GlobalParam) and p.name in files:
            extents = zip(p.dims, files[p.name].shape, strict=False)
            found = {dim: extent for dim, extent in extents if isinstance(dim, str)} | found
    found = dict(checked.examples) | found
    if missing := [name for name in kinds if name not in found]:
        raise _usage("HK519", f"no value for {', '.join(missing)}", f"--set {','.join(f'{m}=…' for m in missing)}")
    return {name: found[name] for name in kinds}


def inputs(kernel: Kernel, known: Mapping[str, Any], files: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """An array for every tensor that the kernel doesn't only write: from a file, else random.

    Floats are drawn from the standard normal distribution and rounded to the dtype, whole numbers from -8 to 8.
    """
    written = set(kernel.outputs) - set(kernel.inputs)
    found: dict[str, Array] = {}
    for number, p in enumerate(kernel.params):
        if not isinstance(p, GlobalParam) or p.name in written:
            continue
        shape = tuple(evaluate(dim, known) for dim in p.dims)
        if math.prod(shape) >= LARGEST:
            raise error("HK505", f"`{p.name}` of {'x'.join(map(str, shape))} elements fits no memory")
        draw = np.random.default_rng([seed, number])
        found[p.name] = files[p.name] if p.name in files else _random(dtype(p.dtype), shape, draw)
    return found


def tensor(kernel: Kernel, name: str) -> GlobalParam:
    """The tensor called `name`. Raises `HkcUsageError` HK305 where there is none."""
    tensors = {p.name: p for p in kernel.params if isinstance(p, GlobalParam)}
    if name not in tensors:
        raise _usage("HK305", f"`{kernel.name}` has no tensor `{name}`", f"it has {', '.join(tensors)}")
    return tensors[name]


def load(param: GlobalParam, path: str) -> Array:
    """The array in a `.npy` file for a tensor. NumPy stores bf16 as two nameless bytes, which is understood.

    Raises `HkcError` HK520 for an unreadable file.
    """
    try:
        array: Array = np.load(Path(path), allow_pickle=False)
    except OSError as problem:
        raise error("HK520", f"can't read `{path}`: {problem.strerror or problem}") from None
    except (ValueError, EOFError):
        raise error("HK520", f"`{path}` is no .npy file of numbers") from None
    kind = dtype(param.dtype).numpy
    return array.view(kind) if array.dtype == np.dtype(f"V{kind.itemsize}") else array


@dataclass(frozen=True)
class Verdict:
    """How one output compares, and with which oracle. `faithful` says whether it is what the tile operations mean."""

    name: str
    oracle: str
    comparison: Comparison
    faithful: bool


def judge(checked: Checked, kernel: Kernel, before: Mapping[str, Array], after: Arguments) -> list[Verdict]:
    """Compare all outputs. `before` holds the tensors as they were when the kernel started.

    The oracle is evaluated in float64 on the inputs as rounded to their dtypes. Raises `HkcError` HK310 for a formula
    that gives another shape than the output has.
    """
    numbers = {**after.names, **after.scalars}
    exact = {name: array.astype(np.float64) for name, array in before.items()}
    wanted = formulas.evaluate(checked, {**exact, **numbers})
    bounds = worker.call("hkc.reference:bound", checked, dict(before), numbers, bool(wanted))
    found: list[Verdict] = []
    for name in kernel.outputs:
        array = after.on_host()[name]
        meaning, limit = bounds[name]
        faithful = compare(array, meaning, limit)
        if name not in wanted:
            found.append(Verdict(name, MEANING, faithful, faithful.ok))
            continue
        if wanted[name].shape != array.shape:
            given, written = (f"[{', '.join(map(str, x.shape))}]" for x in (wanted[name], array))
            raise error("HK310", f"the reference of `{name}` is {given}, but the kernel writes {written}")
        found.append(Verdict(name, FORMULA, compare(array, wanted[name], limit), faithful.ok))
    return found


def _number(name: str, text: str, kind: DType) -> int | float | bool:
    try:
        if kind.kind == "bool":
            return {"true": True, "false": False}[text.lower()]
        return float(text) if kind.is_float else int(text, 0)
    except (ValueError, KeyError):
        what = "true or false" if kind.kind == "bool" else "a number" if kind.is_float else "a whole number"
        raise _usage("HK305", f"`{name}` must be {what}, not `{text}`", None) from None


def _random(kind: DType, shape: tuple[int, ...], draw: np.random.Generator) -> Array:
    if kind.is_float:
        return draw.standard_normal(shape).astype(kind.numpy)
    if kind.kind == "bool":
        return draw.integers(0, 2, shape).astype(np.bool_)
    return draw.integers(-8 if kind.kind == "int" else 0, 9, shape).astype(kind.numpy)


def _usage(code: str, message: str, hint: str | None) -> HkcUsageError:
    return HkcUsageError(Diagnostic(code, message, hint=hint))
