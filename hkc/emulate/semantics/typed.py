"""Typed buffers: loads and stores that convert between the elements of a buffer and registers.

The element's format is that of the instruction (`tbuffer_…`) or of the descriptor (`buffer_…_format_…`), which then
also says which component goes where. Loads read whole elements; components that the format lacks are 0, 0, 0, 1. Stores
write the components that they have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hkc.emulate import access, spaces
from hkc.emulate.decode import Decoded
from hkc.emulate.elements import Array, Element, element
from hkc.emulate.faults import unsupported
from hkc.emulate.memory import Words
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.semantics.buffer import Places, addressing
from hkc.emulate.waves import Waves

_IDENTITY = (4, 5, 6, 7)
_SELECTED = frozenset((0, 1, *_IDENTITY))
"""What a descriptor may select for a component: 0, 1, or one of x, y, z, w."""

_ADD_LANE = 1 << 23
_ONE = 0x3F800000


@dataclass(frozen=True)
class _Typed(access.Format):
    """Memory of one element ↔ `count` components in registers, two to a register where `short`."""

    item: Element = field(kw_only=True)
    count: int = 1
    select: tuple[int, ...] = _IDENTITY
    short: bool = False
    one: int = 1
    """The component 1, as `item` has it: elements of 32-bit floats are moved as they are."""

    @property
    def words(self) -> int:
        """See `Format`."""
        return (self.count + 1) // 2 if self.short else self.count

    def kept(self, i: int) -> str:
        """See `Format`: the last register of an odd number of halves keeps its other half."""
        return self.half or ("low" if self.short and 2 * i + 1 == self.count else "")

    def widen(self, words: Words) -> Words:
        """See `Format`."""
        found = self.item.load(words)
        zero = np.zeros_like(found[0])
        one = zero + self.one
        everything = [zero, one, zero, zero, *found, *[zero, zero, zero, one][len(found) :]]
        bits = [self._bits(everything[self.select[n]]) for n in range(self.count)]
        if self.short:
            bits += [np.zeros_like(bits[0])] * (self.count % 2)
            bits = [low | high << np.uint32(16) for low, high in zip(bits[::2], bits[1::2], strict=True)]
        return np.stack(bits, axis=-1)

    def components(self, words: Words) -> list[Array]:
        """Registers [..., words] → components, float64 or int64, as `Element` has them."""
        if not self.short:
            return [self._value(words[..., n]) for n in range(self.count)]
        halves = [words[..., n // 2] >> np.uint32(16 * (n % 2)) for n in range(self.count)]
        return [self._value(half.astype(np.uint16)) for half in halves]

    def _bits(self, values: Array) -> Words:
        if self.item.whole:
            return (values & (0xFFFF if self.short else 0xFFFFFFFF)).astype(np.uint32)
        kinds: tuple[Any, Any] = (np.float16, np.uint16) if self.short else (np.float32, np.uint32)
        bits: Words = values.astype(kinds[0]).view(kinds[1]).astype(np.uint32)
        return bits

    def _value(self, bits: Array) -> Array:
        if not self.item.whole:
            return bits.view(np.float16 if self.short else np.float32).astype(np.float64)
        return bits.view(bits.dtype.name.lstrip("u") if self.item.numbers == "sint" else bits.dtype).astype(np.int64)


def _format(instruction: Decoded, item: Element | None, select: tuple[int, ...]) -> _Typed:
    """What one instruction does with elements of one kind."""
    if item is None:
        raise unsupported(instruction, "this combination of data and number format")
    if not _SELECTED.issuperset(select):
        raise unsupported(instruction, f"the selection of components {select}")
    name, short = instruction.base.rpartition("_")[2], "_d16" in instruction.base
    if short and 32 in item.fields and item.whole:
        raise unsupported(instruction, "whole numbers of 32 bits in halves of registers")
    raw = item.numbers == "float" and 32 in item.fields and not short
    count, half = len(name), "high" if "_d16_hi" in instruction.base else ""
    kept = Element(item.fields, "uint") if raw else item
    return _Typed(item.nbytes, half=half, item=kept, count=count, select=select, short=short, one=_ONE if raw else 1)


def _chosen(instruction: Decoded) -> Callable[[Waves], _Typed]:
    """The format: a `tbuffer` instruction's own, which the text may leave out, otherwise the descriptor's."""
    if instruction.base.startswith("tbuffer"):
        word = int.from_bytes(instruction.encoding[:4], "little")
        item = element(word >> 19 & 15, word >> 23 & 7)
        return lambda w: _format(instruction, item, _IDENTITY)
    descriptor = instruction.operands[-2].index

    def read(w: Waves) -> _Typed:
        words = np.unique(w.scalar(descriptor + 3))
        if len(words) != 1 or int(words[0]) & _ADD_LANE:
            raise unsupported(instruction, "waves with descriptors of different formats, or lanes as elements,")
        word = int(words[0])
        select = tuple(word >> 3 * n & 7 for n in range(4))
        return _format(instruction, element(word >> 15 & 15, word >> 12 & 7), select)

    return read


def _load(instruction: Decoded, context: Context) -> Step:
    places, chosen = addressing(instruction, context), _chosen(instruction)
    if instruction.flag("lds") or instruction.flag("tfe"):
        raise unsupported(instruction, "LDS or a status word as target")
    register = context.vector(instruction.operands[0])

    def step(w: Waves) -> None:
        form = chosen(w)
        found = places(w, form.nbytes)
        access.load(w, spaces.GLOBAL, form, register, found.addresses, w.mask & found.inside(form.nbytes), w.mask)

    return step


def _store(instruction: Decoded, context: Context) -> Step:
    places, chosen = addressing(instruction, context), _chosen(instruction)
    register = context.vector(instruction.operands[0])

    def step(w: Waves) -> None:
        form = chosen(w)
        found = places(w, form.nbytes)
        if w.taint is not None:
            w.consume("an address")
        given = access.Format(2, half="high") if form.half else access.Format(4 * form.words)
        _put(w, instruction, form, form.components(access.data(w, given, register)), found)

    return step


def _put(w: Waves, instruction: Decoded, form: _Typed, components: list[Array], found: Places) -> None:
    item, lanes = form.item, w.mask & found.inside(form.nbytes)
    if form.select != _IDENTITY:
        raise unsupported(instruction, "a store that rearranges components")
    if not (item.fits(components) | ~lanes).all():
        raise unsupported(instruction, "whole numbers that the format can't hold")
    fields = item.store(components)
    if item.packed and len(fields) < len(item.fields):
        raise unsupported(instruction, "a store of some components of an element in which they share bytes")
    starts = np.cumsum((0, *item.fields))[: len(fields)].tolist()
    if item.packed:
        word = sum((f << np.uint32(start) for f, start in zip(fields, starts, strict=True)), np.uint32(0))
        access.store_words(w, spaces.GLOBAL, np.asarray(word)[..., None], form.nbytes, found.addresses, lanes)
        return
    for n, (bits, start) in enumerate(zip(fields, starts, strict=True)):
        if n:
            w.state.outstanding.same_operation("vm", w.rows)
        at = found.addresses + np.uint64(start // 8)
        access.store_words(w, spaces.GLOBAL, bits[..., None], item.fields[n] // 8, at, lanes)


for _kind in ("buffer", "tbuffer"):
    for _size in ("x", "xy", "xyz", "xyzw"):
        for _short in ("", "d16_"):
            op(f"{_kind}_load_format_{_short}{_size}")(_load)
            op(f"{_kind}_store_format_{_short}{_size}")(_store)
op("buffer_load_format_d16_hi_x")(_load)
op("buffer_store_format_d16_hi_x")(_store)
