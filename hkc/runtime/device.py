"""What devices have in common: the interface, what a launch reports, and the host memory that arguments share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hkc.handover import Binary
from hkc.machine.abi import View
from hkc.runtime.arguments import Arguments
from hkc.runtime.arrays import Tensor

if TYPE_CHECKING:
    from hkc.emulate import Finding

Progress = Callable[[float, str], None]
"""Called now and then with the part that is done, 0 to 1, and a phrase that says what is."""

PAGE = 4096
"""A copy of host memory has the same address as the original, modulo this, so that the same entry admits it."""


@dataclass(frozen=True)
class LaunchResult:
    """What a launch did.

    seconds        from the launch until the outputs were there; None where nobody waited for it
    instructions   wave-instructions executed; None where nobody counted
    entry          the symbol of the entry point that ran; None where no workgroup had to
    printed        what the kernel printed, in the order of its workgroups
    """

    device: str
    seconds: float | None
    instructions: int | None
    entry: str | None
    findings: tuple[Finding, ...] = field(default=())
    printed: str = ""


class Device(Protocol):
    """Something that runs kernels."""

    name: str

    def run(self, binary: Binary, arguments: Arguments, progress: Progress | None = None) -> LaunchResult:
        """Run the kernel. Its outputs are written when this returns, unless all of them lie in a GPU's memory."""
        ...


@dataclass(frozen=True)
class Region:
    """A stretch of host memory from address `start` on, shared by the arguments `params`."""

    start: int
    size: int
    params: tuple[str, ...]

    def elements(self, buffer: NDArray[np.uint8], tensor: Tensor, dtype: Any = None) -> NDArray[Any]:
        """The elements of a tensor inside `buffer`, a copy of this stretch; `dtype` replaces theirs, of equal size."""
        assert tensor.array is not None
        offset = tensor.view.address - self.start
        return np.ndarray(tensor.array.shape, dtype or tensor.array.dtype, buffer, offset, tensor.array.strides)


def regions(tensors: Mapping[str, Tensor]) -> list[Region]:
    """The host memory under the tensors, in order of addresses. Views of the same bytes fall into the same region."""
    found: list[Region] = []
    extents = ((t.extent, name) for name, t in tensors.items() if t.array is not None and len(t.extent))
    for extent, name in sorted(extents, key=lambda pair: pair[0].start):
        if found and extent.start < found[-1].start + found[-1].size:
            last = found.pop()
            end = max(last.start + last.size, extent.stop)
            found.append(Region(last.start, end - last.start, (*last.params, name)))
        else:
            found.append(Region(extent.start, len(extent), (name,)))
    return found


def moved(view: View, region: Region, base: int) -> View:
    """The view of a tensor after its region was copied to address `base`."""
    return View(base + view.address - region.start, view.extents, view.strides, view.itemsize)
