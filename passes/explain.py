"""Why a pass chose what it chose: remarks that travel with the kernel function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from hkc.passes.locate import span
from hkc.support.mlir import ir

EXPLAINED = "hkc.explained"
"""Attribute of a kernel function: what passes say about their choices, in order."""


@dataclass(frozen=True)
class Option:
    """A way to do something, and the clocks that it is modelled to cost (None: that was not what decided)."""

    text: str
    clocks: int | None = None


@dataclass(frozen=True)
class Remark:
    """A choice: its source line, what was to be chosen, what was, and the best of the others (None: there is none)."""

    line: int | None
    subject: str
    chosen: Option
    runner_up: Option | None


def explain(function: Any, op: Any, subject: str, chosen: Option, others: Sequence[Option] = ()) -> None:
    """Add a remark about a choice at the place of `op` in the source, once, however many copies of `op` there are."""
    at = span(op)
    distinct = [other for other in others if other.text != chosen.text]
    options = [chosen, *sorted(distinct, key=lambda option: option.clocks or 0)[:1]]
    number = ir.IntegerType.get_signless(64)
    parts = {
        "subject": ir.StringAttr.get(subject),
        "texts": ir.ArrayAttr.get([ir.StringAttr.get(option.text) for option in options]),
        "clocks": ir.ArrayAttr.get([ir.IntegerAttr.get(number, o.clocks) for o in options if o.clocks is not None]),
    }
    if at is not None:
        parts["line"] = ir.IntegerAttr.get(number, at.line)
    made = ir.DictAttr.get(parts)
    if made not in (said := _attributes(function)):
        function.attributes[EXPLAINED] = ir.ArrayAttr.get([*said, made])


def explained(function: Any) -> tuple[Remark, ...]:
    """All remarks about a kernel."""
    return tuple(map(_remark, _attributes(function)))


def _remark(attribute: Any) -> Remark:
    parts = ir.DictAttr(attribute)
    clocks = [int(ir.IntegerAttr(number).value) for number in ir.ArrayAttr(parts["clocks"])]
    pairs = zip_longest(ir.ArrayAttr(parts["texts"]), clocks)
    chosen, *others = (Option(ir.StringAttr(text).value, clocks) for text, clocks in pairs)
    line = int(ir.IntegerAttr(parts["line"]).value) if "line" in parts else None
    return Remark(line, ir.StringAttr(parts["subject"]).value, chosen, others[0] if others else None)


def _attributes(function: Any) -> list[Any]:
    return list(function.attributes[EXPLAINED]) if EXPLAINED in function.attributes else []
