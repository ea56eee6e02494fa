"""LDS bank conflicts of one instruction: how many clocks the banks need for given byte addresses.

The hardware serves the lanes of an instruction in phases. In a phase each bank delivers one dword per clock, the same
dword to any number of lanes; a phase therefore takes as many clocks as the busiest bank has distinct dwords. Which
lanes form a phase, and how many banks there are, is data of the chip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.layout.linear import Ints

BANK_BYTES = 4
Phases = Sequence[Sequence[int]]


def conflicts(
    addresses: NDArray[Any], width: int, phases: Phases, banks: int, active: NDArray[np.bool_] | None = None
) -> Ints:
    """Clocks per phase: int64 [..., phase], 1 = free of conflicts, 0 = no lane active.

    addresses   byte address per lane, [..., lane]; any leading dims are separate instructions
    width       bytes per lane; dwords touched are those that hold any of them
    phases      lanes served together, each phase the same number of lanes
    active      lanes that take part, [..., lane] (default: all)
    """
    lanes = np.asarray(phases, np.int64)
    start = np.asarray(addresses, np.int64)[..., lanes]
    first, last = start // BANK_BYTES, (start + width - 1) // BANK_BYTES
    dwords = first[..., None] + np.arange(int((last - first).max(initial=0)) + 1)
    used = dwords <= last[..., None]
    if active is not None:
        used &= np.asarray(active)[..., lanes][..., None]
    dwords = np.where(used, dwords, -1)
    return _busiest(dwords.reshape(*dwords.shape[:-2], -1), banks)


def _busiest(dwords: Ints, banks: int) -> Ints:
    """Per row of dword numbers [..., n] (-1: none) the number of distinct ones in the busiest bank."""
    rows = np.sort(dwords.reshape(-1, dwords.shape[-1]), axis=-1)
    distinct = rows >= 0
    distinct[:, 1:] &= rows[:, 1:] != rows[:, :-1]
    row = np.broadcast_to(np.arange(len(rows))[:, None], rows.shape)
    used = np.bincount((row * banks + rows % banks)[distinct], minlength=len(rows) * banks)
    busiest: Ints = used.reshape(len(rows), banks).max(axis=1).reshape(dwords.shape[:-1])
    return busiest
