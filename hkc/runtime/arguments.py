"""From a call to a launch: every parameter gets its argument, dims of one name agree, numbers are in range."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hkc.machine.abi import Aligned, Condition, GlobalParam, KernelInfo, ScalarParam, StrideMultiple, UnitStride
from hkc.runtime.arrays import Array, Tensor, output, tensor
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError, error
from hkc.support.extents import evaluate, names_in

THREADS = 1 << 32
"""A launch has fewer threads than this (the packet that starts it counts them in 32 bits)."""
WORKGROUPS = (1 << 31) - 1
"""A launch has at most this many workgroups (HIP counts them in a signed 32-bit number)."""


@dataclass(frozen=True, eq=False)
class Arguments:
    """Everything that one launch of a kernel is given.

    `tensors` and `scalars` are by parameter; `names` holds the values of dims and whole-number scalars, over which
    the grid is an expression.
    """

    tensors: Mapping[str, Tensor]
    scalars: Mapping[str, int | float]
    names: Mapping[str, int]

    def results(self, info: KernelInfo) -> tuple[Any, ...]:
        """The objects that the kernel writes to, as the caller passed them, in parameter order."""
        return tuple(self.tensors[name].given for name in info.outputs)

    def on_host(self) -> dict[str, Array]:
        """The tensors as arrays of the host. Raises `HkcError` HK510 where one lies in the memory of a GPU."""
        found: dict[str, Array] = {}
        for name, t in self.tensors.items():
            if t.array is None:
                raise error("HK510", f"`{name}` lies in the memory of a GPU, which only device='hip' can reach")
            found[name] = t.array
        return found


def bind(info: KernelInfo, positional: Sequence[Any], named: Mapping[str, Any]) -> Arguments:
    """The arguments of a call.

    Positional arguments follow the parameters in order; where there are too few for all, those that the kernel only
    writes are passed over. What is left out is allocated from the dims, which `named` may give as well; it is a PyTorch
    tensor where the first argument is one. Raises `HkcError` HK501 to HK508, naming parameter, expected and found.
    """
    given = _assign(info, positional, named)
    extents = _Extents()
    for dim in _dims(info) & named.keys():
        extents.set(dim, _whole(dim, named[dim]), "the call")
    tensors: dict[str, Tensor] = {}
    for p in info.params:
        if isinstance(p, GlobalParam) and p.name in given:
            tensors[p.name] = tensor(p, given[p.name])
            extents.bind(p, tensors[p.name].view.extents)
    like = next((t.given for t in tensors.values()), None)
    for p in info.params:
        if isinstance(p, GlobalParam) and p.name not in given:
            tensors[p.name] = tensor(p, output(p, extents.of(p), like))
    extents.check(info.params)
    for name in info.outputs:
        _check_output(name, tensors[name])
    for demand in info.requires:
        _check_demand(demand, tensors[demand.param])
    scalars = {p.name: _scalar(p, given[p.name]) for p in info.params if isinstance(p, ScalarParam)}
    whole = {name: value for name, value in scalars.items() if isinstance(value, int)}
    return Arguments(tensors, scalars, extents.known | whole)


def _check_demand(demand: Condition, given: Tensor) -> None:
    """Raise `HkcError` HK523 unless a tensor is what its parameter's declaration says."""
    if demand.holds(given.view):
        return
    match demand:
        case Aligned(param, size):
            what = f"`{param}` is declared to start at a multiple of {size} bytes, but is at {given.view.address:#x}"
        case StrideMultiple(param, dim, size):
            stride = given.view.strides[dim] * given.view.itemsize
            what = (
                f"`{param}` is declared to have strides of multiples of {size} bytes, not {stride} as along dim {dim}"
            )
        case UnitStride(param, dim):
            what = f"`{param}` is declared contiguous along dim {dim}, but its stride is {given.view.strides[dim]}"
        case _:
            what = f"`{demand.param}` is not what its declaration demands"
    raise error("HK523", what, hint="pass a contiguous copy, or compile the kernel without the declaration")


def workgroups(info: KernelInfo, names: Mapping[str, int], wave: int) -> int:
    """How many workgroups a launch has, in waves of `wave` lanes. Raises `HkcError` HK509 for more than can be."""
    count = info.workgroups(names)
    threads = count * info.waves * wave
    if count > WORKGROUPS or threads >= THREADS:
        raise error(
            "HK509",
            f"`{info.name}` would need {count:,} workgroups of {info.waves * wave} threads, {threads:,} in all; "
            f"a launch has at most {WORKGROUPS:,} workgroups and fewer than {THREADS:,} threads",
            hint="larger tiles make fewer workgroups",
        )
    return count


