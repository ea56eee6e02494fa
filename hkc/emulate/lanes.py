"""DPP and SDWA: how a source reaches its lane, and which part of a register an instruction reads or writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import Decoded
from hkc.emulate.faults import unsupported
from hkc.emulate.memory import Mask
from hkc.emulate.waves import U32, Waves

_LANES = np.arange(64)
_ROW, _IN_ROW = _LANES // 16, _LANES % 16
_CONTROLS = ("quad_perm", "row_shl", "row_shr", "row_ror", "wave_shl", "wave_shr", "wave_rol", "wave_ror",
             "row_mirror", "row_half_mirror", "row_bcast", "row_newbcast")  # fmt: skip


def _inside_row(source: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where((source >= 0) & (source < 16), _ROW * 16 + source, -1)


def _inside_wave(source: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where((source >= 0) & (source < 64), source, -1)


def _broadcast_row(last: int) -> NDArray[np.int64]:
    """row_bcast:15 gives lane 15 of each row to the next row, row_bcast:31 gives lane 31 to the rows 2 and 3."""
    if last == 15:
        return np.where(_ROW > 0, _ROW * 16 - 1, -1)
    return np.where(_LANES >= 32, 31, -1)


_SOURCES: dict[str, Callable[[int], NDArray[np.int64]]] = {
    "row_shl": lambda n: _inside_row(_IN_ROW + n),
    "row_shr": lambda n: _inside_row(_IN_ROW - n),
    "row_ror": lambda n: _ROW * 16 + (_IN_ROW - n) % 16,
    "wave_shl": lambda n: _inside_wave(_LANES + n),
    "wave_shr": lambda n: _inside_wave(_LANES - n),
    "wave_rol": lambda n: (_LANES + n) % 64,
    "wave_ror": lambda n: (_LANES - n) % 64,
    "row_mirror": lambda n: _ROW * 16 + 15 - _IN_ROW,
    "row_half_mirror": lambda n: _LANES ^ 7,
    "row_bcast": _broadcast_row,
    "row_newbcast": lambda n: _ROW * 16 + n,
}


@dataclass(frozen=True)
class Dpp:
    """A lane permutation: source lane per lane (-1: none), lanes whose row and bank are enabled, zero for no source."""

    source: NDArray[np.int64]
    enabled: Mask
    zero: bool

    def present(self, w: Waves) -> Mask:
        """The lanes whose source lane exists and is active: bool [waves, lanes]."""
        inside = self.source >= 0
        return w.mask[:, self.source] & inside

    def move(self, w: Waves, values: U32) -> U32:
        """`values` as each lane sees them; 0 where there is no source."""
        wide = np.broadcast_to(values, w.mask.shape)
        return np.where(self.present(w), wide[:, self.source], np.uint32(0))

    def written(self, w: Waves) -> Mask:
        """The lanes that the instruction writes."""
        writes = w.mask & self.enabled
        return writes if self.zero else writes & self.present(w)


@cache
def _source(control: str, value: int | tuple[int, ...]) -> NDArray[np.int64]:
    if control == "quad_perm":
        assert isinstance(value, tuple)
        quads: NDArray[np.int64] = _LANES // 4 * 4 + np.array(value)[_LANES % 4]
        return quads
    assert isinstance(value, int)
    return _SOURCES[control](value)


def dpp(instruction: Decoded) -> Dpp | None:
    """The permutation that an instruction asks for, if any."""
    control = next((c for c in _CONTROLS if c in instruction.modifiers), None)
    if control is None:
        if instruction.form.endswith("dpp"):
            raise unsupported(instruction, "this DPP control")
        return None
    value = instruction.modifiers[control]
    assert not isinstance(value, str)
    rows, banks = instruction.number("row_mask", 15), instruction.number("bank_mask", 15)
    enabled = ((rows >> _ROW) & (banks >> (_IN_ROW // 4)) & 1).astype(np.bool_)
    return Dpp(_source(control, value), enabled, instruction.flag("bound_ctrl"))


_SELECTIONS = {"BYTE_0": (0, 8), "BYTE_1": (8, 8), "BYTE_2": (16, 8), "BYTE_3": (24, 8),
               "WORD_0": (0, 16), "WORD_1": (16, 16)}  # fmt: skip


def select(instruction: Decoded, number: int) -> tuple[int, int] | None:
    """(shift, bits) of the part that SDWA source `number` reads; None for a whole register."""
    return _SELECTIONS.get(str(instruction.modifiers.get(f"src{number}_sel", "DWORD")))


def extract(values: U32, part: tuple[int, int], extended: bool) -> U32:
    """The part of each word, zero- or sign-extended."""
    shift, bits = part
    if extended:
        left = np.uint32(32 - bits - shift)
        return ((values << left).view(np.int32) >> np.int32(32 - bits)).view(np.uint32)
    return (values >> np.uint32(shift)) & np.uint32((1 << bits) - 1)


def insert(instruction: Decoded, old: Callable[[], U32], result: U32) -> U32:
    """Put an SDWA result where `dst_sel` says and treat the rest as `dst_unused` says."""
    part = _SELECTIONS.get(str(instruction.modifiers.get("dst_sel", "DWORD")))
    if part is None:
        return result
    shift, bits = np.uint32(part[0]), part[1]
    field = np.uint32((1 << bits) - 1)
    placed = (result & field) << shift
    unused = instruction.modifiers.get("dst_unused", "UNUSED_PAD")
    if unused == "UNUSED_PRESERVE":
        return placed | (old() & ~(field << shift))
    if unused == "UNUSED_SEXT":
        left = np.uint32(32 - bits)
        signed: U32 = ((result << left).view(np.int32) >> left.astype(np.int32)).view(np.uint32)
        return signed << shift
    return placed
