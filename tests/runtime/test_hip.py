"""The launch path through hip-python, over a HIP library made of Python functions. Each test has its own process."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hkc.runtime import hip

needs_hip_python = pytest.mark.skipif(
    importlib.util.find_spec("hip") is None, reason="hip-python is not installed (pip install 'hkc[hip]')"
)

START = """
import ctypes, struct, sys
from pathlib import Path
sys.path.insert(0, {here!r})
import fake_hip
import numpy as np
from hkc.handover import Binary
from hkc.machine.abi import Entry, GlobalParam, KernelInfo
from hkc.runtime import hip
from hkc.runtime.arguments import bind
from hkc.support.errors import HkcError

gpu = fake_hip.Device()
fake_hip.install(gpu)
hip.KFD = Path("/dev/null")
params = tuple(GlobalParam(name, "f32", ("N",)) for name in "AC")
info = KernelInfo("copy", "gfx942", params, ("cdiv(N, 256)",), 4, (Entry("copy", ()),), ("C",), (), ("A",))
binary = Binary("gfx942", b"\\x7fELF", info, {{}})

def at(address, count, stride):
    low = address + min(0, (count - 1) * stride * 4)
    memory = (ctypes.c_uint8 * (4 * ((count - 1) * abs(stride) + 1))).from_address(low)
    return np.ndarray(count, np.float32, memory, address - low, (4 * stride,))

def copy(launch):
    a, n, s, c, m, t = struct.unpack("<6q", launch.segment)
    at(c, m, t)[:] = at(a, n, s)

gpu.kernel = copy

class Tensor:
    def __init__(self, array, number):
        self.array, self.shape, self.dtype = array, array.shape, "torch.float32"
        self.device = type("device", (), dict(type="cuda", index=number))
    def data_ptr(self): return self.array.ctypes.data
    def stride(self): return (1,)

def refused(*args):
    try:
        hip.Hip().run(binary, bind(info, args, {{}}))
    except HkcError as failure:
        return str(failure)
