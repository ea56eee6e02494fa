"""Why a pass chose what it chose: lines of text that travel with the kernel function."""

from __future__ import annotations

from typing import Any

from hkc.passes.locate import span
from hkc.support.mlir import ir

EXPLAINED = "hkc.explained"
"""Attribute of a kernel function: what passes say about their choices, in order."""


def explain(function: Any, op: Any, text: str) -> None:
    """Add a remark about what stands at the place of `op` in the source."""
    at = span(op)
    place = f"line {at.line}: " if at else ""
    lines = [*_attributes(function), ir.StringAttr.get(place + text)]
    function.attributes[EXPLAINED] = ir.ArrayAttr.get(lines)


def explained(function: Any) -> str:
    """All remarks about a kernel, a line each."""
    return "".join(f"{ir.StringAttr(line).value}\n" for line in _attributes(function))


def _attributes(function: Any) -> list[Any]:
    return list(function.attributes[EXPLAINED]) if EXPLAINED in function.attributes else []
