"""What a kernel says while it runs: `assert` and `print`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hkc.dialects.define import ANY, BOOL, TEXT, TILE, Mismatch, attribute, operand, option, tile_op
from hkc.dialects.tile.reduce import unsigned_view
from hkc.dialects.types import ScalarType, TileType, Type
from hkc.support.errors import error


@tile_op("assert", pure=False, spelling="assert condition, message")
class Assert:
    """Stop the kernel unless all elements of a bool tile hold. The reference names the message (HK720); machine code
    traps, which the emulator reports with message, line, workgroup, wave and lane, and a GPU as an aborted queue."""

    condition = operand(TILE)
    message = attribute(TEXT)
    whole_blocks = True
    examples = ('"hkc_tile.assert"(%c) {message = "negative"} : (tensor<64x32xi1>) -> ()',)

    @staticmethod
    def infer(condition: TileType, *, message: str) -> tuple[()]:
        if condition.dtype != "bool":
            raise Mismatch(
                f"`assert` takes bools, not {condition}", ("condition",), code="HK204", hint="compare: x >= 0"
            )
        return ()

    @staticmethod
    def meaning(condition: Any, *, message: str) -> None:
        if not np.all(np.asarray(condition)):
            raise error("HK720", f"assertion failed: {message}")

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        conditions = [e for fragment in low.elements(op.operands[0]) for e in fragment]
        low.trap_unless(conditions, op.attributes["message"].value)


@tile_op("print", pure=False, spelling="print(value, …)")
class Print:
    """Write values of one type, after `prefix`; the line goes on with the next `print` where there is `more`, and
    integers have no sign where they are `unsigned`. Machine code appends them to a buffer of the launch, which is shown
    when the kernel is done, in the order of the workgroups and then of the program."""

    values = operand(ANY, variadic=True)
    prefix = attribute(TEXT)
    whole_blocks = True
    more = option(BOOL, False)
    unsigned = option(BOOL, False)
    examples = ('"hkc_tile.print"(%x) {prefix = "x = "} : (tensor<64x32xf32>) -> ()',)

    @staticmethod
    def infer(values: tuple[Type, ...], *, prefix: str, more: bool = False, unsigned: bool = False) -> tuple[()]:
        for value in values:
            if not isinstance(value, (TileType, ScalarType)) and str(value) != "an index":
                raise Mismatch(
                    f"`print` takes tiles, scalars and indices, not {value}",
                    ("values",),
                    code="HK204",
                    hint="load a tile of a tensor",
                )
        return ()

    @staticmethod
    def meaning(
        values: tuple[Any, ...],
        *,
        prefix: str,
        say: Callable[..., None],
        more: bool = False,
        unsigned: bool = False,
    ) -> None:
        say(prefix, [unsigned_view(value, unsigned) for value in values], more)

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        more, unsigned = low.option(op, "more", False), low.option(op, "unsigned", False)
        low.record(op.attributes["prefix"].value, list(op.operands), more, unsigned)


def printed(prefix: str, values: Iterable[Any], more: bool) -> str:
    """What one `print` op writes for these arrays and numbers."""
    parts = [*([prefix] if prefix else []), *(str(np.asarray(v)) for v in values)]
    return " ".join(parts) + (" " if more else "\n")
