"""NumPy arrays and PyTorch tensors alike: what the kernels' Python side asks of them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from hkc.machine.abi import tallest
from hkc.support.dtypes import DTYPES, dtype
from hkc.support.errors import error


def as_array(what: str, value: Any, rank: int) -> Any:
    """An array or tensor of at least `rank` dims. Raises `HkcError` HK502 or HK504 for anything else."""
    import numpy as np

    if not hasattr(value, "shape") or not hasattr(value, "dtype") or not (is_torch(value) or hasattr(value, "strides")):
        if not hasattr(value, "__dlpack__"):
            raise error(
                "HK502",
                f"`{what}` is no array or tensor, but of type {type(value).__name__}",
                hint="numpy.asarray(…) makes an array of lists and numbers",
            )
        value = np.from_dlpack(value)
    if len(value.shape) < rank:
        found = f"{len(value.shape)} dim{'s' * (len(value.shape) != 1)}"
        raise error("HK504", f"`{what}` has {found}, but at least {rank} are needed", hint="reshape it")
    return value


def dtype_of(what: str, array: Any) -> str:
    """The name of the dtype of an array or tensor. Raises `HkcError` HK503 for one that hkc doesn't know."""
    found = str(array.dtype).removeprefix("torch.")
    name = next((d.name for d in DTYPES.values() if str(d.numpy) == found), None)
    if name is None:
        raise error("HK503", f"`{what}` holds {found}, which hkc doesn't know", hint=f"one of {', '.join(DTYPES)}")
    return name


def is_torch(value: Any) -> bool:
    """Whether it is a PyTorch tensor (whose methods differ from those of an array)."""
    return hasattr(value, "data_ptr") and hasattr(value, "stride")


def is_writable(value: Any) -> bool:
    """Whether it may be written to; PyTorch knows no tensors that may not."""
    return is_torch(value) or bool(value.flags.writeable)


def address(value: Any) -> int:
    """Of the first element."""
    return int(value.data_ptr() if is_torch(value) else value.__array_interface__["data"][0])


def _steps(value: Any) -> tuple[int, tuple[int, ...]]:
    """Bytes of an element, and between neighbours along each dim."""
    if not is_torch(value):
        return value.itemsize, value.strides
    size = value.element_size()
    return size, tuple(s * size for s in value.stride())


def transposed(value: Any) -> Any:
    """A view with the last two dims swapped."""
    return value.swapaxes(-1, -2)


def by_columns(value: Any) -> bool:
    """Are neighbours along the last dim but one neighbours in memory, and those along the last dim not?"""
    size, (*_, row, column) = _steps(value)
    rows, columns = value.shape[-2:]
    return bool(column != size and columns > 1 and (row == size or rows <= 1))


def is_aligned(value: Any) -> bool:
    """Does the entry for 16-byte aligned operands take it, where it is less than 1 GiB?"""
    size, strides = _steps(value)
    shape = value.shape
    return bool(
        0 not in shape
        and address(value) % 16 == 0
        and strides[-1] == size
        and all(s > 0 and s % 16 == 0 for s in strides[:-1])
        and (len(shape) < 2 or (shape[0] + tallest(len(shape))) * strides[0] < 1 << 32)
        and sum(s * e for s, e in zip(strides, shape, strict=True)) < 1 << 30
    )


def same_memory(x: Any, y: Any) -> bool:
    """Are they one view of the same elements?"""
    return address(x) == address(y) and tuple(x.shape) == tuple(y.shape) and _steps(x) == _steps(y)


def overlap(x: Any, y: Any) -> bool:
    """Does some byte belong to both? Where that takes long to find out, it counts as yes."""
    import numpy as np

    if 0 in x.shape or 0 in y.shape or not np.may_share_memory(*(views := (_bytes(x), _bytes(y)))):
        return False
    try:
        return bool(np.shares_memory(*views, max_work=100_000))  # type: ignore[arg-type]  # any number, says its manual
    except np.exceptions.TooHardError:
        return True


def _bytes(value: Any) -> Any:
    """An array of the same places, to be compared and never read: they may belong to a GPU."""
    import ctypes

    import numpy as np

    size, strides = _steps(value)
    steps = [(e - 1) * s for e, s in zip(value.shape, strides, strict=True)]
    low, high = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0) + size
    memory = memoryview((ctypes.c_uint8 * (high - low)).from_address(address(value) + low))
    return np.ndarray(tuple(value.shape), np.dtype(f"V{size}"), memory, -low, strides)


def host_numbers(value: Any) -> list[int] | None:
    """The whole numbers of an array of rank 1, or nothing where they are on a GPU: reading them would wait for it."""
    if is_torch(value) and value.device.type != "cpu":
        return None
    return [int(number) for number in value.tolist()]


def empty(shape: Sequence[int], kind: str, like: Any) -> Any:
    """New memory in the library and on the device of `like`. Raises `HkcError` HK509 where there isn't as much."""
    import numpy as np

    try:
        if not is_torch(like):
            return np.empty(tuple(shape), dtype(kind).numpy)
        torch = sys.modules["torch"]
        return torch.empty(tuple(shape), dtype=getattr(torch, str(dtype(kind).numpy)), device=like.device)
    except (MemoryError, ValueError, RuntimeError):  # more than there is, more than an address can say; PyTorch's name
        raise error("HK509", f"there is no memory for {shown(shape)} elements of {kind}") from None


def unread(shape: Sequence[int], kind: str, like: Any) -> Any:
    """Something to pass for a tensor that a kernel doesn't read: one element under any extents."""
    return spread(empty((1,) * len(shape), kind, like), shape)


def spread(value: Any, shape: Sequence[int]) -> Any:
    """A view that repeats `value` to a shape, as NumPy broadcasts."""
    import numpy as np

    return value.expand(tuple(shape)) if is_torch(value) else np.broadcast_to(value, tuple(shape))


def broadcast(what: str, value: Any, shape: Sequence[int], meaning: str) -> Any:
    """The same. Raises `HkcError` HK505 where it can't be."""
    found, wanted = tuple(value.shape), tuple(shape)
    padded = (1,) * (len(wanted) - len(found)) + found
    if len(found) > len(wanted) or any(f not in (1, w) for f, w in zip(padded, wanted, strict=True)):
        raise error("HK505", f"`{what}` is {shown(found)}, but {meaning} {shown(wanted)}")
    return spread(value, wanted)


def expect(what: str, array: Any, shape: tuple[int, ...], meaning: str) -> tuple[int, ...]:
    """The extents of an array, which are these. Raises `HkcError` HK505 otherwise."""
    if tuple(array.shape) != shape:
        raise error("HK505", f"`{what}` is {shown(array.shape)}, but {shown(shape)} is needed: {meaning}")
    return shape


def flat(value: Any, shape: Sequence[int]) -> Any:
    """The same elements under other extents: a view where strides allow it, else a copy."""
    return value if len(value.shape) == len(shape) else value.reshape(tuple(shape))


def shown(shape: Sequence[int]) -> str:
    """Extents as in the messages: 3x4."""
    return "x".join(map(str, shape)) or "a single number"


def rows_of(shape: Sequence[int]) -> int:
    """How many rows there are in all matrices of a batch."""
    return math.prod(shape[:-1])
