"""Which pass changes what a kernel means: tile IR is interpreted before the passes, and again after each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hkc import pipeline
from hkc.frontend.program import Checked
from hkc.reference.walk import Domain, walk
from hkc.support.mlir import context, ir
from hkc.targets.chip import load

MACHINE = "lower_tile_to_wave"
"""From this pass on there are no tiles; what it and all after it do is seen on the emulator."""


def after_each_pass(
    checked: Checked, arch: str, arrays: Mapping[str, Any], scalars: Mapping[str, Any]
) -> list[tuple[str, np.ndarray]]:
    """(pass, what `OUT` holds) for tile IR as it is emitted ("emit") and after every pass that keeps tiles."""
    from hkc.passes.locate import quote

    found = []
    with context(), ir.Location.unknown(), quote(checked.source):
        module = pipeline.emit(checked, load(arch))
        found.append(("emit", _interpreted(module, arrays, scalars)))
        for step in (p for passes in pipeline.stages().values() for p in passes):
            if step.name == MACHINE:
                return found
            module = pipeline.run(module, (step,))
            found.append((step.name, _interpreted(module, arrays, scalars)))
            if "entries" in module.forms:
                found.append((f"{step.name} (general)", _interpreted(module, arrays, scalars, "general")))
    return found


def _interpreted(
    module: Any, arrays: Mapping[str, Any], scalars: Mapping[str, Any], entry: str = "aligned"
) -> np.ndarray:
    tensors = {name: array.copy() for name, array in arrays.items()}
    walk(module.ir, tensors, scalars, Domain(np.asarray, np.asarray), entry=entry)
    return tensors["OUT"]