"""


def run(body: str) -> None:
    script = START.format(here=str(Path(__file__).parent)) + textwrap.dedent(body)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""


@needs_hip_python
def test_arrays_of_the_host_are_copied_there_and_back() -> None:
    run("""
    assert hip.available() == (True, "")
    assert hip.arch() == "gfx942"
    base = np.arange(2000, dtype=np.float32)
    out = np.zeros(3000, np.float32)
    result = hip.Hip().run(binary, bind(info, (base[::-2], out[::3]), {}))
    assert out[::3].tolist() == base[::-2].tolist()
    assert not out[1::3].any() and not out[2::3].any()
    assert (result.device, result.entry, result.instructions) == ("hip", "copy", None) and result.seconds > 0
    (launch,) = gpu.launches
    assert (launch.function, launch.workgroups, launch.threads, launch.stream) == ((1, "copy"), 4, 256, None)
    assert struct.unpack("<6q", launch.segment)[0] % 4096 == base[1999:].ctypes.data % 4096
    assert gpu.memory == {} and gpu.waits == 1

    hip.Hip().run(binary, bind(info, (base,), {}))
    assert gpu.modules == [b"\\x7fELF"], "a module is loaded once"
    assert hip.Hip().run(binary, bind(info, (base[:0],), {})).entry is None and len(gpu.launches) == 2
    """)


@needs_hip_python
def test_tensors_of_a_gpu_are_used_where_they_are() -> None:
    run("""
    a, c = np.arange(500, dtype=np.float32), np.zeros(500, np.float32)
    class torch:
        class cuda:
            is_available = staticmethod(lambda: True)
            current_stream = staticmethod(lambda device: type("s", (), dict(cuda_stream=0x77 + device)))
    sys.modules["torch"] = torch
    result = hip.Hip().run(binary, bind(info, (Tensor(a, 1), Tensor(c, 1)), {}))
    assert c.tolist() == a.tolist() and result.seconds is None
    (launch,) = gpu.launches
    assert (launch.device, launch.stream) == (1, 0x78) and gpu.current == 0
    assert gpu.copies == [] and gpu.waits == 0, "a launch in a stream waits for nothing"
    assert "the tensors lie on several GPUs: `A` on GPU 0, `C` on GPU 1" in refused(Tensor(a, 0), Tensor(c, 1))
    """)


@needs_hip_python
def test_refusals_leave_everything_as_it_was() -> None:
    run("""
    a = np.arange(10, dtype=np.float32)
    gpu.status["hipMalloc"] = 2
    assert refused(a) == "error[HK511]: hipMalloc reports hipErrorOutOfMemory"
    del gpu.status["hipMalloc"]
    gpu.status["hipModuleLaunchKernel"] = 1
    out = np.zeros(10, np.float32)
    assert "HK511" in refused(a, out) and not out.any() and gpu.memory == {}
    assert gpu.forgotten == 2, "HIP keeps no error for the next who asks"
    gpu.status.clear()
    far = np.broadcast_to(np.float32(1), (1 << 33,))
    assert "HK509" in refused(far, np.lib.stride_tricks.as_strided(out, far.shape, (4,))) and gpu.memory == {}
    binary = Binary("gfx950", b"\\x7fELF", info, {})
    assert "HK512" in refused(a) and "compiled for gfx950, but the GPU is gfx942" in refused(a)
    binary = Binary("gfx942", b"\\x7fELF", info, {})
    hip.Hip().run(binary, bind(info, (a, out), {}))
    assert out.tolist() == a.tolist()
    """)


@needs_hip_python
def test_kernels_run_on_a_gpu_of_their_chip_unasked() -> None:
    run("""
    from hkc.api import CompiledKernel
    a = np.arange(10, dtype=np.float32)
    assert CompiledKernel(binary, None)(a).tolist() == a.tolist() and len(gpu.launches) == 1
    """)


def test_without_a_gpu_one_line_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hip, "KFD", tmp_path / "kfd")
    hip.available.cache_clear()
    try:
        usable, reason = hip.available()
    finally:
        hip.available.cache_clear()
    assert not usable
    assert reason == f"there is no AMD GPU: {tmp_path / 'kfd'} does not exist"


@needs_hip_python
def test_what_a_kernel_prints_comes_back_from_the_gpu() -> None:
    run("""
    from dataclasses import replace
    from hkc.machine.abi import PRINTED_BYTES, PRINTED_START, Print, PrintedValue

    shown = Print("n is", (PrintedValue("i64", (), "", 1, 1),))

    def talk(launch):
        *_, buffer = struct.unpack("<7q", launch.segment)
        memory = np.ndarray(PRINTED_BYTES, np.uint8, (ctypes.c_uint8 * PRINTED_BYTES).from_address(buffer))
        assert not memory[:PRINTED_START].any()
        for group in (1, 0):
            for wave in range(4):
                at = PRINTED_START + int(memory[:8].view(np.int64)[0])
                memory[:8].view(np.int64)[0] += shown.bytes(64)
                memory[at : at + 16].view(np.int32)[:] = 0, wave, group, 1
                memory[at + 16 : at + 528].view(np.int64)[:] = 10 + group

    gpu.kernel = talk
    talking = Binary("gfx942", b"\\x7fELF", replace(info, prints=(shown,)), {})
    a = np.zeros(10, np.float32)
    result = hip.Hip().run(talking, bind(info, (a,), {}))
    assert result.printed == "n is 10\\nn is 11\\n" and gpu.memory == {}
    on_gpu = bind(info, (Tensor(a, 0), Tensor(np.zeros(10, np.float32), 0)), {})
    assert hip.Hip().run(talking, on_gpu).printed == "n is 10\\nn is 11\\n" and gpu.memory == {}
    """)
