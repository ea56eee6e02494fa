"""Atomic updates that the hardware has no instruction for: a loop that reads the word around the element, and swaps it.

LLVM would build such loops too, but begin them with a plain load, which no rule orders after another workgroup's swap.
"""

from __future__ import annotations

from typing import Any

from hkc.dialects import build
from hkc.support.mlir import ir

WORD = 32
"""Bits that the hardware swaps at least."""

MONOTONIC = 2
"""Number of LLVM's ordering that orders nothing but accesses of the one place."""

SCOPE = "agent"
"""The synchronisation scope: all workgroups on the device."""

ARITHMETIC = {
    "add": ("addf", "addi", "addi"),
    "max": ("maxnumf", "maxsi", "maxui"),
    "min": ("minnumf", "minsi", "minui"),
}
"""The `arith` op of each kind of update: for floats, signed and unsigned integers."""


def has_instruction(element: Any, kind: str) -> bool:
    """Whether memory updates an element by an instruction: whole words, but of f32 no extremes."""
    return bool(element.width >= WORD and not (str(element) == "f32" and kind != "add"))


def update(b: Any, address: Any, value: Any, kind: str, unsigned: bool) -> Any:
    """The element at a pointer becomes the sum, maximum or minimum with `value`. Gives what was there before."""
    element = value.type
    word = build.int_type(max(element.width, WORD))
    base, shift = _around(b, address, element.width, word)
    how = {"ordering": build.int_attr(MONOTONIC), "syncscope": ir.StringAttr.get(SCOPE)}
    first = build.op("llvm.load", [base], [word], alignment=build.int_attr(word.width // 8), **how)

    def trip(seen: Any) -> tuple[Any, Any]:
        """One attempt: whether another one is needed, and the word that was there."""
        name = ARITHMETIC[kind][0 if build.is_float(element) else 1 + unsigned]
        new = build.binary(name, _taken(seen, shift, element), value)
        found = b.compare_and_swap(base, seen, _replaced(seen, shift, new), word.width // 8)
        lost = build.cmp(
            "eq", build.op("llvm.extractvalue", [found], [build.int_type(1)], position=b.positions([1])), 0
        )
        return lost, build.op("llvm.extractvalue", [found], [word], position=b.positions([0]))

    return _taken(_repeat(first, trip), shift, element)


def _around(b: Any, address: Any, bits: int, word: Any) -> tuple[Any, Any | None]:
    """The pointer to the word around an element, and by how many bits the element lies above its low end."""
    if bits >= WORD:
        return address, None
    number = build.op("llvm.ptrtoint", [address], [build.int_type(64)])
    inside = build.binary("andi", number, WORD // 8 - 1)
    shift = build.mul(build.op("arith.trunci", [inside], [word]), 8)
    return b.gep(address, build.sub(0, inside)), shift


def _taken(seen: Any, shift: Any | None, element: Any) -> Any:
    """The element inside a word."""
    bits = build.int_type(element.width)
    if shift is not None:
        seen = build.op("arith.trunci", [build.binary("shrui", seen, shift)], [bits])
    return seen if bits == element else build.op("arith.bitcast", [seen], [element])


def _replaced(seen: Any, shift: Any | None, new: Any) -> Any:
    """The word with another element inside."""
    bits = build.int_type(new.type.width)
    if bits != new.type:
        new = build.op("arith.bitcast", [new], [bits])
    if shift is None:
        return new
    mask = build.binary("shli", build.constant((1 << bits.width) - 1, seen.type), shift)
    rest = build.binary("andi", seen, build.binary("xori", mask, -1))
    return build.binary("ori", rest, build.binary("shli", build.op("arith.extui", [new], [seen.type]), shift))


def _repeat(first: Any, trip: Any) -> Any:
    """`scf.while`: trips from `first` on until one says that it was the last; what that one gives."""
    loop = ir.Operation.create("scf.while", results=[first.type], operands=[first], regions=2)
    for region in loop.regions:
        region.blocks.append(first.type)
    before, after = (region.blocks[0] for region in loop.regions)
    with ir.InsertionPoint(before):
        build.op("scf.condition", trip(before.arguments[0]))
    with ir.InsertionPoint(after):
        build.op("scf.yield", after.arguments)
    return loop.results[0]
