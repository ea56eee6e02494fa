"""64-bit integer and bitwise vector instructions."""

from __future__ import annotations

import numpy as np

from hkc.emulate.vector import valu

_63 = np.uint32(63)

valu("u64 = u64", "v_mov_b64")(lambda a: a)
valu("u64 = u32 u64", "v_lshlrev_b64")(lambda n, a: a << (n & _63).astype(np.uint64))
valu("u64 = u32 u64", "v_lshrrev_b64")(lambda n, a: a >> (n & _63).astype(np.uint64))
valu("i64 = u32 i64", "v_ashrrev_i64")(lambda n, a: a >> (n & _63).astype(np.int64))
valu("u64 = u64 u32 u64", "v_lshl_add_u64")(lambda a, n, c: (a << (n & np.uint32(7)).astype(np.uint64)) + c)
