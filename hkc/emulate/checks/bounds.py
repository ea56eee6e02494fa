"""Addresses: inside the arguments, and multiples of what the hardware needs."""

from __future__ import annotations

import numpy as np

from hkc.emulate.memory import Mask
from hkc.emulate.observe import Access, Observer
from hkc.emulate.outstanding import Happen
from hkc.emulate.state import State


class Bounds(Observer):
    """Accesses to memory that belongs to nobody, or to the gaps between the elements of an argument.

    What is reported is not carried out, so that the rest of the program can be checked.
    """

    def access(self, state: State, access: Access) -> Happen | None:
        """See `Observer`."""
        if access.space != "global" or not access.mask.any():
            return None
        outside = state.memory.outside(access.addresses, access.mask, access.nbytes)
        if outside is not None:
            self._report(state, access, outside)
            access.mask = access.mask & ~outside
        return None

    @staticmethod
    def _report(state: State, access: Access, outside: Mask) -> None:
        row, lane = (int(i[0]) for i in np.nonzero(outside))
        address = int(access.addresses[row, lane])
        message = f"{access.kind} of {access.nbytes} bytes at {address:#x}, {state.memory.near(address)}"
        wave = state.first_wave + int(access.rows[row])
        state.findings.add("out of bounds", access.by, message, wave, lane)


class Alignment(Observer):
    """Addresses that are no multiple of the access's size, at most of a dword outside LDS.

    Atomics are refused then. Anything else works where the driver switched unaligned accesses on, as ROCm's does, and
    takes longer (LLVM SIISelLowering, `allowsMisalignedMemoryAccessesImpl`).
    """

    def access(self, state: State, access: Access) -> Happen | None:
        """See `Observer`."""
        atomic = access.kind == "atomic"
        size = access.nbytes if atomic or access.space == "lds" else min(access.nbytes, 4)
        need = 1 << (size - 1).bit_length()
        crooked = access.mask & (access.addresses % np.uint64(need) != 0)
        if crooked.any():
            row, lane = (int(i[0]) for i in np.nonzero(crooked))
            address = int(access.addresses[row, lane])
            message = f"{access.kind} of {access.nbytes} bytes at {address:#x}, no multiple of {need}"
            wave = state.first_wave + int(access.rows[row])
            state.findings.add("misaligned" if atomic else "unaligned", access.by, message, wave, lane)
        return None
