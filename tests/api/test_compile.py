"""`hkc.compile`: what comes out, that it is always the same, and how errors arrive."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hkc
from hkc import api
from hkc.api import CompiledKernel
from hkc.handover import STAGES, Resources
from hkc.machine.codeobject import CodeObject
from hkc.runtime import hip

Example = Callable[..., CompiledKernel]
ADD = (Path(__file__).parents[2] / "examples/vector_add.hk").read_text()


def test_a_kernel_says_what_it_is(example: Example) -> None:
    gemm = example("gemm", "gfx942")
    code = CodeObject.parse(gemm.hsaco)
    metadata = code.kernel(gemm.symbol).metadata
    assert code.arch == gemm.arch == "gfx942"
    assert gemm.symbol == "gemm"
    assert (gemm.vgpr, gemm.agpr, gemm.sgpr) == (metadata.vgprs, metadata.agprs, metadata.sgprs)
    assert (gemm.lds_bytes, gemm.waves) == (metadata.lds, 4)
    assert gemm.info.outputs == ("C",)
    assert gemm.info.inputs == ("A", "B")
    explicit = [a for a in metadata.args if not a.kind.startswith("hidden_")]
    assert [(a.offset, a.bytes) for a in gemm.arguments] == [(a.offset, a.size) for a in explicit]
    assert [a.name for a in gemm.arguments][:5] == ["A", "A.extent.0", "A.extent.1", "A.stride.0", "A.stride.1"]
    for shown in (
        "gemm for gfx942",
        f"{gemm.vgpr} VGPR",
        f"{gemm.lds_bytes} B LDS",
        "4 waves",
        "BM=128",
        "40 B: pointer",
    ):
        assert shown in repr(gemm)


def test_numbers_are_laid_out_as_the_metadata_says() -> None:
    k = hkc.compile(
        """
kernel k(a: f16, X: global[f32, N], b: i8, Y: global[f32, N], c: f32):
    i = tile_ids(cdiv(N, 64))
    store(Y, [i*64], load(X, [i*64], [64]) * c)
