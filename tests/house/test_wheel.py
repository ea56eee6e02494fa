"""The wheel, built by way of the sdist and installed outside the checkout, is complete and works."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest


def _run(*command: str | Path, cwd: Path) -> str:
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # which may name the checkout
    words = [str(word) for word in command]
    ran = subprocess.run(words, cwd=cwd, env=alone, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, f"{' '.join(map(str, command))}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(root: Path, stages: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built in a copy of what belongs to the project, so that left-overs of earlier builds can't stand in for it."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("hkc", *stages):
        shutil.copytree(root / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, folder)
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", cwd=folder)
    (built,) = folder.glob("dist/*.whl")
    return built


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`bin` of a new environment that holds the wheel; what hkc depends on it borrows from this one."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    _run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def test_the_wheel_holds_every_file(root: Path, stages: tuple[str, ...], files: tuple[Path, ...], wheel: Path) -> None:
    in_tree = {f"hkc/{path}" for path in files if path.parts[0] in stages}
    in_tree |= {str(path) for path in files if path.parts[0] == "hkc"}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert in_wheel == in_tree


def test_an_installed_hkc_imports(scripts: Path, tmp_path: Path) -> None:
    where = _run(scripts / "python", "-c", "import hkc; print(hkc.__file__)", cwd=tmp_path)
    assert Path(where).is_relative_to(scripts.parent)


@pytest.mark.skipif(importlib.util.find_spec("hkc.cli") is None, reason="there is no command line yet")
def test_an_installed_hkc_compiles(root: Path, scripts: Path, tmp_path: Path) -> None:
    assert "0.1.0" in _run(scripts / "hkc", "--version", cwd=tmp_path)
    _run(scripts / "hkc", "compile", root / "examples/gemm.hk", "--arch", "gfx942", "-o", "out", cwd=tmp_path)
    assert (tmp_path / "out" / "gemm.gfx942.hsaco").read_bytes().startswith(b"\x7fELF")
