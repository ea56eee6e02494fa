"""Kernels given as text, interpreted or run as machine code: what the tests of the language share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hkc.frontend.check import check
from hkc.frontend.parse import parse
from hkc.frontend.program import Checked
from hkc.machine.abi import GlobalParam
from hkc.reference import compare
from hkc.support.dtypes import dtype
from hkc.support.errors import Source
from hkc.support.worker import call

MACHINE = ["reference"]
"""What runs kernels: "reference", or the chip whose machine code the emulator executes."""


def field(name: str) -> str:
    """The text of one of the field's kernels."""
    return (Path(__file__).parent / "field" / f"{name}.hk").read_text("utf-8")


def checked(text: str, **constants: object) -> Checked:
    """A checked text."""
    return check(parse(Source("kernel.hk", text)), {name: str(value) for name, value in constants.items()})


def interpret(
    text: str, arrays: dict[str, np.ndarray], scalars: dict[str, Any] | None = None, **constants: object
) -> dict[str, np.ndarray]:
    """What the kernel of a text leaves in the tensors that it writes; dims come from the arrays."""
    program = checked(text, **constants)
    if MACHINE[0] != "reference":
        return _emulate(program, arrays, scalars or {})
    found: dict[str, np.ndarray] = call("hkc.reference:run", program, arrays, numbers(program, arrays, scalars))
    return found


def numbers(program: Checked, arrays: dict[str, np.ndarray], scalars: dict[str, Any] | None) -> dict[str, Any]:
    """The scalars of a launch and the dims, which come from the arrays."""
    dims: dict[str, int] = {}
    for param in program.kernels[0].params:
        if isinstance(param, GlobalParam):
            dims |= {d: n for d, n in zip(param.dims, arrays[param.name].shape, strict=True) if isinstance(d, str)}
    return {**dims, **(scalars or {})}


def bounds(text: str, arrays: dict[str, np.ndarray], scalars: dict[str, Any] | None = None, **constants: object) -> Any:
    """By output: values in float64, and how far rounding may take a right result from them."""
    program = checked(text, **constants)
    return call("hkc.reference:bound", program, arrays, numbers(program, arrays, scalars))


def near(
    text: str,
    arrays: dict[str, np.ndarray],
    wanted: dict[str, np.ndarray],
    scalars: dict[str, Any] | None = None,
    **constants: object,
) -> dict[str, np.ndarray]:
    """Runs a kernel whose outputs hold no numbers before, unless given. They must be as near to `wanted`, in float64,
    as the kernel's arithmetic allows: the bound is derived from it."""
    kinds = {p.name: dtype(p.dtype).numpy for p in checked(text, **constants).kernels[0].params}
    nothing = {n: 0x5A if np.dtype(kinds[n]).kind in "iub" else np.nan for n in wanted}
    arrays = {n: np.full(w.shape, nothing[n]).astype(kinds[n]) for n, w in wanted.items()} | arrays
    limits, found = bounds(text, arrays, scalars, **constants), interpret(text, arrays, scalars, **constants)
    for name, array in wanted.items():
        compared = compare(found[name], array, limits[name][1])
        assert compared.ok and np.isfinite(compared.bound), f"{name}: {compared}"
    return found


def _emulate(program: Checked, arrays: dict[str, np.ndarray], scalars: dict[str, Any]) -> dict[str, np.ndarray]:
    from hkc import api

    compiled = api.build(program, MACHINE[0])
    given = {n: a.copy() if n in compiled.info.outputs else a for n, a in arrays.items()}
    arguments = compiled.bind(**given, **scalars)
    compiled.launch(arguments, "emulator")
    return dict(zip(compiled.info.outputs, arguments.results(compiled.info), strict=True))


def result(
    body: str, dtype: str = "f32", shape: tuple[int, ...] = (16,), head: str = "", scalars: str = "", **inputs: Any
) -> np.ndarray:
    """What `body` stores to `OUT` (zeros of this dtype and shape before), given arrays and numbers by name.

    A number is a parameter of i32 or f32 unless `scalars` declares it otherwise; every array gets dims of its own.
    """
    from hkc.support.dtypes import DTYPES, from_numpy

    parameters, arrays, numbers = [], {}, {}
    for name, value in inputs.items():
        if isinstance(value, np.ndarray):
            kind = from_numpy(value.dtype)
            dims = ", ".join(f"{name}{i}" for i in range(value.ndim))
            parameters.append(f"{name}: global[{kind}, {dims}]")
            arrays[name] = value
        else:
            numbers[name] = value
            if f"{name}:" not in scalars:
                parameters.append(f"{name}: {'f32' if isinstance(value, float) else 'i32'}")
    arrays["OUT"] = np.zeros(shape, DTYPES[dtype].numpy)
    parameters.append(f"OUT: global[{dtype}, {', '.join(f'OUT{i}' for i in range(len(shape)))}]")
    parameters += [scalars] if scalars else []
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    return interpret(f"{head}\nkernel k({', '.join(parameters)}):\n{lines}\n", arrays, numbers)["OUT"]
