"""How `random` becomes arithmetic: one block of four words serves four neighbours where a lane holds them together.
Worker process only."""

from __future__ import annotations

from typing import Any

from hkc.dialects import build
from hkc.dialects.tile.divisibility import divisor
from hkc.dialects.tile.random import MULTIPLIERS, ROUNDS, WEYL, WORDS


def lower(low: Any, op: Any) -> None:
    """Lower a `random`."""
    seed, *offsets = op.operands
    tile = op.results[0]
    layout, shape = low.layout(tile), low.shape(tile)
    number = low.scalar(seed)
    key = [_low_word(number), _low_word(build.binary("shrui", number, 32))]
    starts = [build.to_i32(low.scalar(o)) for o in offsets][::-1]
    last = len(shape) - 1
    together = (
        layout.contiguous(last) >= WORDS
        and divisor(offsets[-1]) % WORDS == 0
        and not any(basis[last] % WORDS for basis in layout.lane + layout.wave)
    )
    kind = low.fragment_type(tile).element_type
    made = []
    for origin in layout.fragment_offsets(shape):
        words: list[Any] = []
        for r in range(layout.registers):
            if together and r % WORDS:
                continue
            own = [low.coordinate_value(layout, d, r, origin[d]) for d in reversed(range(len(shape)))]
            place = [build.add(s, c) for s, c in zip(starts, own, strict=False)] + starts[len(shape) :]
            block = _philox([build.binary("shrui", place[0], 2), *place[1:]], key)
            words += block if together else [_pick(block, place[0])]
        made.append(build.pack([_number(w, kind) for w in words]))
    low.values[tile] = made


def _low_word(value: Any) -> Any:
    return build.op("arith.trunci", [value], [build.int_type(32)])


def _pick(block: list[Any], place: Any) -> Any:
    """The word of a block that an element is."""
    odd = build.cmp("ne", build.binary("andi", place, 1), 0)
    high = build.cmp("ne", build.binary("andi", place, 2), 0)
    pairs = [build.select(odd, block[i + 1], block[i]) for i in (0, 2)]
    return build.select(high, pairs[1], pairs[0])


def _philox(counter: list[Any], key: list[Any]) -> list[Any]:
    c = counter + [build.i32(0)] * (WORDS - len(counter))
    k = list(key)
    word = build.int_type(32)
    for _ in range(ROUNDS):
        (low0, high0), (low1, high1) = (
            build.op("arith.mului_extended", [build.number(m, word), c[i]], [word, word])
            for m, i in zip(MULTIPLIERS, (0, 2), strict=True)
        )
        c = [
            build.binary("xori", build.binary("xori", high1, c[1]), k[0]),
            low1,
            build.binary("xori", build.binary("xori", high0, c[3]), k[1]),
            low0,
        ]
        k = [build.binary("addi", x, build.number(w, word)) for x, w in zip(k, WEYL, strict=True)]
    return c


def _number(word: Any, kind: Any) -> Any:
    """A word as it is, or its upper 24 bits as a number in [0, 1)."""
    if word.type == kind:
        return word
    upper = build.op("arith.uitofp", [build.binary("shrui", word, 8)], [kind])
    return build.binary("mulf", upper, build.number(2.0**-24, kind))
