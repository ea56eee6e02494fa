"""NumPy arrays and PyTorch tensors alike: what the kernels' Python side asks of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from hkc.support.dtypes import dtype
from hkc.support.errors import error


def as_array(what: str, value: Any, rank: int) -> Any:
    """An array or tensor of at least `rank` dims. Raises `HkcError` HK502 or HK504 for anything else."""
    import numpy as np

    if not hasattr(value, "shape") or not hasattr(value, "dtype") or not (is_torch(value) or hasattr(value, "strides")):
        if not hasattr(value, "__dlpack__"):
            raise error("HK502", f"`{what}` is no array or tensor, but a {type(value).__name__}")
        value = np.from_dlpack(value)
    if len(value.shape) < rank:
        raise error("HK504", f"`{what}` has {len(value.shape)} dims, but at least {rank} are needed")
    return value


def is_torch(value: Any) -> bool:
    """Whether it is a PyTorch tensor (whose methods differ from those of an array)."""
    return hasattr(value, "data_ptr") and hasattr(value, "stride")


def transposed(value: Any) -> Any:
    """A view with the last two dims swapped."""
    return value.swapaxes(-1, -2)


def by_columns(value: Any) -> bool:
    """Are neighbours along the last dim but one neighbours in memory, and those along the last dim not?"""
    strides = value.stride() if is_torch(value) else [s // value.itemsize for s in value.strides]
    rows, columns = value.shape[-2:]
    return bool(strides[-1] != 1 and columns > 1 and (strides[-2] == 1 or rows <= 1))


def is_aligned(value: Any) -> bool:
    """Do all rows start at multiples of 16 bytes, and lie within 1 GiB? Then the aligned entry takes it."""
    torch = is_torch(value)
    size = value.element_size() if torch else value.itemsize
    strides = [s * size for s in value.stride()] if torch else value.strides
    address = value.data_ptr() if torch else value.__array_interface__["data"][0]
    span = sum(abs(s) * e for s, e in zip(strides, value.shape, strict=True))
    return bool(
        address % 16 == 0
        and strides[-1] == size
        and all(s >= 0 and s % 16 == 0 for s in strides[:-1])
        and 16 < span < 1 << 30
    )


def empty(shape: Sequence[int], kind: str, like: Any) -> Any:
    """New memory in the library and on the device of `like`."""
    import numpy as np

    if not is_torch(like):
        return np.empty(tuple(shape), dtype(kind).numpy)
    torch = sys.modules["torch"]
    return torch.empty(tuple(shape), dtype=getattr(torch, str(dtype(kind).numpy)), device=like.device)


def unread(shape: Sequence[int], kind: str, like: Any) -> Any:
    """Something to pass for a tensor that a kernel doesn't read: one element under any extents."""
    one = empty((1,) * len(shape), kind, like)
    return spread(one, shape)


def spread(value: Any, shape: Sequence[int]) -> Any:
    """A view that repeats `value` to a shape, as NumPy broadcasts."""
    import numpy as np

    return value.expand(tuple(shape)) if is_torch(value) else np.broadcast_to(value, tuple(shape))