def _assign(info: KernelInfo, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by parameter, as the caller wrote them."""
    known = [p.name for p in info.params]
    if unknown := named.keys() - set(known) - _dims(info):
        raise error("HK501", f"`{info.name}` has no parameter `{min(unknown)}`", hint=_signature(info))
    open_ = [name for name in known if name not in named]
    optional = set(info.outputs) - set(info.inputs)
    if len(positional) != len(open_):
        open_ = [name for name in open_ if name not in optional]
    if len(positional) > len(open_):
        raise error(
            "HK501", f"`{info.name}` takes {len(known)} arguments; {_count(positional, named)}", hint=_signature(info)
        )
    given = dict(zip(open_, positional, strict=False)) | {n: v for n, v in named.items() if n in known}
    if missing := [name for name in known if name not in given and name not in optional]:
        raise error("HK501", f"`{info.name}` needs {', '.join(missing)}", hint=_signature(info))
    return given


def _count(positional: Sequence[Any], named: Mapping[str, Any]) -> str:
    return f"this call gives {len(positional)} by position and {len(named)} by name"


def _signature(info: KernelInfo) -> str:
    shown = [
        f"{p.name}: global[{', '.join(map(str, (p.dtype, *p.dims)))}]"
        if isinstance(p, GlobalParam)
        else f"{p.name}: {p.dtype}"
        for p in info.params
    ]
    return f"{info.name}({', '.join(shown)})"


def _dims(info: KernelInfo) -> frozenset[str]:
    """The names that the dims of a kernel mention."""
    dims = [d for p in info.params if isinstance(p, GlobalParam) for d in p.dims]
    return frozenset().union(*map(names_in, dims))


class _Extents:
    """The value of each dim, and which argument it comes from."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self._origin: dict[str, str] = {}
        self._seen: list[tuple[GlobalParam, int, int]] = []

    def set(self, dim: str, extent: int, origin: str) -> None:
        if extent < 0:
            raise error("HK505", f"`{dim}` is {extent}; an extent is a whole number from 0")
        known = self.known.setdefault(dim, extent)
        origin_of_known = self._origin.setdefault(dim, origin)
        if known != extent:
            raise error("HK505", f"`{dim}` is {known} in {origin_of_known} but {extent} in {origin}")

    def bind(self, param: GlobalParam, extents: Sequence[int]) -> None:
        """Take the extents of an array for the dims of `param` that are plain names; remember the others."""
        for axis, (dim, extent) in enumerate(zip(param.dims, extents, strict=True)):
            if isinstance(dim, str) and dim.isidentifier():
                self.set(dim, extent, f"dim {axis} of `{param.name}`")
            else:
                self._seen.append((param, axis, extent))

    def check(self, params: Sequence[Any]) -> None:
        """Compare the dims that are numbers or expressions with what was found."""
        for param, axis, extent in self._seen:
            wanted = self._value(param.dims[axis], param)
            if extent != wanted:
                meaning = "" if isinstance(param.dims[axis], int) else f" ({param.dims[axis]})"
                raise error("HK505", f"dim {axis} of `{param.name}` must be {wanted}{meaning}, but it is {extent}")

    def of(self, param: GlobalParam) -> tuple[int, ...]:
        """The extents of a tensor that the caller left out."""
        return tuple(self._value(dim, param) for dim in param.dims)

    def _value(self, dim: str | int, param: GlobalParam) -> int:
        try:
            return evaluate(dim, self.known)
        except KeyError as unknown:
            name = unknown.args[0]
            hint = f"pass `{param.name}`, or {name}=…"
            raise error("HK501", f"the extent `{name}` of `{param.name}` is not known", hint=hint) from None


def _check_output(name: str, found: Tensor) -> None:
    if found.array is not None and not found.array.flags.writeable:
        raise error("HK508", f"`{name}` is written by the kernel, but the array is read-only")
    if 0 in found.view.extents:
        return
    for dim, (extent, stride) in enumerate(zip(found.view.extents, found.view.strides, strict=True)):
        if extent > 1 and stride == 0:
            raise error(
                "HK508", f"`{name}` is written by the kernel, but its {extent} elements along dim {dim} are one"
            )
    if not _distinct(found.view.extents, found.view.strides):
        raise error("HK508", f"`{name}` is written by the kernel, but some of its elements share memory")


def _distinct(extents: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether all elements of a view have a place of their own: mostly, each stride steps over all that the smaller
    ones reach; elsewhere, places are counted."""
    reach = 0
    for stride, extent in sorted((abs(s), n) for s, n in zip(strides, extents, strict=True) if n > 1):
        if stride <= reach:
            grids = np.ix_(*(np.arange(n) * s for n, s in zip(extents, strides, strict=True)))
            return np.unique(sum(grids)).size == math.prod(extents)
        reach += stride * (extent - 1)
    return True


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise error("HK502", f"`{name}` must be a whole number, not {value!r}")
    return int(value)


def _scalar(param: ScalarParam, value: Any) -> int | float:
    """A number for `param`, within its range. Floats round to the dtype; infinities and NaN pass."""
    kind = dtype(param.dtype)
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value[()]
    if kind.kind == "bool":
        if not isinstance(value, bool | np.bool_):
            raise error("HK502", f"`{param.name}` is a bool, not {value!r}")
        return int(value)
    if not kind.is_float:
        return _in_range(param, _whole(param.name, value))
    if isinstance(value, bool) or not hasattr(value, "__float__") or isinstance(value, complex):
        raise error("HK502", f"`{param.name}` must be a number, not {value!r}")
    try:
        number = float(value)
    except OverflowError:
        raise _out_of_range(param, value) from None
    with np.errstate(over="ignore"):
        rounded = float(np.float64(number).astype(kind.numpy))
    if math.isinf(rounded) and not math.isinf(number):
        raise _out_of_range(param, value)
    return number


def _in_range(param: ScalarParam, value: int) -> int:
    kind = dtype(param.dtype)
    low = -(1 << kind.bits - 1) if kind.kind == "int" else 0
    if not low <= value < low + (1 << kind.bits):
        raise _out_of_range(param, value)
    return value


def _out_of_range(param: ScalarParam, value: Any) -> HkcError:
    long = isinstance(value, int) and value.bit_length() > 128  # Python refuses to print the longest of them
    shown = f"a whole number of {value.bit_length():,} bits" if long else value
    return error("HK506", f"`{param.name}` is {param.dtype}, which can't hold {shown}")
