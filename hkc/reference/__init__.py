"""The oracle: tile IR run with the ops' NumPy meanings, error bounds from the same meanings, and the comparison.

`run` and `bound` need MLIR and so belong into the worker process (`worker.call("hkc.reference:run", …)`); `compare`
works anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hkc.frontend.program import Checked
from hkc.reference.compare import Comparison, compare

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Comparison", "bound", "compare", "interpret", "run"]


def run(checked: Checked, arrays: Mapping[str, Any], scalars: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What the kernels of a file store, by parameter name, each op in the arithmetic of its dtype.

    `arrays` holds all tensors, outputs included (of which elements that no tile covers keep their value); none is
    changed. bf16 arrays are those of ml_dtypes.
    """
    return interpret(checked, arrays, scalars)[0]


def interpret(
    checked: Checked, arrays: Mapping[str, Any], scalars: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], str]:
    """What `run` gives, and what the kernels print."""
    import numpy as np

    from hkc.dialects.tile.diagnostics import printed

    said: list[str] = []
    found = _walk(checked, arrays, scalars, np.asarray, np.asarray, lambda *parts: said.append(printed(*parts)))
    return {name: _as_given(value, arrays[name]) for name, value in found.items()}, "".join(said)


def bound(
    checked: Checked, arrays: Mapping[str, Any], scalars: Mapping[str, Any] | None = None, rounded: bool = True
) -> dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """For every output, by parameter name, its values in float64 and how far a right result may be from them.

    See `hkc.reference.bounded` for what the bound takes into account. `rounded` says that a right result may come from
    the numbers as they stand in the source, in decimal, as a formula's does; the kernel itself has them in its dtypes.
    """
    import numpy as np

    from hkc.reference.bounded import Bounded

    found = _walk(checked, arrays, scalars, Bounded.exact, Bounded.literal if rounded else Bounded.exact)
    values = {name: np.asarray(_as_given(a.value, arrays[name]), np.float64) for name, a in found.items()}
    return {name: (values[name], np.array(a.errors)) for name, a in found.items()}


def _walk(
    checked: Checked,
    arrays: Mapping[str, Any],
    scalars: Mapping[str, Any] | None,
    lift: Any,
    literal: Any,
    say: Any = lambda *parts: None,
) -> dict[str, Any]:
    from hkc.dialects.load import load
    from hkc.frontend.emit import build
    from hkc.passes.locate import quote
    from hkc.reference.walk import Domain, walk
    from hkc.support.mlir import context, ir

    outputs = {name for kernel in checked.kernels for name in kernel.outputs}
    tensors = {n: lift(_signless(a.copy() if n in outputs else a)) for n, a in arrays.items()}
    with context(), ir.Location.unknown(), quote(checked.source):
        load()
        walk(build(checked), tensors, scalars or {}, Domain(lift, literal), say)
    return {name: tensors[name] for name in outputs}


def _signless(array: Any) -> Any:
    """Tile IR has integers without a sign: the ops that care say so. Arrays come with signed ones."""
    return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array


def _as_given(value: Any, given: Any) -> Any:
    """A stored array with the dtype that its tensor had."""
    return value.view(given.dtype) if given.dtype.kind == "u" and value.dtype.kind == "i" else value
