"""Which elements each lane fetches when memory goes straight to LDS, where lanes can't choose where bytes land."""

from __future__ import annotations

import numpy as np

from hkc.layout.distributed import DistributedLayout
from hkc.layout.lds import LdsMap
from hkc.support.errors import HkcError


def direct_layout(lds: LdsMap, waves: int, lanes: int, size: int) -> DistributedLayout | None:
    """The layout whose fragment f, copied by all waves with `size` bytes per lane, lands where `lds` has its elements:
    lane l of wave w at byte `landing(...)[f] + (w * lanes + l) * size`. So the map's swizzle goes into the addresses in
    memory. None where there is no such layout: padding, a granule below `size`, or a tile that the waves don't fill.
    """
    each = size // lds.itemsize
    total = each * lanes * waves
    if lds.pad or lds.granule < size or lds.bytes % (total * lds.itemsize):
        return None
    bits = [lds.inverse(np.array(lds.itemsize << i)) for i in range(total.bit_length() - 1)]
    bases = [tuple(int(c) for c in basis) for basis in bits]
    block = tuple(1 << max(b[dim] for b in bases).bit_length() for dim in range(len(lds.shape)))
    first, second = each.bit_length() - 1, (each * lanes).bit_length() - 1
    try:
        layout = DistributedLayout(block, tuple(bases[:first]), tuple(bases[first:second]), tuple(bases[second:]))
        return layout if landing(layout, lds) is not None else None
    except HkcError:
        return None  # the bits of an offset are no basis of a block: the map is not linear so far


def landing(layout: DistributedLayout, lds: LdsMap) -> tuple[int, ...] | None:
    """Per fragment the byte at which lane 0 of wave 0 lands; None where the lanes' bytes are not side by side."""
    at = lds.offset(layout.coordinates(lds.shape))  # [fragment, register, lane, wave]
    register, lane, wave = np.ogrid[: layout.registers, : layout.lanes, : layout.waves]
    wanted = ((wave * layout.lanes + lane) * layout.registers + register) * lds.itemsize
    start = at[:, 0, 0, 0]
    linear = np.array_equal(at - start[:, None, None, None], np.broadcast_to(wanted, at.shape))
    return tuple(start.tolist()) if linear else None