""",
        "gfx950",
    )
    explicit = [a for a in CodeObject.parse(k.hsaco).kernel(k.symbol).metadata.args if not a.kind.startswith("hidden_")]
    assert [(a.offset, a.bytes) for a in k.arguments] == [(a.offset, a.size) for a in explicit]
    assert k.arguments[0].kind == "f16"
    x = np.arange(70, dtype=np.float32)
    assert k(1.0, x, 3, 0.5).tolist() == (x / 2).tolist()


def test_the_same_bytes_every_time_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: Example
) -> None:
    """Twenty compilations, from several folders, under several names, as text, and in a process of its own."""
    expected = example("vector_add", "gfx942").hsaco
    for number in range(6):
        folder = tmp_path / str(number) / "a longer name of a folder" / ("x" * number)
        folder.mkdir(parents=True)
        (folder / f"{'k' * (number + 1)}.hk").write_text(ADD)
        monkeypatch.chdir(folder)
        assert hkc.compile(f"{'k' * (number + 1)}.hk", "gfx942").hsaco == expected
        assert hkc.compile(folder / f"{'k' * (number + 1)}.hk", "gfx942").hsaco == expected
        assert hkc.compile(ADD, arch="gfx942").hsaco == expected
    assert hkc.compile(ADD, "gfx942", T="f32", BLOCK=1024).hsaco == expected
    (tmp_path / "other.hk").write_text(ADD)
    script = "import hkc, sys; sys.stdout.buffer.write(hkc.compile('other.hk', 'gfx942').hsaco)"
    root = str(Path(hkc.__file__).parents[1])
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join([root, *sys.path])}
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert ran.stdout == expected


def test_constants_and_kept_stages(tmp_path: Path) -> None:
    k = hkc.compile(ADD, "gfx950", keep=("tile", "asm"), T="bf16", BLOCK=256)
    assert dict(k.info.constants) == {"T": "bf16", "BLOCK": "256"}
    assert set(k.texts) == {"tile", "asm"}
    assert "hkc_tile.load" in k.texts["tile"]
    assert ".amdhsa_kernel vector_add" in k.texts["asm"]
    paths = k.save(tmp_path / "new", stem="sum")
    assert sorted(p.name for p in paths) == [f"sum.gfx950.{end}" for end in ("hsaco", "lines.json", "s", "tile.mlir")]
    assert sorted(tmp_path.glob("new/*")) == sorted(paths)
    assert (tmp_path / "new/sum.gfx950.hsaco").read_bytes() == k.hsaco
    table = json.loads((tmp_path / "new/sum.gfx950.lines.json").read_text())
    assert (table["source"], table["columns"]) == ("<string>", ["address", "line", "column"])
    assert {9} < {line for _, line, _ in table["rows"]} <= {0, *range(5, 10)}
    assert tuple(api.SUFFIXES) == STAGES


def test_nothing_half_written(tmp_path: Path, example: Example) -> None:
    (tmp_path / "vector_add.gfx942.hsaco").mkdir()  # where the file should go
    with pytest.raises(hkc.HkcError, match=r"HK517"):
        example("vector_add", "gfx942").save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["vector_add.gfx942.hsaco"]
    (tmp_path / "file").write_text("")
    with pytest.raises(hkc.HkcError, match=r"HK517.*file"):
        example("vector_add", "gfx942").save(tmp_path / "file" / "folder")


def test_mistakes_arrive_with_their_place() -> None:
    with pytest.raises(hkc.HkcError, match=r"<string>:7:9: error\[HK301\]: unknown function `lod`"):
        hkc.compile(ADD.replace("a = load", "a = lod"), "gfx942")
    with pytest.raises(hkc.HkcError, match=r"error\[HK121\]: can't read `no.hk`"):
        hkc.compile("no.hk", "gfx942")


def test_wrong_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for named, expected in (
        ({"arch": "gfx941"}, r"HK422.*unknown chip `gfx941`; known: gfx942, gfx950"),
        ({"arch": "gfx942", "keep": ("ptx",)}, r"HK516.*there is no stage `ptx`"),
        ({"arch": "gfx942", "BLCK": 1}, r"HK305.*no constant `BLCK`"),
    ):
        with pytest.raises(hkc.HkcUsageError, match=expected):
            hkc.compile(ADD, **named)
    monkeypatch.setattr(hip, "available", lambda: (False, "there is no GPU"))
    with pytest.raises(hkc.HkcUsageError, match=r"HK514.*no chip is named(.|\n)*gfx942, gfx950"):
        hkc.compile(ADD)


def test_spills_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    build, taken = api.build, Resources(256, 0, 100, 7, 2, 64, 0)

    def spilling(*args: Any) -> CompiledKernel:
        made = build(*args)
        return replace(made, binary=replace(made.binary, resources={**made.resources, "vector_add__general": taken}))

    monkeypatch.setattr(api, "build", spilling)
    with pytest.warns(RuntimeWarning) as caught:
        kernel = hkc.compile(ADD, arch="gfx942")
    said = "`vector_add__general` for gfx942 spills 7 VGPRs and 2 SGPRs (64 B scratch)"
    assert [(str(w.message), w.filename) for w in caught] == [(said, __file__)]
    assert kernel.spills == {"vector_add__general": said}


def test_a_file_with_two_kernels_is_refused() -> None:
    twice = ADD.replace(
        "example", ADD[ADD.index("kernel") : ADD.index("example")].replace("vector_add", "twin") + "example"
    )
    with pytest.raises(hkc.HkcError, match=r"HK454.*2 kernels \(`vector_add`, `twin`\)"):
        hkc.compile(twice, "gfx942")


def test_devices_by_name(example: Example, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    add = example("vector_add", "gfx942")
    x = np.arange(10, dtype=np.float32)
    assert add(x, x, device="reference").tolist() == (x + x).tolist()
    with pytest.raises(hkc.HkcUsageError, match=r"HK516.*there is no device `gpu`"):
        add(x, x, device="gpu")
    monkeypatch.setattr(hip, "available", lambda: (False, "there is no GPU"))
    with pytest.raises(hkc.HkcError, match=r"HK510.*there is no GPU"):
        add(x, x, device="hip")
    assert add(x, x).tolist() == (x + x).tolist(), "the next launch works"


def test_kernels_pickle(example: Example) -> None:
    again = pickle.loads(pickle.dumps(example("vector_add", "gfx942")))
    x = np.arange(10, dtype=np.float32)
    assert again(x, x).tolist() == (x + x).tolist()


def test_threads_compile_and_run_at_once(example: Example) -> None:
    def work(number: int) -> None:
        chip = ("gfx942", "gfx950")[number % 2]
        k = hkc.compile(ADD, chip)
        x = np.arange(number, 300 + number, dtype=np.float32)
        assert k(x, x).tolist() == (x + x).tolist()
        assert k.hsaco == example("vector_add", chip).hsaco

    example("vector_add", "gfx942"), example("vector_add", "gfx950")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))


def test_names_of_the_package() -> None:
    assert set(hkc.__all__) <= set(dir(hkc))
    for name in hkc.__all__:
        assert getattr(hkc, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'decompile'"):
        _ = hkc.decompile  # type: ignore[attr-defined]


def test_import_and_use_load_neither_hip_nor_torch() -> None:
    script = """
import sys, hkc
assert "numpy" not in sys.modules
import numpy as np
k = hkc.compile('''
kernel k(Y: global[f32, N]):
    i = tile_ids(cdiv(N, 64))
    store(Y, [i*64], zeros[f32, 64])
''', 'gfx942')
k(N=3, device='emulator')
assert not {'torch', 'torch_mlir', 'hip', 'rocm', 'triton'} & set(sys.modules)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(hkc.__file__).parents[1]), *sys.path])}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=120)
