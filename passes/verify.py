"""What a stock `mlir-opt` can't tell of our modules: layouts that don't fit, forms that are claimed but don't hold."""

from __future__ import annotations

from typing import Any

from hkc.dialects.forms import FORMS, unfit, walk
from hkc.passes.locate import refuse


def verify(module: Any, forms: frozenset[str]) -> None:
    """Check all ops by their verifiers, all layouts, and the forms that are said to hold.

    Raises `HkcError` HK471 or HK473 at the place of the first op that is to blame.
    """
    module.operation.verify()
    ops = walk(module)
    for op in ops:
        if why := unfit(op):
            raise refuse(op, "HK471", f"{op.name}: {why}")
        for name in sorted(forms):
            if why := FORMS[name].broken(op):
                raise refuse(op, "HK473", f"form `{name}` is broken by `{op.name}`: {why}")
