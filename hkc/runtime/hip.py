"""The GPU as a device, by way of hip-python, which is imported when first needed and finds the HIP library itself.

Arrays of the host are copied to the GPU and outputs back; tensors that lie in its memory are used where they are, on
PyTorch's current stream if PyTorch is loaded, and without waiting for the result.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.handover import Binary
from hkc.machine.abi import PRINTED_BYTES, PRINTED_START, KernelInfo, View, pack
from hkc.runtime.arguments import Arguments, workgroups
from hkc.runtime.device import PAGE, LaunchResult, Progress, Region, moved, regions
from hkc.runtime.printing import printed
from hkc.support.errors import HkcError, error
from hkc.targets.chip import load

KFD = Path("/dev/kfd")
"""The kernel driver's door to the GPUs."""

_GAP = 0xFF  # what lies between elements on the GPU: NaN in every float type
_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 3  # HIP_LAUNCH_PARAM_…, the three marks of a raw argument segment


@cache
def available() -> tuple[bool, str]:
    """Whether kernels can be launched on a GPU here, and if not, why."""
    if not KFD.exists():
        return False, f"there is no AMD GPU: {KFD} does not exist"
    try:
        count = _call("hipGetDeviceCount")
    except ImportError:
        return False, "hip-python is not installed; run `pip install 'hkc[hip]'`"
    except HkcError as failure:
        return False, failure.diagnostics[0].message
    return (True, "") if count else (False, "HIP finds no GPU")


def arch(device: int | None = None) -> str:
    """The chip of a GPU, by default the current one's. Raises `HkcError` HK510 without a GPU."""
    _require()
    return _arch(_call("hipGetDevice") if device is None else device)


class Hip:
    """Runs kernels on the GPU that holds their tensors, else on the current one."""

    name = "hip"

    def run(self, binary: Binary, arguments: Arguments, progress: Progress | None = None) -> LaunchResult:
        """See `Device.run`.

        Raises `HkcError` HK509 for a grid that is too large, HK510 without a GPU or for tensors on several, HK511 for
        what HIP reports, HK512 where the GPU is another chip than the kernel's.
        """
        _require()
        info = binary.info
        with _device(arguments) as device:
            _check_arch(binary.arch, _arch(device))
            wave = load(binary.arch).compute.wave
            count = workgroups(info, arguments.names, wave)
            if count == 0:
                return LaunchResult(self.name, 0.0, None, None)
            with _copies(arguments, info) as copies:
                entry = info.entry(copies.views)
                segment = pack(info.params, copies.views, arguments.scalars, copies.printed)
                began = time.perf_counter()
                _launch(_function(device, binary.hsaco, entry.symbol), info, count, wave, segment, _stream(device))
                if not copies.buffers and not info.prints:
                    return LaunchResult(self.name, None, None, entry.symbol)
                _call("hipStreamSynchronize", _stream(device))
                seconds = time.perf_counter() - began
                said = copies.fetch(info, wave)
        return LaunchResult(self.name, seconds, None, entry.symbol, printed=said)


class _Copies:
    """Host memory of the arguments, copied to the GPU; `views` say where each argument lies there."""

    def __init__(self, arguments: Arguments) -> None:
        self.tensors = arguments.tensors
        self.views: dict[str, View] = {name: t.view for name, t in self.tensors.items()}
        self.buffers: list[tuple[Region, Any, int]] = []
        self.printed: int | None = None

    def send(self, info: KernelInfo) -> None:
        """Allocate and fill the buffers."""
        if info.prints:
            self.printed = int(_call("hipMalloc", PRINTED_BYTES))
            self._upload(self.printed, np.zeros(PRINTED_START, np.uint8))
        for region in regions(self.tensors):
            content = np.full(region.size, _GAP, np.uint8)
            for name in region.params:
                region.elements(content, self.tensors[name])[...] = self.tensors[name].array
            skew = region.start % PAGE
            buffer = _call("hipMalloc", skew + region.size)
            base = int(buffer) + skew
            self.buffers.append((region, buffer, base))
            self._upload(base, content)
            self.views |= {name: moved(self.tensors[name].view, region, base) for name in region.params}

    def _upload(self, address: int, content: NDArray[np.uint8]) -> None:
        _call("hipMemcpy", address, content, content.size, _enumerator("hipMemcpyKind", "hipMemcpyHostToDevice"))

    def _download(self, address: int, size: int) -> NDArray[np.uint8]:
        content: NDArray[np.uint8] = np.empty(size, np.uint8)
        _call("hipMemcpy", content, address, size, _enumerator("hipMemcpyKind", "hipMemcpyDeviceToHost"))
        return content

    def fetch(self, info: KernelInfo, lanes: int) -> str:
        """Copy the elements of the outputs back; returns what the kernel printed."""
        for region, _, base in self.buffers:
            written = [name for name in region.params if name in info.outputs]
            if not written:
                continue
            content = self._download(base, region.size)
            for name in written:
                array = self.tensors[name].array
                assert array is not None
                array[...] = region.elements(content, self.tensors[name])
        return "" if self.printed is None else printed(info, self._download(self.printed, PRINTED_BYTES), lanes)


