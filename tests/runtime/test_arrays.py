"""What counts as an array, and which arrays a kernel can address."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hkc.machine.abi import GlobalParam
from hkc.runtime.arrays import output, tensor, unwritten
from hkc.support.dtypes import DTYPES
from hkc.support.errors import HkcError

X = GlobalParam("X", "f32", ("M", "N"))


@dataclass
class Place:
    type: str
    index: int | None = None


class TorchTensor:
    """As much of a PyTorch tensor as is looked at, over memory of NumPy."""

    def __init__(self, array: np.ndarray[Any, Any], device: Place) -> None:
        self.array, self.device, self.shape = array, device, array.shape
        self.dtype = f"torch.{array.dtype}"

    def data_ptr(self) -> int:
        return int(self.array.__array_interface__["data"][0])

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)


def refused(param: GlobalParam, value: Any) -> str:
    with pytest.raises(HkcError) as failure:
        tensor(param, value)
    return failure.value.diagnostics[0].message


def test_pytorch_tensors_of_the_host_share_their_memory() -> None:
    memory = np.arange(24, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(4, 6)[:, ::2]
    given = TorchTensor(memory, Place("cpu"))
    found = tensor(GlobalParam("X", "bf16", ("M", "N")), given)
    assert found.given is given
    assert found.array is not None
    assert found.array.tolist() == memory.tolist()
    found.array[1, 2] = 99
    assert memory[1, 2] == 99
    assert found.view == tensor(GlobalParam("X", "bf16", ("M", "N")), memory).view


def test_pytorch_tensors_of_a_gpu_are_not_touched() -> None:
    found = tensor(X, TorchTensor(np.zeros((2, 3), np.float32), Place("cuda", 1)))
    assert found.array is None
    assert found.device == 1
    assert found.view.strides == (3, 1)
    assert "holds f32, but the array holds f16" in refused(
        X, TorchTensor(np.zeros((2, 3), np.float16), Place("cuda", 0))
    )


def test_outputs_follow_the_first_argument_to_its_library_and_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(extents: tuple[int, ...], fill: float, dtype: Any, device: Place) -> TorchTensor:
        return TorchTensor(np.full(extents, fill, dtype), device)

    torch = SimpleNamespace(Tensor=TorchTensor, full=full, bfloat16=ml_dtypes.bfloat16, int32=np.int32)
    monkeypatch.setitem(sys.modules, "torch", torch)
    like = TorchTensor(np.zeros(3, np.float32), Place("cuda", 1))
    made = output(GlobalParam("Y", "bf16", ("N",)), (3,), like)
    assert made.device is like.device
    assert np.isnan(made.array.astype(np.float32)).all()
    assert output(GlobalParam("Y", "i32", ("N",)), (1,), like).array.tolist() == [0x5A5A5A5A]
    assert isinstance(output(GlobalParam("Y", "i32", ("N",)), (1,), np.zeros(3)), np.ndarray)


def test_dlpack() -> None:
    class Other:
        """An array of some other library."""

        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    memory = np.arange(12, dtype=np.float32).reshape(3, 4)
    found = tensor(X, Other(memory.T))
    assert found.view.extents == (4, 3)
    assert found.view.strides == (1, 4)
    assert found.view.address == memory.__array_interface__["data"][0]


def test_elements_lie_whole_elements_apart() -> None:
    records = np.zeros((3, 4), np.dtype([("tag", "u2"), ("value", "f4")]))
    assert "no multiple of its 4-byte elements" in refused(X, records["value"])
    shifted = np.frombuffer(bytes(41), np.uint8)[1:].view(np.float32).reshape(2, 5)
    assert "no multiple of its 4-byte elements" in refused(X, shifted)
    assert "starts at" in refused(X, shifted)
    assert refused(X, np.zeros((2, 3), ">f4")) == "`X` holds f32, but the array holds >f4"


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_new_outputs_show_what_is_not_stored(name: str) -> None:
    made = unwritten(GlobalParam("Y", name, ("N",)), (3,))
    assert made.dtype == DTYPES[name].numpy
    if name in ("f4e2m1", "f6e2m3", "f6e3m2"):
        assert set(made.tobytes()) == {(1 << DTYPES[name].bits) - 1}
    elif DTYPES[name].is_float:
        assert np.isnan(made.astype(np.float64)).all()
    elif name != "bool":
        assert set(made.tobytes()) == {0x5A}
