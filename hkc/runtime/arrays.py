"""Arrays of the user as a launch sees them: NumPy arrays, PyTorch tensors, anything that shares memory by DLPack."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.machine.abi import GlobalParam, View
from hkc.support.dtypes import DTYPES, dtype
from hkc.support.errors import HkcError, error

Array = NDArray[Any]

_TORCH = ("data_ptr", "stride", "device", "dtype", "shape")


@dataclass(frozen=True, eq=False)
class Tensor:
    """One array argument.

    view     what the kernel is told
    given    the object that the caller passed; it owns the memory
    array    the host's view of that memory; None where it belongs to a GPU
    device   the number of that GPU
    """

    view: View
    given: Any = field(repr=False)
    array: Array | None = field(repr=False)
    device: int | None = None

    @property
    def extent(self) -> range:
        """The addresses of all bytes from the lowest element to the highest (none for an empty tensor)."""
        v = self.view
        if 0 in v.extents:
            return range(v.address, v.address)
        steps = [(e - 1) * s * v.itemsize for e, s in zip(v.extents, v.strides, strict=True)]
        low = v.address + sum(s for s in steps if s < 0)
        return range(low, v.address + sum(s for s in steps if s > 0) + v.itemsize)


def tensor(param: GlobalParam, value: Any) -> Tensor:
    """The argument for `param`. Raises `HkcError` HK502, HK503, HK504 or HK507 for an array that doesn't fit."""
    if isinstance(value, np.ndarray):
        return _host(param, value, value)
    if all(hasattr(value, name) for name in _TORCH):
        return _torch(param, value)
    if hasattr(value, "__dlpack__"):
        try:
            return _host(param, np.from_dlpack(value), value)
        except (BufferError, RuntimeError, TypeError, ValueError) as problem:
            raise _no_array(param, value, str(problem)) from None
    raise _no_array(param, value, f"expected an array of {param.dtype}")


def unwritten(param: GlobalParam, extents: Sequence[int]) -> Array:
    """A new array whose elements show whether anything was stored to them.

    They are NaN; where a float type has none, all bits are set; the bytes of whole numbers are 0x5A; a bool is False.
    """
    kind = dtype(param.dtype)
    made: Array = np.zeros(extents, kind.numpy)
    if kind.is_float:
        nan = np.array(np.nan).astype(kind.numpy)
        made[...] = nan if np.isnan(nan.astype(np.float64)) else np.uint8((1 << kind.bits) - 1).view(kind.numpy)
    elif kind.kind != "bool":
        made.view(np.uint8)[...] = 0x5A
    return made


def output(param: GlobalParam, extents: Sequence[int], like: Any) -> Any:
    """Memory for an output that the caller left out, in the library and on the device of `like`, another argument."""
    made = unwritten(param, extents)
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(like, torch.Tensor):
        return made
    (fill,) = unwritten(param, (1,))
    number = float(fill) if dtype(param.dtype).is_float else int(fill)
    return torch.full(tuple(extents), number, dtype=getattr(torch, str(made.dtype)), device=like.device)


def _no_array(param: GlobalParam, value: Any, why: str) -> HkcError:
    hint = f"numpy.asarray(…, {dtype(param.dtype).numpy})" if isinstance(value, list | tuple | int | float) else None
    return error("HK502", f"`{param.name}` can't be {_article(type(value).__name__)}: {why}", hint=hint)


def _article(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeiouAEIOU' else 'a'} {noun}"


def _host(param: GlobalParam, array: Array, given: Any) -> Tensor:
    _check_dtype(param, str(array.dtype))
    _check_rank(param, array.shape)
    size, address = array.itemsize, int(array.__array_interface__["data"][0])
    for dim, (extent, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        if extent > 1 and stride % size:
            raise error(
                "HK507", f"`{param.name}` steps {stride} bytes along dim {dim}, no multiple of its {size}-byte elements"
            )
    if array.size and address % size:
        raise error("HK507", f"`{param.name}` starts at {address:#x}, no multiple of its {size}-byte elements")
    strides = tuple(stride // size for stride in array.strides)
    return Tensor(View(address, array.shape, strides, size), given, array)


def _torch(param: GlobalParam, value: Any) -> Tensor:
    """Without PyTorch's help for the host as well, because its bridge to NumPy refuses bf16."""
    _check_dtype(param, str(value.dtype).removeprefix("torch."))
    extents = tuple(int(e) for e in value.shape)
    _check_rank(param, extents)
    kind = dtype(param.dtype)
    found = Tensor(View(int(value.data_ptr()), extents, tuple(map(int, value.stride())), kind.bytes), value, None)
    if value.device.type != "cpu":
        return Tensor(found.view, value, None, int(value.device.index or 0))
    span = found.extent
    memory = memoryview((ctypes.c_uint8 * len(span)).from_address(span.start))
    strides = tuple(s * kind.bytes for s in found.view.strides)
    return Tensor(found.view, value, np.ndarray(extents, kind.numpy, memory, found.view.address - span.start, strides))


def _check_dtype(param: GlobalParam, found: str) -> None:
    """`found` is NumPy's name of a dtype."""
    if found != str(dtype(param.dtype).numpy):
        name = next((d.name for d in DTYPES.values() if str(d.numpy) == found), found)
        raise error("HK503", f"`{param.name}` holds {param.dtype}, but the array holds {name}")


def _check_rank(param: GlobalParam, extents: Sequence[int]) -> None:
    if len(extents) != len(param.dims):
        wanted = ", ".join(map(str, param.dims))
        raise error("HK504", f"`{param.name}` is {len(param.dims)}-d, [{wanted}], but the array is {_shape(extents)}")


def _shape(extents: Sequence[int]) -> str:
    return f"{len(extents)}-d, [{', '.join(map(str, extents))}]"
