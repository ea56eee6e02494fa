"""What the kernel author asks of the passes: the hints after `with`."""

from __future__ import annotations

from typing import Any

from hkc.support.mlir import ir

HINTS = "hkc.hints"
"""Attribute of a kernel function: the values of its hints by name."""


def requested(function: Any, name: str) -> Any:
    """The value of a hint, a whole number or a word; None where it was not given."""
    hints = function.attributes.get(HINTS, {})
    if name not in hints:
        return None
    value = hints[name]
    return ir.StringAttr(value).value if isinstance(value, ir.StringAttr) else int(ir.IntegerAttr(value).value)