@contextmanager
def _copies(arguments: Arguments, info: KernelInfo) -> Iterator[_Copies]:
    copies = _Copies(arguments)
    try:
        copies.send(info)
        yield copies
    finally:
        for _, buffer, _ in copies.buffers:
            _call("hipFree", buffer)
        if copies.printed is not None:
            _call("hipFree", copies.printed)


@contextmanager
def _device(arguments: Arguments) -> Iterator[int]:
    """The GPU of the tensors, made current; the one that was current before comes back afterwards."""
    wanted = {t.device: name for name, t in arguments.tensors.items() if t.device is not None}
    if len(wanted) > 1:
        where = ", ".join(f"`{name}` on GPU {number}" for number, name in sorted(wanted.items()))
        raise error("HK510", f"the tensors lie on several GPUs: {where}")
    before = int(_call("hipGetDevice"))
    device = next(iter(wanted), before)
    if device == before:
        yield device
        return
    _call("hipSetDevice", device)
    try:
        yield device
    finally:
        _call("hipSetDevice", before)


def _launch(function: Any, info: KernelInfo, count: int, wave: int, segment: bytes, stream: Any) -> None:
    buffer = ctypes.create_string_buffer(segment, len(segment))
    size = ctypes.c_size_t(len(segment))
    extra = (ctypes.c_void_p * 5)(_BUFFER_POINTER, ctypes.addressof(buffer), _BUFFER_SIZE, ctypes.addressof(size), _END)
    groups, threads = (count, 1, 1), (info.waves * wave, 1, 1)
    _call("hipModuleLaunchKernel", function, *groups, *threads, 0, stream, None, ctypes.addressof(extra))


@cache
def _function(device: int, hsaco: bytes, symbol: str) -> Any:
    """A kernel on a GPU. Never unloaded: a launch in flight, or a captured graph, may still use it."""
    return _call("hipModuleGetFunction", _module(device, hsaco), symbol.encode())


@cache
def _module(device: int, hsaco: bytes) -> Any:
    return _call("hipModuleLoadData", hsaco)


def _stream(device: int) -> Any:
    """PyTorch's current stream where PyTorch is in use, else the default stream."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return int(torch.cuda.current_stream(device).cuda_stream) or None


@cache
def _arch(device: int) -> str:
    name = _call("hipGetDeviceProperties", device).gcnArchName
    return (name.decode() if isinstance(name, bytes) else str(name)).partition(":")[0]


def _check_arch(compiled_for: str, found: str) -> None:
    if found != compiled_for:
        raise error(
            "HK512", f"the kernel is compiled for {compiled_for}, but the GPU is {found}", hint="device='emulator'"
        )


def _require() -> None:
    usable, reason = available()
    if not usable:
        raise error("HK510", f"no kernel can be launched on a GPU: {reason}", hint="device='emulator' runs it here")


def _call(name: str, *args: Any) -> Any:
    """A function of HIP: its result, or HK511 with HIP's own name for the error."""
    library = _library()
    try:
        status, *results = getattr(library, name)(*args)
    except (RuntimeError, OSError) as failure:  # the library or one of its functions is missing
        raise error("HK511", f"{name} can't be called: {failure}") from None
    if status != library.hipError_t.hipSuccess:
        library.hipGetLastError()  # HIP keeps the error for whoever asks next, PyTorch for instance; it was ours
        raise error("HK511", f"{name} reports {getattr(status, 'name', status)}")
    return results[0] if results else None


def _enumerator(kind: str, name: str) -> Any:
    return getattr(getattr(_library(), kind), name)


def _library() -> Any:
    from hip import hip

    return hip
