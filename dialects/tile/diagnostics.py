"""What a kernel says while it runs: `assert` and `print`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from hkc.dialects.define import ANY, TEXT, TILE, Mismatch, attribute, operand, tile_op
from hkc.dialects.types import ScalarType, TileType, Type
from hkc.support.errors import error


@tile_op("assert", pure=False, spelling="assert condition, message")
class Assert:
    """Stop the kernel unless all elements of a bool tile hold. The reference names the message (HK720); machine code
    traps, which the emulator reports at the kernel author's line and a GPU as an aborted queue."""

    condition = operand(TILE)
    message = attribute(TEXT)
    whole_blocks = True
    examples = ('"hkc_tile.assert"(%c) {message = "negative"} : (tensor<64x32xi1>) -> ()',)

    @staticmethod
    def infer(condition: TileType, *, message: str) -> tuple[()]:
        if condition.dtype != "bool":
            raise Mismatch(f"`assert` takes bools, not {condition}", ("condition",), code="HK204")
        return ()

    @staticmethod
    def meaning(condition: Any, *, message: str) -> None:
        if not np.all(np.asarray(condition)):
            raise error("HK720", f"assertion failed: {message}")

    @staticmethod
    def lower(low: Any, op: Any) -> None:
        low.trap_unless([e for fragment in low.elements(op.operands[0]) for e in fragment])


@tile_op("print", pure=False, spelling="print(value, …)")
class Print:
    """Write values to standard error, after `prefix`. Only the reference does it: compiling a kernel that prints is
    refused (HK457)."""

    values = operand(ANY, variadic=True)
    prefix = attribute(TEXT)
    whole_blocks = True
    examples = ('"hkc_tile.print"(%x) {prefix = "x = "} : (tensor<64x32xf32>) -> ()',)

    @staticmethod
    def infer(values: tuple[Type, ...], *, prefix: str) -> tuple[()]:
        for value in values:
            if not isinstance(value, (TileType, ScalarType)) and str(value) != "an index":
                raise Mismatch(f"`print` takes tiles, scalars and indices, not {value}", ("values",), code="HK204")
        return ()

    @staticmethod
    def meaning(values: tuple[Any, ...], *, prefix: str) -> None:
        print(prefix, *(np.asarray(v) for v in values), file=sys.stderr)
