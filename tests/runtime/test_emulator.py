"""The emulator as a device: views of every kind, shared memory, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hkc.api import CompiledKernel
from hkc.emulate import Memory
from hkc.machine.abi import View, pack
from hkc.runtime import emulator
from hkc.support.errors import HkcBug, HkcError

Example = Callable[..., CompiledKernel]
Array = np.ndarray[Any, Any]
N = 300


@pytest.fixture(params=["gfx942", "gfx950"])
def add(request: pytest.FixtureRequest, example: Example) -> CompiledKernel:
    return example("vector_add", request.param, BLOCK=256)


def numbers(n: int, start: float = 0) -> Array:
    return np.arange(start, start + n, dtype=np.float32)


def shifted(n: int) -> Array:
    """At an address that is 4 past a multiple of 16."""
    room = np.zeros(n + 8, np.float32)
    skip = 1 + -(room.__array_interface__["data"][0] // 4) % 4
    return room[skip : skip + n]


VIEWS: dict[str, Callable[[int], Array]] = {
    "contiguous": np.zeros,
    "every second": lambda n: np.zeros(2 * n, np.float32)[::2],
    "backwards": lambda n: np.zeros(n, np.float32)[::-1],
    "every third backwards": lambda n: np.zeros(3 * n, np.float32)[::-3],
    "misaligned": shifted,
    "a column": lambda n: np.zeros((n, 5), np.float32)[:, 3],
}


@pytest.mark.parametrize("kind", VIEWS)
def test_views(add: CompiledKernel, kind: str) -> None:
    a, b, c = (VIEWS[kind](N).astype(np.float32, copy=False) for _ in range(3))
    a[...], b[...] = numbers(N), numbers(N, 1000)
    around = None if c.base is None else np.array(c.base)
    result = add.launch(add.bind(a, b, c), device="emulator")
    assert c.tolist() == (a + b).tolist()
    assert result.findings == ()
    fast = kind == "contiguous" or (kind == "a" and c.flags.aligned)
    assert (result.entry == add.symbol) == fast
    if around is not None:  # nothing but the elements changed
        c[...] = 0
        assert np.array_equal(c.base, around)


def test_a_broadcast_input(add: CompiledKernel) -> None:
    a = np.broadcast_to(np.float32(7), (N,))
    assert add(a, numbers(N)).tolist() == numbers(N, 7).tolist()


def test_arguments_that_share_memory_share_it_there(add: CompiledKernel) -> None:
    x = numbers(N)
    assert add(x, x, x) is x
    assert x.tolist() == (2 * numbers(N)).tolist()
    memory = numbers(2 * N)
    add(memory[:N], memory[N:], memory[N:])  # an output in the place of one input, beside the other
    assert memory[N:].tolist() == (numbers(N) + numbers(N, N)).tolist()
    assert memory[:N].tolist() == numbers(N).tolist()


def test_nothing_to_do(add: CompiledKernel) -> None:
    arguments = add.bind(numbers(0), numbers(0))
    result = add.launch(arguments, device="emulator")
    assert (result.instructions, result.entry) == (0, None)
    assert arguments.results(add.info)[0].shape == (0,)


def test_refused_launches_change_nothing(add: CompiledKernel) -> None:
    """A grid of 2^32 threads and more is refused before anything is copied."""
    far = np.broadcast_to(np.float32(1), (1 << 34,))
    out = numbers(N)
    arguments = add.bind(far, far, np.lib.stride_tricks.as_strided(out, far.shape, (4,)))
    with pytest.raises(HkcError, match=r"HK509.*67,108,864 workgroups of 256 threads, 17,179,869,184 in all"):
        add.launch(arguments, device="emulator")
    assert out.tolist() == numbers(N).tolist()
    assert add(numbers(N), numbers(N)).tolist() == (2 * numbers(N)).tolist()


def test_memory_of_a_gpu_is_out_of_reach(add: CompiledKernel) -> None:
    arguments = add.bind(numbers(N), numbers(N))
    away = replace(arguments.tensors["A"], array=None, device=0)
    with pytest.raises(HkcError, match=r"HK510.*`A` lies in the memory of a GPU"):
        add.launch(replace(arguments, tensors={**arguments.tensors, "A": away}), device="emulator")


def test_a_store_between_elements_is_noticed(add: CompiledKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def stray(*_: Any, memory: Memory, **__: Any) -> Any:
        memory.write(memory.allocations[0].base + 4, bytes(4))
        return SimpleNamespace(instructions=1, findings=())

    monkeypatch.setattr(emulator, "launch", stray)
    base = np.zeros((3, 2 * N), np.float32)
    with pytest.raises(HkcBug, match="between the elements of"):
        add.launch(add.bind(base[0, ::2], base[1, ::2], base[2, ::2]), device="emulator")
    assert not base.any()


def test_faults_of_our_own_code_are_bugs(add: CompiledKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def exaggerate(params: Any, views: dict[str, View], scalars: Any, printed: Any) -> bytes:
        return pack(params, {n: replace(v, extents=(9 * N,)) for n, v in views.items()}, scalars)

    monkeypatch.setattr(emulator, "pack", exaggerate)
    arguments = replace(add.bind(numbers(N), numbers(N)), names={"N": 9 * N})
    with pytest.raises(HkcBug, match=r"stops on the emulator: .*error\[HK704\]"):
        add.launch(arguments, device="emulator")


def test_every_order_of_waves_gives_the_same(example: Example) -> None:
    gemm = example("gemm", "gfx942", T="f32", OUT="f32", BM=32, BN=32)
    a, b = np.random.default_rng(0).integers(-4, 5, (2, 40, 70)).astype(np.float32)
    for seed in (0, 1, 2):
        arguments = gemm.bind(a, b)
        gemm.launch(arguments, emulator.Emulator(seed))
        assert np.array_equal(arguments.results(gemm.info)[0], a @ b.T)
