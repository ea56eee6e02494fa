"""What a kernel's `print` statements left in their buffer, as text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.dialects.tile.diagnostics import printed as text_of
from hkc.layout import DistributedLayout
from hkc.machine.abi import PRINTED_BYTES, PRINTED_START, RECORD_HEAD, KernelInfo, Print, PrintedValue
from hkc.support.dtypes import dtype

Bytes = NDArray[np.uint8]


def printed(info: KernelInfo, buffer: Bytes, lanes: int) -> str:
    """The text in a buffer, by workgroup and then in the order of the program, for waves of so many lanes.

    All waves of a workgroup come by the same `print` ops in the same order, since control is the same in all. A
    tile of which some wave has not written its part is left out, and a last line says how much did not fit.
    """
    asked = int(buffer[:8].view(np.int64)[0])
    parts: dict[tuple[int, int], list[tuple[Print, int, Bytes]]] = defaultdict(list)
    seen: dict[tuple[int, int], int] = defaultdict(int)
    for number, wave, workgroup, record in _records(info, buffer, asked, lanes):
        turn = seen[workgroup, wave]
        seen[workgroup, wave] += 1
        parts[workgroup, turn].append((info.prints[number], wave, record))
    texts = [_text(waves, lanes) for _, waves in sorted(parts.items()) if _complete(waves, info.waves)]
    if PRINTED_START + asked > PRINTED_BYTES:
        room = PRINTED_BYTES - PRINTED_START
        texts.append(f"(more was printed than fits: {asked:,} bytes, of which {room:,} are kept)\n")
    return "".join(texts)


def _records(info: KernelInfo, buffer: Bytes, asked: int, lanes: int) -> Iterator[tuple[int, int, int, Bytes]]:
    """Number of the statement, wave, workgroup and bytes of each record."""
    at, end = PRINTED_START, min(PRINTED_START + asked, PRINTED_BYTES)
    while at + RECORD_HEAD <= end:
        number, wave, workgroup, written = (int(word) for word in buffer[at : at + RECORD_HEAD].view(np.int32))
        if not written:  # nor is its size known: what follows can't be found
            return
        size = info.prints[number].bytes(lanes)
        if at + size > end:
            return
        yield number, wave, workgroup, buffer[at + RECORD_HEAD : at + size]
        at += size


def _complete(waves: list[tuple[Print, int, Bytes]], count: int) -> bool:
    """Whether nothing is missing: of numbers, each wave has all."""
    return len(waves) == count or not any(value.layout for value in waves[0][0].values)


def _text(waves: list[tuple[Print, int, Bytes]], lanes: int) -> str:
    shown = waves[0][0]
    values, at = [], 0
    for value in shown.values:
        end = at + value.bytes(lanes)
        values.append(_value(value, {wave: record[at:end] for _, wave, record in waves}, lanes))
        at = end
    return text_of(shown.prefix, values, bool(shown.more))


def _value(value: PrintedValue, parts: dict[int, Bytes], lanes: int) -> Any:
    """A tile from what the waves hold of it, or a number."""
    kind = dtype(value.dtype).numpy
    count = value.fragments * lanes * value.registers
    held = {wave: part[: count * kind.itemsize].view(kind) for wave, part in parts.items()}
    if not value.layout:
        return next(iter(held.values()))[0]
    tile = np.zeros(value.shape, kind)
    layout = DistributedLayout.parse(value.layout)
    for fragment, coordinates in enumerate(layout.coordinates(value.shape)):  # [register, lane, wave, dim]
        for wave, elements in held.items():
            part = elements.reshape(value.fragments, lanes, value.registers)[fragment]
            places = coordinates[:, :, wave % coordinates.shape[2]]
            tile[tuple(np.moveaxis(places, -1, 0))] = part.T
    return tile
